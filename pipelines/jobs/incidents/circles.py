"""The circles of a graph: groups of names of which each leads to all others of its group (Tarjan, 1972)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator


def circles(
    names: Iterable[str], following: Callable[[str], Iterable[str]], machines: Collection[str] = ()
) -> Iterator[list[str]]:
    """All that can be reached from some names, in groups that lead to each other; the work grows with the edges.

    A name that is in no circle is a group of its own. Each group comes after all groups to which it leads.

    Args:
        names: Where the ways begin.
        following: The next names of each name.
        machines: Names that are left out, with all ways on from them.

    >>> calls = {"web": "a", "a": "b", "b": "ca", "c": ""}
    >>> [sorted(group) for group in circles(["web"], lambda name: calls[name])]
    [['c'], ['a', 'b'], ['web']]
    """
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    inside: set[str] = set()
    for start in names:
        if start in number or start in machines:
            continue
        walks = [(start, iter(following(start)))]
        number[start] = lowest[start] = len(number)
        path.append(start)
        inside.add(start)
        while walks:
            name, ways = walks[-1]
            for target in ways:
                if target in machines:
                    continue
                if target not in number:
                    number[target] = lowest[target] = len(number)
                    path.append(target)
                    inside.add(target)
                    walks.append((target, iter(following(target))))
                    break
                if target in inside:
                    lowest[name] = min(lowest[name], number[target])
            else:
                walks.pop()
                if walks:
                    above = walks[-1][0]
                    lowest[above] = min(lowest[above], lowest[name])
                if lowest[name] == number[name]:
                    place = _last(path, name)
                    group = path[place:]
                    del path[place:]
                    inside.difference_update(group)
                    yield group


def _last(path: list[str], name: str) -> int:
    """The place of a name, looked for from the end: all behind it are taken away, so that each is looked at once."""
    place = len(path) - 1
    while path[place] != name:
        place -= 1
    return place
