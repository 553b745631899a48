// What is known of an incident beside its series: where it may have begun, its logs, incidents like it, its own history.
import { duration, el, foreign, metricName, num, when } from "./dom.js";
import { ofInput, plural, stateText } from "./incident_words.js";
import { incidentLink } from "./place.js";

// `unknown`: the share of its beginning elsewhere, or of nothing being wrong; absent in records of earlier versions.
export function causes(candidates = [], unknown = null) {
  if (!candidates.length) return [];
  const items = candidates.map((it) => el("li", {},
    el("b", {}, foreign(it.entity)), " ", foreign(metricName(it.metric)), ` · ${num(it.share * 100, 2)} % · from `, when(it.since),
    el("div", { class: "soft" }, foreign(it.reason))));
  const none = unknown === null ? [] : [el("p", { class: "soft" }, `At none of its machines: ${num(unknown * 100, 2)} %`)];
  return [el("h3", {}, "Where it may have begun"), el("ol", { class: "causes" }, ...items), ...none];
}

export function logChanges(changes = []) {
  if (!changes.length) return [];
  const items = changes.map((it) => el("li", {},
    el("b", {}, foreign(it.entity)), it.machines > 1 ? ` and ${plural(it.machines - 1, "more machine")}` : "", " · from ", when(it.since),
    el("div", { class: "line" }, foreign(it.example ?? it.template))));
  return [el("h3", {}, "What changed in the logs"), el("ol", { class: "causes" }, ...items)];
}

export function earlierChanges(changes = []) {
  if (!changes.length) return [];
  const items = changes.map((it) => el("li", {},
    el("b", {}, it.entity ? foreign(it.entity) : "The whole site"), ` · ${it["event.action"].replace("_", " ")} · `, when(it.since),
    el("div", { class: "line" }, foreign(it.message))));
  return [el("h3", {}, "What was done before"), el("ol", { class: "causes" }, ...items)];
}

export function similar(list = []) {
  const title = el("h3", {}, "Incidents like it before");
  if (!list.length) return [title, el("p", { class: "soft" }, "None on these machines or with these metrics is known.")];
  const items = list.map((it) => el("li", {}, el("a", { href: incidentLink(it["event.id"]) }, foreign(it.message)),
    el("div", { class: "soft" }, when(it["event.start"], true), it["event.end"] ? `, lasted ${duration(it["event.end"] - it["event.start"])}` : "", " · ", foreign(stateText(it)),
      ...(it.acknowledged_by && it["incident.state"] !== "acknowledged" ? [", ", foreign(it.acknowledged_by), " looked after it"] : []),
      ...(it.note ? [" · ", foreign(it.note)] : []), ` · ${common(it)}`)));
  return [title, el("ul", { class: "causes" }, ...items)];
}

const common = ({ machines, metrics }) => (machines.length ? `the same ${machines.length === 1 ? "machine" : "machines"}` : `the same ${metrics.length === 1 ? "metric" : "metrics"} elsewhere`);

// Its steps in the order of time. `said`: acknowledgements as they were given; without them only the last one is known, without its time.
export function history(it, over, said = []) {
  const state = it["incident.state"];
  const steps = [[it["event.start"], ofInput(it) ? "the last record came" : "its first series began to be unusual"], [it["@timestamp"], "it was reported"]];
  if (it.reopenings) steps.push([null, `it was reopened ${it.reopenings === 1 ? "once" : `${it.reopenings} times`}`]);
  for (const each of said) steps.push([each["@timestamp"], `${each["user.name"] || "somebody"} ${each.active ? "acknowledged it" : "no longer looks after it"}${each.note ? `: ${each.note}` : ""}`]);
  if (it.acknowledged_by && !said.length) steps.push([null, `${it.acknowledged_by} acknowledged it`]);
  if (over !== null) steps.push([over, ofInput(it) ? "the first record came again" : "its last series was normal again"]);
  if (state === "resolved") steps.push([it.updated, "it was closed"]);
  else if (it.updated !== it["@timestamp"] && it.updated !== over) steps.push([it.updated, "it changed last"]);
  const dated = steps.filter(([at]) => at !== null).sort(([one], [other]) => one - other);
  const items = [...dated, ...steps.filter(([at]) => at === null)].map(([at, text]) => el("li", {}, ...(at === null ? ["At some time "] : [when(at), " "]), foreign(text)));
  return [el("h3", {}, "Its history"), el("ul", { class: "causes plain-list" }, ...items)];
}
