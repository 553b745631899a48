"""Declares a group of options once; commands that have the group get its options as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_type_hints


def option_set(argument: str, build: Callable[..., object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator that adds a group of options to a command; the command gets one value made from these options.

    Args:
        argument: Name of the command's parameter that gets the value. It does not become an option itself.
        build: Makes the value. Each of its parameters becomes an option, declared as in a command. It is called when
            the command is called, and may raise errors then.

    >>> def circle(*, radius: float = 1.0, name: str = "") -> str:
    ...     return f"{name} of {radius}"
    >>> @option_set("shape", circle)
    ... def draw(text: str, *, shape: str) -> None:
    ...     print(text, shape)
    >>> draw(text="draws", radius=2.0, name="a wheel")
    draws a wheel of 2.0
    >>> list(inspect.signature(draw).parameters)
    ['text', 'radius', 'name']
    """
    options = _parameters(build)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters: dict[str, inspect.Parameter] = {}
        for name, parameter in _parameters(command).items():
            parameters |= options if name == argument else {name: parameter}

        @wraps(command)
        def run(**given: Any) -> None:
            value = build(**{name: given.pop(name) for name in list(given) if name in options})
            command(**given, **{argument: value})

        run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
        run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
        return run

    return decorate


def _parameters(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """The parameters of a function by name, with their annotations evaluated."""
    hints = get_type_hints(function, include_extras=True)
    found = inspect.signature(function).parameters
    return {name: parameter.replace(annotation=hints[name]) for name, parameter in found.items()}
