// Dialogs that write, change and delete chunks. Each resolves to true when it was done, to null when it was left.
import { del, post, put } from "../api.js";
import { ask, confirm } from "../dialog.js";
import { el } from "../dom.js";

const lines = (text) => text.split("\n").map((one) => one.trim()).filter(Boolean);

function fields(chunk) {
  const text = el("textarea.input.chunk-input", { id: "chunk-text", rows: 12, spellcheck: "true" });
  text.value = chunk?.content ?? "";
  const keywords = el("textarea.input", { id: "chunk-keywords", rows: 2 });
  keywords.value = chunk?.important_keywords.join("\n") ?? "";
  const questions = el("textarea.input", { id: "chunk-questions", rows: 2 });
  questions.value = chunk?.questions.join("\n") ?? "";
  const content = [
    field("chunk-text", "Text", text, chunk?.content.includes("<table>") ? "Tables are written in HTML; they are shown as tables." : ""),
    field("chunk-keywords", "Keywords, one a line", keywords, "Words that a question may use and the text does not."),
    field("chunk-questions", "Questions, one a line", questions, "With questions, the chunk is found by how near they are to what is asked, not by its own text."),
  ];
  const body = () => {
    if (!text.value.trim()) {
      text.focus();
      throw new Error("The text is empty: write something, or delete the chunk.");
    }
    return { content: text.value, important_keywords: lines(keywords.value), questions: lines(questions.value) };
  };
  return { content, body, text };
}

function field(id, label, control, help) {
  if (help) control.setAttribute("aria-describedby", `${id}-help`);
  return el("div.field", {}, el("label", { for: id }, label), control, help ? el("p.help", { id: `${id}-help` }, help) : null);
}

export function editChunk(path, chunk) {
  const { content, body, text } = fields(chunk);
  return ask({
    title: `Edit chunk ${chunk.number}`,
    content,
    buttons: [{ label: "Save", act: async () => {
      await put(`${path}/chunks/${chunk.id}`, body());
      return true;
    } }],
    onOpen: () => {
      text.setSelectionRange(0, 0);
      text.focus();
    },
  });
}

export function addChunk(path) {
  const { content, body, text } = fields(null);
  return ask({
    title: "Add a chunk",
    content,
    buttons: [{ label: "Add", act: async () => (await post(`${path}/chunks`, body())).chunk }],
    onOpen: () => text.focus(),
  });
}

export function removeChunk(path, chunk) {
  return confirm({
    title: `Delete chunk ${chunk.number}?`,
    text: ["It is found no more. Parsing the document again brings it back, unless it was added by hand."],
    label: "Delete",
    kind: "bad",
    act: async () => {
      await del(`${path}/chunks`, { chunk_ids: [chunk.id] });
      return true;
    },
  });
}

export const switchChunk = (path, chunk, isOn) => put(`${path}/chunks/${chunk.id}`, { available: isOn });
