// The series of an incident as small plots on one time axis, under their machines, in the order in which these began.
import { labels } from "./actions.js";
import { band } from "./band.js";
import { duration, el, foreign, metricName, when, words } from "./dom.js";
import { machineLink, noveltyLink, seriesLink } from "./place.js";

const SHOWN = 12, AFTER_MS = 600000;
const LABELS = { absence: "all its metrics", logs: "its log" };

// Parts of a page for `update`: the first series, and further ones on demand.
export function seriesOf({ incident, series, span, step, over, now }, places) {
  const title = el("h3", {}, "What is unusual");
  if (!series.length) return [part(title, el("p", { class: "hint" }, "None of its novelties is in the index (any more). They may have been taken back by a revision, or the index keeps them for a shorter time."))];
  const axis = { span, step, over: over ?? now };
  const groups = byMachine(incident, series);
  const first = [], rest = [];
  let count = 0;
  for (const [machine, rows] of groups) {
    const into = count < SHOWN ? first : rest;
    into.push(...group(incident, machine, rows, axis, places));
    count += rows.length;
  }
  const left = incident.series_count - series.length;
  const unlisted = left > 0 ? [el("p", { class: "soft" }, `${left.toLocaleString("en")} more series are not listed.`)] : [];
  const more = el("details", { class: "more-series", ...(rest.length ? {} : { hidden: "" }) }, el("summary", {}, `${rest.filter((each) => each.classList.contains("row")).length} more series`), el("div", { class: "multiples" }, ...rest), ...unlisted);
  return [part(title, el("div", { class: "multiples" }, ruler(incident, axis), ...first), ...(rest.length ? [] : unlisted)), more];
}

const part = (...inside) => el("section", { class: "of-incident series" }, ...inside);

const workloadOf = (incident, machine) => incident.machines?.find((it) => it.entity === machine)?.workload;

// A machine that sent nothing first, then the one where it probably began, then by onset, each followed by the other replicas
// of its workload; within a machine in the order given.
function byMachine(incident, series) {
  const found = new Map();
  for (const each of series) found.set(each.entity, [...(found.get(each.entity) ?? []), each]);
  const origin = incident.candidates?.[0]?.entity;
  const silent = (rows) => rows.some((each) => each.kind === "absence" && each.metric === "_machine");
  const onset = (rows) => Math.min(...rows.map((each) => each.since));
  const rank = ([machine, rows]) => [silent(rows) ? 0 : 1, machine === origin ? 0 : 1, onset(rows)];
  const sorted = [...found].sort((a, b) => rank(a).map((each, i) => each - rank(b)[i]).find((each) => each) ?? 0);
  const whole = ([machine]) => workloadOf(incident, machine) ?? machine, order = [...new Set(sorted.map(whole))];
  return sorted.sort((a, b) => order.indexOf(whole(a)) - order.indexOf(whole(b)));
}

function group(incident, machine, rows, axis, places) {
  const start = incident["event.start"], since = Math.min(...rows.map((each) => each.since));
  const ends = rows.map((each) => each.end ?? null), end = ends.includes(null) ? axis.over : Math.max(...ends);
  const parent = places?.[machine], workload = workloadOf(incident, machine);
  const head = el("div", { class: "machine" },
    el("a", { href: machineLink(machine) }, foreign(machine)),
    el("span", { class: "soft" }, ...(workload ? ["of ", foreign(workload), " · "] : []), ...(parent ? ["on ", foreign(parent), " · "] : []), since <= start ? "first" : `+${duration(since - start)}`),
    bar(since, end, axis));
  const done = (incident.changes ?? []).filter((each) => !each.entity || each.entity === machine || each.entity === parent);
  return [head, ...rows.map((each) => row(each, axis, done))];
}

// From when until when a machine was unusual, on the common axis.
function bar(since, end, { span }) {
  const share = (at) => (100 * (Math.min(span[1], Math.max(span[0], at)) - span[0])) / (span[1] - span[0]);
  const mark = el("i", {});
  mark.style.marginLeft = `${share(since)}%`;
  mark.style.width = `${Math.max(0.8, share(end) - share(since))}%`;
  return el("span", { class: "lane", "aria-hidden": "true" }, mark);
}

// `done`: what was done before on its machine, on what that runs on, or to the whole site.
function row(it, { span, step, over }, done) {
  const name = it.metric === "_machine" ? LABELS[it.kind] ?? "all metrics" : LABELS[it.metric] ?? metricName(it.metric);
  const shade = [(it.since - span[0]) / step, ((it.end ?? over) - span[0]) / step];
  const href = it._id ? noveltyLink(it._id) : seriesLink(it.entity, it.metric, 1, it.reported + AFTER_MS);
  const lines = done.map((each) => [(each.since - span[0]) / step, `${each["event.action"].replace("_", " ")}: ${each.message}`]);
  const plot = it.plot?.length ? band(it.plot, Math.ceil((span[1] - span[0]) / step), { shade, lines }) : bar(it.since, it.end ?? over, { span });
  return el("a", { class: "row", href, "data-kind": it.kind },
    el("span", { class: "name" }, foreign(name)), el("b", { class: "change" }, foreign(it.change || words(it.kind))),
    el("span", { class: "values soft" }, foreign(it.values ?? "")), el("span", { class: "plot" }, plot));
}

// Begin, onset and end of the common time axis.
function ruler(incident, { span, over }) {
  const tick = (at, side, text = "") => {
    const mark = el("span", { class: `tick ${side}` }, text, when(at, true));
    mark.style.left = `${(100 * (at - span[0])) / (span[1] - span[0])}%`;
    return mark;
  };
  const onset = incident["event.start"], share = (onset - span[0]) / (span[1] - span[0]);
  return el("div", { class: "ruler soft" }, el("div", { class: "ticks" },
    ...(share > 0.2 ? [tick(span[0], "from")] : []), tick(onset, share < 0.7 ? "from onset" : "to onset", ""), ...((span[1] - onset) / (span[1] - span[0]) > 0.2 ? [tick(span[1], "to")] : [])));
}

// What single series were, on demand.
export function labelsBySeries(series) {
  const rows = () => series.map((it) => el("div", { class: "label-row" }, el("span", {}, foreign(it.entity), " ", el("b", {}, foreign(metricName(it.metric)))), labels({ "host.name": it.entity, metric: it.metric }, it.since, true)));
  const inside = el("div", {}), folded = el("details", { class: "by-series" }, el("summary", {}, "Say what single series were"), inside);
  folded.addEventListener("toggle", () => { if (folded.open && !inside.children.length) inside.append(...rows()); });
  return folded;
}

