"""Which texts say a bound of a metric: what is no number, or no two of them, is refused when the settings are read."""

from __future__ import annotations

import pytest

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load


@pytest.mark.parametrize(
    "text", ["nan..1", "0..nan", "inf..1", "-inf..1", "0..inf", "1e400..1", "0..0", "..", "", "x..1"]
)
def test_what_is_no_bound_is_refused_with_the_setting(text: str) -> None:
    with pytest.raises(NewnormalError) as found:
        load(**{"detector.bounds": {"queue*": text}})
    assert found.value.code == "SETTING_INVALID" and "detector.bounds.queue*" in found.value.what
