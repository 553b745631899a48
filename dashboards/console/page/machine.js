// The page of one machine: its incidents, its series with the most novel first, what is novel in its log.
import { ask } from "./ask.js";
import { changesOf, known, listed, saidOf } from "./changes.js";
import { sign } from "./chart.js";
import { duration, el, foreign, local, metricName, num, time, when, words } from "./dom.js";
import { fillingBand } from "./filling.js";
import { fullRow } from "./full.js";
import { spark } from "./heat.js";
import { since, stateText } from "./incident_words.js";
import { incidentLink, noveltyLink, seriesLink } from "./place.js";
import { band, quantity } from "./quantity.js";
import { update } from "./update.js";

export async function openMachine(place, name, current) {
  try {
    const found = await ask("/api/machine", { name });
    if (!current()) return;
    showMachine(place, name, found, known(name));
    if (found.last === null) return;
    const changes = await changesOf(name, found.span);
    if (current()) showMachine(place, name, found, changes);
  } catch (error) {
    if (current()) place.replaceChildren(el("p", { class: "hint" }, `This machine cannot be shown: ${error.message}. It is asked for again by itself.`));
  }
}

function showMachine(place, name, found, changes) {
  const head = el("h2", {}, foreign(name));
  if (found.last === null && !found.incidents.length) {
    update(place, `machine ${name}`, head, el("p", { class: "hint unknown" }, `Nothing is known of a machine with this name: no window of it has ended yet${found.missing ? ", or what the detector believes is not known here" : ""}. See whether the name is right (the field Machine above suggests names), and whether its agent sends: newnormal tail telemetry.`));
    return;
  }
  const last = found.last === null ? "no window of it is stored any more" : `newest window ${duration(Math.max(0, found.now - found.last))} ago, at ${time(found.last)} UTC`;
  update(place, `machine ${name}`,
    head, el("p", { class: "where" }, last),
    ...incidentCards(found.incidents, found.now, "Incidents", found.most.incidents),
    ...filling(name, found), ...listed(changes, name), ...series(name, found, changes.changes), ...logs(found));
}

export function incidentCards(incidents, now, title, most = Infinity) {
  const head = el("h3", {}, title);
  if (!incidents.length) return [head, el("p", { class: "soft" }, "None is known.")];
  const rows = incidents.map((it) => el("a", { href: incidentLink(it["event.id"]) },
    el("span", { class: "severity", "data-severity": it.severity }, it.severity), el("span", { class: "name" }, el("b", {}, it.message)),
    el("span", { class: "state soft" }, foreign(stateText(it))), el("span", { class: "line-of-facts soft" }, since(it, now))));
  return [head, el("div", { class: "onsets of-incidents" }, ...rows), ...(incidents.length < most ? [] : [el("p", { class: "soft" }, `Those that go on and the newest others, ${most} at most, are listed.`)])];
}

function filling(name, { filling: list, series: rows, sparks, span }) {
  if (!list.length) return [];
  const plot = (it) => fillingBand(rows.find((each) => each.metric === it.metric)?.spark ?? [], sparks, span, it);
  return [el("h3", {}, "What is filling"), el("div", { class: "onsets full" }, ...list.map((it) => fullRow(name, it.metric, it, [], plot(it))))];
}

function series(name, { series: list, series_count: count, sparks, span, missing }, changes) {
  const title = el("h3", {}, "Series: what goes on first, then the most novel");
  const quiet = missing ? [el("p", { class: "soft" }, `What the detector believes is not known here (${missing}), so quiet series are missing: Elasticsearch stores their windows around incidents only, unless the pipeline runs with detector.emit = all.`)] : [];
  if (!list.length) return [title, el("p", { class: "soft" }, "None."), ...quiet];
  const lines = changes.map((it) => [(sparks * (it.since - span[0])) / (span[1] - span[0]), saidOf(it)]);
  const rows = list.map((it) => el("a", { href: seriesLink(name, it.metric) },
    el("span", { class: "n score" }, it.highest === null ? "quiet" : num(it.highest, 3)), el("span", { class: "name" }, metricName(it.metric)), spark(it.spark, sparks, lines),
    el("span", { class: "n" }, quantity(it.actual, it)),
    el("span", { class: "line-of-facts" }, el("span", { class: "kind", "data-kind": it.open_since ? "anomaly" : it.kind }, standing(it)), usual(it))));
  const more = count > list.length ? [el("p", { class: "soft" }, `The first ${list.length} of about ${count.toLocaleString("en")} are listed.`)] : [];
  return [title, el("p", { class: "soft" }, `Highest score of its alarms, metric, its values from ${time(span[0])} to ${time(span[1])} UTC, newest value; how it stands, and the band in which that value was expected.`), el("div", { class: "onsets of-series" }, ...rows), ...more, ...quiet];
}

// How a series stands now: a window like any other does not end an incident.
function standing(it) {
  if (it.open_since) return `in an open incident since ${local(it.open_since)}`;
  return it.kind === "learning" && it.needed ? `learning: ${it.windows} of ${it.needed} windows` : words(it.kind);
}

function usual(it) {
  const known = band(it);
  return known ? el("span", { class: "soft" }, ` ${it.metric.startsWith("_peers.") ? "its peers suggest" : "usual"} ${known}`) : "";
}

function logs({ logs: list, most }) {
  if (!list.length) return [];
  const rows = list.map((it) => el("a", { href: noveltyLink(it._id) }, el("span", { class: "after" }, when(it["@timestamp"])),
    el("span", { class: "name" }, sign(it.kind), it["log.template"] ?? it["event.original"] ?? words(it.kind)), el("span", {}), el("span", { class: "n" }, num(it.record_score, 3))));
  return [el("h3", {}, "Novel in its log"), el("div", { class: "onsets short" }, ...rows), ...(list.length < most.logs ? [] : [el("p", { class: "soft" }, `The newest ${most.logs} are listed.`)])];
}
