// What every page has: the choice of colours, and menus that close as one expects.
import { icon } from "./dom.js";
import { forget, keep, kept } from "./kept.js";

const THEMES = [
  ["", "screen", "Colours: as the system"],
  ["light", "sun", "Colours: light"],
  ["dark", "moon", "Colours: dark"],
];

const button = document.getElementById("theme");

function showTheme() {
  const [name, symbol, label] = THEMES.find(([one]) => one === kept("theme", "")) ?? THEMES[0];
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  button.setAttribute("aria-label", label);
  button.title = label;
  button.replaceChildren(icon(symbol));
}

button.addEventListener("click", () => {
  const next = THEMES[(THEMES.findIndex(([one]) => one === kept("theme", "")) + 1) % THEMES.length][0];
  if (next) keep("theme", next);
  else forget("theme");
  showTheme();
});
showTheme();

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (menu !== except) menu.open = false;
}

document.addEventListener("click", (event) => closeMenus(event.target.closest("details.menu")));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const open = document.querySelector("details.menu[open]");
  if (open) {
    open.open = false;
    open.querySelector("summary").focus();
  }
});
