"""What each constant of the models is worth: accuracy with it larger or smaller, beside that of the models as they are.

Constants are arguments of the compiled functions: another value compiles nothing anew.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Container, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from engine.spec.errors import NewnormalError
from models.arrays import Array
from models.model_config import Described, ModelConfig, changed, described
from pipelines.contracts.settings import load
from pipelines.evaluation import datasets, show
from pipelines.evaluation.recorded import judge
from pipelines.evaluation.side_process import end_with_parent
from pipelines.evaluation.vus import period, vus_pr
from pipelines.jobs.detect.metrics.detection import Detection
from tests.benchmarks import kinds, nab, vus

Figures = dict[str, float]
"""Measures by name, each in points of 100."""

_UNSEEN = ("feedback", "logs")
"""Groups that these data say nothing of: no operator speaks in them, and they have no log lines."""

_SCORES = {"": "record_score", " state": "state_score"}
"""What is added to the name of a figure, by the score that it is about."""


def run(data: Path, parts: Sequence[str], only: Sequence[str], factor: float) -> dict[str, Any]:
    """Judges the data once as it is and twice for each constant; prints a table and returns it, largest effects first.

    Args:
        data: Folder of the data sets.
        parts: Of `PARTS`; empty: all.
        only: Constants, such as ``series.half``, or groups; empty: all that the data say something of.
        factor: By how much each constant is multiplied, and divided.

    Returns:
        ``as it is``: the figures of the models as they are; ``effects``: for each constant and value by how much each
        figure differs from that.

    Raises:
        NewnormalError: ``SETTING_INVALID`` if a part or a constant is none, ``DATA_ABSENT`` if a data set is not there.
    """
    usable = [one for one in described() if one.group not in _UNSEEN]
    groups, paths = dict.fromkeys(one.group for one in usable), {one.path for one in usable}
    _check("--part", parts, PARTS, ", ".join(PARTS))
    _check("--only", only, groups.keys() | paths, f"{', '.join(groups)}, or a constant of one, such as series.half")
    parts = parts or list(PARTS)
    tasks = list(_tasks([one for one in usable if not only or {one.path, one.group} & set(only)], factor))
    for part in parts:
        if part in _READ:
            _READ[part](data)
    context = get_context("spawn")  # a fork would copy the locks of Polars' threads as they are
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), context, _begin) as pool, show.bar("ablation") as told:
        configs = [ModelConfig(), *(changed(ModelConfig(), path, value) for path, value in tasks)]
        judged = [pool.submit(figures, data, parts, config) for config in configs]
        for done, _ in enumerate(as_completed(judged), 1):
            told(done, len(judged))
        normal, *others = (one.result() for one in judged)
    effects: list[dict[str, Any]] = [
        {"constant": path, "value": value} | {name: own[name] - normal[name] for name in normal}
        for (path, value), own in zip(tasks, others, strict=True)
    ]
    effects.sort(key=lambda row: -max(abs(row[name]) for name in normal))
    rows = [list(row.values()) for row in effects]
    show.table("effect, in points of 100", ["constant", "value", *normal], [["as it is", "", *normal.values()], *rows])
    return {"factor": factor, "as it is": normal, "effects": effects}


def figures(data: Path, parts: Iterable[str], config: ModelConfig) -> Figures:
    """The figures of some parts, with these constants."""
    found: Figures = {}
    for part in parts:
        found |= PARTS[part](data, Detection(load().detector, config))
    return found


def _check(option: str, words: Iterable[str], known: Container[str], accepted: str) -> None:
    """Makes sure that all words of an option are known.

    Raises:
        NewnormalError: ``SETTING_INVALID`` if one is not.
    """
    if unknown := [word for word in words if word not in known]:
        raise NewnormalError("SETTING_INVALID", ", ".join(unknown), option, accepted, "nothing was measured")


def _tasks(constants: Iterable[Described], factor: float) -> Iterator[tuple[str, float]]:
    """Each constant with its other values, within its range."""
    for one in constants:
        for by in (factor, 1 / factor):
            value = min(max(one.value * by, one.about.least), one.about.most)
            value = round(value) if isinstance(one.value, int) else value
            if value != one.value:
                yield one.path, value


def _begin() -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends all processes; this one without a stack trace


_NAB = cache(lambda data: datasets.nab(data / "nab"))
_CLOUD = cache(lambda data: datasets.cloud_monitoring(data / "cloud_monitoring"))
_ASD = cache(lambda data: datasets.asd(data / "asd"))
_READ = {"nab": _NAB, "cloud_monitoring": _CLOUD, "asd": _ASD}
"""Reads a data set, once in each process."""


def _nab(data: Path, detection: Detection) -> Figures:
    known = _NAB(data)
    scores = nab.by_file(judge(known.values, load().detector, detection=detection), known)
    return {"NAB": nab.scored(known, scores)["standard"]}


def _cloud(data: Path, detection: Detection) -> Figures:
    known = _CLOUD(data)
    verdicts = judge(known.drop("label"), load().detector, detection=detection)
    return _ranked("cloud_monitoring", [one[1:] for one in vus.labelled(known, verdicts)])


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


def _kinds(_data: Path, detection: Detection) -> Figures:
    """Of a small site: enough to see what breaks, not to tell two settings apart that are nearly alike."""
    found = kinds.measure(detection, entities=20, weeks=3, seed=101)
    return {"kinds": 100 * float(found["balanced accuracy anomaly / change"])}


PARTS = {"nab": _nab, "cloud_monitoring": _cloud, "asd": _asd, "kinds": _kinds}
"""What is measured: NAB's standard score, mean VUS-PR of two data sets, balanced accuracy of anomaly and change."""
