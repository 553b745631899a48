"""Options that belong together, declared once, and given to a command as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_type_hints


def option_set(argument: str, build: Callable[..., object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator that adds options to a command of the command line; the command gets what they say as one argument.

    Args:
        argument: The name of that argument of the command. No option of the command line has this name.
        build: Makes the argument's value. Each of its parameters is an option, declared as in a command. What it
            raises is raised when the command is called.

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
        own = {name: parameter for name, parameter in _parameters(command).items() if name != argument}

        @wraps(command)
        def run(**given: Any) -> None:
            value = build(**{name: given.pop(name) for name in list(given) if name in options})
            command(**given, **{argument: value})

        parameters = own | options
        run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
        run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
        return run

    return decorate


def _parameters(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """The parameters of a function by name, with their types as types, not as text."""
    hints = get_type_hints(function, include_extras=True)
    found = inspect.signature(function).parameters
    return {name: parameter.replace(annotation=hints[name]) for name, parameter in found.items()}
