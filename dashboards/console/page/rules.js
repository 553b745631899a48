// The rules: which there are, a form for another one, what it would have done, and what labels propose. Nothing is saved untried unasked.
import { bar, button } from "./actions.js";
import { ask, tell } from "./ask.js";
import { el, foreign, local, when } from "./dom.js";
import { form } from "./rule_form.js";
import { shown } from "./rule_trial.js";
import { sentence } from "./rule_words.js";

const UNUSABLE = ["RULE_INVALID", "REQUEST_INVALID", "TIME_AHEAD", "TIME_TOO_EARLY", "ACTION_REFUSED"]; // what could not be saved either

// `about`: the machine and the metric for which a rule is wanted, or nothing.
export async function openRules(place, { entity, metric }, current) {
  const list = el("div", {}), result = el("div", { class: "trial", role: "status" }), proposed = el("div", { role: "status" });
  const known = { names: [] };
  const say = (...text) => result.replaceChildren(el("p", { class: "words" }, ...text));
  const fields = form({ entity, metric }, () => attempt(), () => { attempt.turn = null; if (result.childElementCount) say("The rule has changed: try it again."); });

  async function attempt() {
    const rule = fields.read(), turn = {};
    attempt.turn = turn;
    say("Trying it on the last 30 days, which takes some seconds…");
    try {
      const found = await tell("/api/rule/try", rule);
      if (attempt.turn === turn) outcome(rule, shown(found), found.removed.true_alarms);
    } catch (error) {
      if (attempt.turn !== turn) return;
      say(`Not tried: ${error.message}`);
      if (!UNUSABLE.some((code) => error.message.startsWith(code))) result.append(saving(rule, "Save it untried"));
    }
  }

  function outcome(rule, parts, lost) {
    const replaces = known.names.includes(rule.name) ? [el("p", { class: "words" }, "A rule of this name is there already, and is replaced.")] : [];
    const text = lost ? `Save it although it hides ${lost === 1 ? "a true alarm" : `${lost} true alarms`}` : "Save the rule";
    const head = el("h3", { tabindex: "-1" }, "What it would have done");
    result.replaceChildren(head, ...parts, ...replaces, saving(rule, text));
    head.focus();
  }

  function saving(rule, text) {
    const line = el("span", { class: "outcome", role: "status" });
    const save = button(text, "From now on the detector respects it", async () => {
      save.disabled = true;
      line.textContent = "Sending…";
      try {
        const reply = await tell("/api/rule", rule);
        line.textContent = `Saved: in force from ${local(reply.from)} on.`;
        await refresh();
      } catch (error) {
        save.disabled = false;
        line.textContent = `Not saved: ${error.message}`;
      }
    });
    return el("div", { class: "actions" }, save, line);
  }

  async function refresh() {
    try {
      const found = await ask("/api/rules");
      known.names = found.rules.map((it) => it.id);
      if (current()) list.replaceChildren(...listed(found, refresh));
    } catch (error) {
      if (current()) list.replaceChildren(el("p", { class: "soft" }, `The rules cannot be read: ${error.message}.`));
    }
  }

  async function propose(asking) {
    asking.disabled = true;
    proposed.replaceChildren(el("p", { class: "words" }, "Looking at the labels of the last 30 days, which takes some seconds…"));
    try {
      proposed.replaceChildren(...proposals(await tell("/api/rule/proposals", {}), (it) => { fields.take(it); attempt(); }));
    } catch (error) {
      proposed.replaceChildren(el("p", { class: "words" }, `Nothing could be proposed: ${error.message}`));
    }
    asking.disabled = false;
  }

  const asking = button("Propose rules", "What alarms that were labelled false have in common, and no true one", () => propose(asking));
  place.replaceChildren(
    el("h2", {}, "Rules"), el("p", { class: "where" }, "A rule tells the detector in advance what not to report, or what to report whatever its score."),
    el("div", { class: "columns" },
      el("section", { "aria-label": "A new rule" }, el("h3", {}, "A new rule"), bar("A new rule", (to) => to.append(fields.element)), result),
      el("section", { "aria-label": "Rules that are there" }, el("h3", {}, "Proposed by labels"), bar("Proposals", (to) => to.append(asking), true), proposed,
        el("h3", {}, "In force, or to come"), list)));
  await refresh();
}

function proposals({ proposals: found, false_alarms: wrong, true_alarms: right, complete }, take) {
  const of = el("p", { class: "soft" }, `Of the alarms of the last 30 days ${wrong} are labelled false and ${right} true.`);
  if (!found.length) return [of, el("p", { class: "words" }, "There is no proposal: no three of the false alarms have something in common that sets them apart.")];
  const rows = found.map((it) => el("li", {}, foreign(it.words), ". ", el("span", { class: "soft" }, it.lines.filter((line) => !line.startsWith("added: 0")).join("; ")),
    el("div", { class: "actions" }, button("Take and try", "Fills in the form and tries the rule", () => take(it.rule)))));
  return [of, el("ol", { class: "causes proposals" }, ...rows), ...(complete ? [] : [el("p", { class: "soft" }, "The search was cut short, so there may be better ones.")])];
}

function listed({ rules, missing }, changed) {
  if (missing) return [el("p", { class: "soft" }, `They are not known here: ${missing}.`)];
  if (!rules.length) return [el("p", { class: "soft" }, "No rule.")];
  return [el("ul", { class: "causes" }, ...rules.map((it) => one(it, changed)))];
}

function one(it, changed) {
  const until = it["event.end"] ? [" until ", when(it["event.end"], true)] : [];
  const line = el("span", { class: "outcome", role: "status" });
  const remove = button("Remove", "From now on it is no longer in force", async () => {
    remove.disabled = true;
    try {
      await tell("/api/rule/withdrawal", { name: it.id });
      await changed();
    } catch (error) {
      remove.disabled = false;
      line.textContent = `Not removed: ${error.message}`;
    }
  });
  remove.setAttribute("aria-label", `Remove ${it.id}`);
  return el("li", {}, el("b", {}, foreign(it.id)), ": ", foreign(sentence(it)), ...until,
    ...(it.note ? [el("div", { class: "soft" }, foreign(it.note))] : []), bar(`Rule ${it.id}`, (to) => to.append(remove, line), true));
}
