// The form of a knowledge base: sent to the REST API; what is refused is told beside its field.
import { del, post, put } from "./api.js";
import { confirmByName } from "./dialog.js";
import { el } from "./dom.js";
import { plural } from "./format.js";
import { showErrors } from "./form.js";

const form = document.getElementById("form");
const id = form.dataset.id;

function method() {
  return form.querySelector('input[name="chunk_method"]:checked');
}

// Sizes mean nothing to methods that cut by rows, slides or pairs.
function showSettings() {
  const isSized = method()?.dataset.sized === "1";
  for (const part of form.querySelectorAll('[data-for="sized"]')) part.toggleAttribute("data-off", !isSized);
}

function values() {
  const found = { parser_config: {} };
  for (const control of form.elements) {
    if (!control.name || control.disabled || control.closest("[data-off]")) continue;
    if (control.type === "radio" && !control.checked) continue;
    const value = valueOf(control);
    if (value !== undefined) putAt(found, control.name.split("."), value);
  }
  return found;
}

function valueOf(control) {
  if (control.type === "checkbox") return control.checked;
  const text = control.value;
  if (!text && "optional" in control.dataset) return undefined;
  if (control.dataset.number) return text.trim() === "" ? undefined : Number(text);
  return "escaped" in control.dataset ? text.replaceAll("\\n", "\n").replaceAll("\\t", "\t") : text;
}

function putAt(object, path, value) {
  const [first, ...rest] = path;
  if (rest.length) putAt((object[first] ??= {}), rest, value);
  else object[first] = value;
}

form.addEventListener("change", showSettings);
showSettings();

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector('button[type="submit"]');
  const given = values();
  if (!given.name?.trim()) return showErrors(form, [{ field: "name", message: "Give it a name." }]);
  showErrors(form, []);
  button.setAttribute("aria-busy", "true");
  try {
    const made = id ? await put(`/datasets/${id}`, given) : await post("/datasets", given);
    location.assign(`/datasets/${made.id}`);
  } catch (error) {
    showErrors(form, error.fields, error.message);
    button.removeAttribute("aria-busy");
  }
  return undefined;
});

document.getElementById("delete")?.addEventListener("click", async ({ currentTarget }) => {
  const { name, documents } = currentTarget.dataset;
  const gone = await confirmByName({
    title: "Delete this knowledge base?",
    text: [el("span", {}, el("strong", {}, name), ` and its ${plural(Number(documents), "document")} can’t be brought back.`)],
    name,
    label: "Delete it",
    act: () => del("/datasets", { ids: [id] }),
  });
  if (gone) location.assign("/");
});
