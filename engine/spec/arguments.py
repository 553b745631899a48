"""Checks of what a caller passes to the public names: a wrong argument is an error with a code, raised at the call.

The types that the signatures state are the checks, so a new parameter has its check with its type.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, Literal, TypeVar, get_origin, get_type_hints

import numpy as np
from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from engine.spec.duration import DurationField
from engine.spec.errors import NewnormalError

T = TypeVar("T")
_WRONG = (TypeError, ValueError, AttributeError, KeyError, IndexError, OverflowError)
_CONFIG = ConfigDict(arbitrary_types_allowed=True, strict=True)


def checked_calls(public: T) -> T:
    """A public class whose calls check their arguments: the construction of a value, and the methods of a builder.

    Classes that users subclass are left alone: what their methods take is the engine's affair.
    """
    if not isinstance(public, type) or "__checked" in vars(public) or inspect.isabstract(public):
        return public
    if is_dataclass(public) and "__init__" in vars(public):
        setattr(public, "__init__", _checked(vars(public)["__init__"], public.__name__))  # noqa: B010
    if getattr(public, "__name__", "") == "Stream":
        for name, member in list(vars(public).items()):
            if name.startswith("_"):
                continue
            if isinstance(member, classmethod):
                setattr(public, name, classmethod(_checked(member.__func__, f"{name}()")))
            elif inspect.isfunction(member):
                setattr(public, name, _checked(member, f"{name}()"))
    setattr(public, "__checked", True)
    return public


def _checked(function: Callable[..., Any], where: str) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @functools.cache
    def adapters() -> dict[str, TypeAdapter[Any]]:
        return _adapters(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(_plain, args))  # a number of NumPy's would not be said in the form of a state
        kwargs = {name: _plain(value) for name, value in kwargs.items()}
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise _refused(where, str(error), _accepted(signature)) from None
        for name, value in arguments.items():
            if name in adapters():
                _check(where, name, value, adapters()[name], signature)
        try:
            return function(*args, **kwargs)
        except _WRONG as error:
            raise _refused(where, f"{type(error).__name__}: {error}", _accepted(signature)) from error

    return call


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _check(where: str, name: str, value: Any, adapter: TypeAdapter[Any], signature: inspect.Signature) -> None:
    several = signature.parameters[name].kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    values = list(value.values()) if isinstance(value, dict) and several else list(value) if several else [value]
    for one in values:
        try:
            adapter.validate_python(tuple(one) if isinstance(one, list) else one)
        except ValidationError as error:
            why = error.errors()[0]["msg"]
            accepted = f"{name}: {signature.parameters[name].annotation}"
            raise _refused(where, f"{name} = {one!r:.80}: {why[0].lower()}{why[1:]}", accepted) from None


def _adapters(function: Callable[..., Any]) -> dict[str, TypeAdapter[Any]]:
    adapters = {}
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        return {}
    for name, hint in hints.items():
        several = any(abstract in str(hint) for abstract in ("abc.Sequence", "abc.Mapping"))
        own_check = hint is DurationField or get_origin(hint) is Literal
        if name == "return" or several or own_check:
            continue
        try:
            adapters[name] = TypeAdapter(hint, config=_CONFIG)
        except PydanticUserError:
            try:
                adapters[name] = TypeAdapter(hint)
            except (PydanticUserError, TypeError):
                continue
    return adapters


def _accepted(signature: inspect.Signature) -> str:
    parameters = [str(p) for name, p in signature.parameters.items() if name not in ("self", "cls")]
    return ", ".join(parameters) or "no arguments"


def _refused(where: str, reason: str, accepted: str) -> NewnormalError:
    return NewnormalError("ARGUMENT_INVALID", reason, where, accepted, "no job")
