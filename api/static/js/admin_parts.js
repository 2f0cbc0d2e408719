// Small pieces that the operators' pages share: lists that keep their elements, names of documents, pages of a task.
import { el, pageData, setText } from "./dom.js";

// The parts as operators call them.
export const PARTS = { database: "Database", queue: "Redis", index: "Index", store: "File store" };

// Bring a box's children after the items, by key: what stays keeps its element, its focus and what is open in it.
// make(item) gives {node, update(item)}.
export function keyed(box, items, keyOf, make) {
  box.parts ??= new Map();
  const wanted = new Set(items.map(keyOf));
  for (const [key, part] of box.parts) {
    if (!wanted.has(key)) {
      part.node.remove();
      box.parts.delete(key);
    }
  }
  let before = null;
  for (const item of items) {
    const key = keyOf(item);
    if (!box.parts.has(key)) box.parts.set(key, make(item));
    const part = box.parts.get(key);
    const place = before ? before.nextElementSibling : box.firstElementChild;
    if (part.node !== place) box.insertBefore(part.node, place);
    part.update(item);
    before = part.node;
  }
}

// A row of a table: the first cell is its head. columns: [{label, text(item), number}].
export function tableRow(columns) {
  const cells = columns.map(({ label, number }, place) =>
    place ? el("td", { "data-label": label, class: number ? "number" : "" }) : el("th", { scope: "row" }));
  return {
    node: el("tr", {}, ...cells),
    update(item) {
      columns.forEach(({ text }, place) => setText(cells[place], text(item)));
    },
  };
}

// A document's name; it leads to the document where it is one of the reader's own.
export function documentName(task) {
  const name = task.document_name || "a document that is gone";
  const own = task.document_name && task.tenant_id === pageData().tenant_id;
  return own ? el("a", { href: `/datasets/${task.dataset_id}/documents/${task.document_id}` }, name) : el("span", {}, name);
}

// What part of its document a task is about: pages, slides or rows, counted from 1.
export function taskPart(task) {
  if (task.task_type === "prepare") return "looking at the file";
  if (task.task_type === "finish") return "making it findable";
  if (!task.to_page) return "whole file";
  return task.to_page > task.from_page + 1 ? `${task.from_page + 1}–${task.to_page}` : `${task.to_page}`;
}
