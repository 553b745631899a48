// A small plot of a series with the band in which it was expected: an SVG without axes, for cards and rows.
import { svg } from "./dom.js";

const TALL = 40;

// `points`: [number of a span, value, lower, upper]; `spans`: how many there are; `shade`: [from, to] in spans, when something was novel;
// `lines`: [place in spans, words] of what was done then.
export function band(points, spans, { shade = null, label = "", lines = [] } = {}) {
  const frame = svg("svg", { class: "band", viewBox: `0 0 ${spans} ${TALL}`, preserveAspectRatio: "none", ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }) });
  const all = points.flatMap(([, ...values]) => values.filter((value) => typeof value === "number"));
  if (!all.length) return frame;
  const low = Math.min(...all), high = Math.max(...all);
  const y = (value) => (high > low ? TALL - 3 - ((TALL - 6) * (value - low)) / (high - low) : TALL / 2).toFixed(1);
  const x = (at) => at + 0.5;
  if (shade) frame.append(svg("rect", { class: "novel", x: Math.max(0, shade[0]), y: 0, width: Math.max(0.4, Math.min(spans, shade[1]) - Math.max(0, shade[0])), height: TALL }));
  for (const part of runs(points.filter(([, , lower, upper]) => lower !== null && upper !== null))) {
    const widened = part.length > 1 ? part : [[part[0][0] - 0.5, ...part[0].slice(1)], [part[0][0] + 0.5, ...part[0].slice(1)]];
    const above = widened.map(([at, , , upper]) => `${x(at)} ${y(upper)}`), below = widened.map(([at, , lower]) => `${x(at)} ${y(lower)}`).reverse();
    frame.append(svg("path", { class: "expected", d: `M${[...above, ...below].join("L")}Z` }));
  }
  const parts = runs(points).map((part) => (part.length > 1 ? `M${part.map(([at, value]) => `${x(at)} ${y(value)}`).join("L")}` : `M${x(part[0][0]) - 0.4} ${y(part[0][1])}h0.8`));
  frame.append(svg("path", { class: "actual", d: parts.join("") }));
  for (const [at, words] of lines) {
    if (at < 0 || at > spans) continue;
    const mark = svg("line", { class: "done", x1: at, x2: at, y1: 0, y2: TALL });
    mark.append(svg("title", {}, words));
    frame.append(mark);
  }
  return frame;
}

// Points without a gap between them; a gap in the data is a gap in the line.
function runs(points) {
  const found = [];
  points.forEach((point, i) => {
    if (i && point[0] - points[i - 1][0] <= 2) found.at(-1).push(point);
    else found.push([point]);
  });
  return found;
}
