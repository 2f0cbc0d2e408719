// Small choices kept in this browser. Where storage is closed to us they hold until the page is left.
const memory = new Map();
const PREFIX = "pagemill.";

export function kept(name, otherwise = "") {
  try {
    return localStorage.getItem(PREFIX + name) ?? memory.get(name) ?? otherwise;
  } catch {
    return memory.get(name) ?? otherwise;
  }
}

export function keep(name, value) {
  memory.set(name, String(value));
  try {
    localStorage.setItem(PREFIX + name, String(value));
  } catch {
    // Kept in memory.
  }
}

export function forget(name) {
  memory.delete(name);
  try {
    localStorage.removeItem(PREFIX + name);
  } catch {
    // It was never stored.
  }
}
