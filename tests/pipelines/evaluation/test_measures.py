"""Measures reproduce what is published, and what they say can be checked by hand."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipelines.evaluation.vus import vus_pr
from tests.benchmarks.measures import baselines, datasets
from tests.benchmarks.measures.nab import NabFile, evaluate

DATA = Path(__file__).parents[4] / "shared" / "data"
PUBLISHED = {"windowedGaussian": 39.65, "numenta": 70.10, "contextOSE": 69.90, "relativeEntropy": 54.64}


@pytest.fixture(scope="module")
def nab() -> datasets.Nab:
    if not (DATA / "nab").exists():
        pytest.skip(f"NAB is not at {DATA}: it lies beside the repository, in ../shared/data")
    return datasets.nab(DATA / "nab")


@pytest.mark.parametrize("detector", PUBLISHED)
def test_published_detectors_get_their_published_nab_scores(nab: datasets.Nab, detector: str) -> None:
    frame = pl.read_parquet(DATA / "nab" / "reference_scores" / f"{detector}.parquet").sort("row")
    frame = frame.with_columns(pl.col("file").cast(pl.String))
    scores = {file: part["anomaly_score"].to_numpy() for (file,), part in frame.group_by("file")}
    files = [NabFile(scores[file], windows) for file, windows in nab.windows.items()]
    standard = next(profile for profile in nab.profiles if profile.name == "standard")
    assert evaluate(files, standard).score == pytest.approx(PUBLISHED[detector], abs=0.005)


def test_vus_pr_is_that_of_the_definition_taken_word_by_word() -> None:
    for seed in range(6):
        random, labels = np.random.default_rng(seed), np.zeros(120)
        for start in random.integers(0, 100, 1 + seed % 4):
            labels[start : start + random.integers(1, 15)] = 1
        scores = random.random(120) + 0.4 * labels
        scores = np.round(scores, 1) if seed % 2 else scores
        assert vus_pr(labels, scores, 17, 40) == pytest.approx(_by_definition(labels, scores, 17, 40), abs=1e-12)


def _by_definition(labels: np.ndarray, scores: np.ndarray, longest: int, thresholds: int) -> float:
    areas, own = [], [i for i in range(len(labels)) if labels[i]]
    edges = np.sort(scores)[::-1][np.linspace(0, len(scores) - 1, thresholds).astype(int)]
    ends = [i for i in own if not (i + 1 < len(labels) and labels[i + 1])]
    starts = [i for i in own if not (i and labels[i - 1])]
    for buffer in range(longest + 1):
        half, weight = buffer // 2, labels.copy()
        for point, side in [(start, -1) for start in starts] + [(end, 1) for end in ends]:
            for away in range(1, half + 1):
                if 0 <= point + side * away < len(labels):
                    weight[point + side * away] += np.sqrt(1 - away / buffer)
        weight = np.minimum(weight, 1)
        groups: list[list[int]] = []
        for start, end in zip(starts, ends, strict=True):
            reach = [i for i in range(start - half, end + half + 1) if 0 <= i < len(labels)]
            if groups and reach[0] <= groups[-1][-1]:
                groups[-1] += reach
            else:
                groups.append(reach)
        area, recall_before = 0.0, 0.0
        for edge in edges:
            predicted = scores >= edge
            hit, extra = weight[predicted].sum(), weight[predicted & (labels == 0)].sum()
            existence = np.mean([predicted[group].any() for group in groups])
            recall = min(hit / (labels.sum() + extra / 2), 1) * existence
            area += (recall - recall_before) * hit / predicted.sum()
            recall_before = recall
        areas.append(area)
    return float(np.mean(areas))


def test_the_windowed_gaussian_looks_back_on_its_window_only() -> None:
    values = np.random.default_rng(0).normal(5, 2, 60)
    away = baselines.windowed_gaussian(values, window=20)
    past = values[20:40]
    assert away[40] == pytest.approx(abs(values[40] - past.mean()) / past.std())


def test_pca_sees_a_broken_correlation_that_no_single_metric_shows() -> None:
    random = np.random.default_rng(0)
    common = random.normal(0, 1, (500, 1))
    metrics = common + 0.1 * random.normal(0, 1, (500, 4))
    broken = metrics[:100].copy()
    broken[50] = [1.0, 1.0, 1.0, -1.0]
    for pca in (baselines.pca, baselines.pca_weighted):
        assert pca(metrics, broken).argmax() == 50
    assert baselines.averaged(metrics, broken).argmax() != 50
