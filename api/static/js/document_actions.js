// What is done with one document or thousands: asked first where it can't be undone, sent in parts, told in a sentence.
import { del, patch, post } from "./api.js";
import { ask, confirm } from "./dialog.js";
import { el } from "./dom.js";
import { plural } from "./format.js";
import { toast, toastError } from "./toast.js";

const PART = 500;

// The label, the symbol, and the words for "3 documents …".
export const ACTS = {
  parse: { label: "Parse", symbol: "play", done: "on their way" },
  stop: { label: "Stop", symbol: "stop", done: "stopped" },
  pause: { label: "Pause", symbol: "pause", done: "paused" },
  resume: { label: "Resume", symbol: "play", done: "resumed" },
  enable: { label: "Search", symbol: "eye", done: "searched again" },
  disable: { label: "Leave out", symbol: "eye-off", done: "left out of searches" },
  delete: { label: "Delete", symbol: "delete", done: "deleted", kind: "bad" },
};

// documents: [{id, name, status}] as far as they are known; ids: all of them. Resolves to whether something was done.
export async function act(kind, datasetId, ids, documents) {
  const answer = await agreed(kind, datasetId, ids, documents);
  if (!answer) return false;
  if (kind === "delete") return true;
  try {
    const count = await inParts(ids, (part) => send(kind, datasetId, part, answer.renew));
    tell(kind, ids.length, count);
    return count > 0;
  } catch (error) {
    toastError(error, ACTS[kind].label);
    return false;
  }
}

function tell(kind, asked, count) {
  const { done } = ACTS[kind];
  const left = asked - count;
  const rest = left ? ` ${plural(left, "other was", "others were")} not in a state for it.` : "";
  toast(count ? `${plural(count, "document")}: ${done}.${rest}` : `Nothing was done: none was in a state for it.`, count ? "good" : "bad");
}

async function send(kind, datasetId, ids, renew = false) {
  const base = `/datasets/${datasetId}/documents`;
  if (kind === "parse" && renew) {
    await post("/documents/ingest", { doc_ids: ids, run: 1, apply_kb: true });
    return ids.length;
  }
  if (kind === "enable" || kind === "disable") {
    await post(`${base}/batch-update-status`, { doc_ids: ids, status: kind === "enable" ? 1 : 0 });
    return ids.length;
  }
  if (kind === "delete") return (await del(base, { ids })).deleted;
  return (await post(`${base}/${kind}`, { document_ids: ids })).success_count;
}

async function inParts(ids, work) {
  let count = 0;
  for (let start = 0; start < ids.length; start += PART) count += await work(ids.slice(start, start + PART));
  return count;
}

function agreed(kind, datasetId, ids, documents) {
  if (kind === "delete") return agreedToDelete(datasetId, ids, documents);
  const ready = documents.filter((one) => one.status === "done").length;
  if (kind !== "parse" || (!ready && documents.length === ids.length)) return true;
  const which = documents.length < ids.length
    ? "Those that are ready are parsed again."
    : `${plural(ready, "of them is ready and is parsed again", "of them are ready and are parsed again")}.`;
  const renew = el("input", { type: "checkbox" });
  const texts = [
    ids.length === 1 ? "It is ready already." : which,
    "What has not changed is reused. The chunks there are stay findable until the new ones are. Edits of chunks are lost.",
  ];
  return ask({
    title: ids.length === 1 ? "Parse it again?" : `Parse ${plural(ids.length, "document")}?`,
    content: [
      ...texts.map((text) => el("p", {}, text)),
      el("label.check", {}, renew, el("span", {}, "With the settings that the knowledge base has now", el("span.help.quiet", {}, "Each keeps its own chunk method, which its page can change. Else all stays as it was."))),
    ],
    buttons: [{ label: "Parse", act: () => ({ renew: renew.checked }) }],
  });
}

function agreedToDelete(datasetId, ids, documents) {
  const what = ids.length === 1 && documents[0] ? `“${documents[0].name}”` : plural(ids.length, "document");
  return confirm({
    title: `Delete ${what}?`,
    text: "The files and their chunks go at once and for good.",
    label: `Delete ${ids.length === 1 ? "it" : plural(ids.length, "document")}`,
    kind: "bad",
    act: async () => {
      const count = await inParts(ids, (part) => send("delete", datasetId, part));
      toast(`${plural(count, "document")} deleted.`);
      return true;
    },
  });
}

export async function rename(datasetId, id, name) {
  const input = el("input.input", { id: "new-name", value: name, maxlength: 255, autocomplete: "off" });
  return ask({
    title: "Rename",
    content: [el("div.field", {}, el("label", { for: "new-name" }, "Name, with the same ending"), input)],
    buttons: [{ label: "Save", act: () => patch(`/datasets/${datasetId}/documents/${id}`, { name: input.value.trim() }) }],
    onOpen: () => {
      input.focus();
      input.setSelectionRange(0, Math.max(0, name.lastIndexOf(".")));
    },
  });
}

export async function replay(id) {
  try {
    const { success_count: count } = await post("/tasks/replay", { document_ids: [id] });
    toast(count ? `${plural(count, "part")} of it: tried again.` : "There is nothing to try again: parse it anew.", count ? "good" : "bad");
  } catch (error) {
    toastError(error, "Try again");
  }
}
