const parse = (text) => {
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  probe.fillStyle = text;
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = probe.getImageData(0, 0, 1, 1).data;
  return [red, green, blue, alpha / 255];
};
const over = (top, below) => [0, 1, 2].map((n) => top[n] * top[3] + below[n] * (1 - top[3])).concat(1);
const linear = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
const luminance = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
const ratio = (one, other) => {
  const [high, low] = [luminance(one), luminance(other)].toSorted((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};
// In SVG the ground is what is painted below: the shapes of the same group that come before the text.
const svgGround = (element) => {
  const box = element.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  let found = null;
  for (const shape of element.ownerSVGElement.querySelectorAll("rect, path, polygon, ellipse, circle")) {
    if (shape === element || !(shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
    const style = getComputedStyle(shape);
    const place = shape.getBoundingClientRect();
    const isBelow = place.left <= x && x <= place.right && place.top <= y && y <= place.bottom && place.width * place.height > 200;
    if (!isBelow || style.fill === "none" || style.visibility === "hidden" || style.display === "none") continue;
    const fill = parse(style.fill);
    fill[3] *= Number(style.fillOpacity) * Number(style.opacity);
    if (fill[3] > 0) found = found ? over(fill, found) : fill;
  }
  return found;
};
const ground = (element) => {
  const layers = [];
  const own = element.ownerSVGElement && svgGround(element);
  if (own) layers.push(own);
  for (let each = element; each; each = each.parentElement) layers.push(parse(getComputedStyle(each).backgroundColor));
  return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255, 1]);
};
const opacity = (element) => {
  let product = 1;
  for (let each = element; each; each = each.parentElement) product *= Number(getComputedStyle(each).opacity);
  return product;
};

// What is written in an element, and how far its colours stand apart: [text, ratio, colour, background, class] of each text.
export function contrastsIn(root) {
  const found = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    if (!text || ["STYLE", "SCRIPT", "TITLE", "OPTION"].includes(element.tagName)) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const { width, height } = range.getBoundingClientRect();
    const isShown = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    if (!isShown || width < 2 || height < 2 || element.closest(":disabled, [aria-disabled=true]")) continue;
    const style = getComputedStyle(element);
    const behind = ground(element);
    const ink = parse(element.ownerSVGElement ? style.fill : style.color);
    ink[3] *= opacity(element);
    found.push([text.slice(0, 40), Math.round(ratio(over(ink, behind), behind) * 100) / 100, style.color, behind.slice(0, 3).map(Math.round).join(), element.getAttribute("class") ?? element.tagName]);
  }
  return found;
}
