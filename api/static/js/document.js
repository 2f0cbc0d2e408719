// A document's page: its head, its chunks beside the picture of their page, and its timeline. What is chosen stands in
// the address, so that it can be sent to somebody: ?page=3&chunk=…&view=timeline.
import { pageData } from "./dom.js";
import { ChunkList } from "./document/chunk_list.js";
import { Header } from "./document/header.js";
import { PageView } from "./document/page_view.js";
import { Timeline } from "./document/timeline.js";
import { follow } from "./events.js";

const LIVE_MS = 1000;
const GROWING_MS = 4000;
const data = pageData();
const path = `/datasets/${data.dataset.id}/documents/${data.document.id}`;
const asked = new URLSearchParams(location.search);
const state = { chunk: asked.get("chunk") ?? "", page: Number(asked.get("page")) || 0, view: "" };
let edits = data.edits;
let endFollowing = () => {};

const header = new Header({ data, onStarted: () => start(), countEdits: () => edits });
const timeline = new Timeline(document.getElementById("timeline"), {
  jobId: data.document.id,
  onPage: (page) => openPage(page),
  onReplay: () => start(),
  onSettings: () => header.openReparse(),
});
const list = new ChunkList(document.getElementById("chunks"), {
  path,
  pages: data.document.page_count ? "page" : "",
  onChoose: (chunk) => choose(chunk),
  onChange: () => {
    edits += 1;
    view?.refresh();
  },
});
const view = data.document.page_count ? new PageView(document.getElementById("page-view"), {
  path,
  pageCount: data.document.page_count,
  onChoose: (chunk) => choose(chunk, { fromPage: true }),
  onPage: (page) => turnTo(page),
}) : null;

function remember() {
  const query = new URLSearchParams();
  if (state.page) query.set("page", state.page);
  if (state.chunk) query.set("chunk", state.chunk);
  if (state.view === "timeline") query.set("view", "timeline");
  const text = query.toString();
  history.replaceState(null, "", text ? `?${text}` : location.pathname);
}

// A chunk was chosen, in the list or by its box: both sides show it.
async function choose(chunk, { fromPage = false } = {}) {
  state.chunk = chunk.id;
  list.mark(chunk.id);
  const pages = chunk.positions.map(([page]) => page);
  if (view && pages.length) {
    if (!pages.includes(view.page)) await view.show(pages[0]);
    view.mark(chunk.id, { reveal: !fromPage });
    state.page = view.page;
    if (!fromPage && innerWidth < 900 && list.has(chunk.id)) document.getElementById("page-view").scrollIntoView({ block: "start" });
  }
  remember();
  if (fromPage) await list.reveal(chunk.id);
}

// Another page was asked for: its first chunk is shown in the list.
async function turnTo(page) {
  state.page = page;
  await view.show(page);
  remember();
  const first = view.chunks?.find((chunk) => chunk.positions[0]?.[0] === page) ?? view.chunks?.[0];
  if (first && !view.chunks.some((chunk) => chunk.id === state.chunk)) await list.reveal(first.id, { scrollPage: false });
  list.mark(state.chunk);
}

function openPage(page) {
  showView("chunks");
  if (view) turnTo(page);
}

async function openFirst() {
  if (state.chunk) {
    const found = await list.load({ near: state.chunk });
    const chunk = found?.chunks.find((one) => one.id === state.chunk);
    if (chunk) {
      if (view) await view.show(state.page && chunk.positions.some(([page]) => page === state.page) ? state.page : chunk.positions[0]?.[0] ?? 1);
      await choose(chunk);
      await list.reveal(chunk.id, { scrollPage: !view });
      return;
    }
    document.getElementById("gone").hidden = false;
    state.chunk = "";
  }
  await list.load();
  if (view) await turnTo(Math.min(state.page || 1, data.document.page_count));
}

const tabs = [...document.querySelectorAll('[role="tab"]')];

function showView(name) {
  state.view = name;
  for (const tab of tabs) {
    const is = tab.dataset.view === name;
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !is;
  }
  remember();
  if (name === "timeline") timeline.load();
}

for (const tab of tabs) {
  tab.addEventListener("click", () => showView(tab.dataset.view));
  tab.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = tabs[(tabs.indexOf(tab) + 1) % tabs.length];
    other.focus();
    showView(other.dataset.view);
  });
}

// Live: every event is the whole state. Task by task is asked for at most once a second, and only while it is looked at.
let wasFinal = data.job.is_final;
const refreshTimeline = seldom(LIVE_MS, () => state.view === "timeline" && timeline.load());
const refreshChunks = seldom(GROWING_MS, async () => {
  const found = wasFinal ? null : await list.load();
  if (found && !list.isFiltered) header.showCounts(found.total);
});

// At most once in so many milliseconds, and once more after the last call: what was told last is never left out.
function seldom(restMs, act) {
  let timer = 0;
  let last = -restMs;
  return () => {
    if (timer) return;
    timer = setTimeout(() => {
      timer = 0;
      last = performance.now();
      act();
    }, Math.max(0, last + restMs - performance.now()));
  };
}

function heard(job) {
  const hasEnded = job.is_final && !wasFinal;
  wasFinal = job.is_final;
  header.show(job);
  timeline.setPermanent(Boolean(job.error?.is_permanent));
  list.setEditable(!["queued", "running", "paused"].includes(job.status));
  refreshTimeline();
  if (hasEnded) reloadAfterEnd();
  else if (!job.is_final) refreshChunks();
  if (job.is_final) endFollowing();
}

// Only a parse tells how many pages there are: with another number of them, the page is laid out anew.
async function reloadAfterEnd() {
  edits = 0;
  const found = await list.load();
  if (found && found.page_count !== data.document.page_count) location.reload();
  else view?.refresh();
}

function start() {
  wasFinal = false;
  endFollowing();
  endFollowing = follow(`/jobs/${data.document.id}/events`, { onState: heard });
}

list.setEditable(!["queued", "running", "paused"].includes(data.job.status));
timeline.setPermanent(Boolean(data.job.error?.is_permanent));
showView(asked.get("view") === "timeline" || (!asked.get("chunk") && !asked.get("page") && data.opensWith === "timeline") ? "timeline" : "chunks");
openFirst();
if (!data.job.is_final && data.job.status !== "unstarted") start();
document.documentElement.dataset.ready = "true";
