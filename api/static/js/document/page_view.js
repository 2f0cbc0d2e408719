// A page of the document as a picture, with a box over each place of a chunk. The picture's size is known before it
// comes, so nothing jumps; boxes are at shares of the page, so they fit any width.
import { get } from "../api.js";
import { el, icon, setText } from "../dom.js";

const WIDTHS = [700, 1000, 1400, 2000];

export class PageView {
  // onChoose(chunk): a box was chosen; onPage(page): another page is asked for.
  constructor(place, { path, pageCount, onChoose, onPage }) {
    Object.assign(this, { path, pageCount, onChoose, onPage });
    this.page = 0;
    this.chosen = "";
    this.turn = 0;
    this.number = el("input.input.input-s.page-number", { type: "number", min: 1, max: pageCount, "aria-label": "Page", inputmode: "numeric" });
    this.before = this.step("left", "Page before", -1);
    this.after = this.step("right", "Next page", 1);
    this.zoom = el("button.button.button-s", { type: "button", "aria-pressed": "false", "aria-label": "Enlarge the page", onclick: () => this.toggleZoom() }, icon("search"), el("span.page-zoom-word", {}, "Enlarge"));
    this.note = el("p.page-note", { role: "status" });
    this.picture = el("img.page-picture", { alt: "", decoding: "async" });
    this.boxes = el("div.page-boxes");
    this.sheet = el("div.page-sheet", {}, this.picture, this.boxes);
    this.frame = el("div.page-frame", { tabindex: "0", role: "group", "aria-label": "Picture of the page" }, this.sheet);
    place.append(
      el("div.page-tools", {}, this.before, this.number, el("span.quiet.small", {}, `of ${pageCount.toLocaleString("en")}`), this.after, el("span.push"), this.zoom),
      this.frame, this.note);
    this.number.addEventListener("change", () => this.ask(Number(this.number.value)));
    this.frame.addEventListener("keydown", (event) => {
      if (event.target !== this.frame) return;
      const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -1, PageDown: 1 }[event.key];
      if (by) {
        event.preventDefault();
        this.ask(this.page + by);
      }
    });
    this.picture.addEventListener("load", () => this.frame.removeAttribute("aria-busy"));
  }

  step(symbol, label, by) {
    return el("button.button.button-s.button-icon", { type: "button", "aria-label": label, onclick: () => this.ask(this.page + by) }, icon(symbol));
  }

  ask(page) {
    const wanted = Math.min(Math.max(Math.round(page) || 1, 1), this.pageCount);
    this.number.value = wanted;
    if (wanted !== this.page) this.onPage(wanted);
  }

  // Resolves when the page's size and its chunks are known; the picture follows by itself.
  async show(page) {
    if (page === this.page) return;
    this.page = page;
    this.turn += 1;
    const turn = this.turn;
    this.number.value = page;
    this.before.disabled = page <= 1;
    this.after.disabled = page >= this.pageCount;
    this.frame.setAttribute("aria-busy", "true");
    this.boxes.replaceChildren();
    this.picture.removeAttribute("src");
    setText(this.note, "");
    const [facts, chunks] = await Promise.allSettled([
      get(`${this.path}/pages/${page}`, { width: this.pixels() }),
      get(`${this.path}/reading`, { on_page: page, page_size: 100 }),
    ]);
    if (turn !== this.turn) return;
    if (facts.status === "rejected") {
      this.refuse(facts.reason.message);
    } else {
      this.facts = facts.value;
      this.sheet.style.aspectRatio = `${facts.value.width} / ${facts.value.height}`;
      this.picture.src = facts.value.picture;
      this.picture.alt = `Page ${page}`;
      this.sheet.hidden = false;
    }
    this.place(chunks.status === "fulfilled" ? chunks.value.chunks : []);
  }

  async refresh() {
    const page = this.page;
    this.page = 0;
    if (page) await this.show(page);
  }

  refuse(message) {
    this.facts = null;
    this.sheet.hidden = true;
    this.picture.removeAttribute("src");
    this.frame.removeAttribute("aria-busy");
    setText(this.note, `This page can’t be drawn: ${message}`);
  }

  pixels() {
    const wanted = (this.frame.clientWidth || 700) * Math.min(devicePixelRatio || 1, 2) * (this.isZoomed ? 2 : 1);
    return WIDTHS.find((width) => width >= wanted) ?? WIDTHS.at(-1);
  }

  place(chunks) {
    this.chunks = chunks;
    if (!this.facts) return;
    const boxes = chunks.flatMap((chunk) => joined(chunk.positions.filter(([page]) => page === this.page))
      .map((position, at) => this.box(chunk, position, at)));
    // Small ones above large ones: each can be reached.
    boxes.sort((a, b) => b.area - a.area);
    this.boxes.replaceChildren(...boxes.map((one) => one.node));
    if (!boxes.length && !this.note.textContent) setText(this.note, "No chunk has a place on this page.");
    this.mark(this.chosen);
  }

  box(chunk, [, left, right, top, bottom], at) {
    const { width, height } = this.facts;
    const words = chunk.content.replace(/<[^>]*>/g, " ").trim().slice(0, 60);
    const node = el("button.page-box", {
      type: "button", dataset: { chunk: chunk.id }, tabindex: at ? "-1" : "0",
      class: chunk.available ? "" : "page-box-off", "aria-label": `Chunk ${chunk.number}: ${words}`,
      onclick: () => this.onChoose(chunk),
    }, at ? null : el("span.page-box-number", {}, String(chunk.number)));
    const pad = 2;
    node.style.left = `${share(left - pad, width)}%`;
    node.style.top = `${share(top - pad, height)}%`;
    node.style.width = `${share(right - left + 2 * pad, width)}%`;
    node.style.height = `${share(bottom - top + 2 * pad, height)}%`;
    return { node, area: (right - left) * (bottom - top) };
  }

  mark(chunkId, { reveal = false } = {}) {
    this.chosen = chunkId;
    let first = null;
    for (const node of this.boxes.children) {
      const is = node.dataset.chunk === chunkId;
      node.classList.toggle("page-box-chosen", is);
      if (is) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
      if (is && (!first || node.offsetTop < first.offsetTop)) first = node;
    }
    if (reveal && first) this.frame.scrollTo({ top: first.offsetTop - this.frame.clientHeight / 3, left: first.offsetLeft - 40, behavior: "instant" });
  }

  toggleZoom() {
    this.isZoomed = !this.isZoomed;
    this.frame.classList.toggle("page-frame-zoomed", this.isZoomed);
    this.zoom.setAttribute("aria-pressed", String(this.isZoomed));
    setText(this.zoom.querySelector(".page-zoom-word"), this.isZoomed ? "Whole page" : "Enlarge");
    this.refresh().then(() => this.mark(this.chosen, { reveal: true }));
  }
}

// Rows of a table stand one below the other: they are one place.
function joined(positions) {
  const found = [];
  for (const [page, left, right, top, bottom] of positions) {
    const last = found.at(-1);
    const isBelow = last && Math.abs(last[1] - left) < 3 && Math.abs(last[2] - right) < 3 && top >= last[3] && top - last[4] < 5;
    if (isBelow) last[4] = Math.max(last[4], bottom);
    else found.push([page, left, right, top, bottom]);
  }
  return found;
}

const share = (part, whole) => Math.max(0, Math.round((part / whole) * 1e5) / 1e3);
