"""What each constant of the models is worth: accuracy with it halved, doubled or off, beside the models as they are.

Constants are arguments of the compiled functions: another value compiles nothing anew. All is judged in one process,
one setting after the other; each result is a line of a file at once, so that a run that was stopped goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from engine.spec.errors import NewnormalError
from models.model_config import Described, ModelConfig, changed, described
from models.numbers.arrays import Array
from pipelines.contracts.settings import load
from pipelines.evaluation import show
from pipelines.evaluation.recorded import judge
from pipelines.evaluation.vus import period, vus_pr
from pipelines.jobs.detectors.metrics.detection import Detection
from tests.benchmarks import kinds, nab, vus
from tests.benchmarks.measures import datasets

Figures = dict[str, float]
"""Measures by name, each in points of 100."""

NOISE = 8
"""Random settings whose spread is the noise."""

NUDGE = 0.05
"""In these, each constant is larger or smaller by this share at most."""

BEYOND = 2.0
"""An effect of no more than so many standard deviations of the noise says nothing."""

AS_IT_IS, RANDOM = "as it is", "random"
_UNSEEN = ("feedback", "logs")
"""Groups that these data say nothing of: no operator speaks in them, and they have no log lines."""

_SCORES = {"": "record_score", " state": "state_score"}
"""What is added to the name of a figure, by the score that it is about."""


class Setting(NamedTuple):
    """Constants with which the data are judged.

    Args:
        constant: The one that is changed; or `AS_IT_IS`; or `RANDOM`, if all are.
        how: ``off``, ``halved``, ``doubled``; of a random setting its number.
        value: Of the constant.
    """

    constant: str
    how: str = ""
    value: float | None = None

    def config(self) -> ModelConfig:
        """The constants."""
        if self.constant == RANDOM:
            return _nudged(int(self.how))
        return ModelConfig() if self.value is None else changed(ModelConfig(), self.constant, self.value)


def run(data: Path, out: Path, names: str = "", only: str = "", noise: int = NOISE) -> dict[str, Any]:
    """Judges the data as they are, with random settings and with each constant changed; prints and returns the effects.

    Args:
        data: Folder of the data sets.
        out: Folder; ``ablation.jsonl`` in it has a line for each setting and data set, and what has one is not judged
            again. ``ablation.json`` gets the effects, ``ablation.md`` the table.
        names: Of `DATASETS`, with commas; empty: all.
        only: Beginnings of constants' names, such as ``series.weight`` or ``regimes``, with commas; empty: all that the
            data say something of.
        noise: How many random settings.

    Returns:
        ``as it is``: the figures of the models as they are; ``noise``: the standard deviation of each over the random
        settings; ``effects``: for each change by how much each figure differs, the largest in noise first; ``worth``:
        of each constant what is beyond noise, in words.

    Raises:
        NewnormalError: ``SETTING_INVALID`` if a data set or a constant is none, ``FILE_UNUSABLE`` if a data set is not
            there.
    """
    constants = _chosen(only)
    chosen = _words(names) or list(DATASETS)
    _check("--datasets", chosen, DATASETS, ", ".join(DATASETS))
    for name in chosen:
        if name in _READ:
            _READ[name](data)
    settings = [Setting(AS_IT_IS), *(Setting(RANDOM, str(n)) for n in range(1, noise + 1)), *_changes(constants)]
    out.mkdir(parents=True, exist_ok=True)
    file = out / "ablation.jsonl"
    _measure(data, [(setting, name) for setting in settings for name in chosen], file)
    effects = summary(file, settings, chosen)
    heads, rows = _table(effects)
    show.table("effect, in points of 100", heads, rows)
    show.write(out, "ablation", effects)
    (out / "ablation.md").write_text("\n".join(_markdown(heads, rows)) + "\n", encoding="utf-8")
    return effects


def figures(data: Path, name: str, config: ModelConfig) -> Figures:
    """The figures of a data set, with these constants."""
    return DATASETS[name](data, Detection(load().detector, config))


def summary(file: Path, settings: Sequence[Setting], names: Container[str]) -> dict[str, Any]:
    """The effects of settings that have lines in a file; see `run`."""
    found: dict[Setting, Figures] = {}
    for setting, name, own in _read(file):
        if name in names:
            found.setdefault(setting, {}).update(own)
    normal = found[Setting(AS_IT_IS)]
    random = [found[setting] for setting in settings if setting.constant == RANDOM]
    noise = {name: float(np.std([own[name] for own in random], ddof=1)) if random[1:] else 0.0 for name in normal}
    effects = [
        {**setting._asdict(), **{name: found[setting][name] - normal[name] for name in normal}}
        for setting in settings
        if setting.constant not in (AS_IT_IS, RANDOM)
    ]
    effects.sort(key=lambda row: str(row["constant"]))
    worth = {path: _words_on(list(rows), noise) for path, rows in groupby(effects, lambda row: str(row["constant"]))}
    effects.sort(key=lambda row: -max(_in_noise(row, noise).values()))
    return {AS_IT_IS: normal, "noise": noise, "effects": effects, "worth": worth}


def _in_noise(row: dict[str, Any], noise: Figures) -> Figures:
    """The effects of a change, in standard deviations of the noise."""
    return {name: abs(row[name]) / max(spread, 1e-3) for name, spread in noise.items()}


def _words_on(rows: Sequence[dict[str, Any]], noise: Figures) -> str:
    """What is beyond noise of the changes of a constant, such as ``off: NAB −4.6, found −12; doubled: NAB −0.5``."""
    if not any(row[name] for row in rows for name in noise):
        return "nothing: no figure changes"
    told = []
    for row in rows:
        sizes = _in_noise(row, noise)
        names = [name for name in sorted(sizes, key=lambda name: -sizes[name]) if sizes[name] > BEYOND]
        if names:
            told.append(f"{row['how']}: " + ", ".join(f"{name} {row[name]:+.1f}".replace("-", "−") for name in names))
    return "; ".join(told) or "nothing beyond noise"


def _table(effects: dict[str, Any]) -> tuple[list[str], list[list[object]]]:
    normal, noise = effects[AS_IT_IS], effects["noise"]
    rows: list[list[object]] = [[AS_IT_IS, "", "", *normal.values()], ["noise", "", "", *noise.values()]]
    for row in effects["effects"]:
        rows.append([row["constant"], row["how"], f"{row['value']:.6g}", *(row[name] for name in normal)])
    return ["constant", "", "value", *normal], rows


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    for row in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(f'{value:+.2f}' if isinstance(value, float) else str(value) for value in row)} |"


def _measure(data: Path, tasks: Iterable[tuple[Setting, str]], file: Path) -> None:
    """Appends what is missing in a file to it."""
    known = {(setting, name) for setting, name, _ in _read(file)}
    left = [task for task in tasks if task not in known]
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    torn = bool(before) and not before.endswith("\n")
    with file.open("a", encoding="utf-8", buffering=1) as lines, show.bar("ablation", "judgements") as progress:
        lines.write("\n" if torn else "")
        for done, (setting, name) in enumerate(left):
            progress(done, len(left))
            begun = time.process_time()
            own = figures(data, name, setting.config())
            taken = {"seconds": round(time.process_time() - begun, 1)}
            lines.write(json.dumps({**setting._asdict(), "dataset": name, **taken, "figures": own}) + "\n")
        progress(1, 1)


def _read(file: Path) -> Iterator[tuple[Setting, str, Figures]]:
    """The lines of a file; one that a stopped run left unfinished is none."""
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        with suppress(json.JSONDecodeError):
            row = json.loads(line)
            yield Setting(row["constant"], row["how"], row["value"]), row["dataset"], row["figures"]


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _chosen(only: str) -> list[Described]:
    """The constants whose names begin with one of these.

    Raises:
        NewnormalError: ``SETTING_INVALID`` if none begins with one of them.
    """
    usable = [one for one in described() if one.group not in _UNSEEN]
    begin = {word: [one for one in usable if one.path.startswith(word)] for word in _words(only)}
    groups = ", ".join(name for name, _ in groupby(one.group for one in usable))
    accepted = f"a group ({groups}), or a constant or how it begins, such as series.half or series.weight"
    _check("--only", begin, [word for word, own in begin.items() if own], accepted)
    return [one for one in usable if not begin or any(one in own for own in begin.values())]


def _check(option: str, words: Iterable[str], known: Container[str], accepted: str) -> None:
    """Makes sure that all words of an option are known.

    Raises:
        NewnormalError: ``SETTING_INVALID`` if one is not.
    """
    if unknown := [word for word in words if word not in known]:
        raise NewnormalError("SETTING_INVALID", ", ".join(unknown), option, accepted, "nothing was measured")


def _changes(constants: Sequence[Described]) -> Iterator[Setting]:
    """Each mechanism off; then each constant halved and doubled, within its range."""
    for one in constants:
        if one.about.off is not None:
            yield Setting(one.path, "off", float(one.about.off))
    for one in constants:
        for how, by in ("halved", 0.5), ("doubled", 2.0):
            value = _within(one, one.value * by)
            if value not in (one.value, one.about.off):
                yield Setting(one.path, how, value)


def _within(constant: Described, value: float) -> float:
    value = min(max(value, constant.about.least), constant.about.most)
    return float(round(value) if isinstance(constant.value, int) else value)


def _nudged(seed: int) -> ModelConfig:
    """All constants a little larger or smaller, at random."""
    config, random = ModelConfig(), np.random.default_rng(seed)
    for one in described():
        factor = float(np.exp(random.uniform(-NUDGE, NUDGE)))
        config = changed(config, one.path, _within(one, one.value * factor))
    return config


_NAB = cache(lambda data: datasets.nab(data / "nab"))
_CLOUD = cache(lambda data: datasets.cloud_monitoring(data / "cloud_monitoring"))
_ASD = cache(lambda data: datasets.asd(data / "asd"))
_READ = {"nab": _NAB, "cloud_monitoring": _CLOUD, "asd": _ASD}
"""Reads a data set, once."""


def _nab(data: Path, detection: Detection) -> Figures:
    known = _NAB(data)
    scores = nab.by_file(judge(known.values, load().detector, detection=detection), known)
    return {"NAB": nab.scored(known, scores)["standard"]}


def _cloud(data: Path, detection: Detection) -> Figures:
    known = _CLOUD(data)
    verdicts = judge(known.drop("label"), load().detector, detection=detection)
    return _ranked("cloud", [one[1:] for one in vus.labelled(known, verdicts)])


def _asd(data: Path, detection: Detection) -> Figures:
    machines = _ASD(data)
    verdicts = judge(pl.concat([machine.values() for machine in machines]), load().detector, detection=detection)
    return _ranked("ASD", [(one.test[:, 0], one.labels, vus.of_machine(one, verdicts)) for one in machines])


def _ranked(name: str, series: Sequence[tuple[Array, Array, pl.DataFrame]]) -> Figures:
    """The mean VUS-PR of series, by each score: values, labels and verdicts of each."""
    return {
        f"{name}{ending}": 100
        * float(np.mean([vus_pr(labels, own[score].to_numpy(), period(value)) for value, labels, own in series]))
        for ending, score in _SCORES.items()
    }


_KINDS = {
    "told apart": "balanced accuracy anomaly / change",
    "found": "anomalies found",
    "accepted": "series: new normal within 60 windows",
    "recognised": "series: recognised within 5 windows",
    "false alarms": "false alarms a series and month",
}
"""Figures of `kinds` by the names that they have here; false alarms are of 100 series."""


def _kinds(_data: Path, detection: Detection) -> Figures:
    """Of a small site: enough to see what breaks, not to tell two settings apart that are nearly alike."""
    found = kinds.measure(detection, entities=20, weeks=3, seed=101)
    return {name: 100 * float(found[figure]) for name, figure in _KINDS.items()}


DATASETS: dict[str, Callable[[Path, Detection], Figures]] = {
    "nab": _nab,
    "cloud_monitoring": _cloud,
    "asd": _asd,
    "kinds": _kinds,
}
"""What is measured: NAB's standard score, mean VUS-PR of two data sets, how changes of a simulated site are told."""
