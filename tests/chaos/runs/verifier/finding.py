"""What the verifier finds wrong: results that are lost, doubled or different, and a tally of what it compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

Wrong = Literal["lost", "doubled", "different"]
SHOWN = 5
"""How many examples of a fault a finding names."""


@dataclass(frozen=True)
class Finding:
    """One kind of fault in one place.

    Attributes:
        wrong: Whether results are lost, doubled or different.
        where: The topic or index, or the two that differ.
        count: How many results are affected.
        examples: Some of them, in words.
    """

    wrong: Wrong
    where: str
    count: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.count} {self.wrong} in {self.where}, e.g. {'; '.join(self.examples)}"


@dataclass
class Tally:
    """The findings of a verification, and how many results it compared, by what they are."""

    findings: list[Finding] = field(default_factory=list)
    compared: dict[str, int] = field(default_factory=dict)

    def add(self, wrong: Wrong, where: str, examples: Iterable[object]) -> None:
        """Adds a finding for the given results; none are no finding."""
        if affected := [str(example) for example in examples]:
            self.findings.append(Finding(wrong, where, len(affected), tuple(affected[:SHOWN])))

    def take(self, other: Tally, version: str) -> None:
        """Adds the findings on one version of the chain, and its name to where they are."""
        self.findings += [replace(each, where=f"{version}: {each.where}") for each in other.findings]
        self.compared |= {f"{what} of {version}": count for what, count in other.compared.items()}

    def count(self, wrong: Wrong) -> int:
        """The number of results that are wrong in this way."""
        return sum(finding.count for finding in self.findings if finding.wrong == wrong)
