// Shows a page anew without a jump: what has not changed stays, plots take their new points, focus and open parts remain.
import { chart } from "./chart.js";
import { el } from "./dom.js";

// A plot among the parts of a page: what `chart` takes, and a title above it.
export const plot = (points, options, title = null) => ({ points, ...options, title });

// Parts are elements, or plots. An element with `data-keep` is not replaced by another one with the same value.
export function update(place, page, ...parts) {
  if (place.dataset.page !== page) place.replaceChildren();
  place.dataset.page = page;
  const old = [...place.children];
  parts.forEach((part, i) => {
    if (!old[i]) place.append(made(part));
    else if (!stays(old[i], part)) swap(old[i], made(part));
  });
  for (const rest of old.slice(parts.length)) rest.remove();
}

function made(part) {
  if (part instanceof Node) return part;
  const drawn = chart(part.points, part);
  return part.title ? el("div", { class: "earlier" }, part.title, drawn) : drawn;
}

function stays(old, part) {
  if (part instanceof Node) {
    if (old.tagName === "DETAILS" && part.tagName === "DETAILS") part.open = old.open;
    return old.dataset.keep ? old.dataset.keep === part.dataset.keep : old.isEqualNode(part);
  }
  const figure = part.title ? old.querySelector(".plot") : old;
  if (Boolean(part.title) !== (figure !== old) || !figure?.refresh?.(part)) return false;
  if (part.title && !old.firstChild.isEqualNode(part.title)) old.firstChild.replaceWith(part.title);
  return true;
}

// What has the focus keeps it, if it is still there.
function swap(old, fresh) {
  const focused = document.activeElement, next = old.contains(focused) ? counterpart(focused, old, fresh) : null;
  const scrolled = old.scrollLeft;
  old.replaceWith(fresh);
  fresh.scrollLeft = scrolled;
  next?.focus({ preventScroll: true });
}

// What stands for an element of the old part in the fresh one: the part itself, the same link, or the element of its kind in the same place.
function counterpart(element, old, fresh) {
  if (element === old) return fresh;
  const href = element.getAttribute("href"), [before, after] = [old, fresh].map((part) => [...part.querySelectorAll(element.localName)]);
  return href === null ? after[before.indexOf(element)] : after.find((link) => link.getAttribute("href") === href);
}
