// Where the machines of an incident stand: each host with the machines on it, and each service with those that depend on it, coloured by how soon each began to be unusual.
import { duration, el, foreign } from "./dom.js";
import { machineLink } from "./place.js";

const SHADES = 4;

// `needs`: which of its other machines each depends on. Nothing where none is known to depend on another one: the series have the order of onsets too.
export function places({ incident, series }, parents = {}, needs = {}) {
  const onsets = new Map();
  for (const it of series) onsets.set(it.entity, Math.min(it.since, onsets.get(it.entity) ?? it.since));
  const hosts = new Map();
  for (const machine of onsets.keys()) {
    for (const host of new Set([parents[machine], ...(needs[machine] ?? [])])) if (host) hosts.set(host, [...(hosts.get(host) ?? []), machine]);
  }
  if (!hosts.size) return [];
  const alone = [...onsets.keys()].filter((machine) => !parents[machine] && !needs[machine] && !hosts.has(machine));
  const start = incident["event.start"], last = Math.max(...onsets.values());
  const mark = (machine) => {
    const onset = onsets.get(machine);
    if (onset === undefined) return el("a", { class: "place", href: machineLink(machine), "data-shade": "none" }, foreign(machine), el("span", {}, "not unusual"));
    const shade = last > start ? Math.min(SHADES - 1, Math.floor((SHADES * Math.max(0, onset - start)) / (last - start))) : 0;
    return el("a", { class: "place", href: machineLink(machine), "data-shade": shade }, foreign(machine), el("span", {}, onset <= start ? "first" : `+${duration(onset - start)}`));
  };
  const soonest = (machines) => machines.sort((one, other) => onsets.get(one) - onsets.get(other) || one.localeCompare(other));
  const boxes = [...hosts].map(([host, machines]) => el("li", {}, mark(host), el("div", { class: "on" }, ...soonest(machines).map(mark))));
  return [el("h3", {}, "Where it is"), el("ul", { class: "places" }, ...boxes, ...soonest(alone).map((machine) => el("li", {}, mark(machine))))];
}
