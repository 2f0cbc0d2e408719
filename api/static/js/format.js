// Numbers as people read them. Every function takes what the API gives, and answers a short text.
const NUMBER = new Intl.NumberFormat("en");
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export const number = (value) => NUMBER.format(value ?? 0);

export function bytes(value) {
  if (value < 1000) return `${value} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let scaled = value;
  let unit = -1;
  do {
    scaled /= 1000;
    unit += 1;
  } while (scaled >= 999.5 && unit < units.length - 1);
  return `${scaled < 10 ? scaled.toFixed(1) : Math.round(scaled)} ${units[unit]}`;
}

// 0.8 s · 12 s · 3 min 5 s · 2 h 10 min · 3 d 4 h
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return pair(whole, 60, "min", "s");
  if (whole < 86400) return pair(Math.round(whole / 60), 60, "h", "min");
  return pair(Math.round(whole / 3600), 24, "d", "h");
}

function pair(value, base, large, small) {
  const rest = value % base;
  return rest ? `${Math.floor(value / base)} ${large} ${rest} ${small}` : `${Math.floor(value / base)} ${large}`;
}

// "about 3 min": an estimate is not told to the second.
export function estimate(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 5) return "a few seconds";
  if (seconds < 60) return `about ${Math.ceil(seconds / 5) * 5} s`;
  if (seconds < 5400) return `about ${Math.round(seconds / 60)} min`;
  return `about ${(seconds / 3600).toFixed(1)} h`;
}

export function ago(epochMs, nowMs = Date.now()) {
  const seconds = (nowMs - epochMs) / 1000;
  if (seconds < 45) return "just now";
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  if (seconds < 2592000) return `${Math.round(seconds / 86400)} d ago`;
  return DATE.format(epochMs);
}

// As the first word of a sentence, unless it is the name of a file.
export const sentence = (text) => (/^\S*\.\w/.test(text) ? text : text.slice(0, 1).toUpperCase() + text.slice(1));
export const time = (epochMs) => DATE.format(epochMs);
export const percent = (share) => `${Math.floor(share * 100)} %`;
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
