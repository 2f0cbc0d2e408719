// The operators' first page: parts, figures of this moment, charts, executors and those that ended.
import { followHistory } from "./admin_charts.js";
import { showEnded } from "./admin_ended.js";
import { showExecutors } from "./admin_executors.js";
import { follow, showWarnings } from "./admin_feed.js";
import { PARTS, keyed } from "./admin_parts.js";
import { el, setText } from "./dom.js";
import { duration, number } from "./format.js";
import { stateBadge } from "./state.js";

const NOW = [
  ["waiting", "waiting", ({ total }) => number(total.waiting + total.published)],
  ["running", "at work", ({ total }) => number(total.running)],
  ["put-off", "put off", ({ total }) => number(total.put_off)],
  ["oldest", "oldest waits", ({ total }) => (total.oldest_s ? duration(total.oldest_s) : "–")],
];
const box = (id) => document.getElementById(id);

function part() {
  const name = el("span.part-name");
  const badge = el("span");
  const latency = el("span.quiet.small.number");
  const error = el("span.small.part-error");
  return {
    node: el("li.card", {}, name, badge, latency, error),
    update({ part: key, ok, latency_ms: ms, error: text }) {
      setText(name, PARTS[key] ?? key);
      if (badge.dataset.ok !== String(ok)) {
        badge.dataset.ok = ok;
        badge.replaceChildren(stateBadge(ok ? "good" : "bad", ok ? "Answers" : "Away"));
      }
      setText(latency, ok ? `${ms < 1 ? ms.toFixed(2) : ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : "");
      setText(error, text);
    },
  };
}

function makeNow() {
  const figure = (id, label) => el("div", {}, el("dt", {}, label), el("dd.number", { id }, "–"));
  box("now").append(
    ...NOW.map(([id, label]) => figure(`now-${id}`, label)),
    figure("last-done", "done in the last 2 min"),
    figure("last-failed", "failed in the last 2 min"),
  );
}

makeNow();
const ask = follow((facts) => {
  showWarnings(facts);
  keyed(box("parts"), facts.health, (one) => one.part, part);
  for (const [id, , text] of NOW) setText(box(`now-${id}`), text(facts.queue));
  const { running } = facts.executors;
  const sum = (key) => running.reduce((all, one) => all + (one[key] ?? 0), 0);
  setText(box("executors-sum"), `${running.length} running, ${sum("slots_used")} of ${sum("slots")} slots used`);
  showExecutors(box("executors"), facts.executors, facts.now_ms, () => ask());
  showEnded(box("ended"), facts.executors.ended, facts.now_ms);
});
followHistory();
