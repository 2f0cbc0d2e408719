// The line of files on their way up: a few at once, each with how far it is; what fails can be tried again. No drawing.
import { ApiError, csrfToken, judged, post } from "./api.js";

const AT_ONCE = 3;
const PARSE_PART = 200;
const PARSE_WAIT_MS = 300;
const BUSY_TRIES = 6;

export class Uploads {
  // onChange() whenever something is different; onStored() when documents are there.
  constructor(datasetId, { maxBytes, wantsParse, onChange, onStored }) {
    Object.assign(this, { datasetId, maxBytes, wantsParse, onChange, onStored });
    this.files = [];
    this.toParse = [];
    this.parseTimer = 0;
  }

  add(files) {
    for (const file of files) this.files.push(new Upload(file));
    this.advance();
  }

  retry(uploads = this.in("failed")) {
    for (const one of uploads) if (one.state === "failed" && one.file.size <= this.maxBytes) one.reset();
    this.advance();
  }

  stop() {
    for (const one of this.files) one.stop();
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
    let free = AT_ONCE - this.in("sending", "busy").length;
    for (const one of this.files) {
      if (free <= 0) break;
      if (one.state !== "waiting") continue;
      free -= 1;
      this.send(one);
    }
    this.changed();
  }

  async send(one) {
    try {
      if (one.file.size > this.maxBytes) throw new ApiError("The file is larger than the server takes.");
      const documents = await one.send(this.datasetId, () => this.changed());
      this.onStored(documents);
      if (this.wantsParse()) this.parseSoon(documents.map((document_) => document_.id));
    } catch (error) {
      one.fail(error);
    }
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
      this.onStored([]);
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
    this.key = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
    this.reset();
  }

  reset() {
    this.state = "waiting";
    this.sent = 0;
    this.error = "";
    this.tries = 0;
  }

  get isOpen() {
    return ["waiting", "sending", "busy"].includes(this.state);
  }

  stop() {
    if (!this.isOpen) return;
    this.state = "stopped";
    this.request?.abort();
  }

  fail(error) {
    if (this.state === "stopped") return;
    this.state = "failed";
    this.sent = 0;
    this.error = error.message;
  }

  // A server that is busy is asked again when it says so; its key makes a file that it has already stay one document.
  async send(datasetId, onProgress) {
    for (;;) {
      this.state = "sending";
      onProgress();
      try {
        const found = await this.sendOnce(datasetId, onProgress);
        this.state = "done";
        this.sent = this.file.size;
        return found;
      } catch (error) {
        this.tries += 1;
        if (![429, 503].includes(error.status) || this.tries >= BUSY_TRIES || this.state === "stopped") throw error;
        this.state = "busy";
        this.error = error.message;
        onProgress();
        await new Promise((resolve) => setTimeout(resolve, Math.min(30, error.retryAfter || 2) * 1000));
        if (this.state === "stopped") throw error;
      }
    }
  }

  sendOnce(datasetId, onProgress) {
    const form = new FormData();
    form.append("file", this.file, this.file.name);
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      this.request = request;
      request.open("POST", `/api/v1/datasets/${datasetId}/documents`);
      request.setRequestHeader("X-CSRF-Token", csrfToken());
      request.setRequestHeader("Idempotency-Key", this.key);
      request.upload.onprogress = (event) => {
        this.sent = Math.min(this.file.size, event.loaded);
        onProgress();
      };
      request.onerror = () => reject(new ApiError("The connection broke. Try it again."));
      request.onabort = () => reject(new ApiError("Stopped."));
      request.onload = () => {
        try {
          resolve(judged(request.status, bodyOf(request), request.getResponseHeader("X-Request-Id") ?? ""));
        } catch (error) {
          error.retryAfter = Number(request.getResponseHeader("Retry-After"));
          error.message = error.message.replace(`${this.file.name}: `, "");
          reject(error);
        }
      };
      request.send(form);
    });
  }
}

function bodyOf(request) {
  try {
    return JSON.parse(request.responseText);
  } catch {
    return null;
  }
}
