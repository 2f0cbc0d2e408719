// The head of a document's page: its state, the sentence that explains it, progress, and what can be done now. Its places
// are drawn by the server and keep their size, so nothing jumps while they change.
import { del, post, put } from "../api.js";
import { confirm } from "../dialog.js";
import { el, icon, setText } from "../dom.js";
import { estimate, number, sentence } from "../format.js";
import { stateBadge } from "../state.js";
import { toast, toastError } from "../toast.js";
import { reparse } from "./reparse.js";

const ENDED = ["done", "failed", "cancelled"];

export class Header {
  // onStarted(): a parse has begun or goes on; countEdits(): how many chunks people have changed.
  constructor({ data, onStarted, countEdits }) {
    Object.assign(this, { data, onStarted, countEdits });
    this.path = `/datasets/${data.dataset.id}`;
    const by = (id) => document.getElementById(id);
    this.state = by("doc-state");
    this.message = by("doc-message");
    this.bar = by("doc-bar");
    this.eta = by("doc-eta");
    this.actions = by("doc-actions");
    this.chunks = by("doc-chunks");
    this.enabled = by("doc-enabled");
    this.enabled.addEventListener("change", () => this.enable());
    by("doc-delete").addEventListener("click", () => this.remove());
    by("doc-reparse").addEventListener("click", () => this.openReparse());
    this.show(data.job);
  }

  show(job) {
    this.job = job;
    if (this.state.dataset.state !== job.status) {
      this.state.replaceChildren(stateBadge(job.status));
      this.state.dataset.state = job.status;
    }
    setText(this.message, sentence(job.message.replace(/^(?:done|failed): /, ""))); // the badge says that much
    this.bar.value = job.progress;
    this.bar.parentElement.hidden = job.status === "unstarted" || job.status === "done";
    this.bar.className = `bar ${job.status === "failed" ? "bar-bad" : ["paused", "cancelled"].includes(job.status) ? "bar-still" : ""}`;
    setText(this.eta, this.etaText(job));
    if (job.result) this.showCounts(job.result.chunk_count, job.result.token_count);
    if (this.shownFor !== job.status) this.drawActions(job.status);
    document.getElementById("doc-reparse").disabled = !(ENDED.includes(job.status) || job.status === "unstarted");
  }

  showCounts(chunks, tokens = null) {
    setText(this.chunks, number(chunks));
    setText(this.chunks.previousElementSibling, chunks === 1 ? "chunk" : "chunks");
    if (tokens !== null) setText(document.getElementById("doc-tokens"), number(tokens));
  }

  etaText(job) {
    if (job.queue_position) return `number ${number(job.queue_position)} in the queue`;
    if (job.eta_s === null || job.is_final) return "";
    return `${estimate(job.eta_s)} left`;
  }

  drawActions(status) {
    this.shownFor = status;
    const button = (label, symbol, act, kind = "") => el("button.button", { type: "button", class: kind, onclick: (event) => this.run(event.currentTarget, act) }, icon(symbol), label);
    const send = (verb) => () => post(`${this.path}/documents/${verb}`, { document_ids: [this.job.document_id] });
    const shown = {
      unstarted: [button("Parse", "play", send("parse"), "button-main")],
      queued: [button("Pause", "pause", send("pause")), button("Stop", "stop", send("stop"))],
      running: [button("Pause", "pause", send("pause")), button("Stop", "stop", send("stop"))],
      paused: [button("Resume", "play", send("resume"), "button-main"), button("Stop", "stop", send("stop"))],
      done: [button("Parse again", "again", () => this.again())],
      failed: [button("Parse again", "again", () => this.again())],
      cancelled: [button("Parse again", "again", () => this.again(), "button-main")],
    }[status] ?? [];
    const hadFocus = this.actions.contains(document.activeElement);
    this.actions.replaceChildren(...shown);
    if (hadFocus) shown[0]?.focus();
  }

  async run(button, act) {
    button.setAttribute("aria-busy", "true");
    try {
      const answer = await act();
      if (answer?.errors?.length) throw new Error(answer.errors.join("; "));
      if (answer !== null) this.onStarted();
    } catch (error) {
      toastError(error);
    } finally {
      button.removeAttribute("aria-busy");
    }
  }

  // With the settings that it has. Edits by people would go: that is asked first.
  async again() {
    const parse = () => post(`${this.path}/documents/parse`, { document_ids: [this.job.document_id] });
    const edits = this.countEdits();
    if (!edits) return parse();
    return confirm({
      title: "Parse again, and lose changes made by hand?",
      text: [`${edits === 1 ? "1 chunk was" : `${number(edits)} chunks were`} added, changed or deleted by people. Parsing makes all chunks anew, and these changes go.`,
        "Searches find the old chunks until the new ones are ready."],
      label: "Parse again",
      kind: "bad",
      act: parse,
    });
  }

  async openReparse() {
    closeMenu();
    if (await reparse({ data: this.data, job: this.job, edits: this.countEdits(), path: this.path })) this.onStarted();
  }

  async enable() {
    const isOn = this.enabled.checked;
    try {
      await put(`${this.path}/documents/${this.job.document_id}`, { enabled: isOn ? 1 : 0 });
      toast(isOn ? "Searches find this document again." : "Searches leave this document out.");
    } catch (error) {
      this.enabled.checked = !isOn;
      toastError(error, "Not changed");
    }
  }

  async remove() {
    closeMenu();
    const gone = await confirm({
      title: `Delete ${this.data.document.name}?`,
      text: ["The file and its chunks go for good."],
      label: "Delete",
      kind: "bad",
      act: async () => {
        await del(`${this.path}/documents`, { ids: [this.job.document_id] });
        return true;
      },
    });
    if (gone) location.assign(this.data.dataset.url);
  }
}

function closeMenu() {
  for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
}
