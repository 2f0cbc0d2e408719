// Server-Sent Events with the session's cookie. An EventSource comes back by itself and says where it was; one that the
// server turned away does not, so it is opened anew, later each time.
const BASE = "/api/v1";
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 30000;

// onState(object) for each state; onReset() where too much was missed, and a list must be fetched again;
// onLink(true|false) when the connection comes and goes. Returns a function that ends it.
export function follow(path, { onState, onReset = () => {}, onLink = () => {} }) {
  let source = null;
  let waitMs = FIRST_WAIT_MS;
  let timer = 0;
  let isOver = false;
  let lastId = "";

  function open() {
    const resume = lastId ? `${path.includes("?") ? "&" : "?"}last_event_id=${encodeURIComponent(lastId)}` : "";
    source = new EventSource(BASE + path + resume);
    source.onopen = () => {
      waitMs = FIRST_WAIT_MS;
      onLink(true);
    };
    source.onmessage = (event) => {
      lastId = event.lastEventId || lastId;
      onState(JSON.parse(event.data));
    };
    source.addEventListener("reset", () => onReset());
    source.onerror = () => {
      onLink(false);
      if (source.readyState !== EventSource.CLOSED || isOver) return;
      timer = setTimeout(open, waitMs);
      waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
    };
  }

  function close() {
    isOver = true;
    clearTimeout(timer);
    source?.close();
  }

  open();
  addEventListener("pagehide", close, { once: true });
  addEventListener("pageshow", (event) => {
    if (event.persisted && isOver) {
      isOver = false;
      open();
    }
  });
  return close;
}
