// A chart of stacked bars over time: drawn as SVG at its own width, with a text that says what it shows and a table of
// the same numbers. Series differ by pattern as well as by colour.
import { el, setText, svg } from "./dom.js";
import { number } from "./format.js";

const HEIGHT = 132;
const GAP = 1;
let count = 0;

// series: [{key, label, pattern: "" | "hatch" | "dots"}]; unit: what the y axis counts.
export class Chart {
  constructor(box, { title, unit, series, digits = 0 }) {
    count += 1;
    Object.assign(this, { box, title, unit, series, digits, id: `chart-${count}`, bars: [] });
    this.drawing = svg("svg", { role: "img", height: HEIGHT, "aria-labelledby": `${this.id}-title ${this.id}-text` });
    this.top = el("span.chart-top.number");
    this.none = el("span.chart-none", { hidden: true }, "Nothing in this time");
    this.start = el("span");
    this.end = el("span");
    this.body = el("tbody");
    const legend = el("span.chart-legend", {}, ...series.map((one) => el("span", {}, swatch(one), one.label)));
    const head = el("tr", {}, el("th", { scope: "col" }, "From"), ...series.map((one) => el("th.number", { scope: "col" }, one.label)));
    this.table = el("details.more", {}, el("summary", {}, "As a table"),
      el("div.chart-table", { tabindex: "0", role: "region", "aria-label": `${title}, as a table` }, el("table.table", {}, el("thead", {}, head), this.body)));
    this.table.addEventListener("toggle", () => this.fillTable());
    box.replaceChildren(
      el("figcaption.row.row-apart", {}, el("strong", {}, title, " ", el("span.quiet", {}, unit)), legend),
      el("div.chart-plot", {}, this.top, this.drawing, this.none),
      el("div.chart-axis.quiet.number", { "aria-hidden": "true" }, this.start, this.end),
      this.table,
    );
    new ResizeObserver(() => this.draw()).observe(this.drawing.parentNode);
  }

  // bars: [{label, values: {key: n}, partial}], oldest first.
  show(bars, { start, end, text }) {
    Object.assign(this, { bars, text });
    setText(this.start, start);
    setText(this.end, end);
    this.draw();
    this.fillTable();
  }

  draw() {
    const width = Math.floor(this.drawing.parentNode.clientWidth);
    if (!width || !this.bars.length) return;
    const highest = Math.max(...this.bars.map((bar) => this.sum(bar)));
    const most = niceTop(highest);
    this.none.hidden = highest > 0;
    setText(this.top, number(most));
    const step = width / this.bars.length;
    const scale = (HEIGHT - 1) / most;
    const nodes = [svg("title", { id: `${this.id}-title` }, `${this.title}, ${this.unit}`), svg("desc", { id: `${this.id}-text` }, this.text), patterns(this.id)];
    nodes.push(line(0.5, width), line(HEIGHT / 2, width), line(HEIGHT - 0.5, width));
    this.bars.forEach((bar, place) => nodes.push(...this.bar(bar, place * step, step, scale)));
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.drawing.setAttribute("width", width);
    this.drawing.replaceChildren(...nodes);
  }

  bar(bar, x, step, scale) {
    let y = HEIGHT - 1;
    const drawn = [];
    for (const { key, pattern } of this.series) {
      const value = bar.values[key];
      if (value <= 0) continue;
      const height = Math.max(1, value * scale);
      y -= height;
      const place = { x: x + GAP / 2, y, width: Math.max(1, step - GAP), height };
      drawn.push(svg("rect", { ...place, class: `bar-${key}${bar.partial ? " bar-partial" : ""}` }));
      if (pattern) drawn.push(svg("rect", { ...place, fill: `url(#${this.id}-${pattern})` }));
    }
    const words = this.series.map((one) => `${one.label} ${this.told(bar.values[one.key])}`).join(", ");
    const touch = svg("rect", { x, y: 0, width: step, height: HEIGHT, fill: "transparent" }, svg("title", {}, `${bar.label}: ${words}`));
    return [...drawn, touch];
  }

  fillTable() {
    if (!this.table.open) return;
    this.body.replaceChildren(...[...this.bars].reverse().map((bar) => el("tr", {}, el("th", { scope: "row" }, bar.label),
      ...this.series.map((one) => el("td.number", {}, this.told(bar.values[one.key]))))));
  }

  sum(bar) {
    return this.series.reduce((sum, one) => sum + bar.values[one.key], 0);
  }

  told(value) {
    return number(Number(value.toFixed(this.digits)));
  }
}

// 1, 2, 5, 10, 20, 50 …: the axis changes its end seldom.
function niceTop(most) {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= most - 1e-9);
}

const line = (y, width) => svg("line", { x1: 0, x2: width, y1: y, y2: y, class: "chart-line" });

function patterns(id) {
  const hatch = svg("pattern", { id: `${id}-hatch`, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { width: 2, height: 5, class: "chart-mark" }));
  const dots = svg("pattern", { id: `${id}-dots`, width: 5, height: 5, patternUnits: "userSpaceOnUse" }, svg("circle", { cx: 2.5, cy: 2.5, r: 1, class: "chart-mark" }));
  return svg("defs", {}, hatch, dots);
}

function swatch({ key, pattern }) {
  count += 1;
  const id = `swatch-${count}`;
  const shape = { x: 0, y: 0, width: 14, height: 14 };
  const parts = [patterns(id), svg("rect", { ...shape, class: `bar-${key}` })];
  if (pattern) parts.push(svg("rect", { ...shape, fill: `url(#${id}-${pattern})` }));
  return svg("svg", { class: "swatch", viewBox: "0 0 14 14", "aria-hidden": "true" }, ...parts);
}
