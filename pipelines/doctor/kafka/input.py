"""Checks that agents send records, and that these are neither refused nor too late for their windows."""

from __future__ import annotations

from collections import Counter

from engine.formats.dead_letters import DeadLetter, positions
from engine.kafka.offsets import KafkaOffsets
from engine.spec.duration import iso
from pipelines.contracts import topics
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.doctor.tails import LAST, tails

_kind = subject("Kafka")
_NO_INPUT = _kind(
    "NO_INPUT",
    Severity.AT_RISK,
    "no agent sends anything: the last messages of all agents' topics are heartbeats, or there are none",
    "see that agents run and send to this broker and namespace (input.md); `newnormal agent` sends some",
)  # fmt: skip
_REFUSED = _kind(
    "INPUT_REFUSED",
    Severity.BROKEN,
    "all of the last messages of an agents' topic were refused: nothing of them is judged",
    "mend what the example says (errors.md, Dead letters), then `newnormal deadletter retry`",
)
_GROW = _kind(
    "DEAD_LETTERS_GROW",
    Severity.AT_RISK,
    "messages were refused in the last ten minutes; the most frequent code and an example are named",
    "mend what the example says (errors.md, Dead letters), then `newnormal deadletter retry`",
)
_LATE = _kind(
    "LATE_GROWING",
    Severity.AT_RISK,
    "records came too late for their windows in the last ten minutes: they are kept, but not judged",
    "`newnormal tail` of the topic shows whose they are; mend the clock or the delay of these machines, or set a "
    "longer `watermark.out_of_orderness` or `window.allowed_lateness`",
)
LATELY_MS = 600_000
"""What counts as recent, milliseconds."""
_MOST_LETTERS = 5_000
_SECONDS = 10.0


def silent(context: Context) -> list[Finding]:
    """Finds that no agent sends anything."""
    arrived = context.tails
    if not arrived or any(not each.beats for tail in arrived.values() for each in tail):
        return []
    names = sorted({topic for topic, _ in arrived})
    first = min((tail[0].time for tail in arrived.values() if tail), default=None)
    since = f"since {iso(first)[:19]}Z there were heartbeats alone" if first else "they have no message at all"
    return [Finding(_NO_INPUT, f"no record in the last {LAST} messages of each partition: {since}", ", ".join(names))]


def refused(context: Context) -> list[Finding]:
    """Finds topics of which all messages are refused lately, and dead letters that become more."""
    home = context.settings.writes(topics.DEADLETTER)
    if not lately(context, home):
        return []
    letters = _letters(context, home)
    if not letters:
        return []
    count = f"{len(letters):,}" if len(letters) < _MOST_LETTERS else f"{len(letters):,} or more"
    findings = []
    whole = {(letter.topic, letter.partition, letter.offset) for letter in letters if _all_of(letter)}
    for topic in sorted({topic for topic, _ in context.tails}):
        offsets = [
            (topic, partition, message.offset)
            for (name, partition), tail in context.tails.items()
            for message in tail
            if name == topic and not message.beats
        ]
        if offsets and whole.issuperset(offsets):
            of_topic = [letter for letter in letters if letter.topic == topic]
            findings.append(Finding(_REFUSED, f"all of the last {len(offsets):,} messages: {_most(of_topic)}", topic))
    if not findings:
        findings.append(Finding(_GROW, f"{count} dead letters in the last ten minutes: {_most(letters)}", home))
    return findings


def lately(context: Context, topic: str) -> int:
    """How many offsets a topic took lately, markers of transactions counted; 0 if there is no such topic.

    Raises:
        KafkaException: The broker does not answer.
    """
    asked = KafkaOffsets(context.bootstrap, [topic], timeout=_SECONDS)
    try:
        since, ends = asked.since(context.clock() - LATELY_MS), asked.ends()
    except TimeoutError:  # no such topic
        return 0
    return sum(max(0, ends.get(place, first) - first) for place, first in since.items())


def late(context: Context) -> list[Finding]:
    """Finds topics of late records that have got messages lately."""
    names = [context.settings.writes(name) for name in topics.FROM_JOBS if name.endswith(topics.LATE)]
    counts = {name: lately(context, name) for name in names}
    return [
        Finding(_LATE, f"{count:,} messages with late records in the last ten minutes", name)
        for name, count in counts.items()
        if count
    ]


def _letters(context: Context, home: str) -> list[DeadLetter]:
    """The letters among the last messages of a topic of dead letters; marks of letters sent again are left out."""
    letters = []
    for tail in tails(context.bootstrap, [home], _MOST_LETTERS).values():
        for message in tail:
            try:
                letter = DeadLetter.from_json(message.value)
            except ValueError:  # another program wrote to the topic
                continue
            if letter.retried is None and message.time >= context.clock() - LATELY_MS:
                letters.append(letter)
    return letters


def _all_of(letter: DeadLetter) -> bool:
    """Whether a letter is about all records of its message."""
    return letter.refused is None or len(positions(letter.refused)) == letter.records


def _most(letters: list[DeadLetter]) -> str:
    """The most frequent code among some letters, with an example."""
    if not letters:
        return "none of them can be read"
    code, count = Counter(each.code for each in letters).most_common(1)[0]
    example = max((each for each in letters if each.code == code), key=lambda each: each.time)
    place = f"{example.topic}/{example.partition}@{example.offset}"
    return f"mostly {code} ({count:,} of {len(letters):,}), e.g. {place}, refused by {example.job}: {example.reason}"
