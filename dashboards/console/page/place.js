// What the address of the page names after its #: one incident, one novelty, or nothing.

const INCIDENT = "incident/";

export const incidentLink = (id) => `#${INCIDENT}${encodeURIComponent(id)}`;
export const noveltyLink = (id) => `#${encodeURIComponent(id)}`;

export function place(hash) {
  const text = hash.slice(1);
  if (!text) return { what: "nothing" };
  try {
    if (text.startsWith(INCIDENT)) return { what: "incident", id: decodeURIComponent(text.slice(INCIDENT.length)) };
    return { what: "novelty", id: decodeURIComponent(text) };
  } catch {
    return { what: "nothing" }; // no link of ours
  }
}
