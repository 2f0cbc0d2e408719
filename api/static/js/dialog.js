// Questions in a <dialog>: the browser keeps the focus inside, closes on Escape, and gives the focus back.
import { el } from "./dom.js";

let count = 0;

// content: nodes; buttons: [{label, kind: "main"|"bad"|"", act: async () => …}] besides "Cancel".
// A button's act that throws leaves the dialog open, with the error's sentence in it. Resolves to act's value or null.
export function ask({ title, content = [], buttons = [], cancel = "Cancel", onOpen = () => {} }) {
  count += 1;
  const id = `dialog-${count}`;
  return new Promise((resolve) => {
    let answer = null;
    const error = el("p.error", { role: "alert" });
    const shown = buttons.map((button) => actButton(button, error, (value) => {
      answer = value ?? true;
      dialog.close();
    }));
    const leave = el("button.button", { type: "button", onclick: () => dialog.close() }, cancel);
    const form = el("form.dialog-body", { method: "dialog" }, el("h2", { id }, title), ...content,
      el("div.field", {}, error), el("div.dialog-buttons", {}, leave, ...shown));
    const dialog = el("dialog", { "aria-labelledby": id }, form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      shown.at(-1)?.click();
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
    onOpen(dialog, shown);
  });
}

function actButton({ label, kind = "main", act, disabled = false }, error, done) {
  const button = el("button.button", { type: "button", class: kind ? `button-${kind}` : "", disabled }, label);
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-busy") === "true" || button.disabled) return;
    button.setAttribute("aria-busy", "true");
    error.textContent = "";
    try {
      done(await act());
    } catch (problem) {
      error.textContent = problem.message;
    } finally {
      button.removeAttribute("aria-busy");
    }
  });
  return button;
}

export const confirm = ({ title, text, label, kind = "main", act }) =>
  ask({ title, content: [].concat(text).map((one) => el("p", {}, one)), buttons: [{ label, kind, act }] });

// For what can't be undone: the name has to be typed.
export function confirmByName({ title, text, name, label, act }) {
  const input = el("input.input", { id: "typed-name", autocomplete: "off", spellcheck: "false" });
  const field = el("div.field", {}, el("label", { for: "typed-name" }, "Type ", el("strong", {}, name), " to confirm"), input);
  return ask({
    title,
    content: [...[].concat(text).map((one) => el("p", {}, one)), field],
    buttons: [{ label, kind: "bad", act, disabled: true }],
    onOpen: (dialog, [button]) => {
      input.focus();
      input.addEventListener("input", () => {
        button.disabled = input.value.trim() !== name.trim();
      });
    },
  });
}
