// One hit: where it stands, its three scores, its text with the words of the question marked, and why it ranks there.
import { el, icon } from "../dom.js";
import { richText } from "../rich_text.js";

const LONG_CHARS = 700;
const three = (value) => value.toFixed(3);

// explain(): the explanation of the page of hits, asked for once somebody wants it.
export function hitCard(chunk, rank, { weight, isReranked, explain }) {
  const page = chunk.positions[0]?.[0];
  const address = `/datasets/${chunk.dataset_id}/documents/${chunk.document_id}?${page ? `page=${page}&` : ""}chunk=${encodeURIComponent(chunk.id)}`;
  return el("li.card.hit", { dataset: { chunk: chunk.id } },
    el("div.hit-head", {}, el("span.hit-rank", {}, `${rank}.`),
      el("a", { href: address }, chunk.document_keyword, page ? el("span.quiet", {}, `, page ${page}`) : null)),
    scores(chunk, weight, isReranked),
    text(chunk),
    why(chunk, rank, { weight, isReranked, explain }));
}

function scores(chunk, weight, isReranked) {
  const meaning = isReranked ? "Reranker" : "Meaning";
  return el("dl.scores", {}, score("Similarity", chunk.similarity, "bar-good"), score(`Words × ${(1 - weight).toFixed(2)}`, chunk.term_similarity),
    score(`${meaning} × ${weight.toFixed(2)}`, chunk.vector_similarity));
}

function score(label, value, kind = "") {
  return el("div.score", {}, el("dt", {}, label), el("dd", {}, three(value),
    el("progress.bar", { class: kind, value: Math.max(0, value), max: 1, "aria-hidden": "true" })));
}

function text(chunk) {
  const shown = chunk.highlight ?? chunk.content;
  const box = el("div.hit-text", {}, richText(shown));
  if (shown.length < LONG_CHARS) return box;
  box.classList.add("hit-folded");
  const more = el("button.button.button-plain.button-s", { type: "button", "aria-expanded": "false" }, "Show all of it");
  more.addEventListener("click", () => {
    const isFolded = box.classList.toggle("hit-folded");
    more.setAttribute("aria-expanded", String(!isFolded));
    more.textContent = isFolded ? "Show all of it" : "Show less";
  });
  return el("div", {}, box, more);
}

function why(chunk, rank, context) {
  const body = el("div.why-body", { "aria-live": "polite" });
  const details = el("details.why", {}, el("summary", {}, "Why is it here?"), body);
  let isAsked = false;
  details.addEventListener("toggle", async () => {
    if (!details.open || isAsked) return;
    isAsked = true;
    body.replaceChildren(el("p.quiet", {}, "Looking…"));
    try {
      const told = await context.explain();
      const reason = told.chunks.find((one) => one.id === chunk.id)?.explain;
      body.replaceChildren(...(reason ? reasons(chunk, rank, reason, told, context) : [el("p.quiet", {}, "The index has changed meanwhile: search again.")]));
    } catch (error) {
      isAsked = false;
      body.replaceChildren(el("p.error", { role: "alert" }, error.message));
    }
  });
  return details;
}

function reasons(chunk, rank, reason, told, { weight, isReranked }) {
  const parts = [(1 - weight) * chunk.term_similarity, weight * chunk.vector_similarity];
  const sum = `${three(chunk.similarity)} = ${(1 - weight).toFixed(2)} × ${three(chunk.term_similarity)} + ${weight.toFixed(2)} × ${three(chunk.vector_similarity)}`;
  const leading = parts[0] >= parts[1] ? "its words" : isReranked ? "the reranker" : "its meaning";
  const place = (at) => (at === null ? "not among those looked at" : `number ${at}`);
  return [
    el("p", {}, el("span.mono", {}, sum), `. It owes most to ${leading}.`),
    el("p", {}, `By words alone it is ${place(reason.rank_by_words)}, by meaning alone ${place(reason.rank_by_vectors)}; here it is number ${rank}.`),
    isReranked && reason.rerank_score !== null ? el("p", {}, `The reranker gave ${three(reason.rerank_score)}; the vectors alone ${three(reason.cosine)}.`) : null,
    words(reason.words, told.explain.words),
  ].filter(Boolean);
}

function words(own, all) {
  if (!own.length) return el("p.quiet", {}, "The question has no word that is searched for.");
  const of = new Map(all.map((one) => [one.word, one]));
  const rows = own.map((one) => {
    const known = of.get(one.word);
    const name = known?.mistyped ? `${one.word} (taken for ${one.searched_as})` : one.word;
    return el("tr", {}, el("th", { scope: "row" }, name), el("td", { "data-label": "Found in" }, one.found_in.join(", ") || "not here"),
      el("td.number", { "data-label": "Brought" }, three(one.part)), el("td.number", { "data-label": "At most" }, three(known?.highest ?? 0)),
      el("td.number", { "data-label": "Chunks with it" }, (known?.chunks ?? 0).toLocaleString("en")));
  });
  const heads = ["Word", "Found in", "Brought", "At most", "Chunks with it"].map((name, at) => el("th", { scope: "col", class: at > 1 ? "number" : "" }, name));
  return el("div.table-box", {}, el("table.table.table-cards", {}, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows)));
}
