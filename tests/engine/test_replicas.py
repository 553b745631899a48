"""Generated names: which set of replicas they belong to. Guards `engine.columns.replicas`."""

from __future__ import annotations

import zlib

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.columns.partitioning import slots
from engine.columns.replicas import replicas_of

LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery/pkg/util/rand
NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)  # RFC 1123, as Kubernetes asks for
ENDS = st.text(LETTERS, min_size=5, max_size=5)


def _encoded(number: int) -> str:
    """The hash of a template, as Kubernetes writes it: each decimal digit's code point, modulo 27, in the alphabet."""
    return "".join(LETTERS[ord(digit) % len(LETTERS)] for digit in str(number))


@given(NAMES, NAMES, st.integers(10**6, 2**32 - 1), ENDS)
def test_a_pod_of_a_deployment_belongs_to_it_with_and_without_a_namespace(space, name, number, end):
    assert replicas_of(f"{space}/{name}-{_encoded(number)}-{end}") == f"{space}/{name}"
    assert replicas_of(f"{name}-{_encoded(number)}-{end}") == name


@given(NAMES, NAMES, ENDS, st.integers(0, 9999))
def test_pods_of_daemon_sets_and_stateful_sets_belong_to_them_in_their_namespace(space, name, end, ordinal):
    plain = f"{name}-{end}"
    assert replicas_of(f"{space}/{name}-{ordinal}") == f"{space}/{name}"
    assert replicas_of(f"{space}/{plain}") is not None
    assert replicas_of(f"{name}-{ordinal}") is None


@pytest.mark.parametrize(
    "name", ["web-1", "10.0.0.5", "db", "ingress-https", "rack-12/switch", "a/b/c", "host-2026", "", "-", "x" * 10_000]
)
def test_other_names_belong_to_no_set(name):
    assert replicas_of(name) is None


@given(st.lists(st.tuples(NAMES, ENDS), min_size=1, max_size=20), st.integers(1, 16))
def test_the_replicas_of_a_set_are_in_the_slot_of_its_name(pods, n):
    keys = [f"shop/{name}-7d4b9c6f5-{end}" for name, end in pods]
    expected = [zlib.crc32(f"shop/{name}".encode()) % n for name, _ in pods]
    assert slots(pl.Series(keys), n).tolist() == expected
