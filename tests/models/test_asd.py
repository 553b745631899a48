"""On recorded server machines the online model of a machine's metrics ranks better than PCA trained in one batch."""

from pathlib import Path

import numpy as np
import pytest

from models.machine.config import MultivariateConfig
from models.machine.multivariate import Multivariate

DATA = Path(__file__).parents[3] / "shared" / "data" / "asd"
STEP = 300_000


def _area(label: np.ndarray, score: np.ndarray) -> float:
    """Area under the precision-recall curve (average precision); ties count as one threshold."""
    order = np.argsort(-score, kind="stable")
    ends = np.append(np.nonzero(np.diff(score[order]))[0], len(score) - 1)
    hits = np.cumsum(label[order])[ends]
    return float((np.diff(hits / label.sum(), prepend=0.0) * hits / (ends + 1)).sum())


def _pca(train: np.ndarray, test: np.ndarray, share: float) -> np.ndarray:
    """Squared reconstruction error of principal components that explain a share of the variance, trained at once."""
    spread = np.where(train.std(axis=0) < 1e-9, 1.0, train.std(axis=0))
    z, new = (train - train.mean(axis=0)) / spread, (test - train.mean(axis=0)) / spread
    _, singular, axes = np.linalg.svd(z, full_matrices=False)
    kept = axes[: int(np.searchsorted(np.cumsum(singular**2) / (singular**2).sum(), share)) + 1]
    return (new**2).sum(axis=1) - ((new @ kept.T) ** 2).sum(axis=1)


def test_on_server_machines_one_setting_beats_batch_pca_by_a_tenth_and_more() -> None:
    files = sorted(DATA.glob("omi-*.npz"))
    if not files:
        pytest.skip(f"{DATA} is not there: the recorded machines lie beside the repository, in ../shared/data")
    machines = [np.load(file) for file in files]
    train, test = (np.stack([m[name] for m in machines], axis=1).astype(float) for name in ("train", "test"))
    label = np.stack([m["label"] for m in machines], axis=1).astype(int)
    model = Multivariate(MultivariateConfig(), train.shape[2])
    n = len(machines)
    state, rows, scores = model.new_state(n), np.arange(n), []
    for step, value in enumerate(np.concatenate([train, test])):
        verdict = model.step(state, rows, np.full(n, step * STEP), value)
        scores.append(verdict.record_score)
    online = np.array(scores)[len(train) :]
    ours = np.mean([_area(label[:, m], online[:, m]) for m in range(n)])
    best = max(
        np.mean([_area(label[:, m], _pca(train[:, m], test[:, m], share)) for m in range(n)])
        for share in (0.8, 0.9, 0.95, 0.99)
    )
    assert ours >= 1.1 * best, (ours, best)
