// A series with the band in which it was expected, drawn by uPlot (vendor/, MIT). Fetches nothing.
import { saidOf } from "./changes.js";
import { el, foreign, num, svg, time, words, NOVEL } from "./dom.js";
import { beyond, drawn, filling } from "./filling.js";
import { band, quantity } from "./quantity.js";

const TALL = 270, SMALL = 130, STEP = 1.6, NEAR = 7;
const clock = (ms) => time(ms).slice(11, 16);
const SHAPES = { anomaly: "diamond", state_change: "square", new_normal: "disc", absence: "cross", exhaustion: "diamond", outlier: "diamond", recovered: "ring", normal: "ring" };
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const known = (value) => typeof value === "number";
const QUIET = "beyond the band, not reported"; // as what came back too often: docs/why-no-alert.md
const quiet = (p) => !NOVEL.includes(p.kind) && p.kind !== "learning" && p["incident.state"] !== "open" && [p.actual, p.lower, p.upper].every(known) && (p.actual < p.lower || p.actual > p.upper);

// Options: `span` [from, to] in ms; `marked`, the chosen novelty; `shade` [from, to], when its incident went on; `lines`, what was
// done then: `since`, `kind`, `message`; `ahead`, when it is full: `earliest`, `median`, `latest`, `bound`; `zone`, of the time axis; `of`, the metric and its kind, which decide the unit; `range` [low, high] of the values, else that of the points; `small`, without buttons.
export function chart(points, { span, marked = null, shade = null, lines = [], ahead = null, zone = "UTC", range = null, of = {}, small = false, name = "series" }) {
  const joined = isJoined(points); // the joined verdict has no value of its own, but a score
  const value = joined ? "record_score" : "actual";
  let rows = withGaps(points);
  const legend = el("div", { class: "legend" });
  const frame = el("div", { class: small ? "canvas small" : "canvas", tabindex: 0, role: "group", "aria-label": `${name}, plot: arrow keys go from window to window, + and - zoom, 0 resets` });
  if (marked) frame.dataset.marked = marked.kind;
  const figure = el("figure", { class: "plot" }, frame, legend);
  const unit = joined ? {} : of;
  const rest = () => legend.replaceChildren(...keys(points, joined, marked, shade, lines, drawn(points, ahead)));
  if (!points.length) return el("p", { class: "hint" }, "No window is stored here.");
  rest();
  const columns = () => [rows.map((p) => p["@timestamp"]), ...["lower", "upper", "typical", value].map((field) => rows.map((p) => (known(p[field]) ? p[field] : null)))];
  const local = zoned(zone);
  const tell = (u) => {
    const p = rows[u.cursor.idx];
    if (!p || u.cursor.left < 0) return rest();
    const near = lines.filter((it) => Math.abs(u.valToPos(it.since, "x") - u.cursor.left) < NEAR);
    return legend.replaceChildren(...told(p, joined, local, unit), ...near.map((it) => el("span", {}, el("i", { class: "l-change" }), foreign(saidOf(it)), `, ${clock(it.since)} UTC`)));
  };
  const stroke = (tone) => () => colour(tone);
  const line = (tone, more = {}) => ({ stroke: stroke(tone), width: 1.7, points: { show: false }, ...more });
  const axis = { stroke: stroke("soft"), grid: { stroke: stroke("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  const options = {
    width: 300, height: small ? SMALL : TALL, ms: 1, legend: { show: false }, padding: [10, 18, 0, 0],
    scales: { y: { range: (u, low, high) => range ?? limits(...beyond(edge, low, high, drawn(points, ahead)), joined) } },
    axes: [
      { ...axis, size: 28, space: 72, values: (_, splits, __, ___, step) => splits.map((at, i) => local.tick(at, step, i === 0 ? null : splits[i - 1])) },
      { ...axis, size: 64, gap: 4, space: small ? 32 : 44, values: (_, splits) => splits.map((at) => quantity(at, unit, 4)) },
    ],
    // the later ones are drawn over the earlier ones: the lines over the band
    series: [{}, line("band", { width: 0 }), line("band", { width: 0 }), line("typical", { width: 1.2, dash: [4, 3] }), line("actual", { points: { show: rows.length < 3, size: 5 } })],
    bands: [{ series: [2, 1], fill: stroke("band") }],
    cursor: { y: false, drag: { x: true, y: false, setScale: false }, dataIdx: (_, __, i) => nearest(rows, i), bind: { dblclick: () => () => { reset(); return null; } } },
    hooks: {
      setCursor: [tell],
      setSelect: [(u) => look(u)],
      drawClear: [(u) => { shadow(u, shade); filling(u, drawn(points, ahead)); changes(u, lines); }],
      draw: [(u) => marks(u, points, value, marked)],
      setScale: [(u, scale) => { if (scale === "x") frame.dataset.zoomed = u.scales.x.min > span[0] || u.scales.x.max < span[1]; }],
    },
  };
  let plot = null, edge = null; // the end of what is in sight: uPlot asks for the range of values before it has taken it over
  const show = (from, to) => {
    edge = Math.min(span[1], to);
    plot.setScale("x", { min: Math.max(span[0], from), max: edge });
  };
  const look = (u) => {
    const { left, width } = u.select;
    if (!width) return;
    show(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  };
  const reset = () => show(...span);
  const zoom = (factor) => {
    const { min, max } = plot.scales.x;
    const middle = plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") : (min + max) / 2;
    const from = middle - (middle - min) * factor, to = middle + (max - middle) * factor;
    if (to - from > 2 * typicalStep(points)) show(from, to);
  };
  const step = (by) => {
    const { min, max } = plot.scales.x;
    const inside = points.filter((p) => p["@timestamp"] >= min && p["@timestamp"] <= max);
    if (!inside.length) return;
    const at = plot.cursor.left >= 0 ? inside.indexOf(rows[plot.cursor.idx]) : by > 0 ? -1 : inside.length;
    const next = inside[Math.min(inside.length - 1, Math.max(0, at + by))];
    plot.setCursor({ left: plot.valToPos(next["@timestamp"], "x"), top: 20 });
  };
  const actions = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), PageUp: () => step(-10), PageDown: () => step(10), "+": () => zoom(1 / STEP), "-": () => zoom(STEP), 0: reset, Escape: reset };
  frame.addEventListener("keydown", (event) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? null : actions[event.key];
    if (!plot || !act) return;
    event.preventDefault();
    act();
  });
  frame.addEventListener("pointerleave", rest);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const redraw = () => plot?.redraw(false, true);
  // The frame has its height by style, so that nothing moves when the plot comes; its width is known once it is in the page.
  const observer = new ResizeObserver(() => {
    if (!frame.isConnected) {
      observer.disconnect();
      dark.removeEventListener("change", redraw);
      plot?.destroy();
      plot = null;
      return;
    }
    const width = Math.floor(frame.clientWidth);
    if (!width) return;
    if (plot) return void (plot.width !== width && plot.setSize({ width, height: options.height }));
    plot = new window.uPlot({ ...options, width, tzDate: local.date }, columns(), frame);
    reset();
  });
  observer.observe(frame);
  // Takes new points, without a new plot; who looks at a part goes on looking at it. False: it cannot, make a new plot.
  figure.refresh = (next) => {
    if (!next.points.length || isJoined(next.points) !== joined) return false;
    const looking = plot && frame.dataset.zoomed === "true" ? [plot.scales.x.min, plot.scales.x.max] : null;
    ({ points, span, shade = null, lines = [], ahead = null, marked = null, range = null } = next);
    rows = withGaps(points);
    if (plot) {
      plot.setData(columns(), false);
      show(...(looking ?? span));
    }
    if (!plot || plot.cursor.left < 0) rest();
    return true;
  };
  dark.addEventListener("change", redraw);
  if (!small) figure.prepend(el("div", { class: "zoom plot-zoom", role: "group", "aria-label": "Zoom" }, tool("+", "Zoom in", () => zoom(1 / STEP)), tool("−", "Zoom out", () => zoom(STEP)), tool("Reset", "Show the whole range (0, Escape or a double click)", reset)));
  return figure;

  function tool(text, title, act) {
    const button = el("button", { type: "button", title, "aria-label": title }, text);
    button.addEventListener("click", () => { if (plot) { plot.setCursor({ left: -10, top: -10 }); act(); } });
    return button;
  }
}

// The least and the greatest value of some series, with a margin: one scale for several plots.
export function common(lists) {
  const all = lists.flat(), joined = isJoined(all);
  const values = all.flatMap((p) => (joined ? [p.record_score] : [p.actual, p.typical, p.lower, p.upper])).filter(known);
  return values.length ? limits(values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b)), joined) : null;
}

const isJoined = (points) => points.length > 0 && !points.some((p) => known(p.actual) || known(p.typical));

function limits(low, high, joined) {
  if (joined || low === null || high === null) return [0, 100];
  const margin = high === low ? Math.abs(high) * 0.1 || 1 : (high - low) * 0.08;
  return [low - margin, high + margin];
}

function typicalStep(points) {
  const steps = points.slice(1).map((p, i) => p["@timestamp"] - points[i]["@timestamp"]).sort((a, b) => a - b);
  return steps.length ? steps[Math.floor(steps.length / 2)] : 1;
}

// A gap in the data is a gap in the line: an empty row is put where windows are missing.
function withGaps(points) {
  const gap = 3.5 * typicalStep(points);
  return points.flatMap((p, i) => (i && p["@timestamp"] - points[i - 1]["@timestamp"] > gap ? [{ "@timestamp": (p["@timestamp"] + points[i - 1]["@timestamp"]) / 2, empty: true }, p] : [p]));
}

const nearest = (rows, i) => (rows[i]?.empty ? i - 1 : i);

function shadow(u, shade) {
  if (!shade) return;
  const { left, top, width, height } = u.bbox;
  const place = (at) => Math.min(left + width, Math.max(left, u.valToPos(at, "x", true)));
  const [from, to] = shade.map(place);
  if (to <= from) return;
  u.ctx.save();
  u.ctx.fillStyle = colour("anomaly");
  u.ctx.globalAlpha = 0.1;
  u.ctx.fillRect(from, top, to - from, height);
  u.ctx.globalAlpha = 0.7;
  if (u.valToPos(shade[0], "x", true) >= left) u.ctx.fillRect(from, top, window.devicePixelRatio, height);
  u.ctx.restore();
}

// A dashed line for what was done then.
function changes(u, lines) {
  const { ctx, bbox: { left, top, width, height } } = u, ratio = window.devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = colour("ink");
  ctx.lineWidth = 1.5 * ratio;
  ctx.setLineDash([4 * ratio, 3 * ratio]);
  ctx.globalAlpha = 0.6;
  for (const { since } of lines) {
    const x = u.valToPos(since, "x", true);
    if (x < left || x > left + width) continue;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
  }
  ctx.restore();
}

// Novel windows by shape and colour; one without a value (an absence) stands at what was typical, or at the bottom.
function marks(u, points, value, marked) {
  const { ctx, bbox } = u, ratio = window.devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const p of points) {
    const chosen = marked && p["@timestamp"] === marked["@timestamp"];
    if (!chosen && !NOVEL.includes(p.kind) && !quiet(p)) continue;
    const height = [p[value], p.typical].find(known);
    const x = u.valToPos(p["@timestamp"], "x", true);
    const y = known(height) ? u.valToPos(height, "y", true) : bbox.top + bbox.height - 8 * ratio;
    ctx.strokeStyle = ctx.fillStyle = colour(p.kind ?? "anomaly");
    shape(ctx, SHAPES[p.kind] ?? "disc", x, y, (chosen ? 6 : quiet(p) ? 3 : 4) * ratio, ratio);
    if (!chosen) continue;
    ctx.beginPath();
    ctx.arc(x, y, 11 * ratio, 0, 2 * Math.PI);
    ctx.lineWidth = 2 * ratio;
    ctx.stroke();
  }
  ctx.restore();
}

const PATHS = {
  diamond: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]], square: [[-1, -1], [1, -1], [1, 1], [-1, 1]],
};

function shape(ctx, kind, x, y, r, ratio) {
  ctx.beginPath();
  ctx.lineWidth = 2 * ratio;
  if (kind === "cross") {
    ctx.moveTo(x - r, y - r);
    ctx.lineTo(x + r, y + r);
    ctx.moveTo(x - r, y + r);
    ctx.lineTo(x + r, y - r);
    return ctx.stroke();
  }
  if (PATHS[kind]) PATHS[kind].forEach(([dx, dy]) => ctx.lineTo(x + dx * r, y + dy * r));
  else ctx.arc(x, y, r, 0, 2 * Math.PI);
  ctx.closePath();
  return kind === "ring" ? ctx.stroke() : ctx.fill();
}

// The same shape as in the plot, beside a word.
export function sign(kind) {
  const icon = svg("svg", { class: "sign", viewBox: "-8 -8 16 16", "data-kind": kind, "aria-hidden": "true" });
  const name = SHAPES[kind] ?? "disc";
  if (name === "cross") icon.append(svg("path", { d: "M-4-4L4 4M-4 4L4-4", class: "hollow" }));
  else if (PATHS[name]) icon.append(svg("polygon", { points: PATHS[name].map(([x, y]) => `${x * 4.5},${y * 4.5}`).join(" ") }));
  else icon.append(svg("circle", { r: 4.5, ...(name === "ring" ? { class: "hollow" } : {}) }));
  return icon;
}

function keys(points, joined, marked, shade, lines, ahead) {
  const entry = (css, text) => el("span", {}, el("i", { class: css }), text);
  const found = [entry("", joined ? "score" : "actual")];
  if (!joined) found.push(entry("l-typical", "typical"), entry("l-band", "expected band"));
  for (const kind of NOVEL.filter((each) => points.some((p) => p.kind === each))) found.push(el("span", {}, sign(kind), words(kind)));
  if (points.some(quiet)) found.push(el("span", {}, sign("normal"), QUIET));
  if (marked) found.push(entry("l-novelty", "this novelty"));
  if (shade) found.push(entry("l-shade", "incident"));
  if (lines.length) found.push(entry("l-change", "change"));
  if (ahead) found.push(entry("l-ahead", "until it is full (95 %)"));
  return found;
}

function told(p, joined, local, of) {
  const entry = (name, text) => el("span", {}, `${name} `, el("b", {}, text));
  const at = [el("b", {}, `${time(p["@timestamp"])} UTC`)];
  if (local.other) at.push(` (${local.moment(p["@timestamp"])})`);
  const found = [el("span", {}, ...at)];
  if (!joined) found.push(entry("actual", quantity(p.actual, of)), entry("typical", quantity(p.typical, of)), entry("band", band({ ...p, ...of }, 4) || "–"));
  found.push(entry("score", num(p.record_score, 3)));
  if (NOVEL.includes(p.kind)) found.push(el("span", {}, sign(p.kind), words(p.kind)));
  if (quiet(p)) found.push(el("span", {}, QUIET));
  return found;
}

// The operator's time zone; one that the browser does not know is shown as UTC.
function zoned(name) {
  const format = (more, timeZone) => new Intl.DateTimeFormat("en-GB", { timeZone, hourCycle: "h23", ...more });
  let zone = name;
  try { format({}, zone); } catch { zone = "UTC"; }
  const clock = { hour: "2-digit", minute: "2-digit" };
  const [minutes, seconds, day, long] = [clock, { ...clock, second: "2-digit" }, { day: "2-digit", month: "short" }, { ...clock, second: "2-digit", timeZoneName: "short" }].map((more) => format(more, zone));
  const tick = (at, step, before) => {
    const date = day.format(at);
    if (step >= 86400000) return date;
    const text = (step < 60000 ? seconds : minutes).format(at);
    return before !== null && day.format(before) !== date ? `${date}` : text;
  };
  return { other: zone !== "UTC", moment: (at) => long.format(at), tick, date: (at) => window.uPlot.tzDate(new Date(at), zone) };
}
