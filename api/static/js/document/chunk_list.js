// The chunks of a document, a page of them at a time from the server: filtered by a piece of text or by whether they are
// searched, and opened around any one of them.
import { get } from "../api.js";
import { el, icon, setText } from "../dom.js";
import { plural } from "../format.js";
import { marksOf } from "../rich_text.js";
import { toastError } from "../toast.js";
import { chunkCard } from "./chunk_card.js";
import { addChunk, editChunk, removeChunk, switchChunk } from "./chunk_dialogs.js";
import { ChunkPicks } from "./chunk_picks.js";

const PAGE_SIZE = 30;
const TYPING_MS = 250;

export class ChunkList {
  // onChoose(chunk); onChange(): something was edited; pages: the word for a page, "" where there are none.
  constructor(place, { path, pages, onChoose, onChange }) {
    Object.assign(this, { path, pages, onChoose, onChange });
    Object.assign(this, { page: 1, total: 0, text: "", available: "", chosen: "", canEdit: true, turn: 0, chunks: [] });
    this.filter = el("input.input.input-s", { type: "search", placeholder: "Find in the chunks", "aria-label": "Find in the chunks", maxlength: 200 });
    this.which = el("select.input.input-s.chunk-which", { "aria-label": "Which chunks" },
      el("option", { value: "" }, "All"), el("option", { value: "true" }, "Searched"), el("option", { value: "false" }, "Not searched"));
    this.add = el("button.button.button-s", { type: "button", onclick: () => this.added() }, icon("plus"), "Add");
    this.count = el("p.quiet.small.chunk-count", { role: "status" });
    this.list = el("ol.chunks", { role: "list" });
    this.pager = el("nav.pager", { "aria-label": "Pages of chunks", hidden: true });
    this.picks = new ChunkPicks({ path, run: (doing) => this.done(null, doing) });
    place.append(el("div.chunk-bar", {}, this.filter, this.which, this.add), el("div.row.row-apart", {}, this.count, this.picks.bar), this.list, this.pager);
    let timer = 0;
    this.filter.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.search({ text: this.filter.value }), TYPING_MS);
    });
    this.which.addEventListener("change", () => this.search({ available: this.which.value }));
    this.list.addEventListener("keydown", (event) => this.keyed(event));
  }

  search(change) {
    Object.assign(this, change, { page: 1 });
    return this.load();
  }

  get isFiltered() {
    return Boolean(this.text.trim() || this.available);
  }

  // near: the id of a chunk whose page of the list is wanted. Where the filter hides it, the filter goes.
  async load({ near = "" } = {}) {
    this.turn += 1;
    const turn = this.turn;
    this.list.setAttribute("aria-busy", "true");
    try {
      const found = await get(`${this.path}/reading`, {
        page: near ? "" : this.page, page_size: PAGE_SIZE, near, text: this.text.trim(), available: this.available,
      });
      if (turn !== this.turn) return null;
      this.show(found);
      return found;
    } catch (error) {
      if (turn !== this.turn) return null;
      if (near && this.isFiltered) return this.clear(near);
      setText(this.count, error.message);
      return null;
    } finally {
      if (turn === this.turn) this.list.removeAttribute("aria-busy");
    }
  }

  clear(near) {
    this.filter.value = "";
    this.which.value = "";
    Object.assign(this, { text: "", available: "" });
    return this.load({ near });
  }

  // What has not changed stays as it is: nobody is torn away from what they read.
  show({ chunks, total, page }) {
    Object.assign(this, { chunks, total, page });
    setText(this.count, this.summary());
    this.drawPager();
    const shown = JSON.stringify([chunks, this.text]);
    if (shown !== this.shown) this.draw(chunks);
    this.shown = shown;
    this.mark(this.chosen);
  }

  draw(chunks) {
    const marks = marksOf(this.text);
    const on = {
      choose: (chunk) => this.onChoose(chunk),
      pick: (chunk, is) => this.picks.pick(chunk.id, is),
      edit: (chunk) => this.done(chunk, editChunk(this.path, chunk)),
      remove: (chunk) => this.done(chunk, removeChunk(this.path, chunk)),
      toggle: (chunk, isOn) => this.done(chunk, switchChunk(this.path, chunk, isOn).then(() => true)),
    };
    const cards = chunks.map((chunk) => chunkCard(chunk, { path: this.path, marks, pages: this.pages, canEdit: this.canEdit, on }));
    this.list.replaceChildren(...cards);
    this.picks.begin(this.list);
  }

  summary() {
    const first = (this.page - 1) * PAGE_SIZE + 1;
    if (!this.total) return this.isFiltered ? "No chunk is like this. Try a shorter piece of text." : "No chunks yet.";
    if (this.total <= PAGE_SIZE) return `${plural(this.total, "chunk")}${this.isFiltered ? " found" : ""}`;
    const of = `of ${this.total.toLocaleString("en")}${this.isFiltered ? " found" : ""}`;
    return `${first.toLocaleString("en")}–${(first + this.chunks.length - 1).toLocaleString("en")} ${of}`;
  }

  drawPager() {
    const last = Math.ceil(this.total / PAGE_SIZE);
    this.pager.hidden = last < 2;
    if (last < 2) return;
    const go = (symbol, label, page) => el("button.button.button-s.button-icon", {
      type: "button", "aria-label": label, disabled: page < 1 || page > last, onclick: () => this.turnTo(page),
    }, icon(symbol));
    this.pager.replaceChildren(go("left", "Chunks before", this.page - 1), el("span", {}, `Page ${this.page} of ${last.toLocaleString("en")}`),
      go("right", "Next chunks", this.page + 1));
  }

  async turnTo(page) {
    this.page = page;
    await this.load();
    this.list.scrollTop = 0;
    this.list.querySelector(".chunk-head")?.focus();
  }

  has(chunkId) {
    return this.chunks.some((chunk) => chunk.id === chunkId);
  }

  mark(chunkId) {
    this.chosen = chunkId;
    for (const node of this.list.children) {
      const is = node.dataset.chunk === chunkId;
      node.classList.toggle("chunk-chosen", is);
      const head = node.querySelector(".chunk-head");
      if (is) head.setAttribute("aria-current", "true");
      else head.removeAttribute("aria-current");
    }
  }

  // Bring a chunk into view, from whatever page of the list it is on.
  async reveal(chunkId, { focus = false, scrollPage = true } = {}) {
    if (!this.has(chunkId)) await this.load({ near: chunkId });
    this.mark(chunkId);
    const node = [...this.list.children].find((one) => one.dataset.chunk === chunkId);
    if (!node) return false;
    this.bringIntoView(node, scrollPage);
    if (focus) node.querySelector(".chunk-head").focus({ preventScroll: true });
    return true;
  }

  // Where the list scrolls by itself, the page stays where it is.
  bringIntoView(node, scrollPage) {
    if (getComputedStyle(this.list).overflowY !== "auto") {
      if (scrollPage) node.scrollIntoView({ block: "nearest", behavior: "instant" });
      return;
    }
    const box = this.list.getBoundingClientRect();
    const place = node.getBoundingClientRect();
    if (place.top < box.top || place.height > box.height) this.list.scrollTop += place.top - box.top - 8;
    else if (place.bottom > box.bottom) this.list.scrollTop += place.bottom - box.bottom + 8;
  }

  setEditable(canEdit) {
    if (this.canEdit === canEdit) return;
    this.canEdit = canEdit;
    this.add.disabled = !canEdit;
    this.picks.setEditable(canEdit);
    for (const button of this.list.querySelectorAll(".chunk-tools button")) button.disabled = !canEdit;
  }

  async added() {
    const chunk = await addChunk(this.path);
    if (!chunk) return;
    await this.load({ near: chunk.id });
    this.onChange();
    this.reveal(chunk.id, { focus: true });
  }

  // The focus stays with the chunk, or goes to the one that took its place.
  async done(chunk, doing) {
    try {
      if (!(await doing)) return;
      const at = chunk ? this.chunks.findIndex((one) => one.id === chunk.id) : 0;
      await this.load();
      const node = [...this.list.children].find((one) => one.dataset.chunk === chunk?.id) ?? this.list.children[at];
      node?.querySelector(".chunk-head").focus({ preventScroll: true });
      this.onChange();
    } catch (error) {
      toastError(error, "Not changed");
    }
  }

  keyed(event) {
    const heads = [...this.list.querySelectorAll(".chunk-head")];
    const at = heads.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: heads.length - 1 }[event.key];
    if (at < 0 || to === undefined || !heads[to]) return;
    event.preventDefault();
    heads[to].focus();
    this.onChoose(this.chunks[to]);
  }
}
