// Parse again with other settings: the chunk method and what matters most of its settings, with what goes by it.
import { post, put } from "../api.js";
import { ask } from "../dialog.js";
import { el, icon } from "../dom.js";

export function reparse({ data, job, edits, path }) {
  const config = data.document.parser_config;
  const method = el("select.input", { id: "set-method", "aria-describedby": "set-method-help" },
    ...data.methods.map((one) => el("option", { value: one.key, selected: one.key === data.document.chunk_method }, one.label)));
  const help = el("p.help", { id: "set-method-help" });
  const size = el("input.input.input-short", { id: "set-size", type: "number", min: 16, max: 2048, value: config.chunk_token_num ?? 512 });
  const overlap = el("input.input.input-short", { id: "set-overlap", type: "number", min: 0, max: 90, value: config.overlapped_percent ?? 0 });
  const ocr = el("input", { type: "checkbox", id: "set-ocr", checked: config.layout_recognize !== "Plain Text" });
  const pages = el("input.input", { id: "set-pages", value: (config.pages ?? []).map(([a, b]) => (a === b ? a : `${a}-${b}`)).join(", "), placeholder: "all", autocomplete: "off" });
  const bad = el("select.input", { id: "set-bad" }, el("option", { value: "skip" }, "Leave it out, and read the rest"), el("option", { value: "fail", selected: config.on_bad_page === "fail" }, "Fail the document"));
  const password = el("input.input", { id: "set-password", type: "password", autocomplete: "new-password", placeholder: config.password ? "kept as it is" : "" });
  const isPdf = data.document.suffix === "pdf";
  const sizes = el("div.stack", {}, field("set-size", "Size of a chunk, in tokens", size, "512 is about a page of text. Smaller chunks answer more precisely, larger ones keep more context."),
    field("set-overlap", "Overlap, in percent", overlap, "How much of a chunk is repeated at the start of the next."));
  const showMethod = () => {
    const { help: text, hasSize } = data.methods.find((one) => one.key === method.value);
    help.textContent = text;
    sizes.hidden = !hasSize;
  };
  method.addEventListener("change", showMethod);
  showMethod();
  const warning = el("div.notice.notice-warn", { role: "note" }, icon("warning"), el("div", {}, warningText(job, edits)));
  return ask({
    title: "Parse again with other settings",
    content: [warning, el("div.field", {}, el("label", { for: "set-method" }, "Chunk method"), method, help), sizes,
      ...(isPdf ? [
        el("label.check", {}, ocr, el("span", {}, "Read scanned pages", el("span.help.quiet", {}, "Text in pictures of pages is recognised. Takes some seconds a page."))),
        field("set-pages", "Pages", pages, "Such as 1-5, 8. Empty: all of them."),
        field("set-bad", "A page that can’t be read", bad),
        field("set-password", "Password of the file", password),
      ] : [])],
    buttons: [{ label: "Parse again", act: async () => {
      const change = { chunk_method: method.value, parser_config: { on_bad_page: bad.value } };
      if (!sizes.hidden) Object.assign(change.parser_config, { chunk_token_num: whole(size, "The size of a chunk"), overlapped_percent: whole(overlap, "The overlap") });
      if (isPdf) Object.assign(change.parser_config, { layout_recognize: ocr.checked ? "DeepDOC" : "Plain Text", pages: pageRanges(pages.value) });
      if (isPdf && password.value) change.parser_config.password = password.value;
      const document = await put(`${path}/documents/${data.document.id}`, change);
      Object.assign(data.document, { chunk_method: document.chunk_method, parser_config: document.parser_config });
      await post(`${path}/documents/parse`, { document_ids: [data.document.id] });
      return true;
    } }],
  });
}

function warningText(job, edits) {
  const what = edits ? `${edits === 1 ? "1 change" : `${edits} changes`} to chunks made by hand will be lost. ` : "Changes to chunks made by hand are lost. ";
  return `${what}All chunks are made anew. With another chunk method the old ones go at once; else searches find them until the new ones are ready. Pages whose settings did not change are reused.`;
}

function field(id, label, control, help = "") {
  if (help) control.setAttribute("aria-describedby", `${id}-help`);
  return el("div.field", {}, el("label", { for: id }, label), control, help ? el("p.help", { id: `${id}-help` }, help) : null);
}

function whole(input, name) {
  const value = Number(input.value);
  if (!input.value.trim() || !Number.isInteger(value) || value < Number(input.min) || value > Number(input.max)) {
    input.focus();
    throw new Error(`${name} should be a whole number from ${input.min} to ${input.max}.`);
  }
  return value;
}

function pageRanges(text) {
  const parts = text.split(",").map((one) => one.trim()).filter(Boolean);
  if (!parts.length) return null;
  return parts.map((part) => {
    const found = /^(\d{1,7})(?:\s*[-–]\s*(\d{1,7}))?$/.exec(part);
    if (!found || Number(found[1]) < 1 || Number(found[2] ?? found[1]) < Number(found[1])) throw new Error(`“${part}” is no range of pages: write them like 1-5, 8.`);
    return [Number(found[1]), Number(found[2] ?? found[1])];
  });
}
