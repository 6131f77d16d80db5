// Controls that ask somebody for something: off while nobody can be asked, and as they were when somebody can again.

const CONTROLS = "button, input, select, textarea";

// `selector` says which of the controls in `root` they are, those too that come later.
export function makeSwitch(root, selector = CONTROLS) {
  const switchedOff = new Set();
  let isOff = false;
  const off = () => {
    for (const control of root.querySelectorAll(selector)) {
      if (control.disabled) continue;
      control.disabled = true;
      switchedOff.add(control);
    }
  };
  const observer = new MutationObserver(off);
  return {
    set(wanted) {
      if (wanted === isOff) return;
      isOff = wanted;
      if (isOff) {
        off();
        observer.observe(root, { childList: true, subtree: true, attributeFilter: ["disabled"] });
      } else {
        observer.disconnect();
        for (const control of switchedOff) control.disabled = false;
        switchedOff.clear();
      }
    },
    close: () => observer.disconnect(),
  };
}

// The same for a view whose host tells when its kernel is gone; what is heard later takes it back.
export function switchOffWhenLost(host, root, selector) {
  const control = makeSwitch(root, selector);
  const stops = [host.onLost(() => control.set(true)), host.listen(() => control.set(false))];
  return () => {
    control.close();
    for (const stop of stops) stop();
  };
}
