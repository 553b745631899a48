// Elements and numbers. Text from outside goes into the page only here, as text nodes: never as markup.

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return element;
}

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
  if (size !== 0 && (size >= 1e9 || size < 1e-4)) return rounded.toExponential(2);
  return rounded.toLocaleString("en", { maximumFractionDigits: 6 });
}

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
export const words = (name) => name.replaceAll("_", " ");

export const NOVEL = ["anomaly", "state_change", "new_normal", "absence", "recovered"];
export const KINDS = [...NOVEL, "learning", "normal"];
