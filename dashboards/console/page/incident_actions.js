// What an operator says of a whole incident, once for all its series and machines.
import { bar, button, maintenanceOf, outcome, say } from "./actions.js";
import { ask } from "./ask.js";
import { el, local } from "./dom.js";
import { ofInput } from "./incident_words.js";

const NAME = "newnormal.operator";

// Acknowledge, expected, false alarm, maintenance. `named`: with a field for the operator's name; `act`: the one
// that an operator has come for, which gets the focus.
export function actionBar(incident, named = false, act = "") {
  const id = incident["event.id"], machines = (incident.machines ?? []).map((it) => it.entity);
  return bar(`What you say of: ${incident.message}`, (place, it) => {
    place.append(
      ...acknowledgement(incident, it, named),
      ...(ofInput(incident) ? [] : [
        judged(id, "expected_change", "Expected", "What its series do now is normal from now on; the incident is closed"),
        judged(id, "false_alarm", "False alarm", "Evidence of its series counts less from now on"),
      ]),
      ...(machines.length ? [maintenance(machines)] : []),
      outcome(`incident ${id}`));
    if (act === "acknowledge" && incident["incident.state"] !== "acknowledged") place.querySelector("button").focus();
    const folded = act === "maintenance" && place.querySelector("details");
    if (folded) { folded.open = true; folded.querySelector("summary").focus(); }
  }, !named);
}

// What an operator says of an incident that is over: whether it was one. Nothing where an input was silent, which has no series.
export function afterwards(incident) {
  const id = incident["event.id"];
  if (ofInput(incident)) return [];
  return [bar(`What you say of: ${incident.message}`, (place) => place.append(
    judged(id, "false_alarm", "False alarm", "Nothing was wrong: evidence of its series counts less from now on"),
    judged(id, "true", "True", "Something was wrong: evidence of its series counts more from now on"),
    outcome(`incident ${id}`)))];
}

function acknowledgement(incident, { by: known }, named) {
  const id = incident["event.id"], active = incident["incident.state"] !== "acknowledged";
  const field = el("input", { type: "text", maxlength: 200, autocomplete: "username", placeholder: "your name", "aria-label": "Your name" });
  field.value = known ?? localStorage.getItem(NAME) ?? "";
  field.readOnly = Boolean(known);
  const act = () => {
    if (!known) localStorage.setItem(NAME, field.value);
    say(`incident ${id}`, "/api/acknowledgement", { incident: id, active, by: field.value }, () => "Sent. Waiting for the incidents job.",
      async () => (((await ask("/api/incident/answer", { id, after: 0 })).state === "acknowledged") === active ? " " : null)); // the page shows the new state by itself
  };
  return [button(active ? "Acknowledge" : "Release", active ? "You look after it" : "You no longer look after it", act), ...(active && named ? [field] : [])];
}

// A label for each of its series.
function judged(id, verdict, text, title) {
  return button(text, title, () => say(`incident ${id}`, "/api/incident/label", { incident: id, verdict },
    (reply) => `${text}: sent for ${reply.series} series, for windows that end after ${local(reply.from)}. Waiting for the detector.`,
    async (reply) => {
      const found = await ask("/api/incident/answer", { id, after: reply.from });
      const over = found.state === "resolved" ? "; the incident is closed" : "";
      const more = found.judged < found.of && !over;
      return found.judged ? { text: `${text}: the detector has judged ${found.judged} of its ${found.of} series with it${over}.`, more } : null;
    }));
}

function maintenance(machines) {
  const inside = el("div", { class: "inside" }), folded = el("details", { class: "fold" }, el("summary", {}, "Maintenance"), inside);
  folded.addEventListener("toggle", () => { if (folded.open && !inside.children.length) inside.append(...maintenanceOf(machines)); });
  return folded;
}
