// A button at each block of code that copies its text.
for (const block of document.querySelectorAll("div.highlight")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const text = block.querySelector("pre").innerText;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // A page from the disk may have no clipboard: select the text, for the keys.
      getSelection().selectAllChildren(block.querySelector("pre"));
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
      return;
    }
    button.textContent = "Copied";
  });
  block.append(button);
}
