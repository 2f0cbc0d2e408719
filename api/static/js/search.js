// The search page. All that is asked stands in the address, so that a search can be sent to somebody and gone back to.
import { post } from "./api.js";
import { el, icon, pageData, setText } from "./dom.js";
import { plural } from "./format.js";
import { hitCard } from "./search/hit.js";

const PAGE_SIZE = 10;
const DEFAULTS = { weight: 0.3, threshold: 0.2, top: 1024 };
const data = pageData();
const by = (id) => document.getElementById(id);
const form = by("search-form");
const state = { q: "", kb: [], doc: "", page: 1, rerank: false, ...DEFAULTS };
let turn = 0;

function readAddress() {
  const query = new URLSearchParams(location.search);
  const number = (key, otherwise, least, most) => {
    const given = Number(query.get(key));
    return query.has(key) && Number.isFinite(given) ? Math.min(Math.max(given, least), most) : otherwise;
  };
  const known = new Set(data.datasets.filter((one) => one.canBeAsked).map((one) => one.id));
  Object.assign(state, {
    q: query.get("q") ?? "",
    kb: query.getAll("kb").filter((id) => known.has(id)),
    doc: query.get("doc") ?? "",
    weight: number("weight", DEFAULTS.weight, 0, 1),
    threshold: number("threshold", DEFAULTS.threshold, 0, 1),
    top: Math.round(number("top", DEFAULTS.top, 1, 2048)),
    page: Math.round(number("p", 1, 1, 1e6)),
    rerank: query.get("rerank") === "1" && Boolean(data.rerankModel),
  });
}

function writeAddress() {
  const query = new URLSearchParams();
  if (state.q) query.set("q", state.q);
  for (const id of state.kb) query.append("kb", id);
  if (state.doc) query.set("doc", state.doc);
  for (const key of Object.keys(DEFAULTS)) if (state[key] !== DEFAULTS[key]) query.set(key, state[key]);
  if (state.rerank) query.set("rerank", "1");
  if (state.page > 1) query.set("p", state.page);
  const text = query.toString();
  const address = text ? `?${text}` : location.pathname;
  if (address !== (location.search || location.pathname)) history.pushState(null, "", address);
}

function showControls() {
  by("question").value = state.q;
  by("weight").value = state.weight;
  by("threshold").value = state.threshold;
  by("top").value = state.top;
  by("rerank").checked = state.rerank;
  by("rerank-box").hidden = !data.rerankModel;
  setText(by("rerank-model"), data.rerankModel ?? "");
  showValues();
  by("datasets").replaceChildren(...data.datasets.map(choice));
}

function showValues() {
  setText(by("weight-value"), Number(by("weight").value).toFixed(2));
  setText(by("threshold-value"), Number(by("weight").value) === 0 ? "off" : Number(by("threshold").value).toFixed(2));
}

// None chosen: all of them.
function choice(dataset) {
  const input = el("input", { type: "checkbox", value: dataset.id, checked: state.kb.includes(dataset.id), disabled: !dataset.canBeAsked });
  const about = dataset.canBeAsked
    ? `${plural(dataset.documents, "document")}, ${plural(dataset.chunks, "chunk")}`
    : `embedded with ${dataset.model}; this server asks with ${data.model}`;
  return el("label.check", {}, input, el("span", {}, dataset.name, el("span.help.quiet", {}, about)));
}

function readControls() {
  const top = Number(by("top").value);
  const isTop = Number.isInteger(top) && top >= 1 && top <= 2048;
  setText(by("top-error"), isTop ? "" : "A whole number from 1 to 2048.");
  const q = by("question").value.trim();
  setText(by("question-error"), q ? "" : "Write what you look for.");
  by("question").toggleAttribute("aria-invalid", !q);
  if (!q || !isTop) {
    by(q ? "top" : "question").focus();
    return false;
  }
  Object.assign(state, {
    q,
    top,
    kb: [...by("datasets").querySelectorAll("input:checked")].map((one) => one.value),
    weight: Number(by("weight").value),
    threshold: Number(by("threshold").value),
    rerank: by("rerank").checked,
  });
  return true;
}

function body(more = {}) {
  return {
    question: state.q,
    dataset_ids: state.kb.length ? state.kb : data.datasets.filter((one) => one.canBeAsked).map((one) => one.id),
    ...(state.doc ? { document_ids: [state.doc] } : {}),
    vector_similarity_weight: state.weight,
    similarity_threshold: state.threshold,
    top_k: state.top,
    page: state.page,
    page_size: PAGE_SIZE,
    highlight: true,
    ...(state.rerank ? { rerank_id: data.rerankModel } : {}),
    ...more,
  };
}

async function search() {
  turn += 1;
  const mine = turn;
  const asked = body();
  by("hits").setAttribute("aria-busy", "true");
  setText(by("datasets-error"), "");
  setText(by("summary"), "Searching…");
  const began = performance.now();
  try {
    const found = await post("/retrieval", asked);
    const spentMs = performance.now() - began;
    if (mine !== turn) return;
    show(found, spentMs);
  } catch (error) {
    if (mine !== turn) return;
    by("hits").replaceChildren();
    by("pager").hidden = true;
    by("documents").hidden = true;
    refuse(error);
  } finally {
    if (mine === turn) by("hits").removeAttribute("aria-busy");
  }
}

// Beside what caused it: a knowledge base that can't be asked, or the question.
function refuse(error) {
  const isAboutSets = /dataset|embed/i.test(error.message);
  setText(by("summary"), "");
  setText(by(isAboutSets ? "datasets-error" : "question-error"), error.message);
}

function show(found, spentMs) {
  const chunks = found.chunks ?? [];
  const first = (state.page - 1) * PAGE_SIZE + 1;
  const isReranked = Boolean(found.rerank?.used);
  let explained = null;
  const explain = () => {
    explained ??= post("/retrieval", body({ explain: true })).catch((error) => {
      explained = null;
      throw error;
    });
    return explained;
  };
  by("hits").replaceChildren(...chunks.map((chunk, at) => hitCard(chunk, first + at, { weight: state.weight, isReranked, explain })));
  setText(by("summary"), summary(found, chunks, spentMs));
  showDocuments(found.doc_aggs ?? []);
  showPager(found.total, chunks.length);
  if (!chunks.length) explain().then(showNothing, (error) => showNothing(null, error));
}

function summary(found, chunks, spentMs) {
  const server = serverMs();
  const time = server === null ? `${Math.round(spentMs)} ms` : `${Math.round(server)} ms on the server, ${Math.round(spentMs)} ms in all`;
  const hits = found.total === 1 ? "1 hit" : `${found.total.toLocaleString("en")} hits`;
  const rerank = found.rerank ? (found.rerank.used ? `, reranked by ${found.rerank.model}` : `, not reranked: ${found.rerank.failure}`) : "";
  return chunks.length ? `${hits} in ${time}${rerank}.` : `Nothing found, in ${time}${rerank}.`;
}

function serverMs() {
  const entry = performance.getEntriesByType("resource").findLast((one) => one.name.endsWith("/api/v1/retrieval"));
  const told = entry?.serverTiming?.find((one) => one.name === "app");
  return told ? told.duration : null;
}

function showDocuments(documents) {
  const chip = (label, id, is) => el("button.button.button-s", { type: "button", "aria-pressed": String(is), onclick: () => go({ doc: id, page: 1 }) }, label);
  const shown = documents.slice(0, 8).map((one) => chip(`${one.doc_name} (${one.count})`, one.doc_id, one.doc_id === state.doc));
  if (state.doc) shown.unshift(chip("All documents", "", false));
  by("documents").hidden = !state.doc && documents.length < 2;
  by("documents").replaceChildren(...shown);
}

function showPager(total, count) {
  const last = Math.max(1, Math.ceil(total / PAGE_SIZE));
  by("pager").hidden = last < 2 || !count;
  const button = (symbol, label, page) => el("button.button.button-s.button-icon", { type: "button", "aria-label": label, disabled: page < 1 || page > last, onclick: () => go({ page }) }, icon(symbol));
  by("pager").replaceChildren(button("left", "Hits before", state.page - 1), el("span", {}, `Page ${state.page} of ${last.toLocaleString("en")}`), button("right", "More hits", state.page + 1));
}

// Why nothing was found, and what would help.
function showNothing(told, error) {
  const left = told?.explain?.left_out_count ?? 0;
  const best = told?.explain?.left_out?.[0]?.similarity;
  const tips = [];
  if (error) tips.push(el("p", {}, error.message));
  if (left) {
    const lower = Math.floor(best * 20) / 20;
    tips.push(el("p", {}, `${left === 1 ? "1 chunk was" : `${left.toLocaleString("en")} chunks were`} left out by the least similarity of ${state.threshold.toFixed(2)}; the best of them has ${best.toFixed(3)}.`),
      el("button.button.button-main", { type: "button", onclick: () => go({ threshold: lower, page: 1 }) }, `Lower it to ${lower.toFixed(2)}`));
  } else if (told?.explain?.phrases?.length) {
    tips.push(el("p", {}, "No chunk has the words in quotes just like that. Leave the quotes away, or check the spelling."));
  } else {
    tips.push(el("p", {}, "No chunk of these knowledge bases is like the question. Are their documents parsed, and switched on?"));
  }
  by("hits").replaceChildren(el("li.card", {}, el("div.empty", {}, icon("search"), el("h2", {}, "Nothing found"), ...tips)));
}

function go(change) {
  Object.assign(state, change);
  showControls();
  writeAddress();
  search();
  by("question").scrollIntoView({ block: "nearest" });
}

function submit() {
  if (!readControls()) return;
  state.page = 1;
  writeAddress();
  search();
}

if (form) {
  by("settings").open = innerWidth >= 900;
  readAddress();
  showControls();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  for (const id of ["weight", "threshold"]) by(id).addEventListener("input", showValues);
  by("datasets").addEventListener("change", () => {
    state.doc = "";
  });
  by("question").addEventListener("input", () => setText(by("question-error"), ""));
  addEventListener("popstate", () => {
    readAddress();
    showControls();
    if (state.q) search();
    else by("hits").replaceChildren();
  });
  for (const id of ["weight", "threshold", "top", "rerank", "datasets"]) by(id).addEventListener("change", () => {
    if (state.q) submit();
  });
  if (state.q) search();
}
document.documentElement.dataset.ready = "true";
