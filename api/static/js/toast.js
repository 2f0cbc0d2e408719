// Short messages in a corner, for what has no place of its own on the page. Errors stay until they are closed.
import { el, icon } from "./dom.js";

const SHOWN_MS = 5000;
const MOST = 4;
let box = null;

function place() {
  if (!box?.isConnected) {
    box = el("div.toasts", { role: "region", "aria-label": "Messages" });
    document.body.append(box);
  }
  return box;
}

export function toast(text, kind = "good") {
  const isBad = kind === "bad";
  const close = el("button.button.button-plain.button-s.button-icon", { type: "button", "aria-label": "Close", onclick: () => node.remove() }, icon("close"));
  const node = el(`div.toast.toast-${kind}`, { role: isBad ? "alert" : "status" }, icon(isBad ? "warning" : "check"), el("div", {}, text), close);
  place().append(node);
  while (place().children.length > MOST) place().firstElementChild.remove();
  if (!isBad) setTimeout(() => node.remove(), SHOWN_MS);
  return node;
}

// For a catch: what an ApiError says, with the id under which the server's log has it.
export function toastError(error, doing = "") {
  const id = error.requestId ? ` (request ${error.requestId.slice(0, 8)})` : "";
  return toast(`${doing ? `${doing}: ` : ""}${error.message}${id}`, "bad");
}
