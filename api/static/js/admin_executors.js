// Executors as cards: what each says of itself, what it has in work, and what it was asked for. A card keeps its height
// whatever comes and goes in it.
import { post } from "./api.js";
import { documentName, keyed, taskPart } from "./admin_parts.js";
import { confirm } from "./dialog.js";
import { el, icon, setText } from "./dom.js";
import { ago, bytes, duration, number } from "./format.js";
import { stateBadge } from "./state.js";
import { toast, toastError } from "./toast.js";

const FACTS = [
  ["done", "done", (one) => number(one.done)],
  ["failed", "failed", (one) => number(one.failed)],
  ["retried", "retried", (one) => number(one.retried)],
  ["cancelled", "cancelled", (one) => number(one.cancelled)],
  ["memory", "memory", (one) => (one.rss_bytes ? bytes(one.rss_bytes) : "–")],
  ["cpu", "CPU", (one) => ((one.cpu_percent ?? null) === null ? "–" : `${Math.round(one.cpu_percent)} %`)],
];

export function showExecutors(box, { running, ended }, nowMs, ask) {
  const shown = [...running, ...justDied(running, ended, nowMs)].sort((a, b) => (a.name < b.name ? -1 : 1));
  keyed(box, shown.map((one) => ({ ...one, nowMs })), (one) => one.name, () => card(ask));
}

// One that died keeps its place until it is there again: nobody should wonder where it went.
function justDied(running, ended, nowMs) {
  const names = new Set(running.map((one) => one.name));
  const found = new Map();
  for (const one of ended) {
    if (one.ended !== "left" && !names.has(one.name) && !found.has(one.name) && nowMs - one.end_ms < 60_000) found.set(one.name, one);
  }
  return [...found.values()].map((one) => ({ ...one, life: "dead", current: [], slots: 0, slots_used: 0 }));
}

function card(ask) {
  const name = el("h3.clip");
  const badge = el("span");
  const beat = el("p.small.quiet.number.clip");
  const bar = el("progress.bar", { "aria-label": "Slots used", max: 1, value: 0 });
  const slots = el("span.small.number");
  const facts = FACTS.map(([, label]) => el("div", {}, el("dt", {}, label), el("dd")));
  const tasks = el("ul.work", { role: "list", tabindex: "0", "aria-label": "Tasks in work" });
  const idle = el("p.work-none.quiet.small");
  const about = el("p.small.quiet.clip");
  const buttons = el("div.row.push");
  let shown = null;
  const node = el("article.card.executor", {},
    el("div.row.row-apart.nowrap", {}, name, badge), beat,
    el("div.slots", {}, bar, slots), el("dl.facts.executor-facts", {}, ...facts),
    el("div.work-box", {}, tasks, idle), el("div.row.row-apart.nowrap.executor-foot", {}, about, buttons));

  function update(one) {
    setText(name, one.name);
    node.dataset.executor = one.name;
    const [kind, word] = stateOf(one);
    if (badge.dataset.word !== word) {
      badge.dataset.word = word;
      badge.replaceChildren(stateBadge(kind, word));
      node.dataset.state = word.toLowerCase();
    }
    setText(beat, beatText(one));
    bar.max = Math.max(1, one.slots ?? 1, one.slots_used ?? 0);
    bar.value = one.slots_used ?? 0;
    setText(slots, one.life === "dead" ? "–" : `${one.slots_used ?? 0} of ${one.slots ?? "?"} slots`);
    FACTS.forEach(([, , text], place) => setText(facts[place].lastChild, text(one)));
    const work = [...(one.current ?? [])].sort((a, b) => b.age_s - a.age_s || (a.id < b.id ? -1 : 1));
    keyed(tasks, work, (task) => task.id, workRow);
    tasks.hidden = !work.length;
    setText(idle, work.length ? "" : idleText(one));
    setText(about, aboutText(one));
    about.title = about.textContent;
    showButtons(one);
  }

  function showButtons(one) {
    const wanted = one.life === "dead" ? "dead" : one.order?.wanted ?? "";
    if (shown === wanted) return;
    shown = wanted;
    buttons.replaceChildren(...buttonsFor(one, wanted, ask));
  }

  return { node, update };
}

const aboutText = (one) => `${one.host ?? "?"}, pid ${one.pid ?? "?"}`;

function stateOf(one) {
  if (one.life === "dead") return ["bad", "Dead"];
  if (one.life === "silent") return ["bad", "Silent"];
  if (one.drained) return ["paused", one.order?.wanted === "restart" ? "Restarting" : "Drained"];
  if (one.draining || one.order) return ["warn", one.order?.wanted === "restart" ? "Restarting" : "Draining"];
  if (one.life === "unknown") return ["none", "Unknown"];
  return one.slots_used || one.current?.length ? ["running", "At work"] : ["good", "Idle"];
}

function beatText(one) {
  if (one.life === "dead") return `${one.reason} ${ago(one.end_ms, one.nowMs)}`;
  const up = `up ${duration(Math.max(0, one.nowMs - one.boot_ms) / 1000)}`;
  return `${one.life === "unknown" ? "last known" : "heartbeat"} ${duration(one.age_s)} ago · ${up} · ${one.version ?? "?"}`;
}

function idleText(one) {
  if (one.life === "dead") {
    const held = Object.entries(one.fates ?? {}).map(([fate, count]) => `${count} ${FATES[fate]}`);
    const fates = held.length ? `Of the tasks it held: ${held.join(", ")}.` : "It held no task.";
    return `${fates} Pagemill starts it again, or whatever else supervises it.`;
  }
  if (one.drained) return `Takes nothing new, by order of ${one.order?.by || "an operator"}. It holds nothing: it can be stopped at any moment.`;
  return one.life === "silent" ? "Nothing is heard of it." : "Nothing in work.";
}

export const FATES = {
  held: "wait for its lease to end",
  waiting: "wait again",
  running: "are at work elsewhere",
  done: "are done",
  failed: "failed",
  cancelled: "were cancelled",
  paused: "are paused",
  gone: "are gone with their document",
};

function workRow() {
  const name = el("span.clip");
  const part = el("span.quiet.work-part");
  const stage = el("span.work-stage");
  const age = el("span.number.quiet");
  return {
    node: el("li", {}, name, part, stage, age),
    update(task) {
      if (name.dataset.id !== task.document_id + task.document_name) {
        name.dataset.id = task.document_id + task.document_name;
        name.replaceChildren(documentName(task));
        name.title = task.document_name;
      }
      setText(part, taskPart(task));
      setText(stage, task.stage);
      setText(age, duration(task.age_s));
    },
  };
}

function buttonsFor(one, wanted, ask) {
  const order = (what) => post(`/admin/executors/${encodeURIComponent(one.name)}/${what}`);
  const button = (label, symbol, act) => el("button.button.button-s", { type: "button", onclick: act, "aria-label": `${label} ${one.name}` }, icon(symbol), label);
  const done = async (text) => {
    toast(text);
    await ask();
  };
  if (wanted === "dead") return [];
  if (wanted) {
    return [button("Resume", "play", () => order("resume").then(() => done(`${one.name} takes tasks again.`), (error) => toastError(error, one.name)))];
  }
  return [
    button("Drain", "pause", () => confirm({
      title: `Drain ${one.name}?`,
      text: ["It takes nothing new and finishes what it has in hand, however long that takes. Then it stays idle, also when it is started again, until you resume it.", "Other executors go on."],
      label: "Drain",
      act: () => order("drain"),
    }).then((answer) => answer && done(`${one.name} drains.`))),
    button("Restart", "again", () => confirm({
      title: `Restart ${one.name}?`,
      text: ["It finishes what it has in hand, then leaves. Pagemill, or whatever supervises it, starts it again."],
      label: "Restart",
      act: () => order("restart"),
    }).then((answer) => answer && done(`${one.name} restarts when its work is done.`))),
  ];
}
