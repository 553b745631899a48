"""The changes that are tried: boundaries, signs, dropped limits, wrong constants, skipped updates.

A change is one expression or statement replaced by another; layout and comments stay. Annotations, docstrings, log
messages, assertions and the text of errors are left alone: a change of these is none that a test should see.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_LIMITS = ("min", "max", "minimum", "maximum", "clamp", "clip")
_SPOKEN = ("log", "logger", "typer", "suppress", "describe", "register", "warnings", "console")
"""A call whose name begins so tells something or registers; it is not deleted."""


@dataclass(frozen=True)
class Mutation:
    """One change.

    Args:
        path: Of the file, relative to the repository.
        kind: ``comparison``, ``arithmetic``, ``logic``, ``limit``, ``constant``, ``sign`` or ``update``.
        line: Number of its line, from 1.
        column: Where it begins in its line, in bytes.
        begin: Place in the text of the file, in characters.
        end: The same of its end.
        old: What stands there.
        new: What is put there.
    """

    path: str
    kind: str
    line: int
    column: int
    begin: int
    end: int
    old: str
    new: str

    def apply(self, source: str) -> str:
        """The text of the file with the change."""
        assert source[self.begin : self.end] == self.old, "the file has changed since the mutation was found"
        return source[: self.begin] + self.new + source[self.end :]

    def rank(self, seed: int, source: str) -> str:
        """A random number in hexadecimal that depends on nothing but the change and its line: samples stay alike."""
        text = source.splitlines()[self.line - 1].strip()
        said = "|".join([str(seed), self.path, self.kind, str(self.column), text, self.old, self.new])
        return blake2b(said.encode(), digest_size=8).hexdigest()


def mutations(path: str, source: str) -> list[Mutation]:
    """All changes of one file.

    >>> [f"{m.old} -> {m.new}" for m in mutations("a.py", "def f(x): return min(x + 1, 9) <= 3")]  # doctest: +ELLIPSIS
    ['min(x + 1, 9) <= 3 -> min(x + 1, 9) < 3', 'min(x + 1, 9) -> (x + 1)', 'x + 1 -> x - 1', '1 -> 2', ...]
    """
    tree = ast.parse(source)
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    lines = source.splitlines()

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    found: list[Mutation] = []
    for node, kind, new in _changes(tree):
        begin, end = place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0)
        old = source[begin:end]
        if "\n" not in old and old != new:
            found.append(Mutation(path, kind, node.lineno, node.col_offset, begin, end, old, new))
    return found


def _changes(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    for node in _judged(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
            other = ast.Compare(node.left, [_COMPARISONS[type(node.ops[0])]()], node.comparators)
            yield node, "comparison", ast.unparse(other)
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and not _texts(node):
            text = ast.unparse(ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right))
            yield node, "arithmetic", f"({text})" if isinstance(node.op, ast.BitAnd) else text
        elif isinstance(node, ast.BoolOp):
            turned = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, "logic", f"({ast.unparse(ast.BoolOp(turned, node.values))})"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            yield node, "sign", ast.unparse(node.operand)
        elif isinstance(node, ast.Call) and _name(node.func) in _LIMITS and len(node.args) >= 2 and not node.keywords:
            first = ast.unparse(node.args[0])
            yield (
                node,
                "limit",
                first if isinstance(node.args[0], ast.Name | ast.Call | ast.Attribute) else f"({first})",
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, "constant", str(not node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield node, "constant", repr(node.value + 1 if isinstance(node.value, int) else node.value * 2 or 1.0)
        elif _is_update(node):
            yield node, "update", "pass"


def _judged(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """The nodes that may change, without annotations, docstrings, assertions and what only speaks."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Assert | ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr):
                continue
            if isinstance(child, ast.Call | ast.Expr) and _speaks(child):
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            if isinstance(child, ast.AST):
                yield from _judged(child)


def _is_update(node: ast.AST) -> bool:
    """Whether a statement changes something that exists beyond it: its absence is a skipped update."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.AugAssign):
        return True
    return isinstance(node, ast.Assign) and all(isinstance(t, ast.Subscript) for t in node.targets)


def _speaks(node: ast.Call | ast.Expr) -> bool:
    call = node.value if isinstance(node, ast.Expr) else node
    return isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[0].strip("_") in _SPOKEN


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _texts(node: ast.BinOp) -> bool:
    """Whether a side is text, or a type: then it is no arithmetic."""
    texts = (ast.JoinedStr, ast.Constant)
    sides = [side for side in (node.left, node.right) if isinstance(side, texts)]
    return any(isinstance(side, ast.JoinedStr) or isinstance(side.value, str | bytes | None) for side in sides)
