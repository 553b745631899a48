// What an operator says by a click: labels, acknowledgements, maintenance. Nothing counts as done before the pipeline has answered.
import { ask, tell } from "./ask.js";
import { duration, el, local, words } from "./dom.js";

const ANSWER_MS = 2000, PATIENCE_MS = 60000, LONGEST_MS = 3600000;
const LENGTHS = [[30, "30 min"], [120, "2 h"], [480, "8 h"]];
const sayings = new Map(); // what was said and has become of it, by what it is about: outlives a page that is drawn anew
let possible = null; // whether operators can say anything here, asked once

const can = () => (possible ??= ask("/api/actions").catch(() => ({ possible: false, why: "the console does not answer" })));

// A place for buttons; it stays empty where nothing can be said, and says why.
export function bar(name, fill, quiet = false) {
  const place = el("div", { class: "actions", role: "group", "aria-label": name });
  can().then((it) => { if (it.possible) fill(place, it); else if (!quiet) place.append(el("span", { class: "soft" }, `Nothing can be said here: ${it.why}.`)); });
  return place;
}

export function button(text, title, act) {
  const made = el("button", { type: "button", title }, text);
  made.addEventListener("click", act);
  return made;
}

// One line below the buttons, for what became of the last click on them; also where the page is drawn anew meanwhile.
export function outcome(key) {
  const line = el("span", { class: "outcome", role: "status", "data-key": key });
  line.textContent = sayings.get(key) ?? "";
  return line;
}

function report(key, text) {
  sayings.set(key, text);
  for (const line of document.querySelectorAll(".outcome")) if (line.dataset.key === key) line.textContent = text;
}

// Sends, and then asks again and again whether the pipeline has answered: `answered` gives its answer in words, or nothing yet;
// or { text, more: true } if there is more to come.
export async function say(key, path, body, sent, answered) {
  report(key, "Sending…");
  let reply;
  try {
    reply = await tell(path, body);
  } catch (error) {
    return report(key, `Not sent: ${error.message}`);
  }
  const began = Date.now(), words = sent(reply);
  let shown = words;
  report(key, shown);
  while (Date.now() < began + LONGEST_MS && sayings.get(key) === shown) {
    await new Promise((go) => setTimeout(go, ANSWER_MS));
    const answer = await answered(reply).catch(() => null);
    if (sayings.get(key) !== shown) return; // something else was said meanwhile
    if (answer) report(key, shown = answer.text ?? answer);
    if (answer && !answer.more) return;
    if (Date.now() > began + PATIENCE_MS && shown === words) report(key, shown = `${words} No answer for a minute: is the pipeline running?`);
  }
}

const newest = (entity, metric, after) => ask("/api/answer", { entity, metric, after }).then((found) => found.verdict);

// Labels for one series: what its novelty was.
export function labels(it, start, quiet = false) {
  const entity = it["host.name"], { metric } = it, key = `label ${entity} ${metric} ${start}`;
  const label = (verdict, shown) => say(key, "/api/label", { entity, metric, start, verdict },
    (reply) => `${shown}: sent, for windows that end after ${local(reply.from)}. Waiting for the detector.`,
    async (reply) => {
      const found = await newest(entity, metric, reply.from);
      if (!found) return null;
      const closed = found["incident.state"] === "closed" ? ", its incident is closed" : "";
      return `${shown}: the detector has judged the window that ended at ${local(found["@timestamp"])} with it: ${words(found.kind)}${closed}.`;
    });
  return bar("What this was", (place) => place.append(
    button("Expected", "What the series does now is normal from now on; its incident is closed", () => label("expected_change", "Expected")),
    button("False alarm", "Evidence of this series counts less from now on", () => label("false_alarm", "False alarm")),
    button("True", "Evidence of this series counts more from now on", () => label("true", "True")),
    outcome(key)), quiet);
}

// Maintenance of one of some machines: nothing of it is reported or learned for some time.
export function maintenanceOf(machines) {
  const choice = el("select", { "aria-label": "Machine" }, ...machines.map((name) => el("option", { value: name }, name)));
  const line = el("span", { class: "outcome", role: "status" });
  const shown = () => { line.dataset.key = `maintenance ${choice.value}`; line.textContent = sayings.get(line.dataset.key) ?? ""; };
  choice.addEventListener("change", shown);
  shown();
  const begin = (minutes) => {
    const entity = choice.value;
    say(line.dataset.key, "/api/maintenance", { entity, minutes },
      (reply) => (minutes ? `Maintenance until ${local(reply.until)}: sent. Waiting for the detector.` : "End of the maintenance: sent. Waiting for the detector."),
      async (reply) => {
        const found = await newest(entity, "", minutes ? reply.until - minutes * 60000 : reply.until);
        const ruled = (found?.rules ?? []).includes(reply.rule);
        if (!found || ruled !== minutes > 0) return null;
        return minutes ? `In maintenance for ${duration(minutes * 60000)}, until ${local(reply.until)}: nothing of it is reported.` : "The maintenance is over.";
      });
  };
  return [
    el("label", {}, "Maintenance of ", choice), ...LENGTHS.map(([minutes, text]) => button(text, "Nothing of this machine is reported or learned for so long", () => begin(minutes))),
    button("End", "The machine is watched again", () => begin(0)), line];
}
