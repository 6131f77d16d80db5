// Where a view lives. A view knows only a host:
//
//   host.get(name)               a value that was given with the view, or has come since
//   host.on(name, listener)      call when that value was set anew; returns a function that stops it
//   host.send(message)           to Python, or to the server; a page without either drops it
//   host.listen(listener)        call with each message from there; returns a function that stops it
//   host.onLost(listener)        call when who answers is gone; returns a function that stops it
//   host.isLive                  whether somebody answers
//   host.who                     who that is, in a word, where it is no kernel: "server"
//
// `asWidget` makes what anywidget wants of a view; `staticHost` serves a page that stands alone.

export function jupyterHost(model) {
  const stopping = (name, listener) => {
    model.on(name, listener);
    return () => model.off(name, listener);
  };
  const losers = new Set();
  return {
    isLive: true,
    get: (name) => model.get(name),
    on: (name, listener) => stopping(`change:${name}`, () => listener(model.get(name))),
    send(message) {
      try {
        model.send(message);
      } catch {
        for (const listener of losers) listener(); // it was shut down, which nothing else says
      }
    },
    listen: (listener) => stopping("msg:custom", listener),
    onLost(listener) {
      losers.add(listener);
      const stop = stopping("comm_live_update", () => listener()); // a restart; also said when a model is made
      return () => {
        losers.delete(listener);
        stop();
      };
    },
  };
}

export function staticHost(values) {
  const nothing = () => {};
  return { isLive: false, get: (name) => values[name], on: () => nothing, send: nothing, listen: () => nothing, onLost: () => nothing };
}

// A view is a function of (host, el, shared) that returns one that ends it; `share`, if there is one, makes
// of the host what all views of one model have in common, or of a view that stands in for a place what ends it.
export function asWidget(view, share) {
  return () => {
    let host = null;
    let shared;
    return {
      initialize({ model }) {
        host = jupyterHost(model);
        if (share) shared = share(host);
        return typeof shared === "function" ? shared : undefined;
      },
      render({ el }) {
        return view(host, el, shared);
      },
    };
  };
}
