"""The constants of single kinds of evidence, and what each means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from models.constant import Constant


@dataclass(frozen=True)
class EvidenceConfig:
    """None of it should need to be changed.

    Args:
        keep: Share of lingering surprise that is left a step later.
        knee: Lingering surprise that ranks half way up to notable evidence.
        settled: Values until surprise counts in full: of little that is known, much surprises.
        grown: Values until a series is no longer new.
        new: So much more evidence, in proportion, must speak of a series of which nothing is known.
        frozen_forget: Share of what is known of the first repeat of a value that is forgotten per value, at least.
        frozen_pace: Weight of the newest value in the chance of a further repeat.
    """

    keep: Annotated[
        float,
        Constant(
            "share",
            0,
            0.999,
            "measured: deviations with steps and such a memory .73 on cloud_monitoring, alone .59 (model.md, Figures)",
            off=0,
        ),
    ] = 0.9
    knee: Annotated[float, Constant("nats", 1, 200, "chosen by hand")] = 20.0
    settled: Annotated[
        float, Constant("values", 1, 1000, "chosen by hand on cloud_monitoring (model.md, Figures)", off=1)
    ] = 50.0
    grown: Annotated[
        float,
        Constant(
            "values",
            1,
            10000,
            "measured: with it, and new, cloud_monitoring .652, without .60 (model.md, Figures)",
            off=1,
        ),
    ] = 200.0
    new: Annotated[float, Constant("1", 0, 10, "see grown", off=0)] = 2.0
    frozen_forget: Annotated[float, Constant("share per value", 0, 0.5, "chosen by hand", off=0)] = 1 / 500
    frozen_pace: Annotated[float, Constant("weight", 0.001, 1, "chosen by hand")] = 1 / 20
