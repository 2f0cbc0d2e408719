// The first page: cards follow what is on its way, and the first steps can be hidden once they are known.
import { get } from "./api.js";
import { setText } from "./dom.js";
import { number } from "./format.js";
import { keep, kept } from "./kept.js";
import { stateBadge } from "./state.js";

const LOOK_MS = 4000;
const cards = new Map([...document.querySelectorAll("#cards > li")].map((card) => [card.dataset.id, card]));

const guide = document.getElementById("guide");
if (guide) {
  const close = document.getElementById("guide-close");
  if (!close.hidden && kept("guide-hidden")) guide.hidden = true;
  close.addEventListener("click", () => {
    keep("guide-hidden", "1");
    guide.hidden = true;
  });
}

const isBusy = () => [...cards.values()].some((card) => card.querySelector(".state-running"));

async function look() {
  if (document.hidden || !isBusy()) return;
  const found = await get("/datasets", { ids: [...cards.keys()].join(","), include_parsing_status: true, page_size: cards.size });
  for (const dataset of found) show(cards.get(dataset.id), dataset);
}

function show(card, dataset) {
  const [state, word] = stateOf(dataset.parsing_status);
  const place = card.querySelector('[data-part="state"]');
  if (place.textContent.trim() !== word) place.replaceChildren(stateBadge(state, word));
  setText(card.querySelector('[data-part="documents"]'), number(dataset.document_count));
  setText(card.querySelector('[data-part="chunks"]'), number(dataset.chunk_count));
}

// In the order of api/apps/ui/dataset_cards.py.
function stateOf(counts) {
  const unstarted = counts.unstart_count + counts.cancel_count;
  if (counts.running_count) return ["running", `${number(counts.running_count)} on the way`];
  if (counts.fail_count) return ["failed", `${number(counts.fail_count)} failed`];
  if (unstarted) return ["unstarted", `${number(unstarted)} not parsed`];
  return counts.done_count ? ["done", "All ready"] : ["none", "Empty"];
}

if (isBusy()) setInterval(() => look().catch(() => {}), LOOK_MS);
