// What JupyterLab loads first: a plain script that says where the extension is. Everything else is ES modules beside it.
//
// JupyterLab hands over its sharing scope: `scope[name][version].get()` promises a factory of the module `name`.
{
  const folder = new URL(".", document.currentScript.src);
  let scope = {};

  const byVersion = (a, b) => b.localeCompare(a, "en", { numeric: true });

  // The newest version that is shared of a module of JupyterLab, or of CodeMirror. Throws when it is not shared.
  async function shared(name) {
    const versions = scope[name];
    if (!versions) throw new Error(`JupyterLab does not share ${name}`);
    const factory = await versions[Object.keys(versions).toSorted(byVersion)[0]].get();
    return factory();
  }

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB["attractor-nb"] = {
    init(sharingScope) {
      scope = sharingScope;
    },
    async get() {
      const { makePlugins } = await import(new URL("extension.js", folder).href);
      const plugins = await makePlugins(shared);
      return () => ({ __esModule: true, default: plugins });
    },
  };
}
