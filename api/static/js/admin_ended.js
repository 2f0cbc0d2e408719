// Executors that ended: how, when, and what became of the tasks they held.
import { FATES } from "./admin_executors.js";
import { documentName, keyed, taskPart } from "./admin_parts.js";
import { el, setText } from "./dom.js";
import { ago, number, plural, time } from "./format.js";
import { stateBadge } from "./state.js";

const WORDS = { dead: ["bad", "Dead"], silent: ["bad", "Silent"], left: ["none", "Left in order"] };
const FATE_STATES = { held: "warn", waiting: "queued", running: "running", done: "done", failed: "failed", cancelled: "cancelled", paused: "paused", gone: "none" };
const FATE_WORDS = { held: "Lease runs", waiting: "Waiting", running: "At work", done: "Done", failed: "Failed", cancelled: "Cancelled", paused: "Paused", gone: "Deleted" };

export function showEnded(box, ended, nowMs) {
  box.list ??= el("ul.ended.card.card-flush", { role: "list" });
  box.none ??= el("p.quiet", {}, "None: every executor that was started is still running.");
  const wanted = ended.length ? box.list : box.none;
  if (box.firstElementChild !== wanted) box.replaceChildren(wanted);
  keyed(box.list, ended.map((one) => ({ ...one, nowMs })), (one) => one.owner, endedItem);
}

function endedItem(first) {
  const badge = el("span");
  const when = el("span.quiet.small.number");
  const reason = el("p.small");
  const fates = el("p.small.fates");
  const tasks = el("ul.fate-list", { role: "list" });
  const more = el("p.quiet.small");
  const details = el("details.more", {}, el("summary", {}, "Its tasks, one by one"), tasks, more);
  const counts = el("p.small.quiet.number");
  const node = el("li", { dataset: { ended: first.name } },
    el("div.row", {}, badge, el("strong", {}, first.name), when), reason, fates, details, counts);
  return {
    node,
    update(one) {
      const [kind, word] = WORDS[one.ended];
      if (badge.dataset.word !== word) {
        badge.dataset.word = word;
        badge.replaceChildren(stateBadge(kind, word));
        node.dataset.state = one.ended;
      }
      setText(when, ago(one.end_ms, one.nowMs));
      when.title = time(one.end_ms);
      setText(reason, `${one.host ?? "?"}, pid ${one.pid ?? "?"}: ${one.reason}`);
      setText(fates, fatesText(one));
      details.hidden = !one.lost.length;
      keyed(tasks, one.lost, (task) => task.task_id, fateRow);
      const held = Object.values(one.fates).reduce((a, b) => a + b, 0);
      setText(more, held > one.lost.length ? `and ${number(held - one.lost.length)} more` : "");
      setText(counts, one.done === null ? "" : `Before that: ${number(one.done)} done, ${number(one.failed)} failed, ${number(one.retried)} retried, ${number(one.cancelled)} cancelled.`);
    },
  };
}

function fatesText(one) {
  const all = Object.entries(one.fates);
  if (!all.length) return one.ended === "left" ? "It gave back or finished all it held." : "It held no task.";
  const count = all.reduce((sum, [, some]) => sum + some, 0);
  if (all.length === 1 && all[0][0] === "done") return `It held ${plural(count, "task")}: all of them are done.`;
  return `It held ${plural(count, "task")}: ${all.map(([fate, some]) => `${number(some)} ${FATES[fate]}`).join(", ")}.`;
}

function fateRow() {
  const badge = el("span");
  const what = el("span.clip");
  const part = el("span.quiet");
  const by = el("span.quiet");
  return {
    node: el("li", {}, badge, what, part, by),
    update(task) {
      if (badge.dataset.fate !== task.fate) {
        badge.dataset.fate = task.fate;
        badge.replaceChildren(stateBadge(FATE_STATES[task.fate], FATE_WORDS[task.fate]));
        what.replaceChildren(documentName(task));
      }
      setText(part, task.fate === "gone" ? "" : taskPart(task));
      setText(by, ["done", "running"].includes(task.fate) && task.by ? `by ${task.by}` : task.fate === "failed" ? task.error_code : "");
    },
  };
}
