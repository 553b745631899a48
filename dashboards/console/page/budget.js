// The alarm budget in words: how few false alarms were promised, and what labels say so far.
import { ask } from "./ask.js";
import { count, duration, num } from "./dom.js";

const DAY = 86400000, WEEK = 7 * DAY, MONTH = 30 * DAY;

export const askBudget = () => ask("/api/budget").catch(() => null);

// Two facts, each with its name; none where nothing was promised.
export function promised(budget) {
  if (!budget?.promised) return [];
  const { false_pages: pages, false_alarms: alarms } = budget.promised;
  return [
    ["false pages", `at most ${num(pages)} a week promised (incidents.false_pages); ${seen(budget, ofIncidents)}`],
    ["false alarms", `at most ${num(alarms)} a series and month promised (detector.false_alarms); ${seen(budget, ofAlarms)}`],
  ];
}

function seen(budget, told) {
  if (budget.since === null) return "nothing is stored yet";
  const span = budget.full ? "in the last 28 days" : `in the ${duration(budget.now - budget.since)} for which there are data`;
  return `${span} ${told(budget, budget.now - budget.since)}`;
}

const unread = (why) => `labels cannot be read (${why})`;
const NOBODY = "none labelled yet: nothing says which were false";

function ofIncidents({ incidents: { written, labelled, false: wrong, all_read: all }, missing }, span) {
  if (!written) return "no incident was written";
  const they = written === 1 ? "1 incident was written" : `${count(written)} incidents were written`;
  if (missing) return `${they}; ${unread(missing)}`;
  if (!labelled) return `${they}, ${NOBODY}`;
  const of = `${all ? "" : "at least "}${wrong ? count(wrong) : "none"} of them labelled a false alarm`;
  const rest = written - labelled;
  return `${they}, ${of}${rate(wrong, span / WEEK, "a week")}${rest && all ? `; ${count(rest)} ${rest === 1 ? "has" : "have"} no label` : ""}`;
}

function ofAlarms({ alarms: { labelled, false: wrong, series }, judged, missing }, span) {
  if (missing) return unread(missing);
  if (!labelled) return NOBODY;
  if (!wrong) return `none of the ${count(labelled)} that are labelled was false`;
  const on = `${count(wrong)} labelled a false alarm, on ${count(series)}${judged ? ` of ${count(judged)}` : ""} series`;
  return judged ? on + rate(wrong, (judged * span) / MONTH, "a series and month", span) : on;
}

// How often, once a week is over: what a few hours say is no rate.
const rate = (times, parts, of, span = parts * WEEK) => (span < WEEK ? "" : `: ${few(times / parts)} ${of}`);
const few = (value) => (value >= 0.1 || value === 0 ? num(Number(value.toFixed(1))) : num(value, 1));
