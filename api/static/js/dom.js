// Elements built safely: text is always text. Nothing here, or anywhere, takes markup out of a string.
const SVG = "http://www.w3.org/2000/svg";
const ICONS = new URL("../icons.svg", import.meta.url).pathname;

// el("a.button", {href: "/x", onclick: f, dataset: {id: 1}, "aria-label": "…"}, "text", child, …)
// Names of handlers begin with "on"; null, undefined and false leave an attribute or a child out.
export function el(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) set(node, key, value);
  node.append(...children.flat().filter((one) => one !== null && one !== undefined && one !== false));
  return node;
}

function set(node, key, value) {
  if (value === null || value === undefined || value === false) return;
  if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
  else if (key === "dataset") Object.assign(node.dataset, value);
  else if (key === "class") node.classList.add(...value.split(" ").filter(Boolean));
  else node.setAttribute(key, value === true ? "" : value);
}

export function icon(name, extra = "") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `icon ${extra}`.trim());
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `${ICONS}#${name}`);
  svg.append(use);
  return svg;
}

// svg("rect", {x: 1, y: 2}) for drawings: charts, page strips, boxes.
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Change a text only where it differs: nothing is drawn anew, and nothing is read out twice.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Values that the server put into the page: <script type="application/json" id="…"> is data, and never runs.
export function pageData(id = "page-data") {
  const node = document.getElementById(id);
  return node ? JSON.parse(node.textContent) : {};
}
