"""Declares a group of options once; commands that have the group get its options as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, get_type_hints

Result = TypeVar("Result")


def option_set(argument: str, build: Callable[..., object]) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """A decorator that adds a group of options to a command; the command gets one value made from these options.

    Args:
        argument: Name of the command's parameter that gets the value. It does not become an option itself.
        build: Makes the value. Each of its parameters becomes an option, declared as in a command; `--help` lists them
            after those of the command. It is called when the command is called, and may raise errors then.

    >>> def circle(*, radius: float = 1.0, name: str = "") -> str:
    ...     return f"{name} of {radius}"
    >>> @option_set("shape", circle)
    ... def draw(shape: str, text: str) -> None:
    ...     print(text, shape)
    >>> draw(text="draws", radius=2.0, name="a wheel")
    draws a wheel of 2.0
    >>> list(inspect.signature(draw).parameters)
    ['text', 'radius', 'name']
    """
    options = _parameters(build)

    def decorate(command: Callable[..., Result]) -> Callable[..., Result]:
        parameters = {name: it for name, it in _parameters(command).items() if name != argument} | options

        @wraps(command)
        def run(**values: Any) -> Result:
            value = build(**{name: values.pop(name) for name in list(values) if name in options})
            return command(**values, **{argument: value})

        run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
        run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
        return run

    return decorate


def _parameters(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """The parameters of a function by name, with their annotations evaluated."""
    hints = get_type_hints(function, include_extras=True)
    signature = inspect.signature(function)
    return {
        name: parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in signature.parameters.items()
    }
