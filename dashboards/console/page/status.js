// The header: how the pipeline is doing.
import { bytes, count, duration, el, num, time } from "./dom.js";

export function showStatus({ now, pipeline }, figures, jobs) {
  if (!pipeline.jobs) {
    figures.replaceChildren(figure("Pipeline", "not in this process"));
    jobs.replaceChildren();
    return;
  }
  const marks = pipeline.jobs.map((job) => job.watermark).filter((mark) => mark !== null);
  const sum = (name) => pipeline.jobs.reduce((total, job) => total + job[name], 0);
  figures.replaceChildren(
    figure("Running for", duration(now - pipeline.started)),
    figure("Records read", `${num(Math.max(0, ...pipeline.jobs.map((job) => job.rate_in)), 3)} /s`),
    figure("Latency", pipeline.latency_ms === null ? "–" : latency(pipeline)),
    figure("Watermark", marks.length ? time(Math.min(...marks)) : "–"),
    figure("Stored since the start", count(pipeline.indexed)),
    figure("Late", count(sum("late"))),
    figure("Dead letters", count(sum("dead_lettered"))),
  );
  jobs.replaceChildren(...pipeline.jobs.map(job));
}

// How long it takes until a window is found, and which part of it is by design.
export const latency = ({ latency_ms: whole, waits_ms: waits }) => `${duration(whole)}${waits ? ` (${duration(waits)} of it wait for late records)` : ""}`;

const figure = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));

function job(it) {
  const parts = [el("b", {}, it.name), `${num(it.rate_in, 3)} /s`];
  if (it.lag !== null) parts.push(`lag ${count(it.lag)}`);
  if (it.keys) parts.push(`${count(it.keys)} keys, ${bytes(it.state_bytes)}`);
  if (it.batch_ms) parts.push(`batch ${duration(it.batch_ms)}`);
  if (it.late) parts.push(`${count(it.late)} late`);
  if (it.dead_lettered) parts.push(el("span", { class: "bad" }, `${count(it.dead_lettered)} dead letters`));
  return el("div", { class: "job" }, ...parts.map((part) => (part instanceof Node ? part : el("span", {}, part))));
}
