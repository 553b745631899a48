// The versions of the chain, and what two of them judge differently.
import { ask, tell } from "./ask.js";
import { chart, common } from "./chart.js";
import { duration, el, foreign, metricName, num, time, words } from "./dom.js";
import { comparisonLink, machineLink, seriesLink } from "./place.js";

const AGAIN_MS = 1000;
const OUTCOMES = { new: "only in the second", gone: "only in the first", changed: "other kind", moved: "other windows", same: "same" };

export async function openVersions(place, current) {
  try {
    const found = await ask("/api/versions");
    if (current()) place.replaceChildren(el("h2", {}, "Versions"), ...listed(found));
  } catch (error) {
    if (current()) place.replaceChildren(el("h2", {}, "Versions"), el("p", { class: "hint" }, `The versions cannot be read: ${error.message}. Is Kafka running? newnormal doctor finds what is wrong.`));
  }
}

function listed({ known, versions, now }) {
  if (!known) return [el("p", { class: "hint" }, "This console knows no versions. newnormal run, newnormal demo and newnormal console show them.")];
  const shown = versions.map((it) => el("tr", {},
    el("td", {}, el("b", {}, foreign(it.name)), it.shown ? el("span", { class: "kind now" }, "shown to readers") : ""),
    el("td", {}, it.base ? foreign(it.base) : "–"), el("td", {}, it.created ? `${duration(now - it.created)} ago` : "–"),
    el("td", {}, it.end === null ? "goes on live" : it.ended ? "has ended" : "will end"),
    el("td", {}, foreign(Object.entries(it.settings).map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join(", ") || unchanged(it)))));
  const table = el("div", { class: "wide-table" }, el("table", { class: "plain" }, el("thead", {}, el("tr", {}, ...["Version", "Made from", "Made", "Live", "Settings"].map((text) => el("th", {}, text)))), el("tbody", {}, ...shown)));
  return [table, ...(versions.length > 1 ? [choice(versions)] : [el("p", { class: "hint one-version" }, "There is one version, so there is nothing to compare. ", el("code", {}, "newnormal replay --as v2 --config new.toml"), " computes another one from the same log, beside this one, with other settings.")])];
}

// What is said of a version that differs in no setting; of the first one it may be unknown with which settings it ran.
function unchanged({ base, ran }) {
  if (base) return `as ${base}`;
  return Object.keys(ran ?? {}).length ? "the defaults" : "those of the pipeline";
}

function choice(versions) {
  const menu = (label, at) => el("select", { "aria-label": label }, ...versions.map(({ name }, i) => el("option", { value: name, ...(i === at ? { selected: "" } : {}) }, name)));
  const first = menu("First version", Math.max(0, versions.findIndex((it) => it.shown))), chosen = first.selectedIndex;
  const second = menu("Second version", chosen === versions.length - 1 ? 0 : versions.length - 1);
  const go = el("a", { class: "button", href: "" }, "Compare");
  const aim = () => { go.setAttribute("href", comparisonLink(first.value, second.value)); };
  for (const each of [first, second]) each.addEventListener("change", aim);
  aim();
  return el("div", { class: "actions choice" }, el("label", {}, "Compare ", first), el("label", {}, "with ", second), go);
}

// Begins the comparison if there is none, and asks until it is done.
export async function openComparison(place, { first, second }, current, anew = false) {
  const head = (...more) => [el("div", { class: "top" }, el("h2", {}, foreign(first), " and ", foreign(second), " compared"), el("a", { class: "to", href: "#versions" }, "all versions")), ...more];
  const both = { first, second };
  try {
    let work = anew ? { state: "none" } : await ask("/api/comparison", both);
    if (work.state === "none") {
      await tell("/api/comparison", both);
      work = await ask("/api/comparison", both);
    }
    while (current() && work.state === "running") {
      const waiting = `Reading the verdicts of both versions${work.now ? `, for ${duration(work.now - work.since)}` : ""}… This takes some seconds, or minutes if there are many.`;
      const line = place.querySelector(".comparing");
      if (line) line.textContent = waiting;
      else place.replaceChildren(...head(el("p", { class: "hint comparing", role: "status" }, waiting)));
      await new Promise((go) => setTimeout(go, AGAIN_MS));
      work = await ask("/api/comparison", both);
    }
    if (current()) place.replaceChildren(...head(...shown(work.found, both, () => openComparison(place, both, current, true))));
  } catch (error) {
    if (!current()) return;
    const again = el("button", { type: "button" }, "Try again");
    again.addEventListener("click", () => openComparison(place, both, current, true));
    place.replaceChildren(...head(el("p", { class: "hint failed" }, `They cannot be compared: ${error.message}`), el("div", { class: "actions" }, again)));
  }
}

function shown(found, both, anew) {
  const again = el("button", { type: "button", title: "Read all verdicts again" }, "Compare again");
  again.addEventListener("click", anew);
  const names = found.versions;
  return [
    ...incidents(found.incidents, names),
    el("p", { class: "words headline" }, found.headline),
    el("ul", { class: "causes" }, ...found.sentences.map((text) => el("li", {}, foreign(text)))),
    el("div", { class: "actions" }, again, el("span", { class: "soft" }, `as of ${time(found.at)} UTC`)),
    el("h3", {}, "The differences that tell most"), ...differences(found, both),
    el("h3", {}, "Which version is right"), ...quality(found, names),
    ...found.tables.flatMap((table) => alarms(table, found.outcomes, names)),
  ];
}

// What operators get comes first: how many incidents, how large, how many messages.
function incidents({ summary, rows, only }, names) {
  return [
    el("p", { class: "words first lead" }, foreign(summary)),
    ...(rows.length ? [plain(["", ...names], rows)] : []),
    ...(only.length ? [el("ul", { class: "causes" }, ...only.map((text) => el("li", {}, foreign(text))))] : []),
  ];
}

function headings(names) {
  return el("tr", {}, ...names.map((name, i) => el("th", i ? { class: "n" } : {}, foreign(name))));
}

function plain(heads, rows) {
  const cells = (row) => row.map((cell, i) => el("td", i ? { class: "n" } : {}, foreign(typeof cell === "number" ? cell.toLocaleString("en") : cell ?? "–")));
  return el("div", { class: "wide-table" }, el("table", { class: "plain" }, el("thead", {}, headings(heads)), el("tbody", {}, ...rows.map((row) => el("tr", {}, ...cells(row))))));
}

function alarms({ by, rows, more }, outcomes, names) {
  const title = el("h3", {}, `Alarms by ${by}`);
  if (!rows.length) return [title, el("p", { class: "soft" }, "Neither version raised an alarm.")];
  const note = more > 0 ? [el("p", { class: "soft" }, `${more.toLocaleString("en")} more with fewer differences are not shown.`)] : [];
  return [title, plain([by, ...names, ...outcomes.map((each) => OUTCOMES[each] ?? each)], rows.map((row) => [metricName(row[0]), ...row.slice(1)])), ...note];
}

function quality({ quality: { rows, notes } }, names) {
  return [plain(["", ...names], rows), ...notes.map((text) => el("p", { class: "soft" }, foreign(text)))];
}

function differences({ differences: list, versions: names }, both) {
  if (!list.length) return [el("p", { class: "soft" }, "No alarm differs.")];
  return list.map((it, at) => {
    const outcome = { new: `only ${names[1]}`, gone: `only ${names[0]}`, changed: `${words(it.kind0 ?? "")}, then ${words(it.kind1 ?? "")}`, moved: "other windows" }[it.outcome];
    const scores = `${num(it.highest0, 3)} and ${num(it.highest1, 3)}`;
    const inside = el("div", { class: "inside" });
    const box = el("details", { class: "difference" },
      el("summary", {}, el("b", {}, foreign(metricName(it.metric)), " of ", foreign(it.entity)), ` · ${outcome} · scores ${scores} · ${time(it.start)}`),
      el("ul", { class: "causes" }, ...it.versions.map((each) => el("li", {}, foreign(each.reason)))), inside,
      el("p", {}, el("a", { href: seriesLink(it.entity, it.metric, 1, it.span[1]) }, "the series"), " · ", el("a", { href: machineLink(it.entity) }, "the machine")));
    box.addEventListener("toggle", () => { if (box.open && !inside.children.length) plots(inside, both, at, it); });
    return box;
  });
}

async function plots(place, both, at, { metric, entity }) {
  try {
    const { versions, span, start, end } = await ask("/api/comparison/difference", { ...both, at });
    const range = common(versions.map((it) => it.points)) ?? [0, 100];
    place.replaceChildren(...versions.flatMap(({ version, points }) => [el("h4", {}, foreign(version)),
      chart(points, { span, shade: [start, Math.min(end, span[1])], range, small: true, name: `${metricName(metric)} of ${entity}, version ${version}` })]));
  } catch (error) {
    place.replaceChildren(el("p", { class: "soft" }, `The series cannot be shown: ${error.message}`));
  }
}
