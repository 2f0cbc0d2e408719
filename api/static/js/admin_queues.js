// What waits, by priority with its stream, and by tenant.
import { follow, showWarnings } from "./admin_feed.js";
import { keyed, tableRow } from "./admin_parts.js";
import { el } from "./dom.js";
import { duration, number, plural } from "./format.js";

const count = (key, label) => ({ label, number: true, text: (line) => number(line[key]) });
const LINE = [
  count("waiting", "Waiting"),
  count("put_off", "Put off"),
  count("paused", "Paused"),
  count("published", "Published"),
  count("running", "At work"),
  { label: "Oldest waits", number: true, text: (line) => (line.oldest_s ? duration(line.oldest_s) : "–") },
];
const inStream = (key, label) => ({ label, number: true, text: ({ stream }) => (stream ? number(stream[key]) : "unknown") });
const STREAM = [inStream("length", "Stream length"), inStream("lag", "Lag"), inStream("pending", "Pending")];
const NAMES = { urgent: "Urgent", normal: "Normal", bulk: "Bulk", express: "Express stream" };
const PRIORITY = [{ label: "Priority", text: (line) => NAMES[line.name] }, ...LINE, ...STREAM];
const EXPRESS = [{ label: "Priority", text: (line) => NAMES[line.name] }, ...LINE.map((one) => ({ ...one, text: () => "–" })), ...STREAM];
const TENANT = [{ label: "Tenant", text: (line) => line.name || line.id }, ...LINE];

follow((facts) => {
  showWarnings(facts);
  const { queue } = facts;
  const lines = [...queue.priorities, { name: "express", stream: queue.express }];
  keyed(document.getElementById("priorities"), lines, (line) => line.name, (line) => tableRow(line.name === "express" ? EXPRESS : PRIORITY));
  const tenants = [...queue.tenants].sort((a, b) => (a.name < b.name ? -1 : 1));
  const others = queue.other_tenants;
  if (others.count) tenants.push({ ...others, id: "others", name: plural(others.count, "other tenant") });
  const body = document.getElementById("tenants");
  keyed(body, tenants.length ? tenants : [{ id: "none" }], (line) => line.id, (line) => (line.id === "none" ? nothing() : tableRow(TENANT)));
});

function nothing() {
  return { node: el("tr", {}, el("td.quiet", { colspan: TENANT.length }, "Nobody waits: every task has ended.")), update() {} };
}
