// What will be full next: disks, memory, quotas, certificates; nothing is shown where no series has a forecast.
import { ask } from "./ask.js";
import { el, foreign, metricName, when } from "./dom.js";
import { seriesLink } from "./place.js";

const HOURS = 24;

// A series in a list of those that will be full next: when, which (`name`: parts before the metric), in how long, and a small plot of it.
export const fullRow = (entity, metric, full, name = [], plot = null) => el("a", { href: seriesLink(entity, metric, HOURS) }, el("span", { class: "after" }, when(full.median, true)), el("span", { class: "name" }, ...name, foreign(metricName(metric)), " ", el("b", {}, full.words)), ...(plot ? [el("span", { class: "plot" }, plot)] : []));

export async function showFull(section) {
  const { series } = await ask("/api/full").catch(() => ({ series: [] }));
  section.hidden = !series.length;
  section.querySelector(".onsets").replaceChildren(...series.map((it) => fullRow(it["host.name"], it.metric, it.full, [foreign(it["host.name"]), " "])));
}
