// A host (host.js) whose values and messages come from the page: it is told what the server says.

export function makePageHost(values, onMessage) {
  const listeners = new Map();
  const hearers = new Set();
  const losers = new Set();
  const adding = (set, one) => {
    set.add(one);
    return () => set.delete(one);
  };
  return {
    isLive: true,
    who: "server",
    get: (name) => values[name],
    on(name, listener) {
      if (!listeners.has(name)) listeners.set(name, new Set());
      return adding(listeners.get(name), listener);
    },
    send: onMessage,
    listen: (hearer) => adding(hearers, hearer),
    onLost: (loser) => adding(losers, loser),
    // For the page.
    set(name, value) {
      values[name] = value;
      for (const listener of listeners.get(name) || []) listener(value);
    },
    tell(message) {
      for (const hearer of hearers) hearer(message);
    },
    lose() {
      for (const loser of losers) loser();
    },
  };
}
