// When an incident began and ended, in words that stay true: what is over does not go on lasting.
import { duration, when } from "./dom.js";

const SILENT_MS = 120000;

// When its last novelty ended; null while one lasts.
export function overSince(it) {
  if (it["event.end"]) return it["event.end"];
  if (it.open_series) return null;
  const ends = (it.series ?? []).map((each) => each.end).filter(Boolean);
  return ends.length ? Math.max(...ends) : it.updated;
}

// Parts of a sentence: texts and times. `known`: `now`, `quiet` (ms without news until it is closed), `last` (event time of the newest data, or null).
export function lasting(it, { now, quiet, last = null }) {
  const start = it["event.start"], end = overSince(it), silent = last !== null && now - last > SILENT_MS;
  const since = ["since ", when(start, true)];
  if (end === null) return silent ? [...since, "; no data since ", when(last, true)] : [...since, `, for ${duration(Math.max(0, now - start))}`];
  const lasted = [when(start, true), `, lasted ${duration(end - start)}`];
  if (it["event.end"]) return lasted;
  return silent && last < end + quiet ? [...lasted, "; no data since ", when(last, true)] : [...lasted, "; is closed at ", when(end + quiet, true), " if nothing comes"];
}
