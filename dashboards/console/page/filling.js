// When a series is full, drawn ahead of its last value: between the earliest and the latest course to the bound.
import { svg } from "./dom.js";

const TALL = 40;
const known = (value) => typeof value === "number";
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// What can be drawn of a forecast: it begins with the last value; null where there is none, or no bound that stays.
export function drawn(points, ahead) {
  const from = points.findLast((p) => known(p.actual));
  if (!ahead || !known(ahead.bound) || !from || (ahead.latest ?? Infinity) <= from["@timestamp"]) return null;
  const at = from["@timestamp"];
  return { at, value: from.actual, bound: ahead.bound, earliest: Math.max(at + 1, ahead.earliest), median: ahead.median, latest: ahead.latest };
}

// How far a plot reaches beyond its last window, so that the forecast is seen and the past stays at least half of it.
export function reach([start, end], ahead) {
  return ahead ? [start, Math.max(end, Math.min(ahead.latest ?? ahead.median, 2 * end - start))] : [start, end];
}

const course = ({ at, value, bound }, full, when) => (when >= full ? bound : value + ((bound - value) * (when - at)) / (full - at));

// The least and the greatest value with those of the forecast that is in sight.
export function beyond(end, low, high, ahead) {
  if (!ahead || !(end > ahead.at)) return [low, high];
  const last = course(ahead, ahead.earliest, end);
  return [Math.min(low ?? last, last), Math.max(high ?? last, last)];
}

export function filling(u, ahead) {
  if (!ahead) return;
  const { ctx, bbox: { left, top, width, height } } = u, ratio = window.devicePixelRatio;
  const edge = Math.max(u.scales.x.max, ahead.latest ?? 0, ahead.earliest);
  const to = (when, value, draw = "lineTo") => ctx[draw](u.valToPos(when, "x", true), u.valToPos(value, "y", true));
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.fillStyle = ctx.strokeStyle = colour("exhaustion");
  ctx.globalAlpha = 0.22;
  ctx.beginPath();
  to(ahead.at, ahead.value, "moveTo");
  to(ahead.earliest, ahead.bound);
  if (ahead.latest) to(ahead.latest, ahead.bound);
  else { to(edge, ahead.bound); to(edge, ahead.value); } // perhaps never
  ctx.closePath();
  ctx.fill();
  ctx.globalAlpha = 1;
  ctx.lineWidth = 1.4 * ratio;
  ctx.setLineDash([5 * ratio, 4 * ratio]);
  ctx.beginPath();
  to(ahead.at, ahead.value, "moveTo");
  to(Math.max(ahead.at + 1, ahead.median), ahead.bound);
  to(edge, ahead.bound);
  ctx.stroke();
  ctx.restore();
}

// A small plot of what fills, as an SVG without axes: pairs of the number of a span and its mean value, and the forecast beyond the last one.
export function fillingBand(pairs, spans, [start, end], full) {
  if (!pairs.length || full.bound === null) return null;
  const [last, value] = pairs.at(-1), step = (end - start) / spans, place = (at) => Math.max(last, (at - start) / step - 0.5);
  const wide = Math.max(spans, Math.min(place(full.latest), 2 * spans));
  const values = [...pairs.map((pair) => pair[1]), full.bound], low = Math.min(...values), high = Math.max(...values);
  const y = (each) => (high > low ? TALL - 3 - ((TALL - 6) * (each - low)) / (high - low) : TALL / 2).toFixed(1);
  const point = (at, each) => `${at.toFixed(1)} ${y(each)}`, path = (css, points, closed = "") => svg("path", { class: css, d: `M${points.join("L")}${closed}` });
  const frame = svg("svg", { class: "band", viewBox: `0 0 ${wide.toFixed(1)} ${TALL}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  frame.append(
    path("ahead", [point(last, value), point(place(full.earliest), full.bound), point(place(full.latest), full.bound)], "Z"),
    path("course", [point(last, value), point(place(full.median), full.bound), point(wide, full.bound)]),
    path("actual", pairs.map(([at, each]) => point(at, each))));
  return frame;
}
