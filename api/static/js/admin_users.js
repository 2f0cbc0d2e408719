// Users: who they are, and what an administrator does with them. A new password is shown once.
import { get, patch, post } from "./api.js";
import { keyed } from "./admin_parts.js";
import { ask as askFor, confirm } from "./dialog.js";
import { el, icon, pageData, setText } from "./dom.js";
import { ago, number } from "./format.js";
import { stateBadge } from "./state.js";
import { toast } from "./toast.js";

const { me } = pageData();
const body = document.getElementById("users");

function show(users) {
  keyed(body, users, (user) => user.id, row);
}

async function reload(text) {
  show(await get("/admin/users"));
  if (text) toast(text);
}

function row(first) {
  let now = first;
  const role = el("td", { "data-label": "Role" });
  const state = el("td", { "data-label": "State" });
  const cells = ["Knowledge bases", "Documents", "API keys"].map((label) => el("td.number", { "data-label": label }));
  const used = el("td", { "data-label": "Key last used" });
  const list = el("div.menu-list");
  const menu = el("details.menu", {}, el("summary.button.button-plain.button-s.button-icon", { "aria-label": `Change ${first.email}` }, icon("dots")), list);
  const who = el("th", { scope: "row" }, el("div.user-name", {}, el("span", {}, first.nickname), el("span.quiet.small", {}, first.email)));
  return {
    node: el("tr", { dataset: { user: first.email } }, who, role, state, ...cells, used, el("td.tools", {}, menu)),
    update(user) {
      now = user;
      setText(role, user.is_superuser ? "Administrator" : "Member");
      state.replaceChildren(user.is_active ? stateBadge("good", "Active") : stateBadge("none", "Disabled"));
      [user.datasets, user.documents, user.keys].forEach((count, place) => setText(cells[place], number(count)));
      setText(used, user.last_used_ms ? ago(user.last_used_ms) : "never");
      list.replaceChildren(...actions(now).map(([label, symbol, act]) => el("button", { type: "button", onclick: () => { menu.open = false; act(); } }, icon(symbol), label)));
    },
  };
}

function actions(user) {
  const found = [["New password", "key", () => newPassword(user)]];
  if (user.id === me) return found;
  found.push(user.is_superuser
    ? ["Make a member", "person", () => change(user, { is_superuser: false }, "Make a member", `${user.email} loses the admin pages at once.`)]
    : ["Make an administrator", "people", () => change(user, { is_superuser: true }, "Make an administrator", `${user.email} then sees all executors, queues, settings and users, and can change them. Other people's knowledge bases stay closed.`)]);
  found.push(user.is_active
    ? ["Disable", "close", () => change(user, { is_active: false }, "Disable", `${user.email} is signed out and refused from now on, also with API keys. Nothing is deleted.`, "bad")]
    : ["Enable", "check", () => change(user, { is_active: true }, "Enable", `${user.email} can sign in again, and the API keys work again.`)]);
  return found;
}

const change = (user, what, label, text, kind = "main") => confirm({
  title: `${label}?`,
  text,
  label,
  kind,
  act: () => patch(`/admin/users/${user.id}`, what),
}).then((answer) => answer && reload());

function newPassword(user) {
  const own = user.id === me ? " You too have to sign in again." : "";
  return confirm({
    title: `A new password for ${user.email}?`,
    text: `The old one ends, and so do all sessions.${own} API keys stay.`,
    label: "Make a new password",
    act: () => post(`/admin/users/${user.id}/password`),
  }).then((answer) => answer && showPassword(user.email, answer.password));
}

function showPassword(email, password) {
  const text = el("code.secret", {}, password);
  return askFor({
    title: "The password, shown once",
    content: [el("p", {}, "For ", el("strong", {}, email), ". Hand it over now: it can't be shown again."), text],
    buttons: [{ label: "Copy", act: () => copy(password) }],
    cancel: "Close",
  });
}

async function copy(password) {
  try {
    await navigator.clipboard.writeText(password);
  } catch {
    throw new Error("The browser does not let us copy: select the password and copy it.");
  }
  toast("Copied.");
}

function field(name, label, type, help) {
  const input = el("input.input", { id: `new-${name}`, name, type, autocomplete: "off", "aria-describedby": `new-${name}-help` });
  return { input, node: el("div.field", {}, el("label", { for: `new-${name}` }, label), input, el("p.help", { id: `new-${name}-help` }, help)) };
}

async function add() {
  const email = field("email", "E-mail", "email", "What they sign in with.");
  const nickname = field("nickname", "Name", "text", "As it is shown; the part before the @ where it is empty.");
  const password = field("password", "Password", "password", "At least 8 characters. Leave it empty, and one is made up and shown once.");
  const admin = el("input", { type: "checkbox", id: "new-admin" });
  const made = await askFor({
    title: "Add a user",
    content: [email.node, nickname.node, password.node,
      el("label.check", { for: "new-admin" }, admin, el("span", {}, "Administrator", el("span.help", {}, "Sees and changes all of this.")))],
    buttons: [{
      label: "Add",
      act: () => post("/admin/users", { email: email.input.value, nickname: nickname.input.value, password: password.input.value, is_superuser: admin.checked }),
    }],
    onOpen: () => email.input.focus(),
  });
  if (!made) return;
  await reload(`${made.email} was added.`);
  if (made.password) await showPassword(made.email, made.password);
}

document.getElementById("add").addEventListener("click", add);
show(pageData().users);
