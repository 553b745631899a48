// What a trial of a rule says: counts in words, alarms by day, and examples with their links.
import { el, foreign, metricName, num, svg, when, words } from "./dom.js";
import { incidentLink, seriesLink } from "./place.js";
import { sentence } from "./rule_words.js";

const DAY = 86400000, HIGH = 60;

export function shown({ rule, lines, days, examples, removed, added }) {
  const lost = removed.true_alarms;
  const warning = lost ? [el("p", { class: "warning", role: "alert" }, `It would have hidden ${lost === 1 ? "an alarm that was labelled true" : `${lost} alarms that were labelled true`}.`)] : [];
  return [
    el("p", { class: "soft" }, foreign(sentence(rule)), ", in the last 30 days"), ...warning,
    el("ul", { class: "causes" }, ...lines.map((line) => el("li", {}, foreign(line.trim())))),
    ...(days.length ? [plot(days)] : []),
    ...(examples.length ? [el("h4", {}, `Examples, ${examples.length} of ${removed.alarms + added.alarms}`), el("ul", { class: "causes examples" }, ...examples.map(example))] : []),
  ];
}

function plot(days) {
  const first = days[0].day, count = Math.round((days.at(-1).day - first) / DAY) + 1;
  const most = Math.max(...days.map((it) => it.kept + it.removed + it.added));
  const bars = days.flatMap((it) => {
    let top = HIGH;
    return ["kept", "removed", "added"].filter((what) => it[what]).map((what) => {
      const height = (HIGH * it[what]) / most;
      top -= height;
      return svg("rect", { class: what, x: (it.day - first) / DAY + 0.1, y: top, width: 0.8, height });
    });
  });
  const sum = (what) => days.reduce((all, it) => all + it[what], 0);
  const text = `Alarms by day, ${days.length === 1 ? "one day" : `${count} days`}: ${sum("kept")} stay, ${sum("removed")} are removed, ${sum("added")} are added; at most ${most} a day`;
  const drawn = svg("svg", { class: "days", viewBox: `0 0 ${Math.max(count, 7)} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": text });
  drawn.append(...bars);
  return el("figure", { class: "by-day" }, drawn, el("figcaption", { class: "legend" }, when(first, true), ...["kept", "removed", "added"].map((what) => el("span", {}, el("i", { class: what }), what)), el("span", {}, `at most ${num(most)} a day`)));
}

const LABELS = { true: ", labelled true", false_alarm: ", labelled a false alarm" };

function example(it) {
  const to = Date.parse(it.to), value = it.actual === null ? "" : `, value ${num(it.actual)}${it.typical === null ? "" : ` (typical ${num(it.typical)})`}`;
  const series = el("a", { href: seriesLink(it.entity, it.metric, 1, to + 600000) }, foreign(metricName(it.metric)), " of ", foreign(it.entity));
  const incident = it.incident ? [" · ", el("a", { href: incidentLink(it.incident) }, "its incident")] : [];
  return el("li", {}, `${it.outcome}: `, series, " at ", when(Date.parse(it.from), true), `, ${words(it.kind)}${value}${LABELS[it.label] ?? ""}`, ...incident);
}
