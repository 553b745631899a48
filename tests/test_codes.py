"""Error codes: each is registered once, with what it means and what to do; each registered code is raised somewhere."""

from __future__ import annotations

import ast
import functools
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.formats.dead_letters import dead_letter
from engine.spec.errors import REGISTRY, NewnormalError, section
from pipelines.cli.reference import errors_page
from pipelines.jobs.sink.backoff import SinkStoppedError

ROOT = Path(__file__).parents[1]
PACKAGES = ("engine", "models", "pipelines", "datagen", "dashboards", "deploy")
CODE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


@functools.cache
def codes_used(package: str) -> list[tuple[str, str]]:
    """Each code that the modules of a package name in an error, a tuple, or a constant; and the place."""
    return list(found_codes(package))


def found_codes(package: str) -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        if path.name == "codes.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if CODE.fullmatch(text) and not text.startswith("NEWNORMAL_") and is_code(node, parents):
                yield text, f"{path.relative_to(ROOT)}:{node.lineno}"


def is_code(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a constant is where codes are given: first in an error, in a tuple, or in an argument named code.

    A value of a dict may be a code or anything else, so that it counts only if there is such a code.
    """
    parent = parents[node]
    if isinstance(parent, ast.Dict):
        return node in parent.values and isinstance(node, ast.Constant) and node.value in REGISTRY
    if isinstance(parent, ast.Call):
        name = ast.unparse(parent.func).split(".")[-1]
        return (name.endswith("Error") and parent.args[:1] == [node]) or name == "Rejected"
    if isinstance(parent, ast.IfExp | ast.Assign | ast.keyword):
        return not isinstance(parent, ast.keyword) or parent.arg == "code"
    return isinstance(parent, ast.Tuple) and not isinstance(parents[parent], ast.Compare | ast.Subscript | ast.Starred)


def known_to(package: str) -> set[str]:
    """The codes that are registered in a process that has imported this package and nothing else, as a worker has."""
    program = f"import {package}\nfrom engine.spec.errors import REGISTRY\nprint(*REGISTRY)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("package", PACKAGES)
def test_each_code_that_a_package_raises_is_registered_when_the_package_is_imported(package: str) -> None:
    known = known_to(package)
    assert not {f"{code} at {place}" for code, place in codes_used(package) if code not in known}


def test_each_registered_code_is_raised_somewhere() -> None:
    used = {code for package in (*PACKAGES, "tests/chaos") for code, _ in codes_used(package)}
    assert not set(REGISTRY) - used


def test_each_literal_code_of_an_error_is_found_by_this_test() -> None:
    used = {code for package in PACKAGES for code, _ in codes_used(package)}
    assert {"SETTING_INVALID", "TIME_AHEAD", "FIELD_INVALID", "TOO_LARGE", "RULE_INVALID", "STATE_DIR"} <= used


def test_an_unregistered_code_cannot_be_raised_and_the_refusal_says_how_to_register_it() -> None:
    with pytest.raises(LookupError, match=r"NO_SUCH_CODE .* codes\.py"):
        NewnormalError("NO_SUCH_CODE", "what")


def test_an_unregistered_code_cannot_get_into_a_dead_letter() -> None:
    with pytest.raises(LookupError, match="NO_SUCH_CODE"):
        dead_letter("job", "NO_SUCH_CODE", "reason", b"", time=0, topic="t", partition=0, offset=0)


def test_an_error_survives_the_way_to_a_process_that_knows_no_codes() -> None:
    """Spark's workers and driver need not have imported the same packages."""
    error = NewnormalError("SHARDS_FIXED", "what", "where", "accepted", "now")
    program = "import pickle, sys, engine.spec.errors as e; e.REGISTRY.clear(); print(pickle.load(sys.stdin.buffer))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, input=pickle.dumps(error), capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == str(error)


def test_an_error_of_a_class_of_its_own_keeps_class_and_fields_when_pickled() -> None:
    found = pickle.loads(pickle.dumps(SinkStoppedError("SINK_STOPPED", "w", "x", "y", "z")))
    assert type(found) is SinkStoppedError
    assert (found.code, found.what, found.where, found.accepted, found.now) == ("SINK_STOPPED", "w", "x", "y", "z")


def test_the_page_has_each_code_once_with_its_meaning_and_what_to_do() -> None:
    page = errors_page()
    for code in REGISTRY.values():
        assert page.count(f"| `{code.name}` | {code.means} | {code.do} |") == 1
        assert code.means and code.do


def test_a_code_is_registered_once() -> None:
    with pytest.raises(LookupError, match="SETTING_INVALID"):
        section("Elsewhere")("SETTING_INVALID", "something else", "nothing")
