"""The strongly connected components of a graph: groups of nodes, each of which reaches all others (Tarjan, 1972)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator


def components(
    starts: Iterable[str], successors: Callable[[str], Iterable[str]], left_out: Collection[str] = ()
) -> Iterator[list[str]]:
    """The components of all nodes that can be reached from some nodes; the work grows with the edges.

    A node that is on no cycle is a component of its own. Each component comes after all others that it reaches.

    Args:
        starts: The nodes from which the search begins.
        successors: The nodes to which the edges of a node lead.
        left_out: Nodes that are not visited, nor what is reached through them alone.

    >>> calls = {"web": "a", "a": "b", "b": "ca", "c": ""}
    >>> [sorted(group) for group in components(["web"], lambda name: calls[name])]
    [['c'], ['a', 'b'], ['web']]
    """
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    inside: set[str] = set()
    for start in starts:
        if start in number or start in left_out:
            continue
        walks = [(start, iter(successors(start)))]
        number[start] = lowest[start] = len(number)
        path.append(start)
        inside.add(start)
        while walks:
            name, ways = walks[-1]
            for target in ways:
                if target in left_out:
                    continue
                if target not in number:
                    number[target] = lowest[target] = len(number)
                    path.append(target)
                    inside.add(target)
                    walks.append((target, iter(successors(target))))
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
    """The place of a node, looked for from the end: all behind it are taken away, so that each is looked at once."""
    place = len(path) - 1
    while path[place] != name:
        place -= 1
    return place
