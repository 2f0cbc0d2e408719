// A state by shape, word and colour: the same as templates/components/state.html makes on the server.
import { el, icon } from "./dom.js";

export const WORDS = {
  unstarted: "Not parsed",
  queued: "Waiting",
  running: "Parsing",
  paused: "Paused",
  done: "Ready",
  failed: "Failed",
  cancelled: "Stopped",
  deleted: "Deleted",
};

export function stateBadge(key, word = WORDS[key] ?? key) {
  return el(`span.state.state-${key}`, { dataset: { state: key } }, icon(`state-${key}`), word);
}
