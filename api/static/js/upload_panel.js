// The uploads drawn: a running total, a bar for each file on its way, and beside each that failed the reason and a way
// to try it again. Thousands of files draw only a few lines.
import { el, icon, setText } from "./dom.js";
import { bytes, estimate, number, plural } from "./format.js";

const WAITING_SHOWN = 3;
const FAILED_SHOWN = 50;
const DONE_SHOWN = 3;
const byId = (id) => document.getElementById(id);

export class UploadPanel {
  constructor() {
    this.lines = new Map();
    this.box = byId("uploads");
    this.list = byId("upload-list");
  }

  attach(uploads) {
    this.uploads = uploads;
    byId("uploads-retry").addEventListener("click", () => uploads.retry());
    byId("uploads-stop").addEventListener("click", () => uploads.stop());
    byId("uploads-close").addEventListener("click", () => uploads.clear());
    this.list.addEventListener("click", (event) => {
      const line = event.target.closest("li");
      if (event.target.closest('[data-act="retry"]') && line) uploads.retry([line.upload]);
    });
  }

  show() {
    const { uploads } = this;
    const totals = uploads.totals;
    this.box.hidden = uploads.files.length === 0;
    if (this.box.hidden) this.startMs = 0;
    else this.startMs ||= performance.now();
    byId("uploads-bar").value = totals.bytes ? totals.sent / totals.bytes : totals.done / Math.max(1, totals.files);
    setText(byId("uploads-total"), this.totalText(totals));
    byId("uploads-stop").hidden = totals.open === 0;
    byId("uploads-retry").hidden = totals.failed === 0 || totals.open > 0;
    byId("uploads-close").hidden = totals.open > 0;
    this.drawLines(this.shown());
    if (totals.files && !totals.open && !totals.failed && !uploads.parseError) this.closeSoon();
  }

  totalText({ files, done, failed, open, bytes: all, sent }) {
    if (this.uploads.parseError) return this.uploads.parseError;
    const parts = [`${number(done)} of ${plural(files, "file")}`, `${bytes(sent)} of ${bytes(all)}`];
    const seconds = (performance.now() - this.startMs) / 1000;
    if (open && sent && seconds > 2) {
      const speed = sent / seconds;
      parts.push(`${bytes(Math.round(speed))}/s`, `${estimate((all - sent) / speed)} left`);
    }
    if (failed) parts.push(`${number(failed)} failed`);
    return parts.join(" · ");
  }

  shown() {
    const { uploads } = this;
    return [
      ...uploads.in("failed").slice(0, FAILED_SHOWN),
      ...uploads.in("sending", "busy"),
      ...uploads.in("waiting").slice(0, WAITING_SHOWN),
      ...uploads.in("done").slice(-DONE_SHOWN).reverse(),
    ];
  }

  drawLines(shown) {
    const wanted = new Set(shown);
    for (const [upload, line] of this.lines) {
      if (wanted.has(upload)) continue;
      line.node.remove();
      this.lines.delete(upload);
    }
    shown.forEach((upload, place) => {
      if (!this.lines.has(upload)) this.lines.set(upload, lineOf(upload));
      const line = this.lines.get(upload);
      if (this.list.children[place] !== line.node) this.list.insertBefore(line.node, this.list.children[place] ?? null);
      line.show();
    });
  }

  closeSoon() {
    clearTimeout(this.closing);
    this.closing = setTimeout(() => {
      const { open, failed } = this.uploads.totals;
      if (!open && !failed) this.uploads.clear();
    }, 4000);
  }
}

function lineOf(upload) {
  const { file } = upload;
  const bar = el("progress.bar", { max: "1", "aria-label": `Upload of ${file.name}` });
  const said = el("span.said.number");
  const again = el("button.button.button-s", { type: "button", dataset: { act: "retry" } }, icon("again"), "Retry", el("span.only-read", {}, ` ${file.name}`));
  const node = el("li.upload", {}, el("span.clip", { title: file.webkitRelativePath || file.name }, file.name), bar, said, again);
  node.upload = upload;
  const show = () => {
    node.className = `upload upload-${upload.state}`;
    bar.value = file.size ? upload.sent / file.size : Number(upload.state === "done");
    bar.classList.toggle("bar-good", upload.state === "done");
    setText(said, saidOf(upload));
    again.hidden = upload.state !== "failed";
  };
  return { node, show };
}

function saidOf({ state, sent, error, file }) {
  if (state === "failed") return error;
  if (state === "busy") return "server busy, waiting";
  if (state === "sending") return sent >= file.size ? "storing" : `${bytes(sent)} of ${bytes(file.size)}`;
  return state === "done" ? "stored" : bytes(file.size);
}
