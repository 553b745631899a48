// What lists say of an incident in a few words.
import { duration, local } from "./dom.js";
import { overSince } from "./lasting.js";

export function since(it, now) {
  const start = it["event.start"], end = overSince(it);
  return end === null ? `since ${local(start)}, for ${duration(Math.max(0, now - start))}` : `${local(start)}, lasted ${duration(end - start)}`;
}

export function stateText(it) {
  const state = it["incident.state"];
  if (state === "merged") return "part of another incident";
  const times = it.reopenings > 1 ? ` ${it.reopenings} times` : "";
  return state === "acknowledged" && it.acknowledged_by ? `acknowledged by ${it.acknowledged_by}` : state === "reopened" ? `reopened${times}` : state;
}

// The silence of an input is that of no machine and no series.
export const ofInput = (it) => !it.machine_count;

// How much an incident concerns, as parts of a list.
export const amount = (it) => (ofInput(it) ? [] : [`${plural(it.machine_count, "machine")}, ${it.series_count.toLocaleString("en")} series`]);

export const plural = (number, one) => `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;
