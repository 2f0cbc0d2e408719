// API keys: made, shown once, revoked.
import { del, get, post } from "./api.js";
import { ask, confirm } from "./dialog.js";
import { el } from "./dom.js";
import { time } from "./format.js";
import { toast } from "./toast.js";

const table = document.getElementById("key-table");
const body = table.tBodies[0];
const none = document.getElementById("no-keys");

document.getElementById("new-key").addEventListener("click", async () => {
  const input = el("input.input", { id: "key-name", maxlength: 128, autocomplete: "off", placeholder: "such as: nightly import" });
  const made = await ask({
    title: "New API key",
    content: [el("div.field", {}, el("label", { for: "key-name" }, "What is it for?"), input)],
    buttons: [{ label: "Make it", act: () => make(input.value.trim()) }],
    onOpen: () => input.focus(),
  });
  if (made) {
    await showOnce(made);
    await refresh();
  }
});

function make(name) {
  if (!name) throw new Error("Give it a name, so that you know it later.");
  return post("/system/tokens", { name });
}

// The key can't be read again: it is shown here, and nowhere else.
function showOnce(made) {
  const field = el("input.input", { id: "key-value", readonly: true, value: made.token });
  const copy = el("button.button", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    field.select();
    await navigator.clipboard.writeText(made.token).catch(() => document.execCommand("copy"));
    copy.textContent = "Copied";
  });
  return ask({
    title: `The key “${made.name}”`,
    content: [
      el("p", {}, "Copy it now: it can’t be shown again. Whoever has it can do what you can do."),
      el("div.field", {}, el("label", { for: "key-value" }, "API key"), el("div.copy", {}, field, copy)),
    ],
    buttons: [],
    cancel: "I have it",
    onOpen: () => field.select(),
  });
}

async function refresh() {
  const keys = await get("/system/tokens");
  body.replaceChildren(...keys.map(row));
  table.hidden = keys.length === 0;
  none.hidden = keys.length > 0;
}

function row(key) {
  return el("tr", { dataset: { id: key.id } },
    el("th.name", { scope: "row" }, key.name),
    el("td.mono", { "data-label": "Key" }, key.token),
    el("td", { "data-label": "Made" }, time(key.create_time)),
    el("td", { "data-label": "Last used" }, key.update_time ? time(key.update_time) : "never"),
    el("td.tools", {}, el("button.button.button-s.button-bad", { type: "button", dataset: { act: "revoke" } }, "Revoke", el("span.only-read", {}, ` ${key.name}`))));
}

body.addEventListener("click", async (event) => {
  const button = event.target.closest('[data-act="revoke"]');
  if (!button) return;
  const line = button.closest("tr");
  const name = line.querySelector(".name").textContent;
  const gone = await confirm({
    title: `Revoke “${name}”?`,
    text: "Programs that use it are refused from now on. This can’t be undone.",
    label: "Revoke it",
    kind: "bad",
    act: () => del(`/system/tokens/${line.dataset.id}`),
  });
  if (gone) {
    toast(`“${name}” is revoked.`);
    await refresh();
  }
});
