"""The grammars of OpenMetrics and of the line protocol, case by case, by the texts of their specifications."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pipelines.contracts.settings import load
from pipelines.formats.catalogue import BY_NAME, guess
from pipelines.formats.rules import Rules
from tests.pipelines.formats.decoding import ARRIVED, decoded, rows

RULES = Rules.of(load(**{"input.default_machine": "edge"}).input)
Sample = tuple[str, float, int]


def read(name: str, text: str) -> list[Sample]:
    """(metric, value, time) of each sample; the text must be recognised as the format."""
    form = guess(text.encode())
    assert form is not None
    assert form.name == name
    return [
        (row["metric"], row["value"], row["time"]) for row in rows(decoded(BY_NAME[name].build(RULES), text.encode()))
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("# TYPE a gauge\na 1", [("a", 1.0, ARRIVED)]),
        ("# TYPE a gauge\na -1.5e-3 1795220820", [("a", -0.0015, 1_795_220_820_000)]),
        ("# TYPE a gauge\na 1 1795220820.123", [("a", 1.0, 1_795_220_820_123)]),
        ("# TYPE a gauge\na 1 1.795220820e+09", [("a", 1.0, 1_795_220_820_000)]),
        ("# TYPE a gauge\na{} 007", [("a", 7.0, ARRIVED)]),
        ('# TYPE a gauge\na{b="c",d=""} 1', [("a{b=c}", 1.0, ARRIVED)]),
        ('# TYPE a gauge\na{b="\\"\\\\\\n"} 1', [('a{b="\\\n}', 1.0, ARRIVED)]),
        ('# TYPE a gauge\na{b="} # {"} 1', [("a{b=} # {}", 1.0, ARRIVED)]),
        ("# TYPE a gauge\n# UNIT a_seconds seconds\n# HELP a x \\n y\na_seconds 1", [("a_seconds", 1.0, ARRIVED)]),
        ('# TYPE a counter\na_total 1 # {trace="x"} 0.5 1795220820', [("a_total", 1.0, ARRIVED)]),
        ("# TYPE a counter\na_total 1\na_created 5", [("a_total", 1.0, ARRIVED), ("a_created", 5.0, ARRIVED)]),
        (
            '# TYPE a summary\na{quantile="1"} 7\na_count 3',
            [("a{quantile=1}", 7.0, ARRIVED), ("a_count", 3.0, ARRIVED)],
        ),
        ('# TYPE a stateset\na{a="on"} 1\na{a="off"} 0', [("a{a=on}", 1.0, ARRIVED), ("a{a=off}", 0.0, ARRIVED)]),
        ('# TYPE a info\na_info{v="1"} 1', [("a_info{v=1}", 1.0, ARRIVED)]),
        ("# TYPE a gauge\na NaN\nb 1", [("b", 1.0, ARRIVED)]),
    ],
)  # fmt: skip
def test_openmetrics_is_read_as_its_specification_says(lines: str, expected: list[Sample]) -> None:
    text = f"{lines}\n# EOF\n"
    assert sorted(read("prometheus", text)) == sorted(expected)
    if "_created" not in lines and "UNIT" not in lines and "007" not in lines:
        known = [one for family in text_string_to_metric_families(text) for one in family.samples]
        assert sorted(one.value for one in known if one.value == one.value) == sorted(value for _, value, _ in expected)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("m f=1", [("m.f", 1.0)]),
        ("m f=1i,g=2u,h=-3e2,i=.5", [("m.f", 1.0), ("m.g", 2.0), ("m.h", -300.0), ("m.i", 0.5)]),
        ("m a=t,b=T,c=true,d=True,e=TRUE", [(f"m.{name}", 1.0) for name in "abcde"]),
        ("m a=f,b=F,c=false,d=False,e=FALSE", [(f"m.{name}", 0.0) for name in "abcde"]),
        ("m,a=b,c=d f=1 1795220820000000000", [("m.f{a=b,c=d}", 1.0)]),
        (r"my\ m\,x,a\ b=c\,d\=e f\ g=1", [("my m,x.f g{a b=c,d=e}", 1.0)]),
        ('m,a="b{" f=1', [('m.f{a="b{"}', 1.0)]),
        ('m s="a b,c=d\\"e\\\\",f=1', [("m.f", 1.0)]),
        ("# a comment\n\nm f=1\r\n", [("m.f", 1.0)]),
        ("m  f=1   ", [("m.f", 1.0)]),
        ("m f=2\nm=n f=1", [("m.f", 2.0), ("m=n.f", 1.0)]),
        (r"m,a=b\c f=1", [(r"m.f{a=b\c}", 1.0)]),
        ("größe,ort=köln f=1", [("größe.f{ort=köln}", 1.0)]),
    ],
)
def test_the_line_protocol_is_read_as_its_reference_says(line: str, expected: list[tuple[str, float]]) -> None:
    assert sorted(each[:2] for each in read("influx", line)) == sorted(expected)
