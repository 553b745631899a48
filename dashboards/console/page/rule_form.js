// The form for a rule: what it applies to, what the detector then does, and for how long.
import { el } from "./dom.js";

const EFFECTS = {
  skip_result: "report nothing", report: "always report", up: "report only what is above typical", down: "report only what is below typical",
  min_change: "report only changes of at least", min_change_share: "report only changes by a share of at least",
};
const LENGTHS = [["", "until it is removed"], ["480", "for 8 h"], ["10080", "for 7 days"], ["43200", "for 30 days"]];
const SIZES = ["min_change", "min_change_share"];

// `attempt` is called when the form is sent, `changed` when a field is.
export function form({ entity = "*", metric = "*" }, attempt, changed) {
  const field = (label, name, value, more = {}) => el("label", {}, label, el("input", { type: "text", name, value, autocomplete: "off", autocapitalize: "off", spellcheck: "false", ...more }));
  const menu = (label, name, options) => el("label", {}, label, el("select", { name, "aria-label": label }, ...options.map(([value, text]) => el("option", { value }, text))));
  const made = el("form", { class: "rule-form", "aria-label": "Rule" },
    field("Name", "name", "", { required: "", maxlength: 256 }),
    field("Machines", "entity", glob(entity), { required: "", maxlength: 512, placeholder: "db-*", list: "entities" }),
    field("Metrics", "metric", glob(metric), { required: "", maxlength: 512, placeholder: "disk.used_ratio*" }),
    field("Only at", "times", "", { maxlength: 512, placeholder: "any time; mon-fri 02:00-03:00" }),
    field("Time zone", "timezone", "UTC", { required: "", maxlength: 100 }),
    field("Only values above", "above", "", { maxlength: 40, placeholder: "any; 95%, 20G" }),
    field("Only values below", "below", "", { maxlength: 40, placeholder: "any; 95%, 20G" }),
    menu("Then", "effect", Object.entries(EFFECTS)),
    field("Size", "amount", "", { maxlength: 40, placeholder: "5, 10%, 20G" }),
    menu("Lasts", "minutes", LENGTHS),
    field("Reason", "note", "", { maxlength: 4096 }),
    el("div", { class: "actions" }, el("button", { type: "submit", class: "main" }, "Try"), el("span", { class: "soft" }, "Trying changes nothing.")));
  const at = made.elements, size = at.amount.closest("label");
  const fit = () => { size.hidden = !SIZES.includes(at.effect.value); at.amount.required = !size.hidden; };
  made.addEventListener("input", () => { fit(); changed(); });
  made.addEventListener("submit", (event) => { event.preventDefault(); attempt(); });
  fit();
  return { element: made, read: () => read(at), take: (rule) => { take(at, rule); fit(); } };
}

// A name as a glob: there is no other way to say a star.
const glob = (name) => (name === "*" ? name : name.replaceAll("*", "?"));

function read(at) {
  const text = (name) => at[name].value.trim();
  const rule = { name: text("name"), entity: at.entity.value, metric: at.metric.value, times: text("times"), timezone: text("timezone"), effect: at.effect.value, note: text("note") };
  for (const name of ["above", "below", ...(SIZES.includes(rule.effect) ? ["amount"] : [])]) if (text(name)) rule[name] = text(name);
  if (at.minutes.value) rule.minutes = Number(at.minutes.value);
  return rule;
}

// Fills in a rule as a trial tells it.
function take(at, rule) {
  const effect = rule.only ?? ["min_change", "min_change_share", "report"].find((name) => rule[name] !== undefined && rule[name] !== false) ?? "skip_result";
  const values = { name: rule.id, entity: rule["host.name"], metric: rule.metric, times: rule.times ?? "", timezone: rule.timezone ?? "UTC", above: rule.above ?? "", below: rule.below ?? "", effect, amount: rule[effect] ?? "", minutes: "", note: "proposed by labels" };
  for (const [name, value] of Object.entries(values)) at[name].value = String(value);
}
