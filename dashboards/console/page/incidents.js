// The overview's first part: the open incidents, the most severe first, and below them those resolved last.
import { el } from "./dom.js";
import { card } from "./card.js";

export function showIncidents(section, found, chosen) {
  const { open, resolved } = found;
  const [head, list, past] = section.children;
  head.firstElementChild.textContent = open.length ? `Open incidents (${open.length.toLocaleString("en")})` : "Open incidents";
  fill(list, open, found);
  if (!open.length) list.append(el("p", { class: "calm" }, resolved.length ? "No incident is open." : "No incident is open, and there has been none yet."));
  past.hidden = !resolved.length;
  past.firstElementChild.textContent = `Resolved last (${resolved.length})`;
  fill(past.lastElementChild, resolved, found);
  markIncident(section, chosen);
}

export function markIncident(section, chosen) {
  for (const each of section.querySelectorAll(".card")) {
    each.classList.toggle("chosen", each.dataset.id === chosen);
    if (each.dataset.id === chosen) each.firstElementChild.setAttribute("aria-current", "true");
    else each.firstElementChild.removeAttribute("aria-current");
  }
}

// An incident keeps its card, so that a click and the focus survive a refresh; only what is in the card is written anew.
function fill(list, incidents, known) {
  const there = new Map([...list.querySelectorAll(".card")].map((each) => [each.dataset.id, each]));
  const cards = incidents.map((it) => card(there.get(it["event.id"]), it, known));
  const same = cards.length === list.children.length && cards.every((each, i) => each === list.children[i]);
  if (same) return;
  const focused = document.activeElement, inside = list.contains(focused);
  list.replaceChildren(...cards);
  if (inside && list.contains(focused)) focused.focus({ preventScroll: true });
}
