"""Nothing from outside is unpickled: each place that unpickles is known, and says whose bytes it reads."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "models", "pipelines", "datagen", "dashboards", "deploy")
KNOWN = {
    ("engine/spark/stateful.py", "pickle.loads"): (
        "a job, which the driver has packed into the plan of its own query; Spark brings it to the driver's own workers"
    ),
    ("pipelines/cli/beside.py", "recv"): "the answer of a process that the console itself has started",
}
"""The places that may unpickle, each with the reason why the bytes are ours."""
MODULES = frozenset({"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"})
LOADING = frozenset({"load", "loads", "Unpickler", "read_pickle", "open"})
OPENING = frozenset({"eval", "exec", "compile"})


def unpickled(file: Path) -> set[str]:
    """The calls in a file that turn bytes into objects of any kind, and the loads of NumPy that allow it."""
    tree, found, named = ast.parse(file.read_text()), set[str](), dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            named |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        if isinstance(node, ast.Import):
            named |= {each.asname or each.name: each.name for each in node.names if each.name in MODULES}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if any(each.arg == "allow_pickle" and not _is_false(each.value) for each in node.keywords):
            found.add("allow_pickle")
        target = node.func
        if isinstance(target, ast.Attribute):
            owner = target.value.id if isinstance(target.value, ast.Name) else ""
            module = named.get(owner, owner)
            if target.attr == "recv" and not node.args:  # of a pipe of multiprocessing; a socket's has a size
                found.add("recv")
            if target.attr == "read_pickle" or (module in MODULES and target.attr in LOADING):
                found.add(f"{module}.{target.attr}")
        elif isinstance(target, ast.Name) and named.get(target.id, "").rpartition(".")[2] in LOADING:
            found.add(named[target.id])
        elif isinstance(target, ast.Name) and target.id in OPENING:
            found.add(target.id)
    return found


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def test_each_place_that_unpickles_or_runs_text_is_known_and_has_a_reason() -> None:
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    assert len(files) > 300
    found = {(str(file.relative_to(ROOT)), call) for file in files for call in unpickled(file)}
    assert found == set(KNOWN)


def test_the_page_on_security_names_each_of_them() -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    for file, _ in KNOWN:
        assert file in page
