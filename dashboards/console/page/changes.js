// What was done at the site: deployments, configuration, restarts, feature flags. Lines in plots, and a list.
import { ask } from "./ask.js";
import { el, foreign, local, when, words } from "./dom.js";

const NOTHING = { changes: [], above: [], most: Infinity };
let last = { machine: null, found: NOTHING }; // shown again until the next answer comes, so that nothing blinks

export const known = (machine) => (last.machine === machine ? last.found : NOTHING);

// The changes on a machine, on what it runs on, and on the whole site.
export async function changesOf(machine, [start, end]) {
  const found = await ask("/api/changes", { machine, start: Math.floor(start), end: Math.ceil(end) }).catch(() => known(machine));
  last = { machine, found };
  return found;
}

export const saidOf = (it) => `${words(it.kind)}: ${it.message}`;

// Whom a change concerns, seen from a machine.
function whom({ machines }, machine, above) {
  if (!machines.length) return "the whole site";
  if (machines.length === 1) return machines[0] === machine ? "" : machines[0];
  const here = [machine, ...above].find((name) => machines.includes(name));
  return here === machine ? `and ${machines.length - 1} more` : `${machines[0]} and ${machines.length - 1} more`;
}

// Parts of a page for `update`.
export function listed({ changes, above, most }, machine) {
  if (!changes.length) return [];
  const rows = changes.map((it) => {
    const far = whom(it, machine, above), facts = [...(far ? [far] : []), ...(it.by ? [`by ${it.by}`] : []), ...(it.end > it.since ? [`until ${local(it.end)}`] : [])];
    return el("p", { class: "change" }, el("span", { class: "after" }, when(it.since)), el("span", { class: "name" }, words(it.kind), ": ", el("b", {}, foreign(it.message)), ...facts.flatMap((text) => [" · ", foreign(text)])));
  });
  const note = changes.length < most ? [] : [el("p", { class: "soft" }, `The last ${most} are listed.`)];
  return [el("h3", {}, "Changes in this time"), el("div", { class: "changes" }, ...rows), ...note];
}
