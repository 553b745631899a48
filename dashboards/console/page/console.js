// The console: asks again every two seconds, shows the newest novelties, opens the one that is chosen.
import { brief, count, duration, el, metricName, num, time, words, KINDS, NOVEL } from "./dom.js";
import { showDetail } from "./detail.js";
import { showStatus } from "./status.js";

const EVERY_MS = 2000;
const $ = (id) => document.getElementById(id);
const state = { kinds: new Set(NOVEL), paused: false, chosen: null, zoom: 1, asked: 0 };

async function ask(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) for (const one of [value].flat()) query.append(name, one);
  const reply = await fetch(`${path}?${query}`);
  const body = await reply.json();
  if (!reply.ok) throw new Error(body.code ?? body.detail ?? `HTTP ${reply.status}`);
  return body;
}

function trouble(text) {
  $("trouble").hidden = !text;
  $("trouble").textContent = text ?? "";
}

async function refresh() {
  const turn = ++state.asked; // an answer that was overtaken by a newer question is not shown
  try {
    const filter = { entity: $("entity").value, min_score: $("score").value, kind: [...state.kinds] };
    const none = !state.kinds.size;
    const [status, found] = await Promise.all([ask("/api/status"), ask("/api/novelties", { ...filter, limit: none ? 1 : 200 })]);
    if (turn !== state.asked) return;
    showStatus(status, $("figures"), $("jobs"));
    showKinds(found.counts);
    showRows(none ? [] : found.novelties, found.now);
    trouble(null);
  } catch (error) {
    if (turn === state.asked) trouble(`No answer (${error.message}); trying again.`);
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
    row.setAttribute("aria-selected", it._id === state.chosen);
    return row;
  });
  const focused = document.activeElement;
  $("rows").replaceChildren(...rows);
  if (rows.includes(focused)) focused.focus({ preventScroll: true });
  $("none").hidden = rows.length > 0;
}

function newRow(it, key, now) {
  const cell = (text, css = "") => el("td", { class: css, title: text }, text);
  const row = el("tr", { tabindex: 0 },
    el("td", { title: time(it["@timestamp"]) }, brief(it["@timestamp"], now)), cell(it["host.name"]), cell(metricName(it.metric)),
    el("td", {}, el("span", { class: "kind", "data-kind": it.kind }, words(it.kind))),
    cell(num(it.record_score, 3), "n score"), cell(num(it.typical), "n soft"), cell(num(it.actual), "n"), cell("", "n soft"));
  row.dataset.key = key;
  const choose = () => open(it._id, 1);
  row.addEventListener("click", choose);
  row.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
  return row;
}

async function open(id, zoom) {
  Object.assign(state, { chosen: id, zoom });
  history.replaceState(null, "", `#${encodeURIComponent(id)}`); // can be sent to a colleague
  for (const row of $("rows").children) row.setAttribute("aria-selected", row.dataset.key.startsWith(`${id} `));
  try {
    const found = await ask("/api/novelty", { id, zoom });
    if (state.chosen === id && state.zoom === zoom) showDetail($("detail"), found, zoom, (level) => open(id, level));
  } catch (error) {
    $("detail").replaceChildren(el("p", { class: "hint" }, `This novelty cannot be shown: ${error.message}`));
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

setInterval(() => { if (!state.paused && !document.hidden) refresh(); }, EVERY_MS);
refresh();
if (location.hash.length > 1) {
  try { open(decodeURIComponent(location.hash.slice(1)), 1); } catch { /* no link of ours */ }
}
