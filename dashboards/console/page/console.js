// The console: asks again every two seconds, shows the open incidents and the newest novelties, opens the one that is chosen.
import { ask } from "./ask.js";
import { brief, count, duration, el, metricName, num, time, words, KINDS, NOVEL } from "./dom.js";
import { showDetail } from "./detail.js";
import { showIncident } from "./incident.js";
import { markIncident, showIncidents } from "./incidents.js";
import { remember, showHealth } from "./health.js";
import { showHeat } from "./heat.js";
import { keys } from "./keys.js";
import { openMachine } from "./machine.js";
import { machineLink, noveltyLink, place, seriesLink } from "./place.js";
import { openSeries } from "./series.js";
import { showStatus } from "./status.js";
import { openComparison, openVersions } from "./versions.js";

const EVERY_MS = 2000, SLOWLY_MS = 10000, AFTER_MS = 600000;
const HINT = "Choose an incident to see where it began, or a novelty to see its series, the band in which it was expected, and why it was reported.";
const $ = (id) => document.getElementById(id);
const WIDE = new Set(["versions", "compare", "health"]);
const state = { kinds: new Set(NOVEL), paused: false, place: place(""), revision: null, zoom: 1, until: null, asked: 0, waiting: 0, status: null };

const chosen = (what) => (state.place.what === what ? state.place.id : null);

function trouble(text) {
  $("trouble").hidden = !text;
  $("trouble").textContent = text ?? "";
}

// What is wrong, and what to do about it.
function troubled({ message }) {
  if (message.startsWith("ELASTICSEARCH_")) return `Elasticsearch does not answer the console (${message}), so what is below may be old. newnormal doctor finds what is wrong; the page tries again by itself.`;
  return `The console does not answer (${message}). Is newnormal run, demo or console still running? The page tries again by itself.`;
}

async function refresh() {
  state.waiting += 1;
  const turn = ++state.asked; // an answer that was overtaken by a newer question is not shown
  try {
    const filter = { entity: $("entity").value, min_score: $("score").value, kind: [...state.kinds] };
    const none = !state.kinds.size;
    const [status, incidents, found] = await Promise.all([ask("/api/status"), ask("/api/incidents"), ask("/api/novelties", { ...filter, limit: none ? 1 : 200 })]);
    if (turn !== state.asked) return;
    state.status = status;
    remember(status);
    showStatus(status, $("figures"), $("jobs"));
    if (chosen("health")) showHealth($("detail"), status);
    showIncidents($("incidents"), incidents, chosen("incident"));
    showKinds(found.counts);
    showRows(none ? [] : found.novelties, found.now);
    trouble(null);
    const newer = [...incidents.open, ...incidents.resolved].find((it) => it["event.id"] === chosen("incident"));
    if (newer && state.revision !== null && newer.revision > state.revision) openIncident(newer["event.id"]);
  } catch (error) {
    if (turn === state.asked) trouble(troubled(error));
  } finally {
    state.waiting -= 1;
    document.body.dataset.ready = "true";
  }
}

function showKinds(counts) {
  const shown = KINDS.map((kind) => {
    const there = document.querySelector(`#kinds [data-kind="${kind}"]`);
    const button = there ?? el("button", { type: "button", class: "kind", "data-kind": kind }, words(kind), " ", el("span"));
    if (!there) button.addEventListener("click", () => toggle(kind));
    button.setAttribute("aria-pressed", state.kinds.has(kind));
    button.lastChild.textContent = count(counts[kind] ?? 0);
    return button;
  });
  if (!$("kinds").children.length) $("kinds").append(...shown);
}

function toggle(kind) {
  if (!state.kinds.delete(kind)) state.kinds.add(kind);
  refresh();
}

// Rows are kept by identity, so that one is not replaced under the pointer.
function showRows(novelties, now) {
  const old = new Map([...$("rows").children].map((row) => [row.dataset.key, row]));
  const rows = novelties.map((it) => {
    const key = `${it._id} ${it.revision}`;
    const row = old.get(key) ?? newRow(it, key, now);
    row.lastChild.textContent = duration(now - it["@timestamp"]);
    row.setAttribute("aria-selected", it._id === chosen("novelty"));
    return row;
  });
  const focused = document.activeElement;
  $("rows").replaceChildren(...rows);
  if (rows.includes(focused)) focused.focus({ preventScroll: true });
  $("none").hidden = rows.length > 0;
}

function newRow(it, key, now) {
  const cell = (text, css = "", href = "") => el("td", { class: css, title: text }, href ? el("a", { href, class: "to" }, text) : text);
  const row = el("tr", { tabindex: 0 },
    el("td", { title: time(it["@timestamp"]) }, brief(it["@timestamp"], now)), cell(it["host.name"], "", machineLink(it["host.name"])), cell(metricName(it.metric), "", seriesLink(it["host.name"], it.metric, 1, it["@timestamp"] + AFTER_MS)),
    el("td", {}, el("span", { class: "kind", "data-kind": it.kind }, words(it.kind))),
    cell(num(it.record_score, 3), "n score"), cell(num(it.typical), "n soft"), cell(num(it.actual), "n"), cell("", "n soft"));
  row.dataset.key = key;
  const choose = () => { location.hash = noveltyLink(it._id); };
  row.addEventListener("click", (event) => { if (!event.target.closest("a")) choose(); });
  row.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target === row) choose(); });
  return row;
}

// Shows what the address names; the browser's "back" leads from a series to its incident.
function go() {
  delete $("detail").dataset.page; // what the pane shows is of the address before
  Object.assign(state, { place: place(location.hash), revision: null, until: null });
  for (const row of $("rows").children) row.setAttribute("aria-selected", row.dataset.key.startsWith(`${chosen("novelty")} `));
  markIncident($("incidents"), chosen("incident"));
  const { what, id } = state.place;
  document.querySelector("main").dataset.wide = WIDE.has(what);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page.split(" ").includes(what)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (what === "nothing") $("detail").replaceChildren(el("p", { class: "hint" }, HINT));
  if (what === "incident") openIncident(id).then(reveal);
  if (what === "novelty") openNovelty(id, 1).then(reveal);
  if (what === "machine" || what === "series") again().then(reveal);
  if (what === "versions") openVersions($("detail"), () => chosen("versions") === id).then(reveal);
  if (what === "compare") openComparison($("detail"), state.place, () => chosen("compare") === id).then(reveal);
  if (what === "health") {
    if (state.status) showHealth($("detail"), state.status);
    else $("detail").replaceChildren(el("p", { class: "hint" }, "Asking the pipeline…"));
  }
}

// A page that shows the present is asked for again now and then; one of the past stays as it is.
async function again() {
  const { what, id } = state.place, over = Date.now();
  if (what === "machine") await openMachine($("detail"), id, () => chosen("machine") === id);
  if (what === "series" && !(state.place.end && state.place.end < over - SLOWLY_MS && $("detail").dataset.page)) await openSeries($("detail"), state.place, () => chosen("series") === id);
  if (what === "novelty" && state.until > over) await openNovelty(id, state.zoom);
}

async function heat() {
  try {
    showHeat($("heat"), await ask("/api/heat"));
  } catch { /* `refresh` says what is wrong */ }
}

// On a narrow screen the detail stands below the lists.
function reveal() {
  if (matchMedia("(max-width: 1280px)").matches) $("detail").scrollIntoView({ block: "start" });
}

async function openIncident(id) {
  try {
    const found = await ask("/api/incident", { id });
    if (chosen("incident") !== id) return;
    state.revision = found.incident.revision;
    showIncident($("detail"), found);
  } catch (error) {
    if (chosen("incident") === id) $("detail").replaceChildren(el("p", { class: "hint" }, `This incident cannot be shown: ${error.message}`));
  }
}

async function openNovelty(id, zoom) {
  state.zoom = zoom;
  const current = () => chosen("novelty") === id && state.zoom === zoom;
  try {
    const found = await ask("/api/novelty", { id, zoom });
    if (!current()) return;
    state.until = found.span[1];
    showDetail($("detail"), found, zoom, (level) => openNovelty(id, level));
  } catch (error) {
    if (current()) $("detail").replaceChildren(el("p", { class: "hint" }, `This novelty cannot be shown: ${error.message}`));
  }
}

async function suggestMachines() {
  try {
    const { entities } = await ask("/api/entities");
    $("entities").replaceChildren(...entities.slice(0, 200).map((name) => el("option", { value: name })));
  } catch { /* a suggestion only; `refresh` says what is wrong */ }
}

let typing;
$("entity").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(refresh, 200); });
$("entity").addEventListener("focus", suggestMachines);
$("score").addEventListener("input", () => { $("score-value").value = $("score").value; clearTimeout(typing); typing = setTimeout(refresh, 100); });
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  $("pause").setAttribute("aria-pressed", state.paused);
  $("pause").textContent = state.paused ? "Go on" : "Pause";
  if (!state.paused) refresh();
});

const awake = () => !state.paused && !document.hidden;
setInterval(() => { if (awake() && !state.waiting) refresh(); }, EVERY_MS); // a slow answer is waited for, not overtaken
setInterval(() => { if (awake()) { heat(); again(); } }, SLOWLY_MS);
refresh();
heat();
keys({
  "/": () => { location.hash = ""; document.querySelector("main").dataset.wide = false; $("entity").focus(); }, o: () => { location.hash = ""; }, h: () => { location.hash = "health"; },
  v: () => { location.hash = "versions"; }, b: () => history.back(), p: () => $("pause").click(),
});
$("keys").addEventListener("click", () => $("help").showModal());
addEventListener("hashchange", go);
go();
