"""Yahoo's streaming benchmark: the jobs of docs/own-jobs.md, as `newnormal run` runs them, and a view of their results.

With ``--flink`` Flink SQL does the same on the same topics afterwards (`peers/yahoo.sql`); as it has no
view, its counts are seen when a reader of committed messages has them.

Views among the events of advertisements are joined to their campaigns, which change, and counted in windows of 10 s. A
backlog says how many events a second both jobs take together; then events come at a steady rate, and the view is asked
all the time: how long after its end is the count of a window there? All counts are compared with those of NumPy.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt
from confluent_kafka import Consumer, Producer, TopicPartition

from datagen.kafka_writer import KafkaWriter
from deploy.embedded.services import embedded
from engine.kafka.admin import ensure_topics, partition_counts
from engine.kafka.content import content
from engine.spec.duration import END_OF_TIME
from pipelines.contracts.settings import load
from tests.benchmarks.peers import flink_environment, flink_yahoo
from tests.benchmarks.peers.flink_environment import Flink
from tests.benchmarks.queries import say

ADS, CAMPAIGNS, WINDOW_MS, BOUND_MS = 1_000, 100, 10_000, 1_000
KINDS = ("view", "click", "purchase")
_PAGE = Path(__file__).parents[2] / "docs" / "own-jobs.md"
_EVENTS, _TABLE, _COUNTS = "ad-events", "ads", "campaign-views"
_SPAN_MS, _WARM_MS, _TICK, _ASK, _SECONDS = 200_000, 30_000, 0.05, 0.02, 900.0
_LINE = (
    '{{"user":"{0:032x}","page":"{1:032x}","ad":"ad-{2}","ad_type":"banner","event":"{3}","time":{4},"ip":"10.1.2.3"}}'
)
Ints = npt.NDArray[np.int64]
Counts = dict[tuple[str, int], tuple[int, int]]
Speed = dict[str, float | None]
Seen = dict[tuple[str, int], int]


@dataclass
class Events:
    """What was sent, so that it can be counted: event number i is of advertisement 7919 i, and its kind follows from i.

    Attributes:
        changed: From when on each even advertisement belongs to the next campaign but one, epoch milliseconds.
        times: The event time of each event.
    """

    changed: int = END_OF_TIME
    times: list[int] = field(default_factory=list)

    def lines(self, times: list[int]) -> tuple[list[str], list[str]]:
        """Takes in further events; returns their messages and the keys of these."""
        first = len(self.times)
        self.times += times
        ads = [(first + i) * 7919 % ADS for i in range(len(times))]
        numbered = zip(range(first, len(self.times)), ads, times, strict=True)
        lines = [_LINE.format(i * 31, i * 17, ad, KINDS[i % 3], at) for i, ad, at in numbered]
        return lines, [f"ad-{ad}" for ad in ads]

    def counted(self) -> dict[tuple[str, int], int]:
        """The number of views of each campaign and window."""
        number, times = np.arange(len(self.times)), np.array(self.times, np.int64)
        views = number % 3 == 0
        ads, times = number[views] * 7919 % ADS, times[views]
        moved = (ads % 2 == 0) & (times >= self.changed)
        found = np.stack([(ads + 2 * moved) % CAMPAIGNS, times // WINDOW_MS * WINDOW_MS])
        (campaigns, starts), counts = np.unique(found, axis=1, return_counts=True)
        return {(f"c-{c}", int(s)): int(n) for c, s, n in zip(campaigns, starts, counts, strict=True)}


def run(records: int, rate: int, seconds: int, flink: bool, state_dir: Path | None) -> dict[str, Any]:
    """Measures; returns the figures.

    Args:
        records: Events of the backlog.
        rate: Events a second while the latency is measured.
        seconds: For how long that is.
        flink: Whether Flink SQL does the same afterwards.
        state_dir: For servers and checkpoints.
    """
    given = load(**{"state_dir": state_dir})
    prefix = f"yahoo{int(time.time())}-"
    with embedded(given, elasticsearch=False) as servers:
        settings = servers.settings(given)
        folder = settings.state.absolute() / "bench" / prefix.rstrip("-")
        folder.mkdir(parents=True)
        bench = Bench(settings.kafka.bootstrap or "", folder, prefix)
        return bench.measured(records, rate, seconds, flink_environment.ensure() if flink else None)


def jobs(prefix: str) -> str:
    """The code of the page, whose topics have a prefix here."""
    code = next(c for c in re.findall(r"```python\n(.*?)```", _PAGE.read_text(), re.S) if "TemporalJoin" in c)
    return re.sub(r'(?<=[( ])"(ad-events|ads|views|campaign-views)"', rf'"{prefix}\1"', code)


@dataclass(frozen=True)
class Bench:
    """One measurement.

    Attributes:
        bootstrap: Address of the broker.
        folder: For the jobs, checkpoints and the view.
        prefix: Put before the names of topics.
    """

    bootstrap: str
    folder: Path
    prefix: str

    def measured(self, records: int, rate: int, seconds: int, flink: Flink | None) -> dict[str, Any]:
        """Backlog, then steady rate; the figures."""
        file = self.folder / "yahoo_jobs.py"
        file.write_text(jobs(self.prefix))
        counts = self.prefix + _COUNTS
        now = int(time.time() * 1000) // WINDOW_MS * WINDOW_MS
        begin = now - _SPAN_MS
        events = Events()
        with self.process("run", str(file)) as driver:
            self.until("the topics", lambda: bool(partition_counts(self.bootstrap, [counts]).get(counts)), driver)
            self.write_table(begin - 60_000)
            time.sleep(20)  # the table is read, and idle
        say(f"writing {records:,} events")
        self.write(events, [begin + i * _SPAN_MS // records for i in range(records)])
        started = time.time()
        with ExitStack() as stack:
            driver = stack.enter_context(self.process("run", str(file)))
            url = stack.enter_context(self.view())
            last = begin + _SPAN_MS - 2 * WINDOW_MS  # the last window but one ends before the bound
            self.until("the backlog", lambda: any(start >= last for (_, start) in self.counts()), driver)
            speed = speed_of(self.counts(), records, last, started)
            seen: Seen = {}
            stop = threading.Event()
            asking = threading.Thread(target=_ask, args=(url, counts, seen, stop), daemon=True)
            asking.start()
            live = int(time.time() * 1000)
            self.write_live(events, rate, seconds)
            end = closed(time.time())
            self.until("the last window", lambda: sum(at == end for _, at in list(seen)) == CAMPAIGNS, driver)
            stop.set()
            asking.join()
        figures = figures_of(events, self.counts(), speed, seen, live + _WARM_MS, end)
        named = {"events_per_second_live": rate, "ours": figures}
        return named | ({"flink": self.beside(flink, events, records, rate, seconds)} if flink else {})

    def beside(self, flink: Flink, events: Events, records: int, rate: int, seconds: int) -> dict[str, Any]:
        """The same by Flink SQL: the backlog, and what was written live before; then live events again.

        Args:
            flink: Where it is.
            events: What was written until now; further ones are added.
            records: Events of the backlog.
            rate: Events a second.
            seconds: For how long.
        """
        topic = self.prefix + flink_yahoo.COUNTS
        ensure_topics(self.bootstrap, {topic: {"message.timestamp.type": "LogAppendTime"}}, flink_yahoo.PARTITIONS)
        last = min(events.times) // WINDOW_MS * WINDOW_MS + _SPAN_MS - 2 * WINDOW_MS
        seen: Seen = {}
        stop = threading.Event()
        reading = threading.Thread(target=_read, args=(self.bootstrap, topic, seen, stop), daemon=True)
        reading.start()
        started = time.time()
        with flink_yahoo.started(flink, self.folder / "flink", self.bootstrap, self.prefix) as program:
            self.until("Flink's backlog", lambda: any(at - WINDOW_MS >= last for _, at in list(seen)), program)
            speed = speed_of(counts_in(self.bootstrap, topic), records, last, started)
            live = int(time.time() * 1000)
            self.write_live(events, rate, seconds)
            end = closed(time.time())
            self.until("Flink's last window", lambda: sum(at == end for _, at in list(seen)) == CAMPAIGNS, program)
            stop.set()
            reading.join()
        return figures_of(events, counts_in(self.bootstrap, topic), speed, seen, live + _WARM_MS, end)

    @contextmanager
    def process(self, *command: str, quiet: bool = True) -> Iterator[subprocess.Popen[str]]:
        """A command of `newnormal`, ended as Ctrl-C ends it."""
        given = {"KAFKA__BOOTSTRAP": self.bootstrap, "STATE_DIR": str(self.folder / "state"), "VIEW__PORT": "0"}
        environment = os.environ | {f"NEWNORMAL_{name}": value for name, value in given.items()}
        words = [sys.executable, "-m", "pipelines.cli.main", *command]
        with (self.folder / f"{command[0]}.log").open("a") as log:
            output = log if quiet else subprocess.PIPE
            process = subprocess.Popen(words, env=environment, stdout=output, stderr=log, text=True)
            try:
                yield process
            finally:
                process.terminate()
                process.wait(120)

    @contextmanager
    def view(self) -> Iterator[str]:
        """The view of the counts; gives its URL."""
        with self.process("view", "--topic", self.prefix + _COUNTS, quiet=False) as process:
            assert process.stdout
            yield process.stdout.readline().split(" at ")[1].split()[0]

    def until(self, what: str, done: Callable[[], bool], driver: subprocess.Popen[Any]) -> None:
        """Waits while the jobs run."""
        ends = time.monotonic() + _SECONDS
        while not done():
            if time.monotonic() > ends or driver.poll() is not None:
                raise TimeoutError(f"{what} did not come; see {self.folder}")
            time.sleep(1)

    def write_table(self, since: int, later: int = 0) -> None:
        """Each advertisement with its campaign; or later every second one with the next campaign but one."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20})
        for ad in range(0, ADS, 2 if later else 1):
            row = {"time": since, "ad": f"ad-{ad}", "campaign": f"c-{(ad + later) % CAMPAIGNS}"}
            producer.produce(self.prefix + _TABLE, json.dumps(row), f"ad-{ad}")
        producer.flush()

    def write(self, events: Events, times: list[int]) -> None:
        """Events, in order."""
        with KafkaWriter(self.bootstrap) as writer:
            for first in range(0, len(times), 50_000):
                writer.write(self.prefix + _EVENTS, *events.lines(times[first : first + 50_000]))

    def write_live(self, events: Events, rate: int, seconds: int) -> None:
        """Events at an even pace, each with the time at which it is written; the table changes before what counts."""
        began, sent = time.time(), 0
        with KafkaWriter(self.bootstrap) as writer:
            while (now := time.time()) < began + seconds:
                due = int((now - began) * rate)
                if events.changed == END_OF_TIME and now > began + _WARM_MS / 2000:
                    events.changed = int(now * 1000)
                    self.write_table(events.changed, later=2)
                writer.write(self.prefix + _EVENTS, *events.lines([int(now * 1000)] * (due - sent)))
                sent = due
                time.sleep(max(0.0, now + _TICK - time.time()))

    def counts(self) -> Counts:
        """The counts in our topic."""
        return counts_in(self.bootstrap, self.prefix + _COUNTS)


def closed(now: float) -> int:
    """End of the last window whose results come without a further event, epoch milliseconds.

    The watermark stands at the last event less the bound, and the last event of a partition may be a second old.

    >>> closed(100.0), closed(101.9), closed(102.0)
    (90000, 90000, 100000)
    """
    return (int(now * 1000) - BOUND_MS - 1_000) // WINDOW_MS * WINDOW_MS


def counts_in(bootstrap: str, topic: str) -> Counts:
    """For each campaign and start of a window its count, and when that was written, epoch milliseconds."""
    found = {}
    for message in content(bootstrap, topic):
        row = json.loads(message.value() or b"")
        found[row["campaign"], flink_yahoo.instant(row["window_start"])] = row["views"], message.timestamp()[1]
    return found


def speed_of(counts: Counts, records: int, last: int, started: float) -> Speed:
    """Seconds from the start of the command to the backlog's end, and events a second of its second half of windows.

    Both go by when counts were written. The rate is ``None`` if the counts of that half were written at one moment: so
    does who waits with all of them until the end.

    Args:
        counts: The counts.
        records: Events of the backlog.
        last: Start of its last window that counts, epoch milliseconds.
        started: When the command started, epoch seconds.
    """
    written: dict[int, int] = {}
    for (_, start), (_, at) in counts.items():
        if start <= last:
            written[start] = max(at, written.get(start, 0))
    starts = sorted(written)
    first, last = starts[len(starts) // 2 - 1], starts[-1]
    took = (written[last] - written[first]) / 1000
    return {
        "backlog_s_with_start": round(written[last] / 1000 - started, 1),
        "events_per_second": round(records * (last - first) / _SPAN_MS / took) if took > 1 else None,
    }


def figures_of(events: Events, counts: Counts, speed: Speed, seen: Seen, live: int, end: int) -> dict[str, Any]:
    """What came out until an instant, beside what must.

    Args:
        events: What was written.
        counts: What was counted.
        speed: What `speed_of` gave.
        seen: When each count could be seen first.
        live: From when on the latency counts, epoch milliseconds.
        end: Until when.
    """
    true = {at: n for at, n in events.counted().items() if at[1] + WINDOW_MS <= end}
    found = {at: n for at, (n, _) in counts.items() if at[1] + WINDOW_MS <= end}
    shown = {key: at for key, at in seen.items() if live < key[1] <= end}
    late = np.array([at - window_end for (_, window_end), at in shown.items()])
    return {
        "events": len(events.times),
        "windows_of_campaigns": len(true),
        "counts_equal": found == true,
        "counts_that_differ": sum(found.get(at) != number for at, number in true.items()),
        **speed,
        "windows_live": len({window_end for _, window_end in shown}),
        "end_to_visible_ms": {f"p{p}": round(float(np.percentile(late, p))) for p in (50, 99)},
        "out_of_orderness_ms": BOUND_MS,
        "load": round(os.getloadavg()[0], 1),
    }


def _ask(url: str, topic: str, seen: Seen, stop: threading.Event) -> None:
    """Notes for each campaign and end of a window when the view has it, or a later one, first, epoch milliseconds."""
    last: dict[str, int] = {}
    with httpx.Client(base_url=url, timeout=30) as client:
        while not stop.is_set():
            rows = client.get(f"/rows/{topic}", params={"limit": CAMPAIGNS}).raise_for_status().json()["rows"]
            now = int(time.time() * 1000)
            for row in rows:
                campaign, end = row["campaign"], row["window_end"]
                for window_end in range(last.get(campaign, end - WINDOW_MS) + WINDOW_MS, end + 1, WINDOW_MS):
                    seen[campaign, window_end] = now
                last[campaign] = end
            stop.wait(_ASK)


def _read(bootstrap: str, topic: str, seen: Seen, stop: threading.Event) -> None:
    """Notes for each campaign and end of a window when a reader of committed messages has its count."""
    options = {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False}
    consumer = Consumer(options | {"isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(flink_yahoo.PARTITIONS)])
    while not stop.is_set():
        for message in consumer.consume(1_000, _ASK):
            if not message.error():
                row = json.loads(message.value() or b"")
                end = flink_yahoo.instant(row["window_end"])
                seen.setdefault((row["campaign"], end), int(time.time() * 1000))
    consumer.close()
