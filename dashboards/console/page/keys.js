// The keyboard: letters lead to pages and through lists; `?` shows them all.
const LINES = ["#incidents .card > a", "#heat :is(a, button).strip", "#rows tr", "#detail .onsets a", "#detail .multiples a", "#detail summary"];

export function keys(actions) {
  const help = document.getElementById("help");
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, select, textarea")) return void (event.key === "Escape" && event.target.blur());
    if (help.open) return; // the dialog closes by Escape itself
    const act = { "?": () => help.showModal(), j: () => move(1), k: () => move(-1), ...actions }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

// To the next line of what is on the page: incidents, machines, novelties, series.
function move(by) {
  const lines = [...document.querySelectorAll(LINES.join(","))].filter((line) => line.checkVisibility());
  if (!lines.length) return;
  const at = lines.indexOf(document.activeElement);
  const next = lines[at < 0 ? (by > 0 ? 0 : lines.length - 1) : Math.min(lines.length - 1, Math.max(0, at + by))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}
