"""A change in a few words, for titles and tables: how much it is, in which direction, in which unit."""

from __future__ import annotations

from pipelines.contracts.quantities.words import Scale, number

MULTIPLE, MOST = 1.5, 1000.0
"""A value between so many times the usual one is written as a multiple, such as "3.8 ×"; others as "from → to"."""
_USUAL = " the usual"


def changed(actual: float | None, typical: float | None, kind: str = "gauge", metric: str = "") -> str:
    """How much a value differs from the usual one.

    Args:
        actual: The value; ``None`` if it is not known.
        typical: The usual value; ``None`` if it is not known.
        kind: Kind of the metric; it decides the unit.
        metric: Its name, which says of some that they are bytes.

    >>> changed(380.0, 100.0), changed(0.71, 0.27, "ratio"), changed(25.0, 100.0, "counter"), changed(5.0, 5.0)
    ('3.8 × the usual', '27 → 71 %', '100 → 25/s', 'unusual at 5')
    >>> changed(4.0, 0.0), changed(3.0, None), changed(None, None)
    ('0 → 4', 'unusual at 3', 'unusual')
    """
    if actual is None:
        return "unusual"
    if typical is None:
        return f"unusual at {Scale(None, kind, abs(actual), metric)(actual)}"
    if kind != "ratio" and typical > 0 and MULTIPLE <= actual / typical <= MOST:
        return f"{number(actual / typical, digits=2)} ×{_USUAL}"
    text = Scale(actual - typical, kind, max(abs(actual), abs(typical)), metric).step(typical, actual)
    return text if "→" in text else f"unusual at {text}"


def beside_peers(actual: float | None, typical: float | None, kind: str = "gauge", metric: str = "") -> str:
    """How much a value differs from what those of the machine's peers suggest.

    >>> beside_peers(62.0, 20.0), beside_peers(0.71, 0.6, "ratio")
    ('3.1 × what its peers suggest', '60 → 71 %, unlike its peers')
    """
    text = changed(actual, typical, kind, metric)
    times = text.removesuffix(_USUAL)
    return f"{text}, unlike its peers" if times == text else f"{times} what its peers suggest"
