// What operators have said that touches an incident, and who was told of it: machines that moved before it, rules and labels in force on its machines, messages.
import { el, foreign, when, words } from "./dom.js";
import { effects } from "./rule_words.js";

export function moves(around) {
  if (!around?.moves.length) return [];
  const items = around.moves.map((it) => el("li", {}, el("b", {}, foreign(it["host.name"])), " moved from ", foreign(it.moved_from), " to ", foreign(it.parent ?? "nowhere"), " at ", when(it.moved ?? it["@timestamp"])));
  return [el("h3", {}, "What changed before"), el("ul", { class: "causes" }, ...items)];
}

export function inForce(around) {
  if (!around || around.missing) return [];
  const title = el("h3", {}, "In force on its machines");
  const items = [...around.rules.map(rule), ...around.labels.map(label)];
  return items.length ? [title, el("ul", { class: "causes" }, ...items)] : [title, el("p", { class: "soft" }, "No rule, no maintenance, no label.")];
}

// What was told of it to whom, the last message first.
export function toldOf(around) {
  if (!around || around.missing) return [];
  const title = el("h3", {}, "What was told to whom");
  if (!around.told.length) return [title, el("p", { class: "soft" }, "Nobody was told of it from here: no message of ", el("code", {}, "newnormal notify run"), " is known.")];
  const items = [...around.told].reverse().map((it) => el("li", {}, when(it.at), " to ", el("b", {}, foreign(it.channel)), `: ${it.state === "summary" ? `${words(it.state)} of ${it.incidents.length} incidents` : words(it.state)}`, el("div", { class: "soft" }, foreign(it.title))));
  return [title, el("ul", { class: "causes" }, ...items)];
}

function rule(it) {
  const until = it["event.end"] ? [" until ", when(it["event.end"], true)] : [];
  return el("li", {}, "Rule ", el("b", {}, foreign(it.id)), ": ", foreign(effects(it)), ...until, ...(it.note ? [el("div", { class: "soft" }, foreign(it.note))] : []));
}

function label(it) {
  return el("li", {}, el("b", {}, foreign(it["host.name"]), " ", foreign(it.metric)), ` was labelled ${words(it.verdict)} at `, when(it["event.created"], true), ...(it.note ? [el("div", { class: "soft" }, foreign(it.note))] : []));
}
