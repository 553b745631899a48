// An incident as a card: its sentence, its strongest series with the band, and what an operator can say of it at once.
import { actionBar } from "./incident_actions.js";
import { band } from "./band.js";
import { el, foreign, metricName } from "./dom.js";
import { amount, stateText } from "./incident_words.js";
import { lasting, overSince } from "./lasting.js";
import { incidentLink } from "./place.js";

const OVER = new Set(["resolved", "merged"]);

// A card that is there is written anew only where something has changed, so that a button is not replaced under the pointer.
export function card(there, it, known) {
  const place = there ?? el("article", { class: "card" }, el("a", { class: "open" }), el("div", { class: "plot-of-card" }), el("p", { class: "facts" }), el("div", { class: "say" }));
  const [link, picture, facts, say] = place.children;
  Object.assign(place.dataset, { id: it["event.id"], severity: it.severity, over: OVER.has(it["incident.state"]) });
  link.setAttribute("href", incidentLink(it["event.id"]));
  swap(link, [el("span", { class: "severity", "data-severity": it.severity }, it.severity), el("b", {}, foreign(it.message))]);
  swap(picture, it.plot?.points.length ? [strongest(it)] : []);
  swap(facts, [el("span", {}, ...lasting(it, known)), ...told(it).map((text) => el("span", {}, foreign(text)))]);
  if (say.dataset.of !== stamp(it)) {
    say.dataset.of = stamp(it);
    say.replaceChildren(...(OVER.has(it["incident.state"]) ? [] : [actionBar(it)]));
  }
  return place;
}

function told(it) {
  const found = amount(it);
  if (it["incident.state"] !== "open") found.push(stateText(it));
  return found;
}

function strongest(it) {
  const { metric, entity, points, span, step } = it.plot, spans = Math.ceil((span[1] - span[0]) / step);
  const end = overSince(it) ?? span[1], shade = [(it["event.start"] - span[0]) / step, (end - span[0]) / step];
  const name = el("span", { class: "soft" }, foreign(metricName(metric)), ...(it.machine_count > 1 ? [" of ", foreign(entity)] : []));
  return el("figure", {}, band(points, spans, { shade }), el("figcaption", {}, name));
}

const stamp = (it) => `${it["incident.state"]} ${it.acknowledged_by ?? ""}`;

function swap(place, fresh) {
  const same = fresh.length === place.childNodes.length && fresh.every((each, i) => each.isEqualNode(place.childNodes[i]));
  if (!same) place.replaceChildren(...fresh);
}
