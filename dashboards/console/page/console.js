// The console: asks again every two seconds, shows the open incidents and the newest verdicts, opens what is chosen.
import { ask } from "./ask.js";
import { askBudget } from "./budget.js";
import { el } from "./dom.js";
import { showDetail } from "./detail.js";
import { showIncident } from "./incident.js";
import { markIncident, showIncidents } from "./incidents.js";
import { remember, showHealth } from "./health.js";
import { Heat } from "./heat.js";
import { keys } from "./keys.js";
import { openMachine } from "./machine.js";
import { place } from "./place.js";
import { openRules } from "./rules.js";
import { openSeries } from "./series.js";
import { showFull } from "./full.js";
import { showSite, site } from "./site.js";
import { showState } from "./state.js";
import { Verdicts } from "./verdicts.js";
import { openComparison, openVersions } from "./versions.js";

const EVERY_MS = 2000, SLOWLY_MS = 10000, PATIENCE_MS = 600;
const HINT = "Choose an incident to see what is unusual and where it began, or a verdict to see its series, the band in which it was expected, and why it was reported.";
const $ = (id) => document.getElementById(id);
const WHOLE = new Set(["versions", "compare", "health", "rules"]);
const roomy = matchMedia("(min-width: 1281px)"); // lists and detail stand side by side
const state = { paused: false, place: place(""), auto: null, revision: null, zoom: 1, until: null, asked: 0, waiting: 0, status: null, budget: null, site: { machines: 0, last: null } };

const chosen = (what) => (state.place.what === what ? state.place.id : null);
const incidentShown = () => chosen("incident") ?? state.auto;
const first = Promise.race([slowly(), new Promise((go) => setTimeout(go, PATIENCE_MS))]); // the line on the site has its place when the cards come
const verdicts = new Verdicts($("list"), refresh, () => chosen("novelty"));
const heat = new Heat($("heat"));

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
    const [status, incidents, found] = await Promise.all([ask("/api/status"), ask("/api/incidents"), ask("/api/novelties", verdicts.question), first]);
    if (turn !== state.asked) return;
    state.status = status;
    remember(status);
    showState($("state"), status, state.site.last);
    health();
    openNewest(incidents.open);
    showIncidents($("incidents"), { ...incidents, last: state.site.last }, incidentShown());
    verdicts.show(found);
    trouble(null);
    const newer = [...incidents.open, ...incidents.resolved].find((it) => it["event.id"] === incidentShown());
    if (newer && state.revision !== null && newer.revision > state.revision) openIncident(newer["event.id"]);
  } catch (error) {
    if (turn === state.asked) trouble(troubled(error));
  } finally {
    state.waiting -= 1;
  }
}

// Where nothing is chosen and there is room, the newest open incident is shown, unless somebody is busy with the one before.
function openNewest(open) {
  if (state.place.what !== "nothing" || !roomy.matches) return;
  const newest = open.reduce((a, b) => (a && a["@timestamp"] >= b["@timestamp"] ? a : b), null)?.["event.id"] ?? null;
  const busy = $("detail").matches(":focus-within, :hover") && open.some((it) => it["event.id"] === state.auto);
  if (newest === state.auto || busy) return;
  state.auto = newest;
  if (newest) openIncident(newest);
  else hint();
}

const hint = () => { delete $("detail").dataset.page; $("detail").replaceChildren(el("p", { class: "hint" }, HINT)); };

// Shows what the address names; the browser's "back" leads from a series to its incident.
function go() {
  delete $("detail").dataset.page; // what the pane shows is of the address before
  Object.assign(state, { place: place(location.hash), auto: null, revision: null, until: null });
  for (const row of $("rows").children) row.setAttribute("aria-selected", row.dataset.key.startsWith(`${chosen("novelty")} `));
  markIncident($("incidents"), chosen("incident"));
  const { what, id } = state.place, main = document.querySelector("main");
  main.dataset.wide = WHOLE.has(what);
  main.dataset.chosen = what !== "nothing";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page.split(" ").includes(what)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (what === "nothing") { hint(); if (state.status) refresh(); }
  if (what === "incident") openIncident(id).then(reveal);
  if (what === "novelty") openNovelty(id, 1).then(reveal);
  if (what === "machine" || what === "series") again().then(reveal);
  if (what === "versions") openVersions($("detail"), () => chosen("versions") === id).then(reveal);
  if (what === "rules") openRules($("detail"), state.place, () => chosen("rules") === id).then(reveal);
  if (what === "compare") openComparison($("detail"), state.place, () => chosen("compare") === id).then(reveal);
  if (what === "health") {
    again();
    if (state.status) health();
    else $("detail").replaceChildren(el("p", { class: "hint" }, "Asking the pipeline…"));
  }
}

// A page that shows the present is asked for again now and then; one of the past stays as it is.
async function again() {
  const { what, id } = state.place, over = Date.now();
  if (incidentShown() && state.going) await openIncident(incidentShown());
  if (what === "health") {
    state.budget = await askBudget();
    health();
  }
  if (what === "machine") await openMachine($("detail"), id, () => chosen("machine") === id);
  if (what === "series" && !(state.place.end && state.place.end < over - SLOWLY_MS && $("detail").dataset.page)) await openSeries($("detail"), state.place, () => chosen("series") === id);
  if (what === "novelty" && state.until > over) await openNovelty(id, state.zoom);
}

function health() {
  if (state.status && chosen("health")) showHealth($("detail"), state.status, state.budget);
}

async function slowly() {
  state.site = await site();
  showSite($("site"), state.site);
  await showFull($("full"));
}

// On a narrow screen what is chosen stands in place of the lists.
function reveal() {
  if (!roomy.matches) scrollTo({ top: 0 });
}

async function openIncident(id) {
  try {
    const found = await ask("/api/incident", { id });
    if (incidentShown() !== id) return;
    state.revision = found.incident.revision;
    state.going = found.over === null;
    const show = () => showIncident($("detail"), found, state.site, state.around?.id === id ? state.around : null, state.place.act);
    show();
    if (state.around?.id === id && Date.now() - state.around.at < SLOWLY_MS) return;
    state.around = { ...(await ask("/api/incident/around", { id })), id, at: Date.now() };
    if (incidentShown() === id) show();
  } catch (error) {
    if (incidentShown() === id) $("detail").replaceChildren(el("p", { class: "hint" }, `This incident cannot be shown: ${error.message}`));
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

$("entity").addEventListener("focus", suggestMachines);
$("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  $("pause").setAttribute("aria-pressed", state.paused);
  $("pause").textContent = state.paused ? "Go on" : "Pause";
  if (!state.paused) refresh();
});

const awake = () => !state.paused && !document.hidden;
setInterval(() => { if (awake() && !state.waiting) refresh(); }, EVERY_MS); // a slow answer is waited for, not overtaken
setInterval(() => { if (awake()) { slowly(); heat.refresh(); again(); } }, SLOWLY_MS);
Promise.allSettled([refresh(), heat.refresh()]).then(() => { document.body.dataset.ready = "true"; });
keys({
  "/": () => { location.hash = ""; document.querySelector("main").dataset.wide = false; document.querySelector("main").dataset.chosen = false; $("entity").focus(); }, o: () => { location.hash = ""; }, h: () => { location.hash = "health"; },
  v: () => { location.hash = "versions"; }, r: () => { location.hash = "rules"; }, b: () => history.back(), p: () => $("pause").click(),
});
$("keys").addEventListener("click", () => $("help").showModal());
addEventListener("hashchange", go);
roomy.addEventListener("change", () => refresh());
go();
