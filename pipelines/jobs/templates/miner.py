"""The miner: assigns masked log lines to templates, in event-time order.

It remembers the masked lines that it has seen: these keep their template, and only new lines go through the tree.
The tree is a function of the table of templates; after a restart it is built again from that table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

import polars as pl

from pipelines.jobs.templates.tree import Tree

_TEMPLATES = {"id": pl.String, "first": pl.String, "text": pl.String, "last": pl.Int64}
_LINE = ("program", "masked")
_LINES = {"program": pl.String, "masked": pl.String, "id": pl.String, "last": pl.Int64}


@lru_cache(16_384)
def template_id(first: str) -> str:
    """The permanent name of a template: a hash of the form in which it was first seen.

    >>> template_id("sshd Connection closed by <ip> port <n>")
    '490d5bcc4642'
    """
    return blake2b(first.encode(), digest_size=6).hexdigest()


@dataclass
class Miner:
    """The known templates, and the masked lines that belong to them.

    Args:
        templates: A row per template, in order of discovery: ``id``, ``first`` form, present form (``text``), and
            ``last``, the end of the last window with such a line (epoch milliseconds).
        lines: A row per masked line: ``program``, ``masked`` message, the template's ``id``, and ``last``.
        most: How many templates are kept, and eight times as many lines; those not seen for longest are forgotten.
            Within a window, there may be twice as many templates.

    >>> miner = Miner()
    >>> lines = ["user ann logged in", "user bob logged in", "disk full"]
    >>> miner.window(pl.DataFrame({"program": "app", "masked": lines, "first": [1, 2, 3]}), 10)["id"].n_unique()
    2
    >>> miner.templates["text"].to_list()
    ['app user <*> logged in', 'app disk full']
    """

    templates: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_TEMPLATES))
    lines: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_LINES))
    most: int = 4096
    _tree: Tree | None = field(default=None, repr=False)

    def with_ids(self, counts: pl.DataFrame) -> pl.DataFrame:
        """Adds the column ``id`` to counts by ``program`` and ``masked``: the template; null if the line is new."""
        return counts.join(self.lines.drop("last"), on=["program", "masked"], how="left", maintain_order="left")

    def window(self, counts: pl.DataFrame, end: int) -> pl.DataFrame:
        """Assigns the lines of one window to templates, and remembers them.

        Args:
            counts: Columns ``program``, ``masked``, ``first`` (event time of the first such line), and others.
            end: End of the window, epoch milliseconds.

        Returns:
            The counts with the column ``id``, the template.
        """
        assigned = self.with_ids(counts)
        new = assigned.filter(pl.col("id").is_null()).group_by("program", "masked").agg(pl.col("first").min())
        if new.height:
            new = new.sort("first", "program", "masked")
            tree = self.tree()
            firsts = [tree.firsts[tree.add(program or "-", line)] for program, line in new.select(*_LINE).iter_rows()]
            ids = pl.Series([template_id(first) for first in firsts], dtype=pl.String)
            self.lines = pl.concat([self.lines, new.select(*_LINE, id=ids, last=pl.lit(end, pl.Int64))])
            self._remember()
            assigned = self.with_ids(counts)
        self.touch(assigned.select("program", "masked", "id", window_end=pl.lit(end, pl.Int64)))
        return assigned

    def full(self, templates: pl.DataFrame) -> bool:
        """True if the next windows may exceed the bounds of the tables, so that they must be mined one by one."""
        return self.templates.height > self.most or self.lines.height + templates.height > 8 * self.most

    def touch(self, templates: pl.DataFrame) -> None:
        """Records when lines and their templates were last seen.

        Args:
            templates: Columns as from `with_ids`, and ``window_end`` (epoch milliseconds).
        """
        latest = templates.group_by("program", "masked").agg(pl.col("window_end").max())
        self.lines = _later(self.lines, latest, ["program", "masked"])
        self.templates = _later(self.templates, templates.group_by("id").agg(pl.col("window_end").max()), ["id"])
        if self.templates.height > self.most or self.lines.height > 8 * self.most:
            self._forget()

    def tree(self) -> Tree:
        """The templates as a tree; it is built from the table where there is none yet."""
        if self._tree is None:
            self._tree = Tree(2 * self.most)
            for first, text in self.templates.select("first", "text").iter_rows():
                self._tree.put(first, text)
        return self._tree

    def _remember(self) -> None:
        """Copies the templates of the tree into the table; lines of one that became part of another are the other's."""
        tree = self.tree()
        if tree.merged:
            ids = {number: template_id(first) for number, first in tree.firsts.items()}
            parts = {template_id(first): ids[kept] for first, kept in tree.merged.items()}
            self.lines = self.lines.with_columns(pl.col("id").replace(parts)).unique(
                ["program", "masked"], keep="first", maintain_order=True
            )
            tree.merged.clear()
        firsts = list(tree.firsts.values())
        texts = [" ".join(words) for words in tree.texts.values()]
        now = pl.DataFrame({"id": [template_id(f) for f in firsts], "first": firsts, "text": texts}, _TEMPLATES_TEXT)
        last = self.templates.select("id", "last").unique("id", keep="first")
        self.templates = now.join(last, on="id", how="left", maintain_order="left").with_columns(
            pl.col("last").fill_null(0)
        )

    def _forget(self) -> None:
        """Cuts full tables: keeps three quarters of the templates, and of the lines, those seen last (ties by name)."""
        kept = self.templates.with_row_index("at").sort("last", "id", descending=[True, False])
        if kept.height > self.most:
            kept = kept.head(self.most * 3 // 4)
        self.templates = kept.sort("at").drop("at")
        lines = self.lines.join(self.templates.select("id").unique(), on="id", how="semi")
        if lines.height > 8 * self.most:
            lines = lines.sort("last", "program", "masked", descending=[True, False, False]).head(6 * self.most)
        self.lines, self._tree = lines.sort("program", "masked"), None


_TEMPLATES_TEXT = {name: kind for name, kind in _TEMPLATES.items() if name != "last"}


def _later(table: pl.DataFrame, ends: pl.DataFrame, on: list[str]) -> pl.DataFrame:
    joined = table.join(ends, on=on, how="left", maintain_order="left")
    return joined.with_columns(last=pl.max_horizontal("last", "window_end")).drop("window_end")
