"""A group of commands each of which is imported when it is asked for: few need all that the others import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pkgutil import resolve_name
from typing import Any

import typer
from typer.core import TyperGroup

from pipelines.cli.commands import Entry

Command = Any
"""A command as Typer makes it; Typer does not export the type."""


class LazyCommands(Mapping[str, Command]):
    """Commands by name, in the order in which `--help` lists them.

    Args:
        sections: The commands by the title under which `--help` lists them.

    >>> commands = LazyCommands({"Develop": {"docs": Entry("docs:docs", "docs.md")}})
    >>> list(commands), commands.get("dogs"), commands["docs"].name
    (['docs'], None, 'docs')
    """

    def __init__(self, sections: Mapping[str, Mapping[str, Entry]]) -> None:
        self._places = {name: (entry, title) for title, some in sections.items() for name, entry in some.items()}
        self._commands = dict[str, Command]()

    def __getitem__(self, name: str) -> Command:
        if name not in self._commands:
            entry, title = self._places[name]
            self._commands[name] = _command(name, entry)
            self._commands[name].rich_help_panel = title
        return self._commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def lazy_group(sections: Mapping[str, Mapping[str, Entry]]) -> type[TyperGroup]:
    """The class of a group of commands that are made when they are asked for; ``sections`` as of `LazyCommands`."""
    commands = LazyCommands(sections)  # of all its groups: Typer makes one at each call

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes | {"commands": commands})

        def list_commands(self, ctx: Any) -> list[str]:
            return list(self.commands)

    return LazyGroup


def _command(name: str, entry: Entry) -> Command:
    target = resolve_name(f"pipelines.cli.{entry.place}")
    holder = typer.Typer(rich_markup_mode="rich")
    if isinstance(target, typer.Typer):
        holder.add_typer(target, name=name)
    else:
        options = {
            "allow_extra_args": entry.passes_on, "ignore_unknown_options": entry.passes_on or entry.asks_when,
        }  # fmt: skip
        holder.command(name, add_help_option=not entry.passes_on, context_settings=options)(target)
    return typer.main.get_group(holder).commands[name]
