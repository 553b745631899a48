// One line on the site: how many machines report, and which of them are still being learned.
import { ask } from "./ask.js";
import { el, foreign } from "./dom.js";

const NAMED = 3;

// What the console knows of the site; nothing where it does not answer that.
export const site = () => ask("/api/site").catch(() => ({ machines: 0, learning: [], last: null }));

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
