// One incident: what happened, how much, since when, what is known around it, and what an operator says of it.
import { el, foreign } from "./dom.js";
import { actionBar, afterwards } from "./incident_actions.js";
import { inForce, moves, toldOf } from "./incident_around.js";
import { causes, earlierChanges, history, logChanges, similar } from "./incident_past.js";
import { places } from "./incident_places.js";
import { labelsBySeries, seriesOf } from "./incident_series.js";
import { amount, ofInput, stateText } from "./incident_words.js";
import { lasting } from "./lasting.js";
import { incidentLink } from "./place.js";
import { update } from "./update.js";

// `known`: what the overview has learned (`last`, the event time of the newest data); `around`: what operators have said, or null;
// `act`: what an operator has come for.
export function showIncident(place, found, known, around = null, act = "") {
  const { now, quiet, incident, over } = found, id = incident["event.id"];
  const severity = el("span", { class: "severity", "data-severity": incident.severity }, `${incident.severity} ${incident["event.risk_score"]}`);
  const more = [];
  if (incident.note) more.push(el("p", { class: "where" }, "Remark: ", foreign(incident.note)));
  if (incident.merged_into) more.push(el("p", {}, "It turned out to be a part of ", el("a", { href: incidentLink(incident.merged_into) }, "another incident"), "."));
  const novel = incident.open_series && over === null ? `, ${incident.open_series.toLocaleString("en")} of them unusual now` : "";
  const said = { resolved: afterwards, merged: () => [] }[incident["incident.state"]] ?? (() => [actionBar(incident, true, act)]);
  const cared = el("div", {}, ...said(incident));
  cared.dataset.keep = `${id} ${incident["incident.state"]} ${incident.machine_count}`;
  const single = labelsBySeries(found.series);
  single.dataset.keep = `by series ${id} ${found.series.length}`;
  update(place, `incident ${id}`,
    el("div", { class: "top" }, el("h2", {}, foreign(incident.message)), severity),
    el("p", { class: "where" }, ...lasting(incident, { now, quiet, last: known.last }), ...(incident["incident.state"] === "open" ? [] : [" · ", foreign(stateText(incident))]), ...amount(incident).map((text) => ` · ${text}${novel}`)),
    ...more, cared,
    ...(ofInput(incident) ? [] : seriesOf(found, around?.parents)),
    section("places", ...places(found, around?.parents, around?.needs)),
    section("begun", ...causes(incident.candidates, incident.unknown_share)),
    section("changes", ...earlierChanges(incident.changes)),
    section("logs", ...logChanges(incident.log_changes)),
    section("around", ...moves(around), ...inForce(around)),
    section("similar", ...(ofInput(incident) ? [] : similar(found.similar))),
    section("told", ...toldOf(around)),
    section("history", ...history(incident, over, around?.acknowledged)),
    ...(ofInput(incident) ? [] : [single]),
  );
}

const section = (name, ...parts) => el("section", { class: `of-incident ${name}` }, ...parts);
