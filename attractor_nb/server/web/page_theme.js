// In a frame of JupyterLab the page is as light or dark as JupyterLab is; elsewhere as the browser is.

export function followJupyter() {
  let theirs = null;
  try {
    theirs = window.parent === window ? null : window.parent.document.body;
  } catch {
    return; // a page of another origin: nothing is known of it
  }
  if (!theirs) return;
  const follow = () => {
    const isLight = theirs.dataset.jpThemeLight;
    if (isLight !== undefined) document.body.dataset.jpThemeLight = isLight;
  };
  new MutationObserver(follow).observe(theirs, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  follow();
}
