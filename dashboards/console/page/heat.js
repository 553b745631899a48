// Machines over time: the highest score of the alarms of all and of each machine in each span of the time that has data.
import { ask } from "./ask.js";
import { duration, el, foreign, local, num, svg, when } from "./dom.js";
import { machineLink } from "./place.js";

const RANGES = [[15, "15 min"], [60, "1 h"], [360, "6 h"], [1440, "24 h"], [null, "All"]];
const BOUNDS = [[75, "critical"], [50, "major"], [25, "minor"], [0, "warning"]]; // the bounds of severity

export class Heat {
  constructor(section) {
    Object.assign(this, { section, minutes: 360 });
    const buttons = RANGES.map(([minutes, text]) => {
      const button = el("button", { type: "button", "aria-pressed": minutes === this.minutes }, text);
      button.addEventListener("click", () => this.choose(minutes, button));
      return button;
    });
    section.querySelector(".ranges").append(...buttons);
  }

  choose(minutes, button) {
    this.minutes = minutes;
    for (const each of button.parentElement.children) each.setAttribute("aria-pressed", each === button);
    this.refresh();
  }

  async refresh() {
    const { minutes } = this;
    try {
      const found = await ask("/api/heat", minutes ? { minutes } : {});
      if (minutes === this.minutes) show(this.section, found);
    } catch { /* the overview says what is wrong */ }
  }
}

function show(section, found) {
  const { machines, count, start, end, step, cells, all } = found;
  const place = section.querySelector(".strips"), focused = document.activeElement, href = place.contains(focused) ? focused.getAttribute("href") : null;
  const quiet = el("p", { class: "calm" }, found.first === null ? "Nothing is stored yet." : "No machine had an alarm in this time.");
  const axis = el("div", { class: "strip axis soft" }, el("span", {}), el("span", {}, when(start, true), when(end, true)));
  const overall = el("div", { class: "strip overall", role: "img", "aria-label": said("All machines", all, found) }, el("span", { class: "name" }, "All machines"), lane(all, found));
  const rows = machines.map((it) => el("a", { class: it.ongoing ? "strip ongoing" : "strip", href: machineLink(it.name), "aria-label": said(it.name, it.cells, found) }, el("span", { class: "name" }, foreign(it.name)), lane(it.cells, found)));
  place.replaceChildren(...(machines.length ? [overall, ...rows, axis] : [quiet]));
  section.querySelector(".span").textContent = machines.length ? `each part ${duration(step)}${count > machines.length ? `; ${machines.length} of about ${count.toLocaleString("en")}` : ""}` : "";
  if (href) [...place.querySelectorAll("a")].find((link) => link.getAttribute("href") === href)?.focus({ preventScroll: true });
  section.dataset.cells = cells;
}

function lane(pairs, { cells, start, step }) {
  const strip = svg("svg", { class: "cells", viewBox: `0 0 ${cells} 1`, preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const [at, score] of pairs) {
    const cell = svg("rect", { x: at, y: 0, width: 1, height: 1, "data-severity": severity(score) });
    cell.append(svg("title", {}, `${local(start + at * step)}, score ${num(score, 3)}`));
    strip.append(cell);
  }
  return strip;
}

const severity = (score) => BOUNDS.find(([bound]) => score >= bound)[1];

function said(name, pairs, { cells, start, step }) {
  if (!pairs.length) return `${name}: no alarm`;
  const worst = pairs.reduce((a, b) => (b[1] > a[1] ? b : a));
  return `${name}: alarms in ${pairs.length} of ${cells} spans of ${duration(step)}, the worst at ${local(start + worst[0] * step)} with score ${num(worst[1], 3)}`;
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
