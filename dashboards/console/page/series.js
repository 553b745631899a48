// The page of one series: its plot, what was novel, the same hours of earlier days, what the detector believes.
import { ask } from "./ask.js";
import { changesOf, known as knownChanges, listed } from "./changes.js";
import { common, sign } from "./chart.js";
import { duration, el, foreign, metricName, num, time, when, words } from "./dom.js";
import { drawn, reach } from "./filling.js";
import { plural } from "./incident_words.js";
import { incidentCards } from "./machine.js";
import { machineLink, noveltyLink, ruleLink, seriesLink } from "./place.js";
import { band, quantity } from "./quantity.js";
import { plot, update } from "./update.js";

const RANGES = [[1, "1 h"], [6, "6 h"], [24, "24 h"], [168, "7 d"]];
const EARLIER = { 1: "A day before", 7: "A week before" };

export async function openSeries(place, { entity, metric, hours, end }, current) {
  try {
    const found = await ask("/api/series/page", { entity, metric, hours, ...(end ? { end } : {}) });
    if (!current()) return;
    const show = (changes) => showSeries(place, { entity, metric, end }, found, changes);
    show(knownChanges(entity));
    const changes = await changesOf(entity, found.axis);
    if (current()) show(changes);
  } catch (error) {
    if (current()) place.replaceChildren(el("p", { class: "hint" }, `This series cannot be shown: ${error.message}. It is asked for again by itself.`));
  }
}

function showSeries(place, { entity, metric, end }, found, changes) {
  const ranges = RANGES.map(([hours, text]) => el("a", { class: "range", href: seriesLink(entity, metric, hours, end), ...(hours === found.hours ? { "aria-current": "true" } : {}) }, text));
  const alarm = found.novelties.find((it) => it.since && it.kind !== "recovered");
  const shade = alarm ? [alarm.since, alarm["@timestamp"]] : null;
  const of = { metric, metric_kind: found.metric_kind };
  update(place, `series ${entity} ${metric}`,
    el("div", { class: "top" }, el("h2", {}, foreign(metricName(metric)), " of ", el("a", { href: machineLink(entity) }, foreign(entity))), el("div", { class: "zoom ranges" }, ...ranges)),
    el("p", { class: "where" }, `${time(found.axis[0])} to ${time(found.axis[1])} UTC · ${plural(found.series.length, "point")}`),
    el("p", { class: "for-rule" }, el("a", { href: ruleLink(entity, metric) }, "A rule for it")),
    ...(found.known ? now(found, of) : [el("p", { class: "hint unknown" }, "Nothing is known of this series: no window of it is stored", found.view.missing ? ", and what the detector believes is not known here" : " or has been judged", ". See whether the names are right and the machine sends this metric; its first window comes when the first is complete.")]),
    ...(found.series.length ? [plot(found.series, { span: reach(found.axis, drawn(found.series, found.full)), shade, lines: changes.changes, ahead: found.full, zone: found.zone, of, name: `${metricName(metric)} of ${entity}` })] : []),
    ...listed(changes, entity), ...belief(found.view, of, found.full), ...novelties(found), ...earlier(found, of),
    ...incidentCards(found.incidents, found.now, "Incidents of the machine"),
  );
}

// The newest value, the band in which it was expected, and how far a new series is learned.
function now({ series, view, full, now: at }, of) {
  const newest = series.at(-1);
  if (!newest) return [el("p", { class: "hint" }, "No window of it is stored in this range.")];
  const known = band({ ...newest, ...of });
  const learning = view.needed && (view.state?.kind ?? "learning") === "learning" ? ` Still learning: ${Math.min(view.windows, view.needed)} of ${view.needed} windows.` : "";
  const filling = full ? [el("p", { class: "words filling" }, `${full.words[0].toUpperCase()}${full.words.slice(1)}.`, ...(full.latest ? [" Between ", when(full.earliest, true), " and ", when(full.latest, true), full.bound === null ? "" : ` it reaches ${quantity(full.bound, of)}`, "."] : []))] : [];
  return [el("p", { class: "words first newest" }, `${quantity(newest.actual, of)}, ${duration(Math.max(0, at - newest["@timestamp"]))} ago${known ? `; ${of.metric.startsWith("_peers.") ? "its peers suggest" : "usual:"} ${known}` : ""}.${learning}`), ...filling];
}

function belief({ state, age, missing }, of, full) {
  const title = el("h3", {}, "What the detector believes");
  if (missing) return [title, el("p", { class: "soft belief" }, `It is not known here (${missing}), so windows that Elasticsearch does not store are missing: quiet ones, but for those around incidents, unless the pipeline runs with detector.emit = all.`)];
  if (!state) return [title, el("p", { class: "soft belief" }, "Nothing has been said of this series yet.")];
  const facts = [["state", words(state.kind)], ["typical", quantity(state.typical, of)], ["band", band({ ...state, ...of }, 4) || "–"], ["values learned from", num(state.values ?? 0)]];
  if (state.regimes?.length) facts.push([state.regimes.length > 1 ? "levels known" : "level known", state.regimes.map((level, i) => (i === state.regime ? `${quantity(level, of)} (now)` : quantity(level, of))).join(", ")]);
  if (full) facts.push(["full", full.words.replace(/^full /, "")]);
  if (state["incident.state"] === "open" && state.since) facts.push(["incident open since", `${time(state.since)} UTC`]);
  facts.push(["said of the window that ended", `${time(state["@timestamp"])} UTC`]);
  if (age?.event_time) facts.push(["all windows are read up to", String(age.event_time)]);
  return [title, el("dl", { class: "facts belief" }, ...facts.flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]))];
}

function novelties({ novelties: list, most, metric_kind }) {
  const title = el("h3", {}, "Novelties in this range");
  if (!list.length) return [title, el("p", { class: "soft" }, "None: all was as expected.")];
  const rows = list.map((it) => el("a", { href: noveltyLink(it._id) }, el("span", { class: "after" }, when(it["@timestamp"])), el("span", { class: "name" }, sign(it.kind), words(it.kind)), el("span", { class: "n" }, quantity(it.actual, { ...it, metric_kind })), el("span", { class: "n" }, num(it.record_score, 3))));
  const note = list.length < most ? [] : [el("p", { class: "soft" }, `The newest ${most} are listed.`)];
  return [title, el("div", { class: "onsets short" }, ...rows), ...note];
}

function earlier({ earlier: before, series, span, zone }, of) {
  if (!before.length) return [];
  const range = common([series, ...before.map((it) => it.series)]) ?? [0, 1];
  const plots = [{ title: "Now shown", series, span }, ...before.map((it) => ({ title: EARLIER[it.days], ...it }))];
  const parts = plots.map((it) => plot(it.series, { span: it.span, zone, range, of, small: true, name: it.title }, el("h4", {}, it.title, el("span", { class: "soft" }, ` from ${time(it.span[0])} UTC`))));
  return [el("h3", {}, "The same hours of earlier days, on one scale"), ...parts];
}
