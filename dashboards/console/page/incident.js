// One incident: what happened, where it probably began, and the onset of each series, drawn and linked to its plot.
import { acknowledgement, labels, maintenance } from "./actions.js";
import { duration, el, foreign, metricName, num, time, words } from "./dom.js";
import { spark } from "./heat.js";
import { plural, since, stateText } from "./incidents.js";
import { incidentLink, machineLink, noveltyLink } from "./place.js";
import { update } from "./update.js";

const SHOWN = 60, MACHINES = 20;

export function showIncident(place, { now, incident, series, sparks, span }) {
  const severity = el("span", { class: "severity", "data-severity": incident.severity }, `${incident.severity} ${incident["event.risk_score"]}`);
  const more = [];
  if (incident.note) more.push(el("p", { class: "where" }, "Remark: ", foreign(incident.note)));
  if (incident.merged_into) more.push(el("p", {}, "It turned out to be a part of ", el("a", { href: incidentLink(incident.merged_into) }, "another incident"), "."));
  const cared = el("div", {}, acknowledgement(incident), maintenance((incident.machines ?? []).map((it) => it.entity)));
  cared.dataset.keep = `${incident["event.id"]} ${incident["incident.state"]} ${incident.machine_count}`;
  update(place, `incident ${incident["event.id"]}`,
    el("div", { class: "top" }, el("h2", {}, foreign(incident.message)), severity),
    el("p", { class: "where" }, `${since(incident, now)} · `, foreign(stateText(incident)), ` · ${plural(incident.machine_count, "machine")}, ${incident.series_count.toLocaleString("en")} series, ${incident.open_series.toLocaleString("en")} of them novel now`),
    ...more,
    cared,
    ...causes(incident.candidates ?? []),
    ...logChanges(incident.log_changes ?? []),
    ...machines(incident),
    ...onsets(incident, series, now, sparks, span),
  );
}

function causes(candidates) {
  if (!candidates.length) return [];
  const items = candidates.map((it) => el("li", {},
    el("b", {}, foreign(it.entity)), " ", foreign(metricName(it.metric)), ` · ${num(it.share * 100, 2)}% · from ${time(it.since)}`,
    el("div", { class: "soft" }, foreign(it.reason))));
  return [el("h3", {}, "Where it may have begun"), el("ol", { class: "causes" }, ...items)];
}

function logChanges(changes) {
  if (!changes.length) return [];
  const items = changes.map((it) => el("li", {},
    el("b", {}, foreign(it.entity)), it.machines > 1 ? ` and ${plural(it.machines - 1, "more machine")}` : "", ` · from ${time(it.since)}`,
    el("div", { class: "soft" }, foreign(it.example ?? it.template))));
  return [el("h3", {}, "What changed in the logs"), el("ol", { class: "causes" }, ...items)];
}

function machines({ machines: list = [], machine_count: count }) {
  if (!list.length) return [];
  const links = list.slice(0, MACHINES).map((it) => el("a", { href: machineLink(it.entity) }, foreign(it.entity)));
  const more = count > links.length ? [el("span", { class: "soft" }, `and ${(count - links.length).toLocaleString("en")} more`)] : [];
  return [el("h3", {}, "Machines"), el("p", { class: "machine-links" }, ...links, ...more)];
}

function onsets(incident, series, now, sparks, plotted) {
  const title = el("h3", {}, "Series in the order of their onsets");
  if (!series.length) {
    const why = "None of its novelties is in the index (any more). They may have been taken back by a revision, or the index keeps them for a shorter time.";
    return [title, el("p", { class: "hint" }, why)];
  }
  const start = incident["event.start"], end = incident["event.end"] ?? Math.max(now, incident.updated);
  const span = Math.max(1, end - start);
  const rows = series.slice(0, SHOWN).map((it) => onset(it, start, span, sparks));
  const list = el("div", { class: "onsets with-sparks" }, ...rows);
  const what = el("p", { class: "soft" }, `Each with its onset, its values from ${time(plotted[0])} UTC on, and the highest score of its alarms.`);
  const left = incident.series_count - rows.length;
  return [title, what, list, ...(left > 0 ? [el("p", { class: "soft" }, `${left.toLocaleString("en")} more series are not listed.`)] : [])];
}

function onset(it, start, span, sparks) {
  const from = Math.max(start, it.since ?? it["@timestamp"]);
  const mark = el("i", { "data-kind": it.kind });
  mark.style.marginLeft = `${Math.min(99, (100 * (from - start)) / span)}%`;
  const link = el("a", { href: noveltyLink(it._id), title: `${time(from)} UTC` },
    el("span", { class: "after" }, from === start ? "first" : `+${duration(from - start)}`),
    el("span", { class: "name" }, el("b", {}, it["host.name"]), ` ${metricName(it.metric)}`),
    spark(it.spark ?? [], sparks),
    el("span", { class: "kind", "data-kind": it.kind }, words(it.kind)),
    el("span", { class: "n" }, num(it.highest, 3)),
    el("span", { class: "line", "aria-hidden": "true" }, mark));
  return el("div", {}, link, labels(it, it.since ?? it.window_start, true));
}
