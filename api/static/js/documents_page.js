// The documents of a knowledge base: a page of them from the server, kept true by its events.
import { get } from "./api.js";
import { act, ACTS, rename, replay } from "./document_actions.js";
import { DocumentRow } from "./document_row.js";
import { el, icon, pageData, setText } from "./dom.js";
import { filesOf, wanted as wantedFiles } from "./dropped_files.js";
import { follow } from "./events.js";
import { bytes, number, plural } from "./format.js";
import { keep, kept } from "./kept.js";
import { WORDS } from "./state.js";
import { toastError } from "./toast.js";
import { UploadPanel } from "./upload_panel.js";
import { Uploads } from "./uploads.js";

const { dataset, page: firstPage, maxUploadBytes } = pageData();
const PAGE_SIZE = 50;
const REFRESH_MS = 1500;
const STATES = ["unstarted", "running", "paused", "done", "failed", "cancelled"];
const byId = (id) => document.getElementById(id);

const view = { page: 1, order: "created", desc: true, keywords: "", states: new Set(), suffix: "", total: 0 };
const rows = new Map();
const selected = new Map();

// --- The table

const params = () => ({
  page: view.page, page_size: PAGE_SIZE, order: view.order, desc: view.desc,
  keywords: view.keywords, state: [...view.states], suffix: view.suffix,
});

function showPage(page) {
  view.total = page.total;
  const found = page.documents.map((data) => {
    const row = rows.get(data.job_id);
    if (row) row.update(data);
    return row ?? new DocumentRow(data, dataset.id);
  });
  const body = byId("rows");
  const isSame = found.length === body.children.length && found.every((row, place) => body.children[place] === row.node);
  rows.clear();
  for (const row of found) {
    rows.set(row.id, row);
    row.select(selected.has(row.id));
  }
  if (!isSame) body.replaceChildren(...found.map((row) => row.node));
  showCounts(page);
  showPager();
  showPicked();
}

function showCounts(page) {
  const total = Object.values(page.states).reduce((sum, count) => sum + count, 0);
  setText(byId("summary"), total ? `${plural(total, "document")} · ${bytes(page.size_bytes)}` : "No documents yet");
  const chips = STATES.filter((state) => page.states[state] || view.states.has(state));
  const words = { running: "On the way" };
  const shown = chips.map((state) => `${state}:${page.states[state] ?? 0}:${view.states.has(state)}`).join();
  if (byId("states").dataset.shown !== shown) {
    const focused = document.activeElement?.dataset?.state;
    byId("states").dataset.shown = shown;
    byId("states").replaceChildren(...chips.map((state) => el("button.chip", {
      type: "button", dataset: { state }, "aria-pressed": String(view.states.has(state)),
    }, icon(`state-${state}`), `${words[state] ?? WORDS[state]} ${number(page.states[state] ?? 0)}`)));
    if (focused) byId("states").querySelector(`[data-state="${focused}"]`)?.focus();
  }
  showTypes(page.suffixes);
  showNothing(total);
}

function showTypes(suffixes) {
  const select = byId("suffix");
  const shown = Object.entries(suffixes).map(([suffix, count]) => [suffix, `${suffix.toUpperCase() || "none"} (${number(count)})`]);
  if (select.dataset.shown === String(shown)) return;
  select.dataset.shown = String(shown);
  select.replaceChildren(el("option", { value: "" }, "All types"), ...shown.map(([value, text]) => el("option", { value }, text)));
  select.value = view.suffix;
}

function showNothing(total) {
  const box = byId("nothing");
  byId("table").hidden = view.total === 0;
  box.hidden = view.total > 0;
  if (view.total > 0) return;
  const isFiltered = total > 0;
  box.replaceChildren(el("div.empty", {}, icon(isFiltered ? "search" : "file"),
    el("h2", {}, isFiltered ? "Nothing fits this filter" : "No documents yet"),
    el("p", {}, isFiltered ? "Other states, types or names may have what you look for." : "Drop files or whole folders anywhere on this page. They are stored, cut into chunks, and can be searched as they are read."),
    isFiltered ? el("button.button", { type: "button", onclick: showAll }, "Show all") : el("button.button", { type: "button", onclick: () => byId("files").click() }, icon("plus"), "Choose files")));
}

function showPager() {
  const last = Math.max(1, Math.ceil(view.total / PAGE_SIZE));
  const from = (view.page - 1) * PAGE_SIZE;
  setText(byId("shown"), view.total ? `${number(from + 1)}–${number(Math.min(view.total, from + PAGE_SIZE))} of ${number(view.total)}` : "");
  byId("before").disabled = view.page <= 1;
  byId("next").disabled = view.page >= last;
  for (const head of document.querySelectorAll("th[data-order]")) {
    if (head.dataset.order === view.order) head.setAttribute("aria-sort", view.desc ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
}

let asked = 0;

async function refresh() {
  asked += 1;
  const mine = asked;
  try {
    const page = await get(`/ui/datasets/${dataset.id}/documents`, params());
    if (mine !== asked) return;
    const last = Math.max(1, Math.ceil(page.total / PAGE_SIZE));
    if (view.page > last) return void change({ page: last });
    showPage(page);
  } catch (error) {
    toastError(error, "The list could not be fetched");
  }
}

function change(what) {
  Object.assign(view, { page: 1 }, what);
  return refresh();
}

function showAll() {
  byId("keywords").value = "";
  view.states.clear();
  change({ keywords: "", suffix: "" });
}

// --- Live: a row is written at once; counts and the order follow at most every second and a half.

let refreshTimer = 0;

function refreshSoon() {
  refreshTimer ||= setTimeout(() => {
    refreshTimer = 0;
    refresh();
  }, REFRESH_MS);
}

const pending = new Map();

function heard(state) {
  if (!pending.size) requestAnimationFrame(drawHeard);
  pending.set(state.job_id, state);
}

function drawHeard() {
  for (const [id, state] of pending) {
    const row = rows.get(id);
    const isNews = !row || row.data.status !== state.status;
    if (row && state.status !== "deleted") row.update(state);
    if (isNews) refreshSoon();
  }
  pending.clear();
}

follow(`/datasets/${dataset.id}/events`, {
  onState: heard,
  onReset: refreshSoon,
  onLink: (isUp) => {
    byId("link").hidden = isUp;
  },
});

// --- Selection, and what is done with it

function showPicked() {
  const count = selected.size;
  byId("picked").hidden = count === 0;
  setText(byId("picked-count"), `${number(count)} selected`);
  const onPage = [...rows.keys()].filter((id) => selected.has(id)).length;
  const box = byId("pick-page");
  box.checked = rows.size > 0 && onPage === rows.size;
  box.indeterminate = onPage > 0 && onPage < rows.size;
  const all = byId("pick-all");
  all.hidden = !(box.checked && view.total > count);
  setText(all, `Select all ${number(view.total)}`);
}

function pick(id, isPicked) {
  if (isPicked) selected.set(id, rows.get(id)?.data ?? selected.get(id) ?? null);
  else selected.delete(id);
  rows.get(id)?.select(isPicked);
}

let lastPicked = null;

function pickTo(id, isPicked, withShift) {
  const order = [...rows.keys()];
  const from = withShift && lastPicked ? order.indexOf(lastPicked) : -1;
  const to = order.indexOf(id);
  const range = from >= 0 ? order.slice(Math.min(from, to), Math.max(from, to) + 1) : [id];
  for (const one of range) pick(one, isPicked);
  lastPicked = id;
  showPicked();
}

function pickNone() {
  for (const id of [...selected.keys()]) pick(id, false);
  showPicked();
}

async function doWith(kind, ids, documents) {
  const known = documents.filter(Boolean).map((data) => ({ id: data.job_id, name: data.name, status: data.status }));
  if (await act(kind, dataset.id, ids, known)) {
    if (ids.length > 1 || kind === "delete") pickNone();
    await refresh();
  }
}

byId("picked-acts").append(...Object.entries(ACTS).map(([kind, { label, symbol, kind: look }]) =>
  el("button.button.button-s", { type: "button", class: look ? `button-${look}` : "", onclick: () => doWith(kind, [...selected.keys()], [...selected.values()]) }, icon(symbol), label)));

byId("pick-none").addEventListener("click", pickNone);
byId("pick-page").addEventListener("change", ({ target }) => {
  for (const id of rows.keys()) pick(id, target.checked);
  showPicked();
});
byId("pick-all").addEventListener("click", async () => {
  try {
    const { ids } = await get(`/ui/datasets/${dataset.id}/document-ids`, params());
    for (const id of ids) pick(id, true);
    showPicked();
  } catch (error) {
    toastError(error);
  }
});

byId("rows").addEventListener("click", (event) => {
  const control = event.target.closest("[data-act]");
  const row = rows.get(event.target.closest("tr")?.dataset.id);
  if (!control || !row) return;
  const kind = control.dataset.act;
  row.menu.open = false;
  if (kind === "pick") pickTo(row.id, control.checked, event.shiftKey);
  else if (kind === "enable") doWith(control.checked ? "enable" : "disable", [row.id], [row.data]);
  else if (kind === "rename") rename(dataset.id, row.id, row.data.name).then((done) => done && refresh());
  else if (kind === "replay") replay(row.id).then(refresh);
  else doWith(kind, [row.id], [row.data]);
});

// --- Filters, order, pages

let typing = 0;
byId("keywords").addEventListener("input", ({ target }) => {
  clearTimeout(typing);
  typing = setTimeout(() => change({ keywords: target.value.trim() }), 200);
});
byId("suffix").addEventListener("change", ({ target }) => change({ suffix: target.value }));
byId("states").addEventListener("click", (event) => {
  const state = event.target.closest("[data-state]")?.dataset.state;
  if (!state) return;
  if (!view.states.delete(state)) view.states.add(state);
  change({});
});
byId("table").tHead.addEventListener("click", (event) => {
  const head = event.target.closest("th[data-order]");
  if (!head || !event.target.closest("button")) return;
  const { order } = head.dataset;
  change({ order, desc: view.order === order ? !view.desc : order !== "name" });
});
byId("before").addEventListener("click", () => change({ page: view.page - 1 }));
byId("next").addEventListener("click", () => change({ page: view.page + 1 }));

// --- Uploads

const parseSwitch = byId("parse-on-upload");
parseSwitch.checked = kept("parse-on-upload", "1") === "1";
parseSwitch.addEventListener("change", () => keep("parse-on-upload", parseSwitch.checked ? "1" : "0"));

const panel = new UploadPanel();
const uploads = new Uploads(dataset.id, {
  maxBytes: maxUploadBytes,
  wantsParse: () => parseSwitch.checked,
  onChange: () => panel.show(),
  onStored: refreshSoon,
});
panel.attach(uploads);

for (const [button, input] of [["choose-files", "files"], ["choose-folder", "folder"]]) {
  byId(button).addEventListener("click", () => byId(input).click());
  byId(input).addEventListener("change", ({ target }) => {
    uploads.add(wantedFiles(target.files));
    target.value = "";
  });
}

const carriesFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
let depth = 0;
document.addEventListener("dragenter", (event) => {
  if (!carriesFiles(event)) return;
  event.preventDefault();
  depth += 1;
  document.body.classList.add("drop-over");
});
document.addEventListener("dragover", (event) => carriesFiles(event) && event.preventDefault());
document.addEventListener("dragleave", () => {
  depth = Math.max(0, depth - 1);
  if (!depth) document.body.classList.remove("drop-over");
});
document.addEventListener("drop", async (event) => {
  depth = 0;
  document.body.classList.remove("drop-over");
  if (!carriesFiles(event)) return;
  event.preventDefault();
  uploads.add(await filesOf(event.dataTransfer));
});
addEventListener("beforeunload", (event) => {
  if (uploads.totals.open) event.preventDefault();
});

showPage(firstPage);
