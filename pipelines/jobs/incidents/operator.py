"""The operator of the incidents job: keeps verdicts, groups them anew when something changes, and says what differs.

It keeps of a site: the verdicts that a later revision may still replace; the episodes of older ones; the messages of
operators; and what was last written of each incident. A verdict counts from the watermark that reaches the end of its
window, so that all verdicts on one time count together. What is written last is thus a function of the verdicts alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from engine.explain.plan import describe
from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.operator import Operator, Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, pack, unpack
from engine.vectorized.build import build
from engine.vectorized.ordered import Waiting
from engine.vectorized.processor import Processor, Results, StateCounts
from pipelines.contracts.records import Incident
from pipelines.contracts.records.incident import STANDING
from pipelines.contracts.records.news import LIVING_EVERY
from pipelines.jobs.incidents.bursts import Rules
from pipelines.jobs.incidents.changes import BEFORE
from pipelines.jobs.incidents.false_pages import KEPT, NOTHING_YET, Lately
from pipelines.jobs.incidents.fleet import COUNTS, counted, living
from pipelines.jobs.incidents.grouping import GroupedIncident, Site, incidents
from pipelines.jobs.incidents.inferred import SEGMENT, Inferred
from pipelines.jobs.incidents.log_changes import REMEMBERED
from pipelines.jobs.incidents.silent_inputs import silent
from pipelines.jobs.incidents.site_messages import LastMessages
from pipelines.jobs.incidents.topology import Topology
from pipelines.jobs.incidents.verdicts import NEW_LINES, PARTS, ROWS, SITE, episodes, joined, new_lines, newest, parts

DAY = 86_400_000
_NOTE = "site"
_SEGMENT = "incidents"
_AHEAD = "changes"
_WRITTEN = pl.Schema({SITE: pl.String, "id": pl.String, "revision": pl.Int64, "text": pl.String, "at": pl.Int64})
_LATELY = pl.Schema({SITE: pl.String, "at": pl.Int64, "weight": pl.Float64})


class Written(NamedTuple):
    """What was last written of an incident.

    Attributes:
        revision: The revision.
        text: The record as JSON, revision 0.
        at: The watermark then, or when the last message on a silence was sent, in which the watermark stands, epoch
            milliseconds; the revision is later if an operator spoke of the incident since.
    """

    revision: int
    text: str
    at: int


@dataclass(frozen=True)
class GroupNovelties(Operator):
    """Groups the novelties of a site to incidents.

    Args:
        site: Name of the site, the value of the key.
        rules: The settings `incidents.*`.
        kept: How long a verdict may be replaced by a later revision, milliseconds.
        last: Event time after which no incident changes by itself, epoch milliseconds: a version that has an end says
            nothing of what comes after it, however far its watermark runs.
        again: An incident that stands is written again when it was last written so long ago, milliseconds of event
            time: the topic keeps messages for a limited time, and must not forget an incident that does not change.
    """

    site: str
    rules: Rules
    kept: int
    last: int = END_OF_TIME
    again: int = DAY


class _Grouping(Processor):
    """The logic of `GroupNovelties`.

    State: the segment ``incidents`` has the tables ``rows`` (verdicts), ``parts`` (episodes of older verdicts),
    ``written`` (the last revision of each incident) and ``lately`` (what incidents weighed that are forgotten); the
    segment ``places`` has the inferred places; the log ``changes`` has changes ahead of the watermark; the note
    ``site`` has the messages of operators, since when the site is watched, and the watermark from which on something
    changes without new verdicts.
    """

    def __init__(self, operator: GroupNovelties) -> None:
        self.site, self.rules, self.kept, self.last = operator.site, operator.rules, operator.kept, operator.last
        self.again = operator.again

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Returns the incidents that differ from what was written before."""
        note: dict[str, Any] = state.notes.get(_NOTE, {"next": END_OF_TIME, "texts": {}})
        now = min(progress.now, self.last)
        if not batch.height and now < note["next"]:
            return Results(pl.DataFrame(), held=StateCounts(keys=note.get("keys")))
        messages = LastMessages(note["texts"])
        ahead = _take(messages, batch, state, now)
        inferred = Inferred(self.site, state)
        inferred.take(batch)
        news = batch.filter(pl.col("entity").is_not_null()) if batch.height else pl.DataFrame(schema=ROWS)
        stored = state.get(_SEGMENT)
        tables = unpack(stored) if stored else {}
        counts, news = counted(tables.get("living", pl.DataFrame(schema=COUNTS)), news, note.get("counted", NEVER), now)
        rows = newest(tables.get("rows", pl.DataFrame(schema=ROWS)), news)
        old, written = tables.get("parts", pl.DataFrame(schema=PARTS)), _written(tables.get("written"))
        ends = pl.col("window_end")
        old = joined(old, parts(rows.filter(ends <= now - self.kept)))
        rows = rows.filter(ends > now - self.kept)
        seen_parts = joined(old, parts(rows.filter(ends <= now)))
        began = _began(note.get("began"), seen_parts, now)
        past = tables.get("lately", pl.DataFrame(schema=_LATELY))
        lately = Lately(began, past["at"].to_list(), past["weight"].to_list())
        topology = Topology(inferred.beside(messages.placements()))
        acknowledgements = messages.acknowledgements()
        changes = messages.changes()
        site = Site(self.site, topology, acknowledgements, new_lines(seen_parts), lately, changes, living(counts))
        grouped = [*incidents(episodes(seen_parts), site, self.rules, now), *self._silences(messages, written, now)]
        changed = _changes(grouped, written, now, self.again)
        over = _over_for_good(grouped, now - self.kept, self.rules.longest)
        forgotten = {id(incident) for incident in over}
        kept = [incident for incident in grouped if id(incident) not in forgotten]
        old = self._without(over, old, now)
        for name in self._done(over, grouped, written, now):
            del written[name]
        standing = {name for incident in kept for name in incident.ids}
        messages.forget_silences(now - self.kept)
        messages.forget_placements(now - self.rules.longest - self.kept)
        inferred.forget(now - self.rules.longest - self.kept)
        messages.forget(now - self.rules.longest - self.kept, standing)
        named = {change.id for one in kept for change in one.incident.changes}
        done = now - self.rules.longest - self.kept - BEFORE
        messages.forget_changes(done, named | site.drains.needed(done))
        changing = [self._next(incident, now) for incident in kept]
        changing += [at for group in grouped if (at := self._due_again(group.incident, written)) > now]
        first = [NEVER + 1] if now == NEVER and messages.silences() else []
        waiting = [ahead, rows.filter(ends > now)["window_end"].min(), counts.filter("ahead")["at"].min()]
        past = self._past(NOTHING_YET.with_those_over((e.over, e.told) for e in over), past, now)
        own = {"rows": rows, "parts": old, "written": self._table(written), "lately": past, "living": counts}
        state.put(_SEGMENT, pack(own))
        state.notes[_NOTE] = {
            "began": began,
            "next": min([*changing, *_numbers(*waiting), *first, END_OF_TIME]),
            "texts": messages.texts,
            "counted": max(min([one.incident.opened for one in kept], default=now) - self.kept - 2 * LIVING_EVERY, 0),
            "keys": len(kept),
        }
        return Results(_frame(changed), held=StateCounts(keys=len(kept)))

    def _silences(self, messages: LastMessages, written: Mapping[str, Written], now: int) -> list[GroupedIncident]:
        """The incidents of silences; of those that were over before the watermark was first known, none is made."""
        if now == NEVER:
            return []
        before = now - self.kept
        silences = silent(self.site, messages.silences(), messages.rules(), messages.acknowledgements(), self.last)
        return [s for s in silences if s.over is None or s.over >= before or not s.ids.isdisjoint(written)]

    def rescale(self, states: Rescaling) -> None:
        """Gives the state of the site to the shard that has its key."""
        states.segments(_SEGMENT, SEGMENT)
        states.same_log(_AHEAD)

        def merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
            began = [note["began"] for note in parts if note.get("began") is not None]
            first = min(began, default=None)
            texts = LastMessages.of_all(note["texts"] for note in parts).texts
            return {"next": min(note["next"] for note in parts), "texts": texts, "began": first}

        states.note(_NOTE, merged)

    def _without(self, over: list[GroupedIncident], old: pl.DataFrame, now: int) -> pl.DataFrame:
        """The episodes without those of incidents that are over.

        Ends that concern none of the others are left out too, and so are lines that were new to machines without them.
        """
        gone = {(e.entity, e.metric, e.since) for each in over for e in each.episodes}
        keys = ("entity", "metric", "since")
        table = pl.DataFrame(sorted(gone), {name: PARTS[name] for name in keys}, orient="row")
        left = old.join(table, on=keys, how="anti", maintain_order="left")
        reported = pl.col("reported").is_not_null()
        onsets = left.filter(reported).select("entity", onset="since").sort("onset")
        left = (
            left.with_row_index("place")
            .sort("since")
            .join_asof(
                onsets, left_on="since", right_on="onset", by="entity", strategy="nearest",
                tolerance=self.rules.together, check_sortedness=False,
            )
            .sort("place")
        )  # fmt: skip
        concern = reported.any().over("entity", "metric") | (NEW_LINES & pl.col("onset").is_not_null())
        recent = (pl.col("closed") > now - 2 * self.kept) | (
            NEW_LINES & (pl.col("since") > now - REMEMBERED - self.kept)
        )
        return left.filter(concern | recent.fill_null(False)).select(*PARTS)

    def _done(
        self, over: list[GroupedIncident], incidents: list[GroupedIncident], written: dict[str, Written], now: int
    ) -> list[str]:
        """The written incidents that can no longer change: those that are over, and those that were taken back."""
        past = {name for each in over for name in each.ids}
        alive = {name for each in incidents for name in each.ids}
        back = [name for name in written if name not in alive]
        past |= {name for name in back if Incident.from_json(written[name].text).updated < now - 2 * self.kept}
        return [name for name in written if name in past]

    def _next(self, incident: GroupedIncident, now: int) -> int:
        """The watermark at which an incident changes by itself, epoch milliseconds."""
        rules = self.rules
        lasting = [e.until + rules.longest for e in incident.episodes if e.closed is None]
        resolved = [] if incident.over is None else [*_numbers(incident.calm), incident.over + self.kept + 1]
        return min((at for at in [*lasting, *resolved, incident.later] if at > now), default=END_OF_TIME)

    def _due_again(self, incident: Incident, written: Mapping[str, Written]) -> int:
        """The watermark at which an incident that does not change is written again, epoch milliseconds."""
        stands = incident.status in STANDING and incident.id in written
        return written[incident.id].at + self.again if stands else END_OF_TIME

    def _past(self, more: Lately, past: pl.DataFrame, now: int) -> pl.DataFrame:
        """What incidents weighed that are forgotten, with some more, and without those of long ago."""
        rows = [(self.site, *each) for each in zip(more.at, more.weights, strict=True)]
        return pl.concat([past, pl.DataFrame(rows, _LATELY, orient="row")]).filter(pl.col("at") > now - KEPT)

    def _table(self, written: dict[str, Written]) -> pl.DataFrame:
        rows = [(self.site, name, *each) for name, each in written.items()]
        return pl.DataFrame(rows, _WRITTEN, orient="row")


def _changes(incidents: list[GroupedIncident], written: dict[str, Written], now: int, again: int) -> list[Incident]:
    """The incidents that differ from what was written, or were written long ago; ``written`` is brought up to date.

    A revision is the event time up to which the incident was seen: the watermark, or when an operator spoke of it
    since. What was computed anew, after a restore or without the checkpoint, thus replaces what was written before as
    soon as it has seen more, however many revisions there were.
    """
    notable = [each for each in incidents if each.notable or not each.ids.isdisjoint(written)]
    present = {each.incident.id: each.incident for each in notable}
    whole = {name: each.incident for each in incidents for name in each.ids}
    seen = {each.incident.id: max(each.acknowledged_at, now) for each in notable}
    heard = {each.incident.id: max(each.heard, now) for each in notable}
    for missing in sorted(written.keys() - present.keys()):
        last = Incident.from_json(written[missing].text)
        into = whole.get(missing)
        content: dict[str, str | None]
        if into is not None:
            content = {"status": "merged", "merged_into": into.id, "message": f"a part of incident {into.id}"}
        else:
            content = {"status": "resolved", "merged_into": None, "message": "its novelties were taken back"}
        if any(getattr(last, name) != value for name, value in content.items()):
            present[missing] = last.model_copy(
                update={**content, "end": last.end or now, "open_series": 0, "updated": now}
            )
    changed = []
    for name in sorted(present, key=lambda n: (present[n].opened, n)):
        text = present[name].to_json().decode()
        by = heard.get(name, now)
        revision, before, at = written.get(name, Written(-1, "", by))
        until = seen.get(name, now) if now < END_OF_TIME else 0
        if text != before or (present[name].status in STANDING and again <= by - at and now < END_OF_TIME):
            following = max(revision + 1, until)
            written[name] = Written(following, text, by)
            changed.append(present[name].model_copy(update={"revision": following}))
    return changed


def _over_for_good(incidents: list[GroupedIncident], before: int, longest: int) -> list[GroupedIncident]:
    """The incidents that were over before an instant, and with which none that lasts may turn out to be one.

    What was over so many milliseconds before it is over, whatever goes on that is like it: a chain of them has an end.
    """

    def lasts(incident: GroupedIncident) -> bool:
        return incident.over is None or incident.over >= before

    lasting, over = [one for one in incidents if lasts(one)], [one for one in incidents if not lasts(one)]
    alive: set[int] = set()
    while lasting:
        alive.update(*(one.like for one in lasting))
        held = [not alive.isdisjoint(one.like) and (one.over or 0) >= before - longest for one in over]
        lasting = [one for one, is_held in zip(over, held, strict=True) if is_held]
        over = [one for one, is_held in zip(over, held, strict=True) if not is_held]
    return over


def _began(since: int | None, novelties: pl.DataFrame, now: int) -> int | None:
    """Since when a site is watched: its first novelty."""
    first = [*_numbers(since), *_numbers(novelties["since"].min())]
    return min(first, default=None) if now != NEVER else since


def _written(table: pl.DataFrame | None) -> dict[str, Written]:
    """What was last written of each incident; a table of an earlier version does not say at which watermark."""
    if table is None:
        return {}
    with_time = table if "at" in table.columns else table.with_columns(at="revision")
    with_time = with_time.with_columns(at=pl.coalesce("at", "revision"))
    return {name: Written(revision, text, at) for _, name, revision, text, at in with_time.select(*_WRITTEN).rows()}


def _frame(changed: list[Incident]) -> pl.DataFrame:
    """Incidents as rows, with their Python names."""
    if not changed:
        return pl.DataFrame()
    return pl.DataFrame([each.model_dump() for each in changed], infer_schema_length=None)


def _take(messages: LastMessages, batch: pl.DataFrame, state: ShardState, now: int) -> int:
    """Takes what operators have said, of changes those that the watermark has reached; returns when the next one is."""
    changes = pl.DataFrame()
    if batch.height and "change" in batch.columns:
        changes = batch.filter(pl.col("change").is_not_null()).select("window_end", "change")
    waiting = Waiting(state, _AHEAD, near=1_000)
    messages.take(batch.drop("change", strict=False))
    messages.take(waiting.release(changes, pl.col("window_end"), now))
    messages.bound_changes()
    return waiting.first


def _numbers(*values: Any) -> list[int]:
    return [int(value) for value in values if value is not None]


build.register(GroupNovelties, _Grouping)


@describe.register
def _describe(operator: GroupNovelties) -> list[tuple[str, str]]:
    return [
        ("does", "groups novelties over series, machines and time to incidents"),
        ("keeps", f"verdicts for {operator.kept / 1000:g} s, episodes until their incident is over"),
    ]
