// The two charts of the overview: tasks that ended, and pages a second, over 30 minutes or 24 hours.
import { get } from "./api.js";
import { Chart } from "./chart.js";
import { pageData, setText } from "./dom.js";
import { number } from "./format.js";
import { toastError } from "./toast.js";

const EVERY_MS = 10_000;
const MINUTES_A_BAR = { "30m": 1, "24h": 15 };
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

export function followHistory() {
  const tasks = new Chart(document.getElementById("chart-tasks"), {
    title: "Tasks ended", unit: "a minute", digits: 1,
    series: [{ key: "done", label: "done" }, { key: "failed", label: "failed", pattern: "hatch" }],
  });
  const pages = new Chart(document.getElementById("chart-pages"), {
    title: "Pages", unit: "a second", digits: 2,
    series: [{ key: "pages", label: "read" }, { key: "reused_pages", label: "reused", pattern: "dots" }],
  });
  const buttons = [...document.querySelectorAll("[data-span]")];
  let span = "30m";
  let timer = 0;

  function show(history) {
    const bars = barsOf(history);
    const start = CLOCK.format(history.minutes[0] * 60_000);
    const words = (key, one) => `${number(history[key].reduce((a, b) => a + b, 0))} ${one}`;
    const since = `since ${start}`;
    tasks.show(bars.map((bar) => ({ ...bar, values: per(bar, ["done", "failed"], 60) })), { start, end: "now", text: `${words("done", "done")} and ${words("failed", "failed")} ${since}.` });
    pages.show(bars.map((bar) => ({ ...bar, values: per(bar, ["pages", "reused_pages"], 1) })), { start, end: "now", text: `${words("pages", "pages read")} and ${words("reused_pages", "reused")} ${since}.` });
    showLastMinute(history);
  }

  async function ask() {
    clearTimeout(timer);
    try {
      const asked = span;
      const found = await get("/admin/history", { span });
      if (asked === span) show(found);
    } catch (error) {
      if (error.status && error.status !== 503) toastError(error, "Throughput");
    } finally {
      if (!document.hidden) timer = setTimeout(ask, EVERY_MS);
    }
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      span = button.dataset.span;
      for (const one of buttons) one.setAttribute("aria-pressed", String(one === button));
      ask();
    });
  }
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : ask()));
  show(pageData().history);
  timer = setTimeout(ask, EVERY_MS);
}

// Bars of whole clock steps, each with the seconds it covers so far: the one that has just begun is not made to look low.
function barsOf(history) {
  const size = MINUTES_A_BAR[history.span];
  const bars = [];
  history.minutes.forEach((minute, place) => {
    const first = minute - (minute % size);
    if (bars.at(-1)?.first !== first) bars.push({ first, seconds: 0, sums: {}, label: CLOCK.format(first * 60_000) });
    const bar = bars.at(-1);
    bar.partial = place === history.minutes.length - 1;
    bar.seconds += bar.partial ? Math.max(1, (history.now_ms - minute * 60_000) / 1000) : 60;
    for (const key of ["done", "failed", "pages", "reused_pages"]) bar.sums[key] = (bar.sums[key] ?? 0) + history[key][place];
  });
  return bars;
}

// The minute that has just begun is told by what it has so far: a rate of a few seconds would jump.
function per(bar, keys, seconds) {
  const covered = bar.partial ? Math.max(bar.seconds, 60) : bar.seconds;
  return Object.fromEntries(keys.map((key) => [key, (bar.sums[key] * seconds) / covered]));
}

function showLastMinute(history) {
  if (history.span !== "30m") return;
  for (const key of ["done", "failed"]) {
    const node = document.getElementById(`last-${key}`);
    if (node) setText(node, number(history[key].at(-2) + history[key].at(-1)));
  }
}
