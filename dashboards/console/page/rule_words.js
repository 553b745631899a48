// What a rule does, in words.
import { num } from "./dom.js";

const EFFECTS = { skip_result: "not reported", skip_learning: "not learned", report: "always reported", store: "stored", weekend: "as on a weekend" };

export function effects(it) {
  const found = Object.keys(EFFECTS).filter((name) => it[name]).map((name) => EFFECTS[name]);
  if (it.only) found.push(`only what is ${it.only}`);
  if (it.min_change !== undefined) found.push(`only changes of ${num(it.min_change)} or more`);
  if (it.min_change_share !== undefined) found.push(`only changes of ${num(100 * it.min_change_share)}\u202f% or more`);
  const bounds = ["above", "below"].filter((side) => it[side] !== undefined).map((side) => `${side} ${num(it[side])}`);
  return `${found.join(", ")}${bounds.length ? ` (values ${bounds.join(" and ")})` : ""}`;
}

// The same, and for what and when.
export const sentence = (it) => `${effects(it)} for ${it.metric} of ${it["host.name"]}${it.times ? `, ${it.times} ${it.timezone}` : ""}`;
