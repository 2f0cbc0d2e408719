// One chunk in the list: where it stands, what it says, and what can be done with it.
import { el, icon } from "../dom.js";
import { richText } from "../rich_text.js";

const KINDS = { table: "Table", image: "Picture", video: "Picture" };
const LONG_CHARS = 1400;

// on: {choose(chunk), pick(chunk, is), edit(chunk), toggle(chunk, isOn), remove(chunk)}
export function chunkCard(chunk, { path, marks, pages, canEdit, on }) {
  const head = el("button.chunk-head", { type: "button", onclick: () => on.choose(chunk) }, el("span.chunk-number", {}, `${chunk.number}`),
    el("span.only-read", {}, " chunk "), pages && chunk.page ? el("span.quiet", {}, `${pages} ${pageText(chunk)}`) : null);
  const node = el("li.chunk", { dataset: { chunk: chunk.id }, class: chunk.available ? "" : "chunk-off" },
    el("div.chunk-top", {}, pick(chunk, on), head, el("span.chunk-tags", {}, ...tags(chunk)), tools(chunk, canEdit, on)),
    chunk.headings.length ? el("p.chunk-path", {}, chunk.headings.join(" › ")) : null,
    body(chunk, marks, path),
    words("Keywords", chunk.important_keywords), words("Questions", chunk.questions));
  node.addEventListener("click", (event) => {
    if (event.target.closest("button, a, input, label, summary") || String(getSelection())) return;
    on.choose(chunk);
  });
  return node;
}

function pick(chunk, on) {
  const box = el("input.chunk-pick", { type: "checkbox", value: chunk.id, "aria-label": `Pick chunk ${chunk.number}` });
  box.addEventListener("change", () => on.pick(chunk, box.checked));
  return box;
}

function pageText(chunk) {
  const pages = [...new Set(chunk.positions.map(([page]) => page))].sort((a, b) => a - b);
  if (pages.length < 2) return String(pages[0] ?? chunk.page);
  return `${pages[0]}–${pages.at(-1)}`;
}

function tags(chunk) {
  return [
    KINDS[chunk.kind] ? el("span.tag", {}, KINDS[chunk.kind]) : null,
    chunk.is_added ? el("span.tag", {}, "Added by hand") : null,
    chunk.available ? null : el("span.tag", {}, icon("eye-off"), " Not searched"),
    el("span.quiet.small.number", {}, `${chunk.token_count.toLocaleString("en")} tokens`),
  ].filter(Boolean);
}

function tools(chunk, canEdit, on) {
  const name = `chunk ${chunk.number}`;
  const button = (symbol, label, act) =>
    el("button.button.button-plain.button-s.button-icon", { type: "button", title: label, "aria-label": `${label} ${name}`, disabled: !canEdit, onclick: act }, icon(symbol));
  return el("span.chunk-tools", {},
    button(chunk.available ? "eye" : "eye-off", chunk.available ? "Leave out of searches:" : "Let searches find:", () => on.toggle(chunk, !chunk.available)),
    button("edit", "Edit", () => on.edit(chunk)),
    button("delete", "Delete", () => on.remove(chunk)));
}

function body(chunk, marks, path) {
  const text = richText(chunk.content, { marks });
  const box = el("div.chunk-text", {}, chunk.picture ? figure(chunk, path) : null, text);
  if (chunk.content.length < LONG_CHARS) return box;
  box.classList.add("chunk-folded");
  const more = el("button.button.button-plain.button-s", { type: "button", "aria-expanded": "false" }, "Show all of it");
  more.addEventListener("click", () => {
    const isFolded = box.classList.toggle("chunk-folded");
    more.setAttribute("aria-expanded", String(!isFolded));
    more.textContent = isFolded ? "Show all of it" : "Show less";
  });
  return el("div", {}, box, more);
}

function figure(chunk, path) {
  const address = `/api/v1${path}/pictures?${chunk.picture}&width=480`;
  const picture = el("img.chunk-figure", { src: address, alt: `The picture of chunk ${chunk.number}`, loading: "lazy" });
  picture.addEventListener("error", () => picture.remove());
  return picture;
}

function words(label, list) {
  if (!list.length) return null;
  return el("p.chunk-words", {}, el("span.quiet", {}, `${label}: `), ...list.map((one) => el("span.tag", {}, one)));
}
