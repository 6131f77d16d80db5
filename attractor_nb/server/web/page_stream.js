// The events of a run, while it is live: with a ticket each time, and behind the last event that was had.

import { runPath } from "./page_server.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;

// `onEvent(event)` hears each; `onPause()` is called when the stream has ended or broken, and says by its promise
// whether it is to be resumed.
export function makeStream(server, id, { onEvent, onPause }) {
  let source = null;
  let last = "";
  let wait = FIRST_WAIT_MS;
  let timer = 0;
  let isOpen = false;
  let isClosed = false;
  let round = 0; // what was begun before a rest comes to nothing behind it

  async function open() {
    const mine = (round += 1);
    isOpen = true;
    let ticket;
    try {
      ticket = await server.post(runPath(id, "/events/ticket"));
    } catch {
      if (mine === round) pause();
      return;
    }
    if (isClosed || mine !== round) return;
    const url = server.address(ticket.url);
    if (last) url.searchParams.set("last_event_id", last);
    source = new EventSource(url);
    source.addEventListener("message", (message) => {
      wait = FIRST_WAIT_MS;
      last = message.lastEventId || last;
      onEvent(JSON.parse(message.data));
    });
    // A ticket is good once, so that nothing may be taken up by the browser itself.
    for (const name of ["error", "end", "gap", "fault"]) source.addEventListener(name, pause);
  }

  function hangUp() {
    if (source) source.close();
    source = null;
  }

  async function pause() {
    hangUp();
    clearTimeout(timer);
    const mine = round;
    const isWanted = await onPause();
    if (mine !== round) return;
    isOpen = false;
    if (isClosed || !isWanted) return;
    isOpen = true;
    timer = setTimeout(open, wait);
    if (wait === LONGEST_WAIT_MS) last = ""; // in vain for long: the log may not have that event any more
    wait = Math.min(LONGEST_WAIT_MS, 2 * wait);
  }

  return {
    // Hears the events from now on, if it does not already.
    open: () => isOpen || isClosed || open(),
    // Hears nothing until it is opened again, and then what came meanwhile.
    rest() {
      round += 1;
      isOpen = false;
      clearTimeout(timer);
      hangUp();
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      hangUp();
    },
  };
}
