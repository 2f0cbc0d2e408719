// The line of files on their way up: a few calls at once, small files together, what fails can be tried again. No drawing.
import { post } from "./api.js";
import { UploadRequest } from "./upload_request.js";

const AT_ONCE = 3;
const SMALL_BYTES = 256 * 1024;
const TOGETHER = 16;
const PARSE_PART = 200;
const PARSE_WAIT_MS = 300;

export class Uploads {
  // onChange() whenever something is different; onStored() when documents are there.
  constructor(datasetId, { maxBytes, wantsParse, onChange, onStored }) {
    Object.assign(this, { datasetId, maxBytes, wantsParse, onChange, onStored });
    this.files = [];
    this.toParse = [];
    this.parseTimer = 0;
  }

  add(files) {
    for (const file of files) {
      const one = new Upload(file);
      if (file.size > this.maxBytes) one.fail("The file is larger than the server takes.");
      this.files.push(one);
    }
    this.advance();
  }

  // A call whose answer was lost is sent again as it was, with its key.
  retry(uploads = this.in("failed")) {
    for (const one of uploads) {
      if (one.state !== "failed" || one.file.size > this.maxBytes) continue;
      for (const other of one.request?.uploads ?? [one]) other.reset();
    }
    this.advance();
  }

  stop() {
    for (const one of this.files) if (one.isOpen) one.stop();
    this.changed();
  }

  clear() {
    this.files = this.files.filter((one) => one.isOpen);
    this.changed();
  }

  in(...states) {
    return this.files.filter((one) => states.includes(one.state));
  }

  get totals() {
    const counted = this.files.filter((one) => one.state !== "stopped");
    return {
      files: counted.length,
      done: this.in("done").length,
      failed: this.in("failed").length,
      open: counted.filter((one) => one.isOpen).length,
      bytes: counted.reduce((sum, one) => sum + one.file.size, 0),
      sent: counted.reduce((sum, one) => sum + one.sent, 0),
    };
  }

  advance() {
    let free = AT_ONCE - new Set(this.in("sending", "busy").map((one) => one.request)).size;
    const waiting = this.in("waiting");
    while (free > 0 && waiting.length) {
      free -= 1;
      this.send(this.nextRequest(waiting));
    }
    this.changed();
  }

  nextRequest(waiting) {
    const first = waiting.shift();
    const together = first.request?.uploads ?? [first];
    if (first.request) {
      for (const other of together.slice(1)) waiting.splice(waiting.indexOf(other), 1);
      return first.request;
    }
    const isSmall = (one) => one && !one.request && one.file.size <= SMALL_BYTES;
    while (isSmall(first) && together.length < TOGETHER && isSmall(waiting[0])) together.push(waiting.shift());
    return new UploadRequest(this.datasetId, together);
  }

  async send(request) {
    const documents = await request.send(() => this.changed());
    if (documents.length) this.onStored();
    if (documents.length && this.wantsParse()) this.parseSoon(documents.map(({ id }) => id));
    this.advance();
  }

  // In parts: one call for many small files, and no waiting for the last of thousands.
  parseSoon(ids) {
    this.toParse.push(...ids);
    if (!this.parseTimer) this.parseTimer = setTimeout(() => this.parseNow(), PARSE_WAIT_MS);
  }

  async parseNow() {
    const part = this.toParse.splice(0, PARSE_PART);
    try {
      await post(`/datasets/${this.datasetId}/documents/parse`, { document_ids: part });
      this.onStored();
    } catch (error) {
      if (error.status === 429) this.toParse.unshift(...part);
      else this.parseError = `Stored, but not parsed: ${error.message}`;
    }
    this.parseTimer = this.toParse.length ? setTimeout(() => this.parseNow(), PARSE_WAIT_MS * 10) : 0;
    this.changed();
  }

  changed() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.onChange();
    });
  }
}

class Upload {
  constructor(file) {
    this.file = file;
    this.request = null;
    this.reset();
  }

  reset() {
    Object.assign(this, { state: "waiting", sent: 0, error: "" });
  }

  get isOpen() {
    return ["waiting", "sending", "busy"].includes(this.state);
  }

  become(state) {
    if (this.state === "stopped") return;
    this.state = state;
    if (state === "done") this.sent = this.file.size;
  }

  fail(error) {
    if (this.state !== "stopped") Object.assign(this, { state: "failed", sent: 0, error });
  }

  stop() {
    if (this.request && this.state !== "waiting") this.request.stop();
    else this.state = "stopped";
  }
}
