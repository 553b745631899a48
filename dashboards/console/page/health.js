// The page of the pipeline itself: what keeps it from working, and each job with its rates, its lag and its age.
import { promised } from "./budget.js";
import { bytes, count, duration, el, foreign, num, time } from "./dom.js";
import { spark } from "./heat.js";
import { update } from "./update.js";

const KEPT = 90, STALE_MS = 60000;
const seen = []; // rates and lags of the last three minutes, as the page has asked for them

export function remember({ pipeline }) {
  seen.push(Object.fromEntries((pipeline.jobs ?? []).map((job) => [job.name, job])));
  if (seen.length > KEPT) seen.shift();
}

const trail = (name, field) => spark(seen.flatMap((jobs, i) => (typeof jobs[name]?.[field] === "number" ? [[i, jobs[name][field]]] : [])), Math.max(seen.length, 2));

const listed = (facts) => (facts.length ? [el("dl", { class: "facts belief" }, ...facts.flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]))] : []);

// `budget`: the answer of /api/budget, or null before it is there.
export function showHealth(place, { now, pipeline }, budget) {
  const title = el("h2", {}, "Pipeline");
  if (!pipeline.jobs) {
    return update(place, "health", title, ...listed(promised(budget)), el("p", { class: "hint" }, "No job runs in this process: this console only shows what is stored. ", el("code", {}, "newnormal status"), " shows the processes of this machine that run jobs, and ", el("code", {}, "newnormal doctor"), " finds what is wrong."));
  }
  const wrong = pipeline.problems ?? [];
  const marks = pipeline.jobs.map((job) => job.watermark).filter((mark) => mark !== null);
  const facts = [["running for", duration(now - pipeline.started)], ["latency", pipeline.latency_ms === null ? "nothing live was stored in the last five minutes" : `${latency(pipeline)}, from the end of a window until it is found; median of the last five minutes`],
    ["complete up to", marks.length ? `${time(Math.min(...marks))} UTC, ${duration(Math.max(0, now - Math.min(...marks)))} ago` : "no watermark yet"], ["documents stored", `${count(pipeline.indexed)} since this start`], ...promised(budget)];
  return update(place, "health", title,
    wrong.length ? el("div", { class: "problems", role: "alert" }, ...wrong.map((text) => el("p", {}, foreign(text))), el("p", { class: "soft" }, "newnormal doctor says what to do.")) : el("p", { class: "calm well" }, "Nothing keeps the pipeline from its work."),
    ...listed(facts),
    el("h3", {}, "Jobs, in the order in which data flow"),
    el("div", { class: "wide-table", tabindex: 0, role: "group", "aria-label": "Jobs" }, table(pipeline.jobs, now)),
    el("p", { class: "soft" }, "The lines begin when this page was opened, and show the last three minutes at most. Completed: when the last micro-batch was done, and with it the checkpoint. The same figures for Prometheus are at /metrics."),
  );
}

// How long it takes until a window is found, and which part of it is by design.
const latency = ({ latency_ms: whole, waits_ms: waits }) => `${duration(whole)}${waits ? ` (${duration(waits)} of it wait for late records)` : ""}`;

const HEADS = ["Job", "Records read /s", "Course of the rate", "Lag", "Course of the lag", "Written /s", "Watermark", "Completed", "Batch", "Late", "Dead letters", "Keys", "State"];

function table(jobs, now) {
  const heads = HEADS.map((text, i) => el("th", { role: "columnheader", ...(i ? { class: "n" } : {}) }, text.startsWith("Course") ? el("span", { class: "unseen" }, text) : text));
  const rows = jobs.flatMap((it) => {
    const ago = (at) => (at === null || at === undefined ? "–" : `${duration(Math.max(0, now - at))} ago`);
    const stale = it.completed && now - it.completed > STALE_MS;
    const cell = (text, bad = false) => el("td", { class: bad ? "n bad" : "n" }, text);
    const row = el("tr", {}, el("td", {}, el("b", {}, it.name)), cell(num(it.rate_in, 3)), el("td", {}, trail(it.name, "rate_in")), cell(it.lag === null ? "–" : count(it.lag)), el("td", {}, trail(it.name, "lag")),
      cell(num(it.rate_out ?? null, 3)), cell(ago(it.watermark)), cell(ago(it.completed), stale), cell(it.batch_ms ? duration(it.batch_ms) : "–"), cell(count(it.late)), cell(count(it.dead_lettered), it.dead_lettered > 0),
      cell(it.keys === null ? "–" : count(it.keys)), cell(it.state_bytes ? bytes(it.state_bytes) : "–"));
    row.setAttribute("role", "row");
    [...row.children].forEach((each, i) => { each.setAttribute("role", "cell"); each.dataset.name = HEADS[i]; });
    return it.last_error ? [row, el("tr", {}, el("td", { colspan: HEADS.length, class: "bad" }, "its last restart: ", foreign(it.last_error)))] : [row];
  });
  return el("table", { class: "plain jobs", role: "table" }, el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...heads)), el("tbody", { role: "rowgroup" }, ...rows));
}
