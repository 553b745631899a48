"""The miner: assigns masked log lines to templates by the Drain algorithm, in event-time order.

It remembers the masked lines that it has seen: these keep their template, and only new lines go through Drain's loop.
Drain's tree is a function of the table of templates; after a restart it is built again from that table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

import polars as pl
from drain3.drain import LogCluster

from pipelines.jobs.mine_logs.tree import Tree

_TEMPLATES = {"id": pl.String, "first": pl.String, "text": pl.String, "last": pl.Int64}
_LINES = {"program": pl.String, "masked": pl.String, "id": pl.String, "last": pl.Int64}


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

    Source: P. He, J. Zhu, Z. Zheng, M. Lyu, Drain: an online log parsing approach with fixed depth tree, ICWS 2017.

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
    _drain: Tree | None = field(default=None, repr=False)

    def known(self, counts: pl.DataFrame) -> pl.DataFrame:
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
        found = self.known(counts)
        new = found.filter(pl.col("id").is_null()).group_by("program", "masked").agg(pl.col("first").min())
        if new.height:
            new = new.sort("first", "program", "masked")
            ids = [self._mine(program, line) for program, line in new.select("program", "masked").iter_rows()]
            added = new.select("program", "masked", id=pl.Series(ids, dtype=pl.String), last=pl.lit(end, pl.Int64))
            self.lines = pl.concat([self.lines, added])
            self._remember()
            found = self.known(counts)
        self.touch(found.select("program", "masked", "id", window_end=pl.lit(end, pl.Int64)))
        return found

    def full(self, found: pl.DataFrame) -> bool:
        """True if the next windows may exceed the bounds of the tables, so that they must be mined one by one."""
        return self.templates.height > self.most or self.lines.height + found.height > 8 * self.most

    def touch(self, found: pl.DataFrame) -> None:
        """Records when lines and their templates were last seen.

        Args:
            found: Columns as from `known`, and ``window_end`` (epoch milliseconds).
        """
        latest = found.group_by("program", "masked").agg(pl.col("window_end").max())
        self.lines = _later(self.lines, latest, ["program", "masked"])
        self.templates = _later(self.templates, found.group_by("id").agg(pl.col("window_end").max()), ["id"])
        if self.templates.height > self.most or self.lines.height > 8 * self.most:
            self._forget()

    def _mine(self, program: str, line: str) -> str:
        drain = self._tree()
        cluster, change = drain.add_log_message(f"{program or '-'} {line}")
        if change == "cluster_created":
            first = " ".join(cluster.log_template_tokens)
            self._clusters.append((template_id(first), first))
        name: str = self._clusters[cluster.cluster_id - 1][0]
        return name

    def _tree(self) -> Tree:
        if self._drain is None:
            drain = self._drain = Tree(2 * self.most)
            self._clusters = self.templates.select("id", "first").rows()
            for number, (first, text) in enumerate(self.templates.select("first", "text").iter_rows(), 1):
                cluster = LogCluster(first.split(" "), number)
                drain.id_to_cluster[number] = cluster
                drain.add_seq_to_prefix_tree(drain.root_node, cluster)
                cluster.log_template_tokens = tuple(text.split(" "))
            drain.clusters_counter = self.templates.height
        return self._drain

    def _remember(self) -> None:
        """Copies the templates of Drain's tree into the table of templates."""
        texts = [cluster.get_template() for cluster in self._tree().id_to_cluster.values()]
        ids, firsts = zip(*self._clusters, strict=True)
        last = self.templates["last"].extend(pl.Series([0] * (len(ids) - self.templates.height), dtype=pl.Int64))
        columns = {"id": ids, "first": firsts, "text": texts}
        self.templates = pl.DataFrame(columns, _TEMPLATES_TEXT).with_columns(last=last)

    def _forget(self) -> None:
        """Cuts full tables: keeps three quarters of the templates, and of the lines, those seen last (ties by name)."""
        kept = self.templates.with_row_index("at").sort("last", "id", descending=[True, False])
        if kept.height > self.most:
            kept = kept.head(self.most * 3 // 4)
        self.templates = kept.sort("at").drop("at")
        lines = self.lines.join(self.templates.select("id").unique(), on="id", how="semi")
        if lines.height > 8 * self.most:
            lines = lines.sort("last", "program", "masked", descending=[True, False, False]).head(6 * self.most)
        self.lines, self._drain = lines.sort("program", "masked"), None


_TEMPLATES_TEXT = {name: kind for name, kind in _TEMPLATES.items() if name != "last"}


def _later(table: pl.DataFrame, ends: pl.DataFrame, on: list[str]) -> pl.DataFrame:
    joined = table.join(ends, on=on, how="left", maintain_order="left")
    return joined.with_columns(last=pl.max_horizontal("last", "window_end")).drop("window_end")
