// The text of a chunk as nodes: paragraphs, tables, and marked words. Only the tags that Pagemill itself writes into a
// chunk become elements; everything else, whatever it looks like, stays text.
import { el } from "./dom.js";

const TOKEN = /<(\/?)(table|caption|tr|th|td|em)((?: (?:col|row)span="\d{1,4}"){0,2})>/g;
const SPAN = /(col|row)span="(\d{1,4})"/g;
const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };
const INSIDE = { caption: ["table"], tr: ["table"], th: ["tr"], td: ["tr"], em: null, table: ["root"] };

// marks: a RegExp with the flag g, whose matches are marked.
export function richText(text, { marks = null } = {}) {
  const root = el("div.rich");
  const stack = [{ tag: "root", node: root }];
  const top = () => stack.at(-1);
  const inTable = () => stack.some((one) => one.tag === "table");
  let at = 0;
  for (const found of text.matchAll(TOKEN)) {
    addText(top(), text.slice(at, found.index), inTable(), marks);
    at = found.index + found[0].length;
    const [whole, isEnd, tag, attributes] = found;
    if (isEnd) close(stack, tag, whole);
    else open(stack, tag, attributes, whole);
  }
  addText(top(), text.slice(at), inTable(), marks);
  return root;
}

function open(stack, tag, attributes, whole) {
  const top = stack.at(-1);
  const wanted = INSIDE[tag];
  if (wanted !== null && !wanted.includes(top.tag)) {
    addText(top, whole, false, null);
    return;
  }
  const node = el(tag === "em" ? "mark" : tag);
  for (const [, side, count] of attributes.matchAll(SPAN)) node.setAttribute(`${side}span`, Math.min(Number(count), 1000));
  if (tag === "table") top.node.append(el("div.rich-table", { tabindex: "0", role: "group", "aria-label": "Table" }, node));
  else top.node.append(node);
  stack.push({ tag, node });
}

function close(stack, tag, whole) {
  const place = stack.findLastIndex((one) => one.tag === tag);
  if (place > 0) stack.length = place;
  else addText(stack.at(-1), whole, false, null);
}

function addText({ tag, node }, text, inTable, marks) {
  if (!text || ((tag === "table" || tag === "tr") && !text.trim())) return;
  const shown = inTable ? text.replace(/&(?:amp|lt|gt|quot|#x27);/g, (one) => ENTITIES[one]) : text;
  const place = tag === "root" ? node.appendChild(el("span")) : node;
  place.append(...marked(shown, marks));
}

function marked(text, marks) {
  if (!marks) return [text];
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(marks)) {
    if (!found[0]) continue;
    parts.push(text.slice(at, found.index), el("mark", {}, found[0]));
    at = found.index + found[0].length;
  }
  return [...parts, text.slice(at)];
}

export function marksOf(text) {
  const words = text.trim();
  return words ? new RegExp(words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "giu") : null;
}
