// Failed tasks by cause, each with what can be done: run all of them again, or forget them.
import { post } from "./api.js";
import { follow, showWarnings } from "./admin_feed.js";
import { documentName, keyed } from "./admin_parts.js";
import { confirm } from "./dialog.js";
import { el, icon, setText } from "./dom.js";
import { ago, number, plural, time } from "./format.js";
import { toast } from "./toast.js";

const box = document.getElementById("groups");
const none = el("div.card.empty", {}, icon("check"), el("h2", {}, "No failed task"),
  el("p", {}, "When a task fails for good, it stands here with its cause until it runs again, is discarded, or its time is over."));

function group(first) {
  let now = first;
  const count = el("span.group-count.number");
  const when = el("span.quiet.small.number");
  const current = el("p.small.quiet.number");
  const examples = el("ul.small.examples");
  const replay = el("button.button.button-s", { type: "button", onclick: () => run(now) }, icon("again"), "Run again");
  const discard = el("button.button.button-s.button-bad", { type: "button", onclick: () => forget(now) }, icon("delete"), "Discard");
  const node = el("article.card.group", { dataset: { cause: first.error_code } },
    el("div.row.row-apart", {}, el("div.row", {}, count, el("span.tag.mono", {}, first.error_code || "unknown"), when), el("div.row", {}, replay, discard)),
    el("p.group-message", {}, sentence(first.message) || "It left no message."), current, examples);
  return {
    node,
    update(one) {
      now = one;
      setText(count, plural(one.count, "task"));
      setText(when, `newest ${ago(one.newest_ms, one.nowMs)}`);
      when.title = `${time(one.first_ms)} – ${time(one.newest_ms)}`;
      setText(current, currentText(one));
      replay.disabled = one.current === 0;
      const key = one.examples.map((example) => example.task_id).join();
      if (examples.dataset.key !== key) {
        examples.dataset.key = key;
        examples.replaceChildren(...one.examples.map((example) => el("li", {}, documentName(example), el("span.quiet", {}, ` ${beside(example, one)}`))));
      }
    },
  };
}

// What the example's own message tells beyond the group's.
const beside = ({ message, document_name: name }, one) => (message.replaceAll(name, "the file") === one.message || message.includes(name) ? "" : message);

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function currentText(one) {
  const where = `in ${plural(one.documents, "document")}`;
  if (one.current === one.count) return `${where}; all can run again`;
  if (!one.current) return `${where}; none can run again: their documents were parsed anew since`;
  return `${where}; ${number(one.current)} can run again, the others are of older parses`;
}

const run = (one) => confirm({
  title: `Run ${plural(one.current, "task")} again?`,
  text: [`Their counters start at zero. ${one.current < one.count ? `${number(one.count - one.current)} of older parses are left as they are.` : ""}`, "Where the cause is still there, they fail again."],
  label: "Run again",
  act: () => throughAll(one, "replay"),
}).then((sum) => sum && told(`${plural(sum.done, "task")} run again${sum.refused ? `, ${number(sum.refused)} refused` : ""}.`));

const forget = (one) => confirm({
  title: `Discard ${plural(one.count, "task")}?`,
  text: ["They are forgotten, with their timelines. Their documents stay failed, and can still be parsed again as a whole.", "This can't be undone."],
  label: "Discard",
  kind: "bad",
  act: () => throughAll(one, "discard"),
}).then((sum) => sum && told(`${plural(sum.done, "task")} discarded.`));

// A large group is gone through in parts.
async function throughAll(one, what) {
  const sum = { done: 0, refused: 0 };
  let after = "";
  do {
    const { done, refused, next } = await post(`/admin/failed/${one.id}/${what}`, { after });
    sum.done += done;
    sum.refused += refused;
    after = next;
  } while (after);
  return sum;
}

async function told(text) {
  toast(text);
  await ask();
}

const ask = follow((facts) => {
  showWarnings(facts);
  none.hidden = facts.failed.length > 0;
  if (!none.isConnected) box.before(none);
  keyed(box, facts.failed.map((one) => ({ ...one, nowMs: facts.now_ms })), (one) => one.id, group);
});
