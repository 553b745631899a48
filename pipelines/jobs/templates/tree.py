"""Templates by program, number of words and first word; a line is compared with those that agree in these three.

The idea of such a tree, and of the share of equal words, is Drain's. Which words may vary is decided by their kind.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from operator import eq

from pipelines.jobs.templates.shapes import shaped

EQUAL = 0.5
"""The share of the words of a line, marks left out, that must be equal to those of a template."""
NAMES = 6
"""So many plain words at one place of lines that are alike otherwise are names, and make one template."""
MOST_WORDS = 128
"""How many words of a line are looked at; of the 512 characters that count, honest lines have some 90 at most."""
MOST_ALIKE = 128
"""How many templates of a leaf a line is compared with, the newest ones. They have as many words, and begin alike."""

_OTHER = "<*>"
_MARK = re.compile(r"[^\w<]*(?:<(?:\w+|\*)>[^\w<]*)+")
_PLAIN = re.compile(r"[^\w<]*[A-Za-z]{2,}[^\w<]*")
_NUMBERED = re.compile(r"[^\w<]*[A-Za-z]{2,}<n>[^\w<]*")
_KEY = re.compile(r"[^=<>]*=")
_SWITCH = re.compile(r"\b(?:true|false)\b")
_BEFORE_NAMES = {"user", "host", "name", "named", "called", "file", "for", "from", "to", "by", "at", "on", "of", "in"}


class _Kind(Enum):
    """Kinds of words: a mark, letters alone, letters and a number, and all others (such as ``a_b`` or ``x.y``)."""

    VALUE = auto()
    PLAIN = auto()
    NUMBERED = auto()
    OTHER = auto()


@lru_cache(65_536)
def _kind(word: str) -> _Kind:
    shapes = ((_MARK, _Kind.VALUE), (_PLAIN, _Kind.PLAIN), (_NUMBERED, _Kind.NUMBERED))
    return next((kind for pattern, kind in shapes if pattern.fullmatch(word)), _Kind.OTHER)


_FIXED = {(_Kind.PLAIN, _Kind.PLAIN), (_Kind.PLAIN, _Kind.NUMBERED), (_Kind.NUMBERED, _Kind.PLAIN)}


@lru_cache(65_536)
def _keys(word: str) -> list[str]:
    """The names in a word of key=value pairs."""
    return _KEY.findall(word)


@dataclass
class Tree:
    """Templates, each a row of words with ``<*>`` where lines differ; a leaf does not grow without bound.

    A line belongs to a template if at least half of its words are equal, and if what differs may vary:

    - marks, and words of other shapes than letters alone, vary freely;
    - a plain word varies after a word such as "user" or "from";
    - another plain word is part of what is said ("opened", "closed"), until `NAMES` lines that differ in this place
      alone (in two such places twice as many, and so on) show that it is a name: then their templates become one;
    - ``true`` and ``false`` never vary, nor do the names in ``name=value``.

    A line that matches none of the templates of a full leaf belongs to the one with most equal words, if these are
    half of its words; otherwise to one template for all such lines of its program, and if the tree is full, of all
    programs.

    Args:
        most: How many templates it has before it is full.

    Source of the tree: P. He, J. Zhu, Z. Zheng, M. Lyu, Drain: an online log parsing approach with fixed depth tree,
    ICWS 2017.

    >>> tree = Tree(100)
    >>> [tree.add("app", line) for line in ("link is up", "link is down", "user ann is in", "user bob is in")]
    [0, 1, 2, 2]
    >>> tree.texts[2]
    ('app', 'user', '<*>', 'is', 'in')
    """

    most: int
    firsts: dict[int, str] = field(default_factory=dict)
    """The line by which each template was found: its program and the masked line."""
    texts: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The present words of each template."""
    merged: dict[str, int] = field(default_factory=dict)
    """The first lines of templates that have become part of another one, and the number of that one."""
    _leaves: defaultdict[tuple[str, int, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    _next: int = 0

    def put(self, first: str, text: str) -> None:
        """Adds a template that is known already.

        Args:
            first: The line by which it was found: the program and the masked line.
            text: Its present words. Versions up to 0.1 kept them as they were masked, without marks for shapes.
        """
        words = _words(*_parts(first))
        now = tuple(text.split(" "))
        self._append(first, words, now if len(now) == len(words) else _words(*_parts(text)))

    def add(self, program: str, line: str) -> int:
        """The number of the template of a line; the template is made if there is none, and widened if it differs."""
        words, first = _words(program, line), ""
        leaf = self._leaves[_key(words)]
        number = self._match(leaf, words)
        if number is None and len(self.texts) >= self.most:
            words, first = ("-", _OTHER), f"- {_OTHER}"
            number = self._same(words)
        elif number is None and len(leaf) >= MOST_ALIKE:
            words, first = (program, _OTHER), f"{program} {_OTHER}"
            number = self._same(words)
        if number is None:
            return self._append(first or " ".join([program, *line.split()][:MOST_WORDS]), words, words)
        text = self.texts[number]
        if text != words:
            self.texts[number] = tuple(a if a == b else _OTHER for a, b in zip(text, words, strict=True))
        return number

    def _same(self, words: tuple[str, ...]) -> int | None:
        """The template with exactly these words."""
        return next((n for n in self._leaves[_key(words)] if self.texts[n] == words), None)

    def _append(self, first: str, words: tuple[str, ...], text: tuple[str, ...]) -> int:
        number = self._next
        self._next += 1
        self.firsts[number], self.texts[number] = first, text
        leaf = self._leaves[_key(words)] if len(text) == len(words) else self._leaves[_key(text)]
        leaf.append(number)
        return number

    def _match(self, leaf: list[int], words: tuple[str, ...]) -> int | None:
        """The template that differs least from a line, the oldest of several; ``None`` if the line is of none."""
        near, full = self.compared(leaf), len(leaf) >= MOST_ALIKE
        for number in near:
            if self.texts[number] == words:
                return number
        best, nearest = (0, 0), None
        alike: list[tuple[int, tuple[int, ...]]] = []
        marks = sum(_kind(word) is _Kind.VALUE for word in words)
        for number in near:
            text = self.texts[number]
            same, free = sum(map(eq, text, words)), text.count(_OTHER)
            if same - 1 < EQUAL * (len(words) - 1 - free - marks):  # less than half, whatever the others are
                continue
            equal, others, plain = differences(text, words) if same + free < len(words) else (same, 0, [])
            if equal < EQUAL * (equal + others):
                continue
            fixed = [at for at in plain if words[at - 1].lower().strip(":") not in _BEFORE_NAMES]
            if fixed and not full:
                alike.append((number, tuple(fixed)))
            elif nearest is None or (-others, same) > best:
                best, nearest = (-others, same), number
        return self._name(leaf, alike) if nearest is None and alike else nearest

    def _name(self, leaf: list[int], alike: list[tuple[int, tuple[int, ...]]]) -> int | None:
        """Makes one template of those that differ from a line in the same places alone, if they are many."""
        places, count = Counter(places for _, places in alike).most_common(1)[0]
        if count + 1 < NAMES * len(places):
            return None
        kept, *others = [number for number, at in alike if at == places]
        self.merged = {first: kept if into in others else into for first, into in self.merged.items()}
        for other in others:
            leaf.remove(other)
            self.merged[self.firsts.pop(other)] = kept
            del self.texts[other]
        return kept

    def compared(self, leaf: list[int]) -> list[int]:
        """Those of a leaf's templates that a line is compared with."""
        return leaf[-MOST_ALIKE:]


def differences(text: tuple[str, ...], words: tuple[str, ...]) -> tuple[int, int, list[int]]:
    """Compares a template with a line of as many words and of the same program.

    Returns:
        How many words but marks are equal (none if ``true`` or ``false`` differs); how many differ and are not free to;
        and the places of
        those of them that are plain words, of which one may end in a number.

    >>> differences(("app", "user", "<*>", "logged", "in"), ("app", "user", "bob", "logged", "out"))
    (2, 1, [4])
    """
    equal, others, plain = 0, 0, []
    for at, (old, new) in enumerate(zip(text, words, strict=True)):
        if old == new:
            equal += at > 0 and _kind(new) is not _Kind.VALUE
        elif old != _OTHER:
            kinds = _kind(old), _kind(new)
            if kinds == (_Kind.VALUE, _Kind.VALUE):
                continue
            if _SWITCH.search(old) or _SWITCH.search(new) or _keys(old) != _keys(new):
                return 0, 1, []
            others += 1
            if kinds in _FIXED:
                plain.append(at)
    return equal, others, plain


def _parts(text: str) -> tuple[str, str]:
    """The program and the rest of a template."""
    program, _, rest = text.partition(" ")
    return program, rest


@lru_cache(8192)
def _words(program: str, line: str) -> tuple[str, ...]:
    return (program, *shaped(line)[: MOST_WORDS - 1])


def _key(words: tuple[str, ...]) -> tuple[str, int, str]:
    first = words[1] if len(words) > 1 else ""
    return words[0], len(words), first if _kind(first) is _Kind.PLAIN else _OTHER
