// One line on the site: how many machines report, and which of them are still being learned.
import { ask } from "./ask.js";
import { el, foreign } from "./dom.js";

const NAMED = 3;

const NOTHING = { machines: 0, learning: [], last: null };

// What the console knows of the site. What is stored does not tell until when there are data, as calm windows are not: `last` needs a view.
export const site = () => ask("/api/site").then((found) => (found.missing ? { ...found, last: null } : found)).catch(() => NOTHING);

export function showSite(place, { machines, learning = [], learning_count: many = learning.length }) {
  place.hidden = !machines;
  if (!machines) return;
  place.replaceChildren(`${machines.toLocaleString("en")} ${machines === 1 ? "machine reports" : "machines report"}`, ...learns(learning, many));
}

function learns(learning, many) {
  if (!learning.length) return [];
  const names = learning.slice(0, NAMED).flatMap(({ name }, i) => [i ? ", " : "", foreign(name)]);
  const more = many > NAMED ? ` and ${(many - NAMED).toLocaleString("en")} more` : "";
  const { windows, needed } = learning.reduce((a, b) => (b.windows < a.windows ? b : a));
  return ["; ", el("span", {}, ...names), `${more} ${many === 1 ? "learns" : "learn"} (${windows} of ${needed} windows)`];
}
