"""The constants of the model of log templates, and what each means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from models.constant import Constant


@dataclass(frozen=True)
class TemplateConfig:
    """All that is configurable; none of it should need to be.

    Args:
        forget: Share of all statistics forgotten per window.
        warm_up: Windows of an entity before it is judged.
        half: Weight of evidence that scores 50.
        weight_unseen: What a nat of evidence counts that is about a template not seen on any entity before.
        newcomer: Windows for which a template not seen on any entity before is a newcomer, which is more evidence with
            each window in which it comes again.
        comes_again: Chance, before any is known, that a newcomer comes in a window.
        calibration_forget: Share of the history of surprise at the mix forgotten per window.
        early: Of a history of n windows at least the share early / n of the arrivals of new templates is forgotten a
            window: that everything is new at first says little of later.
        clip: A count of more than so many times what was expected is learned as that many.
        doubt: Evidence, in nats, from which a window is learned with less weight.
        unrest_pace: Weight of the newest window in the mean of evidence that tells whether the unusual persists.
        unrest_clip: Evidence of one window counts at most this there.
        hurry: Share forgotten per window once the unusual has persisted.
        lost: Evidence, in nats, of windows without any line from which an entity is absent.
        faint: A template with fewer (faded) lines may be dropped from the state.
        present: Weight of the newest window in the mean that is the present rate of a template.
        few: Windows that what is known of an entity's rates is worth once an operator has accepted the present ones.
        trace: Lines of a template that are remembered at least when its present rate is accepted.
    """

    forget: Annotated[float, Constant("share per window", 0, 0.5, "chosen by hand", off=0)] = 1 / 2000
    warm_up: Annotated[int, Constant("windows", 1, 1000, "chosen by hand, the same as series.learning", off=1)] = 8
    half: Annotated[float, Constant("nats", 1, 200, "chosen by hand")] = 12.5
    weight_unseen: Annotated[float, Constant("1", 0, 10, "chosen by hand", off=1)] = 2.0
    newcomer: Annotated[float, Constant("windows", 0, 1000, "chosen by hand", off=0)] = 30.0
    comes_again: Annotated[float, Constant("1", 0.001, 1, "chosen by hand", off=1)] = 0.1
    calibration_forget: Annotated[
        float, Constant("share per window", 0, 0.5, "chosen by hand, the same as machine.forget", off=0)
    ] = 1 / 5000
    early: Annotated[float, Constant("1", 0, 10, "chosen by hand", off=0)] = 2.0
    clip: Annotated[float, Constant("times the expected", 1, 1000, "chosen by hand", off=1000000.0)] = 10.0
    doubt: Annotated[float, Constant("nats", 1, 1000, "chosen by hand", off=1000000.0)] = 6.0
    unrest_pace: Annotated[float, Constant("weight", 0.001, 1, "chosen by hand")] = 0.06
    unrest_clip: Annotated[float, Constant("nats", 1, 1000, "chosen by hand")] = 7.0
    hurry: Annotated[float, Constant("share per window", 0, 0.5, "chosen by hand", off=0)] = 0.05
    lost: Annotated[float, Constant("nats", 1, 1000, "chosen by hand")] = 20.0
    faint: Annotated[float, Constant("lines", 0, 1, "chosen by hand", off=0)] = 1e-3
    present: Annotated[float, Constant("weight", 0.01, 1, "chosen by hand, the same as feedback.pace")] = 0.3
    few: Annotated[float, Constant("windows", 0.5, 1000, "chosen by hand, the same as for series")] = 20.0
    trace: Annotated[float, Constant("lines", 0, 10, "chosen by hand, so that it is still known (model.md, Logs)")] = (
        0.1
    )
