// How the parse went: the strip, where the time went, the pages that could not be read, and every task with its attempts
// and what to do about its errors. Tasks come a page at a time.
import { get, post } from "../api.js";
import { el, icon, setText } from "../dom.js";
import { duration, plural, sentence } from "../format.js";
import { toast, toastError } from "../toast.js";
import { STATES, Strip, unitText } from "./strip.js";

const PAGE_SIZE = 25;
const TYPES = { prepare: "Looking at the file", finish: "Making it findable" };
const BADGES = { done: "done", reused: "done", running: "running", waiting: "queued", paused: "paused", partial: "warn", failed: "failed", cancelled: "cancelled" };
const OUTCOMES = {
  done: "done", retried: "an error; tried again", waited: "waited for a server that was away", "handed back": "handed back, the executor stopped",
  lost: "the executor or its parser was lost", failed: "failed", stopped: "stopped by the user", running: "at work",
};
// What other settings can mend.
const SETTINGS_HELP = ["encrypted_file", "bad_page", "pages_outside", "parser_lost", "parser_timeout"];
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

export class Timeline {
  // onPage(page): somebody wants to see a page; onReplay(): tasks run again; onSettings(): other settings are wanted.
  constructor(place, { jobId, onPage, onReplay, onSettings }) {
    Object.assign(this, { jobId, onPage, onReplay, onSettings, offset: 0, state: "", at: "", turn: 0, open: new Set(), drawn: new Map() });
    this.note = el("p.quiet", { role: "status" });
    this.stripBox = el("div");
    this.strip = new Strip(this.stripBox, { onChoose: (span, unit) => this.filter({ state: "", at: unit }) });
    this.stages = el("div.stages");
    this.unread = el("div");
    this.filters = el("div.row", { role: "group", "aria-label": "Which tasks" });
    this.tasks = el("ol.tasks", { role: "list" });
    this.pager = el("nav.pager", { "aria-label": "Pages of tasks", hidden: true });
    this.replay = el("button.button.button-main", { type: "button", hidden: true, onclick: () => this.replayAll() }, icon("again"), "Replay failed tasks");
    place.append(
      el("section.card.stack", {}, el("div.row.row-apart.timeline-head", {}, el("h2", {}, "How it was read"), this.replay), this.note, this.stripBox),
      this.unread,
      el("section.card.stack", {}, el("h2", {}, "Where the time went"), this.stages),
      el("section.card.stack", {}, el("h2", {}, "Tasks"), this.filters, this.tasks, this.pager));
  }

  filter(change) {
    Object.assign(this, change, { offset: 0 });
    return this.load();
  }

  async load() {
    this.turn += 1;
    const turn = this.turn;
    try {
      const found = await get(`/jobs/${this.jobId}/timeline`, { offset: this.offset || "", limit: PAGE_SIZE, state: this.state, at: this.at });
      if (turn === this.turn) this.show(found);
      return found;
    } catch (error) {
      if (turn === this.turn) setText(this.note, error.message);
      return null;
    }
  }

  show(told) {
    this.told = told;
    const isEmpty = !told.spans.length;
    setText(this.note, isEmpty ? "No task is known: the document was not parsed yet, or it was so long ago that its tasks were cleared away." : told.is_unchanged
      ? "Parsed again without any work: nothing had changed. These are the tasks of the parse before." : "");
    this.note.hidden = !this.note.textContent;
    this.stripBox.hidden = isEmpty;
    this.strip.show(told);
    this.replay.hidden = !told.counts.failed;
    // Once a second while it runs: what is the same stays, and so does the focus in it.
    if (this.isNew("stages", told.stages)) this.drawStages(told.stages);
    if (this.isNew("unread", told.unread)) this.drawUnread(told);
    if (this.isNew("filters", [told.counts, this.state, this.at])) this.drawFilters(told);
    if (this.isNew("pager", [told.total, this.offset])) this.drawPager(told.total);
    this.drawTasks(told.tasks);
  }

  isNew(part, value) {
    const text = JSON.stringify(value);
    const isNew = this.drawn.get(part) !== text;
    this.drawn.set(part, text);
    return isNew;
  }

  drawTasks(tasks) {
    tasks.forEach((task, at) => {
      const there = this.tasks.children[at];
      const text = JSON.stringify(task);
      if (there && this.drawn.get(there) === text) return;
      const node = this.task(task);
      this.drawn.set(node, text);
      this.drawn.delete(there);
      if (there) there.replaceWith(node);
      else this.tasks.append(node);
    });
    while (this.tasks.children.length > tasks.length) {
      this.drawn.delete(this.tasks.lastElementChild);
      this.tasks.lastElementChild.remove();
    }
  }

  drawStages(stages) {
    const total = Object.values(stages).reduce((sum, one) => sum + one, 0);
    this.stages.parentElement.hidden = !total;
    const rows = Object.entries(stages).sort(([, a], [, b]) => b - a).map(([stage, seconds]) => el("div.stage", {},
      el("span", {}, stage), el("progress.bar.bar-still", { value: seconds, max: total, "aria-label": `${stage}: ${short(seconds)}` }), el("span.number", {}, short(seconds))));
    this.stages.replaceChildren(...rows, el("p.quiet.small", {}, `${short(total)} of work in all; several tasks may run at the same time.`));
  }

  drawUnread({ unread, unit }) {
    this.unread.hidden = !unread.length;
    const rows = unread.map((one) => el("li", {}, this.pageLink(unit, one.first, one.last), `: ${one.reason}. `, el("span.quiet", {}, one.advice)));
    this.unread.replaceChildren(el("section.notice.notice-warn", {}, icon("warning"),
      el("div", {}, el("h2.small", {}, `Could not be read`), el("ul", {}, ...rows))));
  }

  pageLink(unit, first, last) {
    const text = unitText(unit, first, last);
    if (unit !== "page") return el("strong", {}, text);
    return el("button.linklike", { type: "button", onclick: () => this.onPage(first) }, text);
  }

  drawFilters({ counts, unit }) {
    const all = Object.values(counts).reduce((sum, one) => sum + one, 0);
    const chip = (label, change, is) => el("button.button.button-s", { type: "button", "aria-pressed": String(is), onclick: () => this.filter(change) }, label);
    const states = Object.keys(STATES).filter((state) => counts[state]);
    this.filters.replaceChildren(
      chip(`All ${all.toLocaleString("en")}`, { state: "", at: "" }, !this.state && !this.at),
      ...states.map((state) => chip(`${STATES[state]} ${counts[state].toLocaleString("en")}`, { state, at: "" }, this.state === state)),
      ...(this.at ? [chip(`with ${unitText(unit, this.at, this.at).toLowerCase()} ✕`, { state: "", at: "" }, true)] : []));
  }

  task(task) {
    const title = TYPES[task.type] ?? unitText(this.told.unit, task.first, task.last);
    const word = task.type !== "range" && task.state === "done" ? "done" : STATES[task.state];
    const badge = el(`span.state.state-${BADGES[task.state]}`, {}, icon(`state-${BADGES[task.state]}`), word);
    const details = el("details.task-more", { open: this.open.has(task.id) }, el("summary", {}, attemptsText(task)), el("ol.attempts", { role: "list" }, ...task.attempts.map(attempt)));
    details.addEventListener("toggle", () => (details.open ? this.open.add(task.id) : this.open.delete(task.id)));
    return el("li.task", {},
      el("div.task-top", {}, el("strong", {}, task.type === "range" ? this.pageLink(this.told.unit, task.first, task.last) : title), badge,
        el("span.quiet.small.push", {}, this.facts(task))),
      task.error ? this.error(task) : null,
      ...task.unread.map((one) => el("p.task-error", {}, `${unitText(this.told.unit, one.first, one.last)}: ${one.reason}`)),
      task.attempts.length ? details : null);
  }

  error({ error }) {
    const mend = SETTINGS_HELP.includes(error.code) ? el("button.button.button-s", { type: "button", onclick: () => this.onSettings() }, icon("settings"), "Change the settings") : null;
    return el("div.task-error", {}, el("p", {}, sentence(error.message)), el("p.quiet", {}, error.advice), mend);
  }

  facts(task) {
    const parts = [];
    if (task.state === "running") parts.push(task.stage || "starting", task.executor);
    if (task.state === "waiting" && task.error) parts.push(`attempt ${task.attempt} of ${this.told.max_attempts} is next`);
    if (task.ended_at && task.started_at) parts.push(spent(task));
    if (task.chunk_count) parts.push(plural(task.chunk_count, "chunk"));
    return parts.filter(Boolean).join(" · ");
  }

  drawPager(total) {
    const last = Math.ceil(total / PAGE_SIZE);
    const page = Math.floor(this.offset / PAGE_SIZE) + 1;
    this.pager.hidden = last < 2;
    const go = (symbol, label, to) => el("button.button.button-s.button-icon", { type: "button", "aria-label": label, disabled: to < 1 || to > last, onclick: () => {
      this.offset = (to - 1) * PAGE_SIZE;
      this.load();
    } }, icon(symbol));
    if (last > 1) this.pager.replaceChildren(go("left", "Tasks before", page - 1), el("span", {}, `Page ${page} of ${last.toLocaleString("en")}`), go("right", "Next tasks", page + 1));
  }

  // Where another try would end the same, replaying is possible, but not the first thing to do.
  setPermanent(isPermanent) {
    this.replay.classList.toggle("button-main", !isPermanent);
  }

  async replayAll() {
    try {
      const { success_count: done, refused_count: refused } = await post("/tasks/replay", { document_ids: [this.jobId] });
      if (done) toast(done === 1 ? "1 task runs again." : `${done} tasks run again.`);
      if (refused) toast("Some can’t run again, since what they belong to was cleared away: parse the document again.", "bad");
      this.onReplay();
    } catch (error) {
      toastError(error, "Not replayed");
    }
  }
}

const short = (seconds) => (seconds < 1 ? `${Math.round(seconds * 1000)} ms` : duration(seconds));
const spent = (one) => short((Date.parse(one.ended_at) - Date.parse(one.started_at)) / 1000);
function attemptsText(task) {
  const count = task.attempts.length;
  return `${plural(count, "attempt")}, ${count > 1 ? "the last " : ""}on ${task.attempts.at(-1).executor}`;
}

function attempt(one) {
  const took = one.ended_at ? spent(one) : "";
  const stages = Object.entries(one.stages).map(([stage, seconds]) => `${stage} ${short(seconds)}`).join(" · ");
  return el("li", {}, el("span.mono.small", {}, CLOCK.format(Date.parse(one.started_at))), " ", el("span", {}, one.executor), ": ", OUTCOMES[one.outcome] ?? one.outcome,
    took ? ` after ${took}` : "", stages ? el("span.quiet.small", {}, ` (${stages})`) : "",
    one.error ? el("p.task-error", {}, one.error.message) : null);
}
