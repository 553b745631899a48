// The header: how the pipeline is doing.
import { bytes, duration, el, num, time } from "./dom.js";

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
    figure("Latency", pipeline.latency_ms === null ? "–" : duration(pipeline.latency_ms)),
    figure("Watermark", marks.length ? time(Math.min(...marks)) : "–"),
    figure("Documents", num(pipeline.indexed, 6)),
    figure("Late", num(sum("late"))),
    figure("Dead letters", num(sum("dead_lettered"))),
  );
  jobs.replaceChildren(...pipeline.jobs.map(job));
}

const figure = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));

function job(it) {
  const parts = [el("b", {}, it.name), `${num(it.rate_in, 3)} /s`];
  if (it.lag !== null) parts.push(`lag ${num(it.lag, 6)}`);
  if (it.keys) parts.push(`${num(it.keys, 6)} keys, ${bytes(it.state_bytes)}`);
  if (it.batch_ms) parts.push(`batch ${duration(it.batch_ms)}`);
  if (it.late) parts.push(`${num(it.late, 6)} late`);
  if (it.dead_lettered) parts.push(el("span", { class: "bad" }, `${num(it.dead_lettered, 6)} dead letters`));
  return el("div", { class: "job" }, ...parts.map((part) => (part instanceof Node ? part : el("span", {}, part))));
}
