// A series with the band in which it was expected; the chosen novelty is marked. Draws SVG, fetches nothing.
import { el, num, svg, time, NOVEL } from "./dom.js";

const W = 640, H = 270, LEFT = 58, RIGHT = 10, TOP = 12, BOTTOM = 26;

export function plot(points, novelty, span) {
  const joined = !points.some((p) => p.actual !== null && p.actual !== undefined);
  const value = joined ? "record_score" : "actual"; // the joined verdict has no value of its own, but a score
  const [x, y, ticks] = scales(points, value, span, joined);
  const root = svg("svg", { class: "series", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "series with expected band" });
  for (const tick of ticks) {
    root.append(svg("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: y(tick), y2: y(tick) }));
    root.append(svg("text", { x: LEFT - 7, y: y(tick) + 4, "text-anchor": "end" }, num(tick, 4)));
  }
  const days = span[1] - span[0] > 2 * 86400000;
  for (let i = 0; i <= 4; i += 1) {
    const at = span[0] + ((span[1] - span[0]) * i) / 4;
    const anchor = i === 0 ? "start" : i === 4 ? "end" : "middle";
    root.append(svg("text", { x: x(at), y: H - 7, "text-anchor": anchor }, days ? time(at).slice(5, 16) : time(at).slice(11)));
  }
  const gap = 3.5 * typicalStep(points);
  for (const run of runs(points, ["lower", "upper"], gap)) {
    const upper = run.map((p) => `${x(p["@timestamp"])},${y(p.upper)}`);
    const lower = run.map((p) => `${x(p["@timestamp"])},${y(p.lower)}`).reverse();
    root.append(svg("polygon", { class: "band", points: [...upper, ...lower].join(" ") }));
  }
  const moment = x(novelty["@timestamp"]);
  root.append(svg("line", { class: "moment", x1: moment, x2: moment, y1: TOP, y2: H - BOTTOM }));
  for (const name of ["typical", value]) {
    for (const run of runs(points, [name], gap)) {
      const d = run.map((p) => `${x(p["@timestamp"])},${y(p[name])}`).join(" ");
      root.append(svg("polyline", { class: name === "typical" ? "typical" : "actual", points: d }));
    }
  }
  for (const p of points) {
    if (NOVEL.includes(p.kind) && p[value] !== null) {
      root.append(svg("circle", { class: "other", cx: x(p["@timestamp"]), cy: y(p[value]), r: 2.6 }));
    }
  }
  if (typeof novelty[value] === "number") {
    root.append(svg("circle", { class: "marked", cx: moment, cy: y(novelty[value]), r: 6 }));
  }
  const legend = el("div", { class: "legend" });
  const figure = el("figure", { class: "plot" }, root, legend);
  hover(root, legend, points, x, value, joined);
  return figure;
}

function scales(points, value, span, joined) {
  const values = points.flatMap((p) => [p[value], p.typical, p.lower, p.upper]).filter((v) => typeof v === "number");
  let low = Math.min(...values), high = Math.max(...values);
  if (!values.length || joined) [low, high] = [0, 100];
  if (low === high) [low, high] = [low - 1, high + 1];
  const step = nice((high - low) / 4);
  low = Math.floor(low / step) * step;
  high = Math.ceil(high / step) * step;
  const ticks = Array.from({ length: Math.round((high - low) / step) + 1 }, (_, i) => low + i * step);
  const x = (at) => LEFT + ((at - span[0]) / (span[1] - span[0])) * (W - LEFT - RIGHT);
  const y = (v) => H - BOTTOM - ((v - low) / (high - low)) * (H - BOTTOM - TOP);
  return [x, y, ticks];
}

function nice(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 2.5, 5, 10].map((m) => m * power).find((step) => step >= rough);
}

function typicalStep(points) {
  const steps = points.slice(1).map((p, i) => p["@timestamp"] - points[i]["@timestamp"]).sort((a, b) => a - b);
  return steps.length ? steps[Math.floor(steps.length / 2)] : 1;
}

// Stretches in which all of `names` are known and no window is missing: a gap in the data is a gap in the line.
function runs(points, names, gap) {
  const found = [[]];
  let last = -Infinity;
  for (const p of points) {
    const known = names.every((name) => typeof p[name] === "number");
    if (!known || p["@timestamp"] - last > gap) found.push([]);
    if (known) found.at(-1).push(p);
    last = p["@timestamp"];
  }
  return found.filter((run) => run.length);
}

function hover(root, legend, points, x, value, joined) {
  const cursor = svg("line", { class: "cursor", y1: TOP, y2: H - BOTTOM, visibility: "hidden" });
  root.append(cursor);
  const rest = () => {
    cursor.setAttribute("visibility", "hidden");
    const entry = (css, text) => el("span", {}, el("i", { class: css }), text);
    const keys = [entry("", joined ? "score" : "actual")];
    if (!joined) keys.push(entry("l-typical", "typical"), entry("l-band", "expected band"));
    legend.replaceChildren(...keys, entry("l-novelty", "this novelty"));
  };
  root.addEventListener("pointerleave", rest);
  root.addEventListener("pointermove", (event) => {
    if (!points.length) return;
    const at = ((event.clientX - root.getBoundingClientRect().left) / root.getBoundingClientRect().width) * W;
    const away = (q) => Math.abs(x(q["@timestamp"]) - at);
    const p = points.reduce((best, q) => (away(q) < away(best) ? q : best));
    cursor.setAttribute("visibility", "visible");
    cursor.setAttribute("x1", x(p["@timestamp"]));
    cursor.setAttribute("x2", x(p["@timestamp"]));
    const entry = (name, text) => el("span", {}, `${name} `, el("b", {}, text));
    const told = [el("b", {}, time(p["@timestamp"]))];
    if (!joined) told.push(entry("actual", num(p.actual)), entry("typical", num(p.typical)), entry("band", `${num(p.lower)} to ${num(p.upper)}`));
    legend.replaceChildren(...told, entry("score", num(p.record_score, 3)));
  });
  rest();
}
