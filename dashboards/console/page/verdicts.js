// The newest verdicts as a table: which kinds are shown, and the rows.
import { brief, count, duration, el, metricName, num, time, words, KINDS, NOVEL } from "./dom.js";
import { machineLink, noveltyLink, seriesLink } from "./place.js";

const AFTER_MS = 600000;

// `refresh`: asks anew when a filter was changed; `chosen`: the id of the novelty that is open, or null.
export class Verdicts {
  constructor(section, refresh, chosen) {
    Object.assign(this, { section, refresh, chosen, kinds: new Set(NOVEL) });
    let typing;
    const later = (ms) => { clearTimeout(typing); typing = setTimeout(refresh, ms); };
    this.field("entity").addEventListener("input", () => later(200));
    this.field("score").addEventListener("input", () => { this.field("score-value").value = this.field("score").value; later(100); });
    this.field("filters").addEventListener("submit", (event) => event.preventDefault());
  }

  field(id) { return this.section.querySelector(`#${id}`); }

  // What the console's server is asked for; without any kind only how many there are.
  get question() {
    return { entity: this.field("entity").value, min_score: this.field("score").value, kind: [...this.kinds], limit: this.kinds.size ? 200 : 1 };
  }

  show({ novelties, counts, now }) {
    this.showKinds(counts);
    this.showRows(this.kinds.size ? novelties : [], now);
    const all = [...this.kinds].reduce((sum, kind) => sum + (counts[kind] ?? 0), 0), left = this.kinds.size && all > novelties.length;
    this.field("left").hidden = !left;
    if (left) this.field("left").textContent = `The newest ${count(novelties.length)} of ${count(all)}.`;
  }

  showKinds(counts) {
    const place = this.field("kinds");
    const shown = KINDS.map((kind) => {
      const there = place.querySelector(`[data-kind="${kind}"]`);
      const button = there ?? el("button", { type: "button", class: "kind", "data-kind": kind }, words(kind), " ", el("span"));
      if (!there) button.addEventListener("click", () => this.toggle(kind));
      button.setAttribute("aria-pressed", this.kinds.has(kind));
      button.lastChild.textContent = count(counts[kind] ?? 0);
      return button;
    });
    if (!place.children.length) place.append(...shown);
  }

  toggle(kind) {
    if (!this.kinds.delete(kind)) this.kinds.add(kind);
    this.refresh();
  }

  // Rows are kept by identity, so that one is not replaced under the pointer.
  showRows(novelties, now) {
    const body = this.field("rows"), focused = document.activeElement, inside = body.contains(focused);
    const old = new Map([...body.children].map((row) => [row.dataset.key, row]));
    const rows = novelties.map((it) => {
      const key = `${it._id} ${it.revision}`, row = old.get(key) ?? newRow(it, key, now);
      row.lastChild.textContent = duration(now - it["@timestamp"]);
      row.setAttribute("aria-selected", it._id === this.chosen());
      return row;
    });
    body.replaceChildren(...rows);
    if (inside && body.contains(focused)) focused.focus({ preventScroll: true });
    this.field("none").hidden = rows.length > 0;
  }
}

function newRow(it, key, now) {
  const cell = (name, ...inside) => el("td", { role: "cell", class: name }, ...inside);
  const link = (text, href) => el("a", { href, class: "to" }, text);
  const row = el("tr", { role: "row", tabindex: 0 },
    el("td", { role: "cell", class: "at", title: `${time(it["@timestamp"])} UTC` }, brief(it["@timestamp"], now)),
    cell("machine", link(it["host.name"], machineLink(it["host.name"]))),
    cell("metric", link(metricName(it.metric), seriesLink(it["host.name"], it.metric, 1, it["@timestamp"] + AFTER_MS))),
    cell("is", el("span", { class: "kind", "data-kind": it.kind }, words(it.kind))),
    cell("n score", num(it.record_score, 3)), cell("what", it.what ?? ""), cell("n soft age", ""));
  row.dataset.key = key;
  const choose = () => { location.hash = noveltyLink(it._id); };
  row.addEventListener("click", (event) => { if (!event.target.closest("a")) choose(); });
  row.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target === row) choose(); });
  return row;
}
