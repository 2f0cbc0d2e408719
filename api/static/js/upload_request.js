// One call that uploads a file, or a handful of small ones. A server that is busy is asked again when it says so. The
// call's key makes files that the server has already stay one document each, also where its answer was lost.
import { ApiError, csrfToken, judged } from "./api.js";

const BUSY = [429, 503];
const BUSY_TRIES = 6;
const LONGEST_WAIT_S = 30;

export class UploadRequest {
  constructor(datasetId, uploads) {
    Object.assign(this, { datasetId, uploads });
    this.key = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
    for (const one of uploads) one.request = this;
  }

  // Resolves to the documents that were stored. Each upload is done, failed or stopped then.
  async send(onProgress) {
    for (let tries = 1; ; tries += 1) {
      this.mark("sending");
      onProgress();
      try {
        const documents = await this.sendOnce(onProgress);
        this.mark("done");
        return documents;
      } catch (error) {
        if (!BUSY.includes(error.status) || tries >= BUSY_TRIES || this.isStopped) return this.judge(error);
        this.mark("busy");
        onProgress();
        await new Promise((resolve) => setTimeout(resolve, Math.min(LONGEST_WAIT_S, error.retryAfter || 2) * 1000));
        if (this.isStopped) return [];
      }
    }
  }

  stop() {
    this.isStopped = true;
    this.call?.abort();
    this.mark("stopped");
  }

  mark(state) {
    for (const one of this.uploads) one.become(state);
  }

  // Files that the server will not have are named line by line; the others of the call are stored.
  judge(error) {
    if (this.isStopped) return [];
    const stored = Array.isArray(error.data) ? error.data : null;
    const lines = error.message.split("\n");
    for (const one of this.uploads) {
      const place = stored ? lines.findIndex((line) => line.startsWith(`${one.file.name}: `)) : 0;
      if (place < 0) one.become("done");
      else one.fail(lines[place].replace(`${one.file.name}: `, ""));
    }
    if (stored) for (const one of this.uploads) one.request = null; // what is tried again is another call
    return stored ?? [];
  }

  sendOnce(onProgress) {
    const form = new FormData();
    for (const { file } of this.uploads) form.append("file", file, file.name);
    return new Promise((resolve, reject) => {
      const call = new XMLHttpRequest();
      this.call = call;
      call.open("POST", `/api/v1/datasets/${this.datasetId}/documents`);
      call.setRequestHeader("X-CSRF-Token", csrfToken());
      call.setRequestHeader("Idempotency-Key", this.key);
      call.upload.onprogress = ({ loaded }) => {
        this.spread(loaded);
        onProgress();
      };
      call.onerror = () => reject(new ApiError("The connection broke. Try it again."));
      call.onabort = () => reject(new ApiError("Stopped."));
      call.onload = () => {
        try {
          resolve(judged(call.status, bodyOf(call), call.getResponseHeader("X-Request-Id") ?? ""));
        } catch (error) {
          error.retryAfter = Number(call.getResponseHeader("Retry-After"));
          reject(error);
        }
      };
      call.send(form);
    });
  }

  spread(loaded) {
    let left = loaded;
    for (const one of this.uploads) {
      one.sent = Math.max(0, Math.min(one.file.size, left));
      left -= one.file.size;
    }
  }
}

function bodyOf(call) {
  try {
    return JSON.parse(call.responseText);
  } catch {
    return null;
  }
}
