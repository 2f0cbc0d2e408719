// A row of the table: built once, then only what has changed is written. Its three lines keep their height.
import { el, icon, setText } from "./dom.js";
import { ago, bytes, estimate, number, percent, time } from "./format.js";
import { stateBadge } from "./state.js";

const ON_THE_WAY = ["queued", "running", "paused"];
const MAIN_ACT = {
  unstarted: ["parse", "play", "Parse"],
  queued: ["stop", "stop", "Stop"],
  running: ["stop", "stop", "Stop"],
  paused: ["resume", "play", "Resume"],
  done: ["parse", "again", "Parse again"],
  failed: ["parse", "again", "Parse again"],
  cancelled: ["parse", "play", "Parse"],
};
const MORE_ACTS = {
  queued: [["pause", "pause", "Pause"]],
  running: [["pause", "pause", "Pause"]],
  paused: [["stop", "stop", "Stop"]],
};

export class DocumentRow {
  constructor(document_, datasetId) {
    this.id = document_.job_id;
    this.datasetId = datasetId;
    this.data = document_;
    this.build();
    this.show(document_);
  }

  build() {
    const { data } = this;
    this.pick = el("input", { type: "checkbox", dataset: { act: "pick" } });
    this.link = el("a", { href: `/datasets/${this.datasetId}/documents/${this.id}` });
    this.kind = el("span.kind", {}, (data.suffix ?? "").toUpperCase());
    this.badge = el("span");
    this.figures = el("span.figures");
    this.bar = el("progress.bar", { max: "1" });
    this.sentence = el("p.sentence");
    this.told = el("div.told", {}, el("div.told-top", {}, this.badge, this.figures), this.bar, this.sentence);
    this.chunks = el("td.col-number.number");
    this.toggle = el("input", { type: "checkbox", role: "switch", dataset: { act: "enable" } });
    this.main = el("button.button.button-s.button-icon.button-plain", { type: "button" });
    this.menu = el("details.menu", {},
      el("summary.button.button-s.button-icon.button-plain", {}, icon("dots"), this.menuName = el("span.only-read")), el("div.menu-list"));
    this.menu.addEventListener("toggle", () => this.fillMenu());
    this.node = el("tr", { dataset: { id: this.id } },
      el("td.col-pick", {}, this.pick),
      el("th.name", { scope: "row" }, this.link, this.kind),
      el("td.col-state", {}, this.told),
      this.chunks,
      el("td.col-number.number", {}, bytes(data.size_bytes)),
      el("td.col-date.quiet", { title: time(Date.parse(data.created_at)) }, ago(Date.parse(data.created_at))),
      el("td.col-switch", {}, el("label.switch", {}, this.toggle, el("span.switch-word", {}, "Searched"))),
      el("td.col-tools.tools", {}, el("div.tools-pair", {}, this.main, this.menu)));
  }

  // A state from the list or from the stream; the stream says nothing of type and switch.
  update(state) {
    this.data = { ...this.data, ...state };
    if (state.result) this.data.chunk_count = state.result.chunk_count;
    this.show(this.data);
  }

  show(data) {
    const { status, name } = data;
    setText(this.link, name);
    this.link.title = name;
    if (this.node.dataset.state !== status) this.showStatus(status, name);
    setText(this.figures, figuresOf(data));
    const isMoving = ON_THE_WAY.includes(status);
    this.bar.toggleAttribute("data-hidden", !isMoving && !(status === "cancelled" && data.progress > 0));
    this.bar.value = Math.max(0, Math.min(1, data.progress));
    this.bar.classList.toggle("bar-still", status === "paused" || status === "cancelled");
    const words = sentenceOf(data);
    setText(this.sentence, words);
    this.sentence.title = words;
    setText(this.chunks, data.chunk_count ? number(data.chunk_count) : "–");
    this.toggle.checked = data.is_enabled;
    this.node.dataset.enabled = String(data.is_enabled);
  }

  showStatus(status, name) {
    this.node.dataset.state = status;
    this.told.dataset.state = status;
    this.badge.replaceChildren(stateBadge(status));
    this.bar.setAttribute("aria-label", `Progress of ${name}`);
    this.pick.setAttribute("aria-label", `Select ${name}`);
    this.toggle.setAttribute("aria-label", `Searched: ${name}`);
    setText(this.menuName, `More for ${name}`);
    const [act, symbol, label] = MAIN_ACT[status] ?? MAIN_ACT.done;
    this.main.dataset.act = act;
    this.main.title = label;
    this.main.setAttribute("aria-label", `${label}: ${name}`);
    this.main.replaceChildren(icon(symbol));
  }

  fillMenu() {
    if (!this.menu.open) return;
    const { data } = this;
    const more = MORE_ACTS[data.status] ?? [];
    const failed = data.status === "failed" && !data.error?.is_permanent ? [["replay", "again", "Try the failed parts again"]] : [];
    const acts = [...more, ...failed, ["rename", "edit", "Rename"], ["delete", "delete", "Delete"]];
    this.menu.querySelector(".menu-list").replaceChildren(
      el("a", { href: this.link.getAttribute("href") }, icon("eye"), "Open"),
      el("a", { href: `/api/v1/datasets/${this.datasetId}/documents/${this.id}`, download: data.name }, icon("download"), "Download the file"),
      ...acts.map(([act, symbol, label]) => el("button", { type: "button", dataset: { act } }, icon(symbol), label)));
  }

  select(isSelected) {
    this.pick.checked = isSelected;
    this.node.setAttribute("aria-selected", String(isSelected));
  }
}

// "35 of 120 pages · 29 % · about 2 min left · 40 % reused"
export function figuresOf(data) {
  const parts = [];
  const { units, tasks, status } = data;
  const isMoving = ON_THE_WAY.includes(status);
  if (units && isMoving) parts.push(`${number(units.done)} of ${number(units.total)} ${units.unit}s`);
  else if (units && status === "done") parts.push(`${number(units.total)} ${units.unit}${units.total === 1 ? "" : "s"}`);
  if (isMoving && status !== "queued") parts.push(percent(data.progress));
  if (data.queue_position) parts.push(`number ${number(data.queue_position)} in the queue`);
  if (isMoving && data.eta_s !== null && data.eta_s !== undefined) parts.push(`${estimate(data.eta_s)} left`);
  if (tasks?.reused) parts.push(`${percent(tasks.reused / Math.max(1, tasks.total))} reused`);
  if (data.result?.unread?.length) parts.push("some pages unread");
  return parts.join(" · ");
}

export function sentenceOf(data) {
  const text = data.status === "unstarted" ? "Uploaded; nobody has asked to parse it yet." : data.message ?? "";
  return text.charAt(0).toUpperCase() + text.slice(1);
}
