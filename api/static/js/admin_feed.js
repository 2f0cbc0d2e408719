// The operators' figures, asked for every two seconds while the page is looked at. When they stop coming, the page says
// so and how old those on it are: old figures never pass for new ones.
import { get } from "./api.js";
import { PARTS } from "./admin_parts.js";
import { el, icon, pageData, setText } from "./dom.js";
import { number } from "./format.js";

const EVERY_MS = 2000;
const AWAY = {
  queue: "No new task starts; what is in work goes on, and nothing is lost.",
  index: "Tasks wait for it, and searches fail.",
  store: "Files can't be uploaded or read; tasks wait for it.",
};

// onFacts(facts) is called at once with what the page came with, then with every answer. Returns a function that asks now.
export function follow(onFacts) {
  const fresh = document.getElementById("fresh");
  let atMs = Date.now();
  let timer = 0;
  let asking = null;

  function show(facts) {
    atMs = Date.now();
    if (fresh) setText(fresh, "Live");
    fresh?.classList.remove("fresh-old");
    showFailedCount(facts);
    onFacts(facts);
  }

  async function ask() {
    clearTimeout(timer);
    asking ??= get("/admin/overview").then(show, failed).finally(() => {
      asking = null;
      if (!document.hidden) timer = setTimeout(ask, EVERY_MS);
    });
    return asking;
  }

  function failed(error) {
    if (!fresh) return;
    setText(fresh, `${error.message} The figures are of ${new Date(atMs).toLocaleTimeString("en-GB")}.`);
    fresh.classList.add("fresh-old");
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) clearTimeout(timer);
    else ask();
  });
  show(pageData().overview);
  timer = setTimeout(ask, EVERY_MS);
  return ask;
}

// How many failed tasks there are, at their tab.
function showFailedCount({ failed }) {
  const count = failed.reduce((sum, group) => sum + group.count, 0);
  setText(document.getElementById("failed-count"), count ? number(count) : "");
}

// What an operator should know before anything else. Drawn anew only when it changes.
export function showWarnings(facts) {
  const box = document.getElementById("warnings");
  const found = warnings(facts);
  const key = found.join("\n");
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.replaceChildren(...found.map((text) => el("div.notice.notice-bad", {}, icon("warning"), el("div", {}, text))));
}

function warnings({ health, executors, queue }) {
  const found = health.filter((part) => !part.ok).map(({ part }) => `${PARTS[part] ?? part} is away. ${AWAY[part] ?? ""}`);
  const alive = executors.running.filter((one) => one.life !== "silent");
  const waits = queue.total.waiting + queue.total.published;
  if (!alive.length) found.push(`No executor is running: nothing is being parsed${waits ? `, and ${waits} tasks wait` : ""}.`);
  else if (alive.every((one) => one.draining)) found.push("Every executor was asked to take nothing new: resume one to go on.");
  if (executors.heartbeat_error) found.push("Heartbeats can't be read: what is shown of executors is from their rows, some seconds old.");
  return found;
}
