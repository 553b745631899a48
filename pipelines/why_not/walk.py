"""Walks the steps with what is known of a series, and says at which it ended and by which numbers. Knows no server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.spec.duration import iso
from pipelines.contracts.bounds import Bounds
from pipelines.contracts.quantities.words import duration
from pipelines.contracts.records.novelty import ALARM_KINDS, PEERS, is_derived, judged_metric, sent_metric
from pipelines.contracts.roles import role_of_series
from pipelines.contracts.settings import Settings
from pipelines.contracts.settings.input import names
from pipelines.notify.routing import Routing
from pipelines.why_not.evidence import Evidence
from pipelines.why_not.steps import STEPS, Step


@dataclass(frozen=True)
class Finding:
    """What was found at a step.

    Attributes:
        step: The step.
        ended: True if it ended here: this is why nobody was alerted.
        words: What was found, in words and numbers.
    """

    step: Step
    ended: bool
    words: str


@dataclass(frozen=True)
class Walk:
    """The steps that were walked, the last of which is the answer.

    Attributes:
        findings: What was found, a step each.
        complete: False if a topic has more messages than were read.
    """

    findings: tuple[Finding, ...]
    complete: bool = True

    @property
    def answer(self) -> Finding | None:
        """Where it ended; ``None``: at no step, it was told."""
        return next((each for each in self.findings if each.ended), None)


def walk(known: Evidence, settings: Settings, bar: float) -> Walk:
    """Walks the steps until one says why nobody was alerted.

    Args:
        known: What is known of the series.
        settings: The settings of the version.
        bar: The score from which on a window of this length is reported, after the first six hours of a series.
    """
    findings: list[Finding] = []
    walker = _Walker(known, settings, bar)
    for step in STEPS:
        ended, words = _LOOKS[step.name](walker)
        findings.append(Finding(step, ended, words))
        if ended:
            break
    return Walk(tuple(findings), known.complete)


Found = tuple[bool, str]


class _Walker:
    def __init__(self, known: Evidence, settings: Settings, bar: float) -> None:
        self.known, self.settings, self.bar = known, settings, bar
        self.window = max(known.windows, key=self._far, default={})
        self.verdict = self._verdict()

    def _verdict(self) -> Mapping[str, Any]:
        """The verdict that matters: the first news of that time, else that on the window that is farthest off."""
        stored = [self.known.verdicts[at] for at in sorted(self.known.verdicts)]
        news = next((each for each in stored if each["kind"] in ALARM_KINDS), None)
        return news or self.known.verdicts.get(self.window.get("window_end", 0), {})

    @property
    def band(self) -> tuple[float, float] | None:
        """The band of that window, or the last that was said before."""
        for source in (self.known.verdicts.get(self.window.get("window_end", 0), {}), self.known.belief):
            if source.get("lower") is not None and source.get("upper") is not None:
                return float(source["lower"]), float(source["upper"])
        return None

    @property
    def is_news(self) -> bool:
        return self.verdict.get("kind") in ALARM_KINDS

    @property
    def lasts(self) -> bool:
        """Whether the verdict is on a window of something that began before."""
        since = self.verdict.get("since")
        if self.verdict.get("incident.state") == "open" and since is not None and since < self.known.start:
            return True
        return is_derived(self.known.metric) and self._was_novel()

    def _was_novel(self) -> bool:
        """Whether an incident has the series since before: of what is derived only the beginning has a verdict."""
        series = (each for incident in self.known.incidents for each in incident.series)
        return any(
            (each.entity, each.metric) == (self.known.machine, judged_metric(self.known.metric))
            and each.since <= self.known.start and (each.end is None or each.end > self.known.start)
            for each in series
        )  # fmt: skip

    def _far(self, window: Mapping[str, Any]) -> float:
        """How far a window lies outside of what is usual; 0 within."""
        stored = self.known.verdicts.get(window["window_end"], {})
        source = stored if stored.get("lower") is not None else self.known.belief
        lower, upper, value = source.get("lower"), source.get("upper"), window["value"]
        if lower is None or upper is None or value is None:
            return float(stored.get("record_score", 0.0))
        return float(max(lower - value, value - upper, 0.0))

    def arrived(self) -> Found:
        known = self.known
        span = f"{iso(known.start)} to {iso(known.end)}"
        if known.windows:
            samples = sum(each["count"] for each in known.windows)
            return False, f"{len(known.windows)} windows of {span} have {samples} samples"
        if self.is_news:
            return False, f"none in {span}, and that is news: {self.verdict['kind']}"
        if known.late:
            return False, f"all of {span} came too late"
        if known.watermark is None or known.watermark < known.start:
            reached = (
                "none are complete" if known.watermark is None else f"they are complete up to {iso(known.watermark)}"
            )
            return True, f"the windows of {span} are not judged yet: {reached}"
        letters = [f"{each.place} ({each.letter.code})" for each in known.letters]
        refused = (
            f"; {len(letters)} messages that name it could not be used: {', '.join(letters[:3])}" if letters else ""
        )
        if known.belief:
            last = f"; its last window that said something ended at {iso(known.belief['@timestamp'])}"
            return True, f"no values of {known.metric} of {known.machine} arrived in {span}{last}{refused}"
        others = (
            f"; known of {known.machine}: {', '.join(known.known)}"
            if known.known
            else f"; no machine {known.machine} is known"
        )
        return True, f"the series {known.metric} of {known.machine} is not known{others}{refused}"

    def in_time(self) -> Found:
        late = self.known.late
        if late and not self.known.windows:
            return True, f"{late} samples came after window.allowed_lateness = {self.settings.window.allowed_lateness}"
        return False, f"{late} samples came too late"

    def shown(self) -> Found:
        if not self.window:
            return False, "there is no window that could show it"
        it, band = self.window, self.band
        words = f"the window to {iso(it['window_end'])}"
        if it["value"] is None:  # as of a log, or of the first window of a counter, which has no rate yet
            return False, f"{words} has no value that is judged by itself"
        words = f"{words}: value {it['value']:.5g}, from {it['min']:.5g} to {it['max']:.5g}"
        if band is None or self.is_news or is_derived(self.known.metric):
            return False, words
        hidden = band[0] <= it["value"] <= band[1] and (
            it["max"] > band[1] + _width(band) or it["min"] < band[0] - _width(band)
        )
        usual = f"; usual: {band[0]:.5g} to {band[1]:.5g}"
        return hidden, f"{words}{usual}{'; the peak is lost in what the window is judged by' if hidden else ''}"

    def learned(self) -> Found:
        kind = self.verdict.get("kind") or self.known.belief.get("kind")
        values = self.known.belief.get("values")
        count = "" if values is None else f"; {values} values had been learned when it last said so"
        return kind == "learning", f"{'it was' if kind == 'learning' else 'it was no longer'} learned{count}"

    def unusual(self) -> Found:
        if self.is_news or self.lasts:
            return False, f"it was: {self.verdict['kind'] if self.is_news else 'it lasted'}"
        if is_derived(self.known.metric):
            return (False, "a rule kept it from being told") if self.known.rules else (True, self._unlike_or_full())
        band, value = self.band, self.window.get("value")
        if band is None or value is None:
            return False, "there is no band to compare with"
        inside = band[0] <= value <= band[1]
        return inside, f"{value:.5g} is {'within' if inside else 'outside of'} {band[0]:.5g} to {band[1]:.5g}"

    def _unlike_or_full(self) -> str:
        """Why nothing was said of a machine beside its peers, or of when a metric is full."""
        machine, metric = self.known.machine, sent_metric(self.known.metric)
        if self.known.metric.startswith(PEERS):
            role = role_of_series(machine, metric, names(self.settings.detector.peers_by))
            if role is None:
                return f"neither its name nor a label (detector.peers_by) gives {machine} peers"
            return (
                f"no verdict says that {metric} of {machine} was unlike that of the others of {role}; it needs four of "
                "them in its partition, and 30 windows of each"
            )
        detector = self.settings.detector
        bound = Bounds(detector.bounds).of(metric)
        if bound is None:
            return f"{metric} has no bound (detector.bounds)"
        latest, median = (self.known.belief.get(f"full_{name}") for name in ("latest", "median"))
        if latest is None:
            return "it may never be full" + ("" if median is None else f", most likely at {iso(median)}")
        return (
            f"it is full at {iso(latest)} at the latest; that is told when it is within "
            f"{duration(bound.within or detector.full_within_ms)} (detector.full_within)"
        )

    def score(self) -> Found:
        if self.is_news or self.lasts:
            score = self.verdict.get("record_score")
            return False, "it lasted" if score is None else f"it was news: its score was {score:.3g}"
        if self.known.rules:
            return False, "a rule kept it from being reported"
        least = min(self.bar, self.settings.detector.threshold)
        needed = f"{self.bar:.3g} are needed ({self.settings.detector.threshold:g} in its first six hours)"
        if not self.verdict:
            return True, f"no verdict is stored, so its score was too low, or the same had come before; {needed}"
        score = self.verdict["record_score"]
        return score < least, f"its score was {score:.3g}; {needed}"

    def recurs(self) -> Found:
        if self.is_news or self.lasts or self.known.rules:
            return False, "it was not expected"
        return True, f"its score was {self.verdict['record_score']:.3g} and it was not told: the same had come before"

    def rules(self) -> Found:
        if self.is_news or self.lasts:
            return False, "none did"
        return True, f"kept from being reported by {', '.join(self.known.rules)}{self._labelled()}"

    def _labelled(self) -> str:
        found = [f"{each.verdict} given for {iso(each.start)}" for each in self.known.labels]
        return f"; labels: {', '.join(found)}" if found else ""

    def open(self) -> Found:
        before = next((each for each in self.known.incidents if each.opened <= self.known.start), None)
        if before is not None:
            grew = f"incident {before.id} was open since {iso(before.opened)}: {before.message}"
            return not self._opened(), grew
        if self.lasts:
            since = self.verdict.get("since")
            return True, f"it was part of what had begun {'before' if since is None else f'at {iso(since)}'}"
        return False, "nothing of it was open"

    def _opened(self) -> bool:
        """Whether an incident opened within the time."""
        return any(each.opened > self.known.start for each in self.known.incidents)

    def incident(self) -> Found:
        if not self.known.incidents:
            rules = self.settings.incidents
            asked = f"incidents.score = {rules.score:g}, or than incidents.false_pages = {rules.false_pages:g} asks for"
            needed = f"the severity of all that was novel with it was less than {asked}"
            unless = f"incidents.series = {rules.series} series at once need less, but not nothing"
            it = f"{self.verdict['kind']} with a score of {self.verdict['record_score']:.3g}"
            return True, f"{it} became no incident: {needed}; {unless}"
        return False, "; ".join(f"incident {each.id}, {each.severity}: {each.message}" for each in self.known.incidents)

    def told(self) -> Found:
        if self.known.told:
            return False, "; ".join(
                f"{each.channel} took it at {iso(each.at)}: {each.title}" for each in self.known.told
            )
        notify = self.settings.notify
        if not notify.channels:
            return True, "the settings name no channel (notify.channels)"
        routing, reasons = Routing.of(notify), []
        for each in self.known.incidents:
            why = routing.reasons(each, each.opened)
            reasons.append(", ".join(f"route {name}: {reason or 'takes it'}" for name, reason in why.items()))
        return True, f"no channel of this machine took a message of it; {'; '.join(reasons)}"


def _width(band: tuple[float, float]) -> float:
    return band[1] - band[0]


_LOOKS: Mapping[str, Callable[[_Walker], Found]] = {step.name: getattr(_Walker, step.name) for step in STEPS}


def as_lines(walked: Walk, machine: str, metric: str) -> Iterator[tuple[str, str, str, str]]:
    """The steps as a table: number, question, what was found, and the command that shows it."""
    for number, each in enumerate(walked.findings, 1):
        yield str(number), each.step.question, each.words, each.step.commands(machine, metric)


def spoken(walked: Walk, lasting: int) -> str:
    """The answer in a sentence.

    Args:
        walked: The steps.
        lasting: How long the time is that was looked at, milliseconds.
    """
    answer, number = walked.answer, len(walked.findings)
    part = "" if walked.complete else " A topic has more messages than were read, so more may be known."
    if answer is None:
        return f"You were: within {duration(lasting)} {walked.findings[-1].words}.{part}"
    return f"Step {number}, {answer.step.question[0].lower()}{answer.step.question[1:]} {answer.words}.{part}"
