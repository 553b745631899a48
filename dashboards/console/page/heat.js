// Machines over time: the highest score of the alarms of each machine in each span of the last hours.
import { duration, el, foreign, num, svg, time } from "./dom.js";
import { machineLink } from "./place.js";

export function showHeat(place, { machines, count, cells, start, step, hours }) {
  const rows = machines.map((it) => {
    const strip = svg("svg", { class: "cells", viewBox: `0 0 ${cells} 1`, preserveAspectRatio: "none", "aria-hidden": "true" });
    for (const [at, score] of it.cells) {
      const cell = svg("rect", { x: at, y: 0, width: 1, height: 1, "fill-opacity": (0.25 + (0.75 * score) / 100).toFixed(2) });
      cell.append(svg("title", {}, `${time(start + at * step)} UTC, score ${num(score, 3)}`));
      strip.append(cell);
    }
    const worst = it.cells.reduce((a, b) => (b[1] > a[1] ? b : a));
    const said = `${it.name}: alarms in ${it.cells.length} of ${cells} spans of ${duration(step)}, the worst at ${time(start + worst[0] * step)} UTC with score ${num(worst[1], 3)}`;
    return el("a", { class: "strip", href: machineLink(it.name), "aria-label": said }, el("span", { class: "name" }, foreign(it.name)), strip);
  });
  const focused = document.activeElement?.getAttribute("href");
  const inside = place.contains(document.activeElement);
  place.querySelector(".strips").replaceChildren(...(rows.length ? rows : [el("p", { class: "calm" }, `No machine had an alarm in the last ${hours} hours.`)]));
  place.querySelector(".span").textContent = rows.length ? `from ${time(start).slice(11, 16)} to now, UTC${count > rows.length ? `; the worst ${rows.length} of about ${count.toLocaleString("en")}` : ""}` : "";
  if (inside) [...place.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
}

// A line without axes for a list: pairs of the number of a span and a value.
export function spark(pairs, spans) {
  const line = svg("svg", { class: "spark", viewBox: `0 0 ${spans} 20`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const values = pairs.map(([, value]) => value), low = Math.min(...values), high = Math.max(...values);
  const y = (value) => (high > low ? 18 - (16 * (value - low)) / (high - low) : 10).toFixed(1);
  const parts = pairs.map(([at, value], i) => `${i && at - pairs[i - 1][0] <= 2 ? "L" : "M"}${at + 0.5} ${y(value)}`);
  // a span without a neighbour is a short stroke, else it would not be seen
  const alone = pairs.flatMap(([at, value], i) => ((i && at - pairs[i - 1][0] <= 2) || (i + 1 < pairs.length && pairs[i + 1][0] - at <= 2) ? [] : [`M${at} ${y(value)}h1`]));
  if (pairs.length) line.append(svg("path", { d: [...parts, ...alone].join("") }));
  return line;
}
