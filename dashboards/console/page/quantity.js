// Values with their units, as explanations write them (pipelines/contracts/quantities/words.py): shares in per cent,
// what a counter counts by the second, and bytes where the metric's name says so.
import { num } from "./dom.js";

const BYTES = /(^|[._])bytes([._{~]|$)/;
const STORAGE = /^(?:_peers\.)?(mem|swap|disk)\.(used|free|total|available|cached|buffers)(\{|~|$)|^process\.rss_/; // bytes if they are large

export function quantity(value, { metric = "", metric_kind: kind = "gauge" }, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (kind === "ratio") return `${num(100 * value, digits)}\u202f%`;
  const text = num(value, digits), large = /[TGM]$/.test(text);
  const unit = !BYTES.test(metric) && !(large && STORAGE.test(metric)) ? "" : large ? "B" : "\u202fB";
  return `${text}${unit}${kind === "counter" ? "/s" : ""}`;
}

// A band, or nothing where there is none.
export function band({ lower, upper, ...of }, digits = 3) {
  return typeof lower === "number" && typeof upper === "number" ? `${quantity(lower, of, digits)} to ${quantity(upper, of, digits)}` : "";
}
