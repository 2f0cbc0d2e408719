// Calls of the REST API with the session's cookie. What is refused becomes an ApiError with a sentence for people.
const BASE = "/api/v1";

export class ApiError extends Error {
  // code: RAGFlow's code, or the status; fields: what is wrong with which field, where the server says so.
  constructor(message, { status = 0, code = 0, requestId = "", fields = [], data = null } = {}) {
    super(message);
    this.name = "ApiError";
    Object.assign(this, { status, code, requestId, fields, data });
  }
}

export const csrfToken = () => document.querySelector('meta[name="csrf-token"]')?.content ?? "";

export const get = (path, params) => call("GET", withParams(path, params));
export const post = (path, body) => call("POST", path, body);
export const put = (path, body) => call("PUT", path, body);
export const patch = (path, body) => call("PATCH", path, body);
export const del = (path, body) => call("DELETE", path, body);

// The answer's `data`, or the whole body of a route that has no envelope. Paths are under /api/v1, but for /ui/….
export async function call(method, path, body, { signal } = {}) {
  const headers = { Accept: "application/json", "X-CSRF-Token": csrfToken() };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(address(path), {
      method,
      headers,
      signal,
      credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server does not answer. Check the connection, then try again.");
  }
  return read(response);
}

export function withParams(path, params = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== "" && one !== null && one !== undefined) query.append(key, one);
    }
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

export async function read(response) {
  const requestId = response.headers.get("X-Request-Id") ?? "";
  const isJson = (response.headers.get("Content-Type") ?? "").includes("json");
  const body = isJson ? await response.json() : null;
  return judged(response.status, body, requestId);
}

// Shared with uploads, which come by another way.
export function judged(status, body, requestId) {
  if (status === 401) {
    leaveForSignIn();
    throw new ApiError("You are signed out. Sign in again.", { status, requestId });
  }
  const refused = body !== null && typeof body === "object" && "code" in body && body.code !== 0;
  if (status >= 200 && status < 300 && !refused) return body !== null && "code" in body ? body.data ?? null : body;
  const message = body?.detail ?? body?.message ?? `The server answered ${status}.`;
  throw new ApiError(plain(message), {
    status,
    requestId,
    code: body?.code ?? status,
    fields: body?.errors ?? fieldsOf(message),
    data: body?.data ?? null,
  });
}

// "Field: <name> - Message: <too long> - Value: <…>", a line for each field that is wrong.
function fieldsOf(message) {
  return [...String(message).matchAll(/Field: <(.*?)> - Message: <(.*?)> - Value:/gs)].map(([, field, text]) => ({ field, message: text }));
}

function plain(message) {
  const fields = fieldsOf(message);
  return fields.length ? fields.map((one) => `${one.field}: ${one.message}`).join("; ") : String(message);
}

function address(path) {
  return path.startsWith("/ui/") ? path : BASE + path;
}

let isLeaving = false;

function leaveForSignIn() {
  if (isLeaving) return;
  isLeaving = true;
  location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
}
