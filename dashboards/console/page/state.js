// The state of the pipeline as one word, which leads to its health.
import { local } from "./dom.js";

const BEHIND_MS = 60000, SILENT_MS = 120000;

// `last`: event time of the newest window that any machine has, or null if that is not known.
export function pipelineState({ now, pipeline }, last = null) {
  const silent = last !== null && now - last > SILENT_MS;
  if (!pipeline.jobs) return silent ? ["quiet", `No data since ${local(last, true)}`] : ["none", "No pipeline here"];
  if (pipeline.problems?.length) return ["trouble", "Trouble"];
  const marks = pipeline.jobs.map((job) => job.watermark).filter((mark) => mark !== null);
  if (!marks.length) return ["starting", "Starting"];
  const behind = now - Math.min(...marks) > BEHIND_MS;
  if (behind && pipeline.jobs.some((job) => job.lag || job.rate_in > 0)) return ["behind", "Behind"];
  if (silent) return ["quiet", `No data since ${local(last, true)}`];
  return behind ? ["quiet", `No data since ${local(Math.min(...marks), true)}`] : ["running", "Running"];
}

export function showState(link, status, last) {
  const [state, text] = pipelineState(status, last);
  link.dataset.state = state;
  link.setAttribute("aria-label", `Pipeline: ${text}. To its health.`);
  link.lastElementChild.textContent = text;
}
