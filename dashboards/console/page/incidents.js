// The overview's first part: the open incidents, the most severe first, and below them those resolved last.
import { duration, el, time } from "./dom.js";
import { incidentLink } from "./place.js";

export function showIncidents(section, { now, open, resolved }, chosen) {
  const [title, list, past] = section.children;
  title.textContent = open.length ? `Open incidents (${open.length.toLocaleString("en")})` : "Open incidents";
  fill(list, open, now);
  if (!open.length) list.append(el("p", { class: "calm" }, resolved.length ? "No incident is open." : "No incident is open, and there has been none yet."));
  past.hidden = !resolved.length;
  past.firstElementChild.textContent = `Resolved last (${resolved.length})`;
  fill(past.lastElementChild, resolved, now);
  markIncident(section, chosen);
}

export function markIncident(section, chosen) {
  for (const each of section.querySelectorAll("a.card")) {
    if (each.dataset.id === chosen) each.setAttribute("aria-current", "true");
    else each.removeAttribute("aria-current");
  }
}

// An incident keeps its card, so that a click and the focus survive a refresh; only what is in the card is written anew.
function fill(list, incidents, now) {
  const there = new Map([...list.querySelectorAll("a.card")].map((each) => [each.dataset.id, each]));
  const cards = incidents.map((it) => card(there.get(it["event.id"]) ?? el("a", { class: "card" }), it, now));
  const same = cards.length === list.children.length && cards.every((each, i) => each === list.children[i]);
  if (same) return;
  const focused = document.activeElement;
  list.replaceChildren(...cards);
  if (cards.includes(focused)) focused.focus({ preventScroll: true });
}

function card(link, it, now) {
  const origin = it.candidates?.[0];
  const facts = [since(it, now), `${plural(it.machine_count, "machine")}, ${it.series_count.toLocaleString("en")} series`];
  if (origin && it.machine_count > 1) facts.push(`may have begun at ${origin.entity}`);
  Object.assign(link.dataset, { id: it["event.id"], severity: it.severity });
  link.setAttribute("href", incidentLink(it["event.id"]));
  link.replaceChildren(
    el("span", { class: "severity", "data-severity": it.severity }, it.severity), el("b", { title: it.message }, it.message),
    el("span", { class: "state" }, stateText(it)), el("span", { class: "facts" }, facts.join(" · ")));
  return link;
}

export function since(it, now) {
  const end = it["event.end"];
  return end ? `${time(it["event.start"])} UTC, for ${duration(end - it["event.start"])}` : `since ${time(it["event.start"])} UTC, ${duration(Math.max(0, now - it["event.start"]))}`;
}

export function stateText(it) {
  const state = it["incident.state"];
  if (state === "merged") return "part of another incident";
  const times = it.reopenings > 1 ? ` ${it.reopenings} times` : "";
  return state === "acknowledged" && it.acknowledged_by ? `acknowledged by ${it.acknowledged_by}` : state === "reopened" ? `reopened${times}` : state;
}

export const plural = (number, one) => `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;
