// One novelty: its plot, what is unusual in words, and apart from them the figures behind it.
import { labels } from "./actions.js";
import { el, metricName, num, time, words } from "./dom.js";
import { drawn, reach } from "./filling.js";
import { machineLink, ruleLink, seriesLink } from "./place.js";
import { plot, update } from "./update.js";

export function showDetail(place, { novelty, explanation, series, span, full, zone }, zoom, rezoom) {
  const levels = [1, 4, 16].map((level) => {
    const button = el("button", { type: "button", "aria-pressed": level === zoom, title: `${level * 120} windows` }, `${level}×`);
    button.addEventListener("click", () => rezoom(level));
    return button;
  });
  const badge = el("span", { class: "kind", "data-kind": novelty.kind }, words(novelty.kind));
  const where = `${metricName(novelty.metric)} · ${time(novelty["@timestamp"])} UTC · score ${num(novelty.record_score, 3)}${novelty.severity ? `, ${novelty.severity}` : ""} `;
  const said = labels(novelty, novelty.since ?? novelty.window_start);
  said.dataset.keep = `labels ${novelty._id}`;
  update(place, `novelty ${novelty._id} ${zoom}`,
    el("div", { class: "top" }, el("h2", {}, explanation.headline, ": ", novelty["host.name"]), el("div", { class: "zoom" }, ...levels)),
    el("p", { class: "where" }, where, badge, " ", el("a", { href: seriesLink(novelty["host.name"], novelty.metric, 1, span[1]) }, "the series"), " · ", el("a", { href: machineLink(novelty["host.name"]) }, "the machine"), " · ", el("a", { href: ruleLink(novelty["host.name"], novelty.metric) }, "a rule for it")),
    plot(series, { span: reach(span, drawn(series, full)), ahead: full, marked: novelty, shade: novelty.since ? [novelty.since, novelty["@timestamp"]] : null, zone, of: novelty, name: metricName(novelty.metric) }),
    said,
    ...explanation.sentences.map((text, i) => el("p", { class: i ? "words" : "words first" }, text)),
    el("details", {}, el("summary", {}, "Figures"),
      ...explanation.details.map((text) => el("p", {}, text)),
      ...(novelty.state_score && !["absence", "exhaustion"].includes(novelty.kind) && !novelty.metric.startsWith("logs") ? [el("p", {}, `Distance from what was normal before: ${num(novelty.state_score, 3)} of 100.`)] : []),
      ...bars("Evidence, nats", explanation.evidence),
      ...bars("Influencers", explanation.influencers)),
  );
}

function bars(title, all) {
  const pairs = all.filter(([, value]) => value);
  if (!pairs.length) return [];
  const most = Math.max(...pairs.map(([, value]) => Math.abs(value))) || 1;
  const lines = pairs.slice(0, 12).flatMap(([name, value]) => {
    const bar = el("div", {});
    bar.style.width = `${(100 * Math.abs(value)) / most}%`;
    return [el("dt", {}, words(name)), el("div", { class: "bar" }, bar), el("dd", {}, num(value, 3))];
  });
  return [el("h3", {}, title), el("dl", { class: "bars" }, ...lines)];
}
