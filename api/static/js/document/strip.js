// The pages of a document as a strip of its ranges, each filled by its state: a pattern as well as a colour. One tab
// stop; arrow keys move between the pieces, Enter or a click chooses one.
import { el, svg } from "../dom.js";
import { plural } from "../format.js";

export const STATES = {
  done: "read",
  reused: "reused",
  running: "being read",
  waiting: "waiting",
  paused: "paused",
  partial: "read, but for some pages",
  failed: "failed",
  cancelled: "stopped",
  unread: "could not be read",
};
const LEAST_PX = 3;
const HEIGHT = 28;
const TICKS = 20;
let count = 0;

export function unitText(unit, first, last) {
  if (unit === "whole" || !unit) return "The file";
  return first === last ? `${capital(unit)} ${first}` : `${capital(unit)}s ${first}–${last}`;
}

const capital = (word) => word[0].toUpperCase() + word.slice(1);

export class Strip {
  // onChoose(span, unit): a click tells the unit under the pointer.
  constructor(place, { onChoose = () => {}, label = "Ranges of the document" } = {}) {
    count += 1;
    this.prefix = `strip-${count}`;
    this.onChoose = onChoose;
    this.tip = el("div.strip-tip", { hidden: true, "aria-hidden": "true" });
    this.svg = svg("svg", { class: "strip-svg", height: HEIGHT, role: "group", "aria-label": label });
    this.ticks = el("div.strip-ticks", { "aria-hidden": "true" });
    this.legend = el("ul.strip-legend", { role: "list" });
    this.box = el("div.strip", {}, this.svg, this.tip);
    place.append(this.box, this.ticks, this.legend);
    this.data = null;
    this.svg.addEventListener("keydown", (event) => this.keyed(event));
    this.svg.addEventListener("pointerleave", () => this.hideTip());
    this.svg.addEventListener("focusout", () => this.hideTip());
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  show({ unit, units, spans, counts, unread }) {
    const text = JSON.stringify([unit, units, spans, counts, unread]);
    if (text === this.shown) return;
    this.shown = text;
    this.data = { unit, spans: withUnread(spans, unread), units: Math.max(units, spans.at(-1)?.last ?? 0, 1) };
    this.draw();
    this.drawLegend(counts, unread);
  }

  draw() {
    const width = Math.floor(this.box.clientWidth);
    if (!this.data || !width) return;
    const focused = [...this.svg.querySelectorAll("[data-span]")].indexOf(document.activeElement);
    const { spans, units } = this.data;
    this.svg.setAttribute("width", width);
    const pieces = spans.map((span, at) => this.piece(span, at, width / units, width));
    this.svg.replaceChildren(patterns(this.prefix), ...pieces);
    const stop = pieces[Math.max(focused, 0)];
    stop?.setAttribute("tabindex", "0");
    if (focused >= 0) stop?.focus();
    this.drawTicks(width);
  }

  piece(span, at, unitPx, width) {
    const isSmall = (span.last - span.first + 1) * unitPx < LEAST_PX;
    const size = isSmall ? LEAST_PX : (span.last - span.first + 1) * unitPx;
    const x = Math.min((span.first - 1) * unitPx, width - size);
    const gap = size > 8 ? 1 : 0;
    const label = this.label(span);
    const node = svg("rect", {
      x, y: 2, width: Math.max(1, size - gap), height: HEIGHT - 4, rx: size > 10 ? 3 : 0,
      class: `strip-piece strip-${span.state}`, fill: `url(#${this.prefix}-${span.state})`,
      "data-span": at, tabindex: "-1", role: "button", "aria-label": label,
    });
    node.addEventListener("pointermove", (event) => this.showTip(label, event.clientX - this.box.getBoundingClientRect().left));
    node.addEventListener("focus", () => this.showTip(label, x + size / 2));
    node.addEventListener("click", (event) => this.choose(span, event));
    return node;
  }

  label(span) {
    const tasks = span.tasks > 1 ? `, ${span.tasks} ranges` : "";
    return `${unitText(this.data.unit, span.first, span.last)}: ${STATES[span.state]}${tasks}`;
  }

  choose(span, event) {
    let unit = span.first;
    if (event.clientX) {
      const box = this.svg.getBoundingClientRect();
      const under = Math.ceil(((event.clientX - box.left) / box.width) * this.data.units);
      unit = Math.min(Math.max(under, span.first), span.last);
    }
    this.onChoose(span, unit);
  }

  keyed(event) {
    const pieces = [...this.svg.querySelectorAll("[data-span]")];
    const at = pieces.indexOf(document.activeElement);
    if (at < 0) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.onChoose(this.data.spans[at], this.data.spans[at].first);
      return;
    }
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: pieces.length - 1 }[event.key];
    if (to === undefined || !pieces[to]) return;
    event.preventDefault();
    pieces[at].setAttribute("tabindex", "-1");
    pieces[to].setAttribute("tabindex", "0");
    pieces[to].focus();
  }

  showTip(text, x) {
    this.tip.textContent = text;
    this.tip.hidden = false;
    const half = this.tip.offsetWidth / 2;
    this.tip.style.left = `${Math.min(Math.max(x, half), this.box.clientWidth - half)}px`;
  }

  hideTip() {
    this.tip.hidden = true;
  }

  drawTicks(width) {
    const { units, unit } = this.data;
    if (unit === "whole" || units < 2) {
      this.ticks.replaceChildren();
      return;
    }
    const most = Math.max(1, Math.min(TICKS, Math.floor(width / 56)));
    const step = niceStep(units / most);
    const numbers = [1];
    for (let at = step; at <= units; at += step) if (at > 1) numbers.push(at);
    this.ticks.replaceChildren(...numbers.map((at) => {
      const text = at.toLocaleString("en");
      const half = text.length * 4;
      const tick = el("span", {}, text);
      tick.style.left = `${Math.min(Math.max(((at - 0.5) / units) * width, half), width - half)}px`;
      return tick;
    }));
  }

  // Ranges by state, and pages that could not be read in ranges that were.
  drawLegend(counts, unread) {
    const lost = unread.reduce((sum, one) => sum + one.last - one.first + 1, 0);
    const ranges = { ...counts, done: (counts.done ?? 0) + (counts.partial ?? 0), partial: 0 };
    const entry = (state, text) => el("li", {}, this.sample(state), `${STATES[state]}: `, el("span.number", {}, text));
    const shown = Object.keys(STATES).filter((state) => ranges[state]);
    this.legend.replaceChildren(...shown.map((state) => entry(state, plural(ranges[state], "range"))),
      ...(lost ? [entry("unread", plural(lost, this.data.unit === "whole" ? "part" : this.data.unit))] : []));
  }

  sample(state) {
    const box = svg("svg", { width: 18, height: 14, "aria-hidden": "true", class: "strip-sample" });
    box.append(svg("rect", { x: 0.5, y: 0.5, width: 17, height: 13, rx: 2, class: `strip-piece strip-${state}`, fill: `url(#${this.prefix}-${state})` }));
    return box;
  }
}

// A range that was read but for some pages is cut at them.
function withUnread(spans, unread) {
  return spans.flatMap((span) => {
    const lost = unread.filter((one) => one.first <= span.last && one.last >= span.first);
    if (span.state !== "partial" || !lost.length) return [span];
    const found = [];
    let at = span.first;
    for (const { first, last } of lost) {
      if (first > at) found.push({ first: at, last: first - 1, state: "done", tasks: 1 });
      found.push({ first: Math.max(first, at), last: Math.min(last, span.last), state: "unread", tasks: 1 });
      at = last + 1;
    }
    if (at <= span.last) found.push({ first: at, last: span.last, state: "done", tasks: 1 });
    return found;
  });
}

function niceStep(least) {
  const base = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((times) => times * base).find((step) => step >= least) ?? base * 10;
}

function patterns(prefix) {
  const made = Object.keys(STATES).map((state) => svg("pattern",
    { id: `${prefix}-${state}`, width: 8, height: 8, patternUnits: "userSpaceOnUse", patternTransform: DRAWN[state]?.turn ?? null },
    svg("rect", { width: 8, height: 8, class: `strip-ground-${state}` }), ...(DRAWN[state]?.lines ?? []).map((d) => svg("path", { d, class: `strip-line-${state}` }))));
  return svg("defs", {}, ...made);
}

const DRAWN = {
  reused: { lines: ["M4 0v8"] },
  running: { turn: "rotate(45)", lines: ["M2 0v8"] },
  waiting: { lines: ["M3 4h2"] },
  paused: { lines: ["M0 2h8", "M0 6h8"] },
  partial: { turn: "rotate(-45)", lines: ["M4 0v8"] },
  failed: { turn: "rotate(45)", lines: ["M4 0v8", "M0 4h8"] },
  cancelled: { turn: "rotate(45)", lines: ["M4 0v8"] },
  unread: { turn: "rotate(45)", lines: ["M4 0v8", "M0 4h8"] },
};
