"""`make mutants`: a fixed sample of single-line changes, each against the fast tests that cover it.

The sample depends on the seed and on the changed lines alone, so that it stays nearly the same while the code grows.
Results are appended to a file as they come; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.mutants import covering
from tests.mutants.mutations import Mutation, mutations

ROOT = Path(__file__).parents[2]
FAST = "not servers and not spark and not slow and not browser"
FACTOR, GRACE_SECONDS = 4.0, 60.0
"""A mutant that takes so many times as long as its tests do without it, and a minute more, is killed: it hangs."""
HUNG = "no end within"


def sample(root: Path, count: int, seed: int) -> list[Mutation]:
    """The changes to try, in random order: those with the least random numbers; so a part of a run is a fair sample."""
    ranked = []
    for module in covering.modules(root):
        source = (root / module).read_text(encoding="utf-8")
        ranked += [(mutation.rank(seed, source), mutation) for mutation in mutations(module, source)]
    return [mutation for _, mutation in sorted(ranked, key=lambda pair: pair[0])[:count]]


class Copy:
    """A copy of the repository whose files may be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, folder / name)

    def passes(self, tests: list[str], limit: float) -> tuple[bool, str]:
        """Whether the tests pass within a time limit in seconds; and the first that fails."""
        threads = dict.fromkeys(("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        own = {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1", "NEWNORMAL_HYPOTHESIS": "no shrinking"}
        environment = os.environ | threads | own
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-m", FAST]
        try:
            done = subprocess.run(
                [*command, *tests],
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False, f"{HUNG} {limit:.0f} s"
        said = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return done.returncode == 0, said[0] if said else (done.stdout + done.stderr).strip()[-200:]

    def tried(self, mutation: Mutation, limits: dict[tuple[str, ...], float]) -> dict[str, Any]:
        """Whether the tests notice a change."""
        file, tests = self.folder / mutation.path, covering.tests(self.folder, mutation.path)
        source = file.read_text(encoding="utf-8")
        began = time.monotonic()
        try:
            file.write_text(mutation.apply(source), encoding="utf-8")
            survived, by = self.passes(tests, limits[tuple(tests[1:])])
        finally:
            file.write_text(source, encoding="utf-8")
        line = source.splitlines()[mutation.line - 1].strip()
        result = {"killed": not survived, "by": "" if survived else by, "seconds": round(time.monotonic() - began, 1)}
        return vars(mutation) | {"text": line} | result


def name_of(result: dict[str, Any]) -> tuple[Any, ...]:
    """What makes a result that of a mutation: the same change of the same line."""
    return tuple(result[name] for name in ("path", "kind", "column", "text", "old", "new"))


def run(count: int, seed: int, workers: int, out: Path, limit: float | None) -> list[dict[str, Any]]:
    """Tries the sample, tells of each as it is done; returns all results, those of earlier runs too."""
    out.parent.mkdir(parents=True, exist_ok=True)
    earlier = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    known = {name_of(result): result for result in earlier}
    wanted = {}
    for mutation in sample(ROOT, count, seed):
        text = (ROOT / mutation.path).read_text(encoding="utf-8").splitlines()[mutation.line - 1].strip()
        wanted[name_of(vars(mutation) | {"text": text})] = mutation
    missing = [mutation for name, mutation in wanted.items() if name not in known]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(workers):
            copies.put(Copy(Path(folder) / str(number)))
        limits = _limits(missing, copies, limit)

        def tried(mutation: Mutation) -> dict[str, Any]:
            copy = copies.get()
            try:
                return copy.tried(mutation, limits)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(workers) as pool, out.open("a", encoding="utf-8") as file:
            for result in pool.map(tried, missing):
                known[name_of(result)] = result
                file.write(json.dumps(result) + "\n")
                file.flush()
                print(_line(result), flush=True)
    return [known[name] for name in wanted]


def _limits(missing: list[Mutation], copies: SimpleQueue[Copy], limit: float | None) -> dict[tuple[str, ...], float]:
    """Of each group of tests the time limit in seconds; without one given they are run, and must pass, as they are."""
    copy, limits = copies.get(), {}
    for group in sorted({tuple(covering.tests(copy.folder, mutation.path)[1:]) for mutation in missing}):
        if limit is not None:
            limits[group] = limit
            continue
        began = time.monotonic()
        passed, failed = copy.passes(list(group), 3600.0)
        if not passed:
            raise SystemExit(f"tests fail without any change, mend them first: {failed}")
        limits[group] = FACTOR * (time.monotonic() - began) + GRACE_SECONDS
    copies.put(copy)
    return limits


def _line(result: dict[str, Any]) -> str:
    verdict = "killed  " if result["killed"] else "SURVIVED"
    change = f"{result['old']} -> {result['new']}"
    return f"{verdict} {result['seconds']:6.1f} s  {result['path']}:{result['line']}  {result['kind']}: {change}"


def report(results: list[dict[str, Any]]) -> float:
    """Prints the survivors and the share of killed mutants, also by kind; returns the share."""
    print("\nSurvivors:")
    for result in sorted(results, key=lambda result: (result["path"], result["line"])):
        if not result["killed"]:
            print(f"  {result['path']}:{result['line']}  {result['kind']}: {result['old']} -> {result['new']}")
    for kind, total in sorted(Counter(result["kind"] for result in results).items()):
        killed = sum(result["killed"] for result in results if result["kind"] == kind)
        print(f"  {kind:12} {killed} of {total} killed")
    share = sum(result["killed"] for result in results) / max(len(results), 1)
    hung = sum(result["by"].startswith(HUNG) for result in results)
    print(f"{share:.1%} of {len(results)} mutants killed, {hung} of them since their tests did not end in time")
    return share


def main() -> None:
    """Ends with 1 if fewer are killed than wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="mutants in the sample")
    parser.add_argument("--seed", type=int, default=1, help="another seed is another sample")
    parser.add_argument("--workers", type=int, default=2, help="mutants tried at the same time")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutants.jsonl", help="results, appended")
    parser.add_argument("--limit", type=float, help="seconds a mutant; the tests are not run without changes first")
    parser.add_argument("--least", type=float, default=0.85, help="share that must be killed")
    given = parser.parse_args()
    if report(run(given.count, given.seed, given.workers, given.out, given.limit)) < given.least:
        sys.exit(1)


if __name__ == "__main__":
    main()
