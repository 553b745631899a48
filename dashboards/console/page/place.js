// What the address of the page names after its #: one incident, machine, series, novelty, comparison or other page, or nothing.
// Names are percent-encoded, so that a slash in one does not end it.

export const incidentLink = (id) => `#incident/${encodeURIComponent(id)}`;
export const noveltyLink = (id) => `#${encodeURIComponent(id)}`;
export const machineLink = (name) => `#machine/${encodeURIComponent(name)}`;

// Up to `hours` before `end` (ms); without an end, before the newest window.
export function seriesLink(entity, metric, hours = 1, end = null) {
  const range = end ? `/${hours}/${end}` : hours === 1 ? "" : `/${hours}`;
  return `#series/${encodeURIComponent(entity)}/${encodeURIComponent(metric)}${range}`;
}

export const ruleLink = (entity, metric) => `#rules/${encodeURIComponent(entity)}/${encodeURIComponent(metric)}`;

export const comparisonLink = (first, second) => `#compare/${encodeURIComponent(first)}/${encodeURIComponent(second)}`;

// What an operator may have come for, by a link in a notification: the page offers it, and a click does it.
const ACTS = ["acknowledge", "maintenance"];

export function place(hash) {
  const text = hash.slice(1);
  if (!text) return { what: "nothing" };
  try {
    const [what, ...parts] = text.split("/").map(decodeURIComponent);
    const [entity, metric, hours = "1", end = ""] = parts;
    if (what === "incident" && (parts.length === 1 || (parts.length === 2 && ACTS.includes(metric)))) return { what, id: entity, act: metric };
    if (what === "machine" && parts.length === 1) return { what, id: entity };
    if ((what === "versions" || what === "health") && !parts.length) return { what, id: what };
    if (what === "rules" && (!parts.length || (parts.length === 2 && entity && metric))) return { what, id: text, entity, metric };
    if (what === "compare" && parts.length === 2) return { what, id: text, first: entity, second: metric };
    if (what === "series" && entity && metric) return { what, id: text, entity, metric, hours: whole(hours) ?? 1, end: whole(end) };
    return { what: "novelty", id: decodeURIComponent(text) };
  } catch {
    return { what: "nothing" }; // no link of ours
  }
}

const whole = (text) => (/^\d{1,15}$/.test(text) ? Number(text) : null);
