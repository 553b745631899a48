// Elements and numbers. Text from outside goes into the page only here, as text nodes: never as markup.

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return element;
}

// Text from outside within a sentence: a mark in it that turns the direction of writing ends with it.
export const foreign = (text) => el("bdi", {}, text);

// Verdicts on a machine as a whole, beside peers and on when a metric is full have metrics of their own (`shown_metric` in Python).
export const metricName = (metric) => (metric === "_machine" ? "all metrics" : metric.startsWith("_peers.") ? `${metric.slice(7)} beside peers` : metric.endsWith("~full") ? `${metric.slice(0, -5)} until full` : metric);

export function svg(tag, attributes = {}, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

export function num(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  const rounded = Number(value.toPrecision(digits));
  const size = Math.abs(rounded);
  if (size !== 0 && (size >= 1e15 || size < 1e-4)) return rounded.toExponential(2);
  const [scale, unit] = [[1e12, "T"], [1e9, "G"], [1e6, "M"]].find(([limit]) => size >= limit) ?? [1, ""];
  return `${(rounded / scale).toLocaleString("en", { maximumFractionDigits: 6 })}${unit && "\u202f"}${unit}`;
}

export const count = (value) => value.toLocaleString("en");

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${num(value, 3)} ${units[unit]}`;
}

export function duration(ms) {
  const s = ms / 1000;
  if (s < 0) return "–";
  if (s < 1) return `${Math.round(ms)} ms`;
  if (s < 120) return `${num(s, s < 10 ? 2 : 3)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400).toLocaleString("en")} d`;
}

export const time = (ms) => new Date(ms).toISOString().slice(0, 19).replace("T", " ");

const DAY = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const clock = new Intl.DateTimeFormat("en-GB", DAY), day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" }), dated = new Intl.DateTimeFormat("en-GB", { ...DAY, day: "numeric", month: "short" });

// Text of an instant by the reader's clock: the time of day, with its date unless that is today's; without seconds if `short`.
export function local(ms, short = false) {
  const today = new Date(ms).toDateString() === new Date().toDateString();
  const text = (today ? clock : dated).format(ms).replace(",", "");
  return short ? text.slice(0, -3) : text;
}

// The same as an element, which tells UTC on hover and to programs.
export const when = (ms, short = false) => el("time", { datetime: new Date(ms).toISOString(), title: `${time(ms)} UTC` }, local(ms, short));

// Short enough for a column: the time of day within half a day, else the date; by the reader's clock.
export const brief = (ms, now) => (Math.abs(now - ms) < 43200000 ? clock.format(ms) : day.format(ms));
export const words = (name) => name.replaceAll("_", " ");

export const NOVEL = ["anomaly", "state_change", "new_normal", "absence", "exhaustion", "outlier", "recovered"];
export const KINDS = [...NOVEL, "learning", "normal"];
