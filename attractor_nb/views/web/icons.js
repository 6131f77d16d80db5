// Signs on buttons and in lists, as paths: a font may lack their letters.

import { makeSvg } from "./parts.js";

const ICON_PATHS = {
  find: "M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M10.3 10.3L14 14",
  follow: "M8 3.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M8 .8V5M8 11V15.2M.8 8H5M11 8H15.2",
  smaller: "M3 8H13",
  larger: "M3 8H13M8 3V13",
  whole: "M9.5 2.5H13.5V6.5M6.5 13.5H2.5V9.5M13.2 2.8L9.3 6.7M2.8 13.2L6.7 9.3",
  fold: "M2.5 5.5V2.5H13.5V5.5M2.5 10.5V13.5H13.5V10.5M5 8H11",
  table: "M2.5 4H13.5M2.5 8H13.5M2.5 12H13.5",
  play: "M4.5 2.8L12.5 8L4.5 13.2Z",
  pause: "M5.2 3V13M10.8 3V13",
  taken: "M2.8 8.4L6.4 12L13.2 4.4",
  refused: "M3.8 3.8L12.2 12.2M12.2 3.8L3.8 12.2",
  none: "M4.5 8H11.5",
};

export function makeIcon(name) {
  const frame = { class: `al-icon of-${name}`, viewBox: "0 0 16 16", "aria-hidden": "true" };
  return makeSvg("svg", frame, makeSvg("path", { d: ICON_PATHS[name] }));
}
