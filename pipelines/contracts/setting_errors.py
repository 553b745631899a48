"""The error messages for wrong settings: which setting, where it was set, what is accepted, and similar known names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from engine.spec.errors import NewnormalError
from pipelines.contracts.setting_types import Confidential, accepted

PREFIX = "NEWNORMAL_"
OTHERS = frozenset({"DEBUG", "IVY_SETTINGS", "PRELOAD", "HYPOTHESIS", "EXAMPLES", "SCREENSHOTS", "TRANSCRIPTS"})
"""Names after `NEWNORMAL_` of environment variables that Newnormal reads, but that are no settings."""

_OF_KUBERNETES = re.compile(r"(^|_)(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$")
"""Variables that Kubernetes sets in containers if the name of a service begins with ``newnormal``; they are ignored."""

_FILE = "newnormal.toml"
_LONGEST = 200

Wrong = dict[str, tuple[str, str, str]]
"""For each wrong setting, by name, its message, the place where it was set, and what is accepted."""


def leaves(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yields (dotted name, field) for every setting, also those of the sections."""
    for name, info in model.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from leaves(info.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name, info


def variable(dotted: str) -> str:
    """The environment variable of the setting with a dotted name."""
    return PREFIX + dotted.replace(".", "__").upper()


def refusal(wrong: Wrong) -> NewnormalError:
    """The error ``SETTING_INVALID`` that names all wrong settings, where each was found and what is accepted."""
    what = "; ".join(text for text, _, _ in wrong.values())
    where = ", ".join(dict.fromkeys(place for _, place, _ in wrong.values()))
    wanted = [f"{name}: {text}" if len(wrong) > 1 else text for name, (_, _, text) in wrong.items()]
    return NewnormalError("SETTING_INVALID", what, where, "; ".join(wanted), "nothing was started")


def refused(
    error: ValidationError, model: type[BaseModel], overrides: Mapping[str, Any], environ: Mapping[str, str]
) -> Wrong:
    """Turns a validation error of pydantic into the wrong settings that it reports.

    Args:
        error: The validation error.
        model: The class of all settings.
        overrides: Settings given on the command line, by dotted name.
        environ: The environment variables.
    """
    fields, wrong = dict(leaves(model)), dict[str, tuple[str, str, str]]()
    for one in error.errors():
        path = ".".join(map(str, one["loc"]))
        name = next((name for name in fields if path == name or path.startswith(f"{name}.")), None)
        if name is None:
            below = one["input"] if isinstance(one["input"], dict) and one["input"] else {"": one["input"]}
            for leaf, value in below.items():
                full = f"{path}.{leaf}".removesuffix(".")
                wrong[full] = _unknown(full, value, fields, overrides, environ)
            continue
        shown = path.removesuffix(".[key]")
        why = str(one.get("ctx", {}).get("error", "")).partition("; accepted")[0]
        hint = f": {why}" if "did you mean" in why else ""
        what = f"{shown} = {_short(one['input'])}{hint}"
        if any(isinstance(mark, Confidential) for mark in fields[name].metadata):
            what = f"{shown}: {one['msg'].removeprefix('Value error, ')}"
        wrong[shown] = (what, place(name, overrides, environ), accepted(fields[name]))
    return wrong


def _unknown(
    path: str, value: object, fields: Mapping[str, FieldInfo], overrides: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[str, str, str]:
    sections = {name.partition(".")[0] for name in fields if "." in name}
    if path in sections:
        return f"{path} = {_short(value)}: it is a table of settings", place(path, overrides, environ), f"[{path}]"
    hint = meant(path, fields)
    field = fields.get(hint or "")
    secret = field is not None and any(isinstance(mark, Confidential) for mark in field.metadata)
    what = f"{path}{'' if secret else f' = {_short(value)}'}: there is no such setting"
    return what + (f"; did you mean {hint}?" if hint else ""), place(path, overrides, environ), "see docs/settings.md"


def meant(path: str, fields: Mapping[str, FieldInfo]) -> str | None:
    """The known setting, or table of settings, whose name is most similar to an unknown one; ``None`` if none is."""
    names = [*fields, *sorted({name.partition(".")[0] for name in fields if "." in name})]
    leaf = path.rpartition(".")[2]
    same = [name for name in fields if name.rpartition(".")[2] == leaf]
    inside = [name for name in fields if name.partition(".")[0] == path.partition(".")[0]]
    close = get_close_matches(path, inside, 1, 0.75) or same or get_close_matches(path, names, 1)
    return close[0] if close else None


def unknown_variables(environ: Mapping[str, str], model: type[BaseModel]) -> Wrong:
    """Finds environment variables that begin with `NEWNORMAL_` but name no setting; pydantic ignores these silently.

    Each is reported with the setting that may have been meant.
    """
    fields, wrong = dict(leaves(model)), dict[str, tuple[str, str, str]]()
    tables = {name.partition(".")[0] for name in fields if "." in name}
    for name in sorted(environ):
        inner = name.upper().removeprefix(PREFIX)
        if inner == name.upper() or inner in OTHERS or _OF_KUBERNETES.search(inner):
            continue
        first, _, rest = inner.lower().partition("__")
        if inner.lower() in fields or (first in tables and (rest or inner.lower() in tables)):
            continue  # pydantic checks names within a table of settings
        close = get_close_matches(inner, [variable(dotted).removeprefix(PREFIX) for dotted in fields], 1)
        hint = f"; did you mean {PREFIX}{close[0]}?" if close else ""
        wrong[name] = (f"{name}: there is no such setting{hint}", "environment", "see docs/settings.md")
    return wrong


def hide(url: str) -> str:
    """Replaces the user and password of an address by `***`.

    >>> hide("http://me:secret@host:9200")
    'http://***@host:9200'
    >>> hide("https://me:with/slash@host:9200")
    'https://***@host:9200'
    """
    return re.sub(r"//\S*@", "//***@", url)


def _short(value: object) -> str:
    text = repr(str(value) if isinstance(value, Path) else hide(value) if isinstance(value, str) else value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def place(name: str, overrides: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Where a setting was set: "command line", the name of an environment variable, or the settings file."""
    if any(overrides.get(dotted) is not None and (dotted + ".").startswith(f"{name}.") for dotted in overrides):
        return "command line"
    upper = {variable.upper(): variable for variable in environ}
    own, table = variable(name), variable(name.partition(".")[0])
    found = [upper[key] for key in upper if key in (own, table) or key.startswith(f"{own}__")]
    return found[0] if found else _FILE
