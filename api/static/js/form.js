// Errors beside what caused them: a field with the id of the error's name has a place "<id>-error".
import { el, icon } from "./dom.js";

// errors: [{field, message}]; what has no field is told in #form-error. The first wrong field gets the focus.
export function showErrors(form, errors, message = "") {
  for (const place of form.querySelectorAll(".error")) place.textContent = "";
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
  const homeless = [];
  let first = null;
  for (const error of errors) {
    const place = document.getElementById(`${error.field}-error`);
    if (!place) {
      homeless.push(`${error.field}: ${error.message}`);
      continue;
    }
    place.textContent = error.message;
    const control = document.getElementById(error.field);
    control?.setAttribute("aria-invalid", "true");
    control?.closest("details")?.setAttribute("open", "");
    first ??= control;
  }
  const rest = errors.length ? homeless.join("; ") : message;
  const box = document.getElementById("form-error");
  box?.replaceChildren(...(rest ? [el("div.notice.notice-bad", { role: "alert" }, icon("warning"), el("div", {}, rest))] : []));
  first?.focus();
}
