// Machines over time: the highest score of the alarms of all, and of each machine or workload, in each span of the time that has data.
import { ask } from "./ask.js";
import { duration, el, foreign, local, num, svg, when } from "./dom.js";
import { plural } from "./incident_words.js";
import { machineLink } from "./place.js";

const RANGES = [[15, "15 min"], [60, "1 h"], [360, "6 h"], [1440, "24 h"], [null, "All"]];
const BOUNDS = [[75, "critical"], [50, "major"], [25, "minor"], [0, "warning"]]; // the bounds of severity

export class Heat {
  constructor(section) {
    Object.assign(this, { section, minutes: 360, open: new Map() }); // `open`: the workloads whose replicas are shown
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
      const asked = { ...(minutes ? { minutes } : {}) };
      const [found, ...replicas] = await Promise.all([ask("/api/heat", asked), ...[...this.open.keys()].map((workload) => ask("/api/heat", { ...asked, workload }))]);
      if (minutes !== this.minutes) return;
      [...this.open.keys()].slice(0, replicas.length).forEach((workload, i) => this.open.set(workload, replicas[i]));
      this.show(found);
    } catch { /* the overview says what is wrong */ }
  }

  toggle(workload) {
    if (!this.open.delete(workload)) this.open.set(workload, null);
    this.refresh();
  }

  show(found) {
    const { lanes, count, start, end, step, cells, all } = found, { section } = this;
    const place = section.querySelector(".strips"), focused = document.activeElement, key = place.contains(focused) ? focused.dataset.key : null;
    const quiet = el("p", { class: "calm" }, found.first === null ? "Nothing is stored yet." : "No machine had an alarm in this time.");
    const axis = el("div", { class: "strip axis soft" }, el("span", {}), el("span", {}, when(start, true), when(end, true)));
    const overall = el("div", { class: "strip overall", role: "img", "aria-label": said("All machines", all, found) }, el("span", { class: "name" }, "All machines"), lane(all, found));
    const rows = lanes.flatMap((it) => (it.replicas === null ? [machine(it, found)] : this.workload(it, found)));
    place.replaceChildren(...(lanes.length ? [overall, ...rows, axis] : [quiet]));
    section.querySelector(".span").textContent = lanes.length ? `each part ${duration(step)}${count > lanes.length ? `; ${lanes.length} of about ${count.toLocaleString("en")}` : ""}` : "";
    if (key) [...place.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key)?.focus({ preventScroll: true });
    section.dataset.cells = cells;
  }

  // The lane of all replicas, which a click opens, and those of each below it.
  workload(it, found) {
    const inside = this.open.get(it.name), open = this.open.has(it.name);
    const head = el("button", { type: "button", class: it.ongoing ? "strip ongoing" : "strip", "aria-expanded": open, "aria-label": said(`${it.name}, ${plural(it.replicas, "replica")}`, it.cells, found), "data-key": `workload ${it.name}` },
      el("span", { class: "name" }, foreign(it.name), el("span", { class: "soft" }, ` ${it.replicas.toLocaleString("en")}\u00d7`)), lane(it.cells, found));
    head.addEventListener("click", () => this.toggle(it.name));
    const left = inside ? inside.count - inside.lanes.length : 0;
    return [head, ...(inside?.lanes ?? []).map((each) => machine(each, inside, "strip replica")), ...(left > 0 ? [el("p", { class: "strip replica soft" }, `about ${left.toLocaleString("en")} more`)] : [])];
  }
}

const machine = (it, found, css = "strip") => el("a", { class: it.ongoing ? `${css} ongoing` : css, href: machineLink(it.name), "aria-label": said(it.name, it.cells, found), "data-key": `machine ${it.name}` }, el("span", { class: "name" }, foreign(it.name)), lane(it.cells, found));

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

// A line without axes for a list: pairs of the number of a span and a value; `done`: places in spans, and words, of what was done then.
export function spark(pairs, spans, done = []) {
  const line = svg("svg", { class: "spark", viewBox: `0 0 ${spans} 20`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const values = pairs.map(([, value]) => value), low = Math.min(...values), high = Math.max(...values);
  const y = (value) => (high > low ? 18 - (16 * (value - low)) / (high - low) : 10).toFixed(1);
  const parts = pairs.map(([at, value], i) => `${i && at - pairs[i - 1][0] <= 2 ? "L" : "M"}${at + 0.5} ${y(value)}`);
  // a span without a neighbour is a short stroke, else it would not be seen
  const alone = pairs.flatMap(([at, value], i) => ((i && at - pairs[i - 1][0] <= 2) || (i + 1 < pairs.length && pairs[i + 1][0] - at <= 2) ? [] : [`M${at} ${y(value)}h1`]));
  if (pairs.length) line.append(svg("path", { d: [...parts, ...alone].join("") }));
  for (const [at, said] of pairs.length ? done : []) {
    const mark = svg("line", { class: "done", x1: at.toFixed(2), x2: at.toFixed(2), y1: 0, y2: 20 });
    mark.append(svg("title", {}, said));
    line.append(mark);
  }
  return line;
}
