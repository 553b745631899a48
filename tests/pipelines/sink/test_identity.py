"""The `_id` of a document: readable, never shared by two identities, and never longer than Elasticsearch takes."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.contracts.records import Novelty
from pipelines.jobs.sink.identity import document_id

LONGEST_BYTES = 512
END = "|0|1"
"""What follows the entity and the metric in the ids of this file."""


def identity(entity: str, metric: str) -> str:
    fields = {"window_start": 0, "window_end": 1, "kind": "normal", "record_score": 0, "probability": 1}
    return document_id(Novelty.model_validate({"entity": entity, "metric": metric, **fields}))


names = st.text(min_size=1, max_size=300)
close = st.text("a|%~7C\x00 ", min_size=1, max_size=4)
"""Names of what is escaped and of what escapes are made of: two of these are alike often."""


@given(close | names, close | names, close | names, close | names)
@example("a|b", "c", "a", "b|c")
@example("a", "b|c", "a|b", "c")
@example("a%7Cb", "c", "a|b", "c")
@example("a%", "7Cb", "a", "%7Cb")
@example("~", "a", "%7E", "a")
@example("a b", "c", "a%20b", "c")
def test_two_identities_never_share_an_id(entity: str, metric: str, other: str, another: str) -> None:
    assert len(identity(entity, metric).encode()) <= LONGEST_BYTES
    assert (identity(entity, metric) == identity(other, another)) == ((entity, metric) == (other, another))


def test_an_id_tells_whom_it_is_of_and_escapes_what_separates() -> None:
    assert identity("web-1", "cpu") == "web-1|cpu" + END
    assert identity("db|1", "50 %") == "db%7C1|50%20%25" + END


@pytest.mark.parametrize("letter", ["a", "я", "語", "𝕏"], ids=["1 byte", "2 bytes", "3 bytes", "4 bytes"])
def test_an_id_is_readable_up_to_512_bytes_in_whatever_script_and_a_hash_beyond(letter: str) -> None:
    size = len(letter.encode())
    room = LONGEST_BYTES - len("|m" + END)
    entity = letter * (room // size) + "a" * (room % size)
    whole = identity(entity, "m")
    assert (whole, len(whole.encode())) == (f"{entity}|m{END}", LONGEST_BYTES)
    longer = identity(entity, "mm")
    assert longer == "~" + hashlib.sha256(f"{entity}|mm{END}".encode()).hexdigest()
    assert longer != identity(entity, "mn")
