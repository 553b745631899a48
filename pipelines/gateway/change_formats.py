"""Changes of a site as they are reported: CloudEvents, annotations of Grafana, events of Kubernetes, our own.

Sources: CloudEvents 1.0.2 (JSON format; CDEvents are such events); Grafana's HTTP API, ``POST /api/annotations``;
Kubernetes' API, ``Event`` of ``v1`` and ``events.k8s.io/v1``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import orjson

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Change
from pipelines.contracts.records.change import ChangeKind
from pipelines.formats.instants import moment
from pipelines.formats.refusals import FORMAT_UNKNOWN
from pipelines.jobs.operator_messages import accepted

NO_CHANGE = "NO_CHANGE"
"""Code of an event of Kubernetes that changes nothing, such as that an image was pulled."""
ACCEPTED = "a CloudEvent, an annotation of Grafana (text), an event of Kubernetes (reason), or event.id and message"
_WORDS: Mapping[ChangeKind, str] = {
    "feature_flag": r"flag|toggle|feature",
    "restart": r"restart|reboot|kill|backoff",
    "deployment": r"deploy|releas|rollout|roll(ed)?[ _-]?back|upgrad|scal(ed|ing)|service\.(removed|published)",
    "configuration": r"config|setting|environment\.|parameter|migrat",
}
"""What speaks of each kind of change; of two kinds the first one counts."""
_KINDS = {kind: re.compile(words, re.IGNORECASE) for kind, words in _WORDS.items()}
_REASONS: Mapping[str, ChangeKind] = {
    "ScalingReplicaSet": "deployment",
    "DeploymentRollback": "deployment",
    "SuccessfulRescale": "deployment",
    "SuccessfulUpdate": "deployment",
    "Killing": "restart",
    "BackOff": "restart",
    "Rebooted": "restart",
    "Preempting": "restart",
    "Evicted": "restart",
    "Drain": "restart",
    "NodeNotSchedulable": "configuration",
    "NodeSchedulable": "configuration",
    "ConfigMapUpdated": "configuration",
}
"""Reasons of events of Kubernetes that change something; controllers have many more, which tell how it goes."""
_MACHINES = ("host.name", "machines", "machine", "hosts", "host", "hostname", "instance", "node", "pod")
_TEXTS = ("message", "text", "description", "title", "summary")
_TAG = re.compile(rf"(?:{'|'.join(map(re.escape, _MACHINES))})[:=](.+)")
_LISTS = frozenset({"List", "EventList"})
_LONGEST = 1_024
_LONGEST_ID = 256
_WITH_PODS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "HorizontalPodAutoscaler"})


def changes_of(content: Any, now: int) -> Iterator[Change | NewnormalError]:
    """The changes in the JSON of a request, each as a record, or why it is none.

    Args:
        content: An object, a list of objects, or a list of Kubernetes'.
        now: When it was received, epoch milliseconds: the time of what has none.
    """
    if isinstance(content, dict) and content.get("kind") in _LISTS and isinstance(content.get("items"), list):
        content = content["items"]
    for one in content if isinstance(content, list) else [content]:
        try:
            yield _change(one, now)
        except NewnormalError as error:
            yield error
        except ValueError as error:
            yield NewnormalError("CHANGE_INVALID", str(error)[:300])


def _change(one: Any, now: int) -> Change:
    """The change of one object.

    Raises:
        NewnormalError: ``FORMAT_UNKNOWN``, ``NO_CHANGE``, ``CHANGE_INVALID``.
        ValueError: A time in it is none.
    """
    if not isinstance(one, dict):
        raise NewnormalError(FORMAT_UNKNOWN, f"it is no object but {type(one).__name__}", "", ACCEPTED)
    if "specversion" in one:
        fields = _cloud_event(one)
    elif "reason" in one and ("involvedObject" in one or "regarding" in one):
        fields = _kubernetes_event(one)
    elif "event.id" in one:
        fields = dict(one)
    elif "text" in one:
        fields = _annotation(one, now)
    else:
        names = ", ".join(map(str, list(one)[:5]))[:200]
        raise NewnormalError(FORMAT_UNKNOWN, f"its fields are {names or 'none'}", "", ACCEPTED)
    fields.setdefault("@timestamp", now)
    for name in ("@timestamp", "event.end"):
        if name in fields and fields[name] is not None:
            fields[name] = moment(fields[name])
    return accepted(Change, _json(fields))


def _json(value: Any) -> bytes:
    """JSON of what was read from JSON.

    Raises:
        NewnormalError: ``CHANGE_INVALID`` if it is nested deeper, or has larger numbers, than a record may.
    """
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise NewnormalError("CHANGE_INVALID", str(error)[:300]) from None


def _cloud_event(one: Mapping[str, Any]) -> dict[str, Any]:
    """Machines and text are in its data; an event that names no machine is one of the whole site."""
    data = {"message": one["data"]} if isinstance(one.get("data"), str) else _object(one.get("data"))
    kind, subject = _short(one.get("type", "")), _short(one.get("subject") or "")
    text = _short(_first(data, _TEXTS) or " ".join(filter(None, [kind, subject])))
    who = data.get("user.name") or data.get("user") or data.get("by")
    fields = {
        "event.id": _id(f"{one.get('source', '')}/{one.get('id', '')}") if one.get("id") else "",
        "event.action": _kind(kind, text),
        "message": text,
        "host.name": _names(_first(data, _MACHINES)),
        "event.provider": str(one.get("source", ""))[:512],
        "event.reference": str(data.get("url") or "")[:_LONGEST],
        "user.name": str(who or "")[:256],
    }
    return fields | _times(one.get("time"), data.get("end"))


def _annotation(one: Mapping[str, Any], now: int) -> dict[str, Any]:
    """Machines are tags, such as ``host:web-1``; the kind is in the tags or in the text.

    It has no id: its time and what it says make one. Of those without a time each is a change of its own.
    """
    tags = [str(tag) for tag in one["tags"]] if isinstance(one.get("tags"), list) else []
    named = [found[1] for tag in tags if (found := _TAG.fullmatch(tag))]
    made = _json([one.get("time") or now, one.get("text"), tags]).decode()
    text = _short(one["text"])
    fields = {
        "event.id": _id(f"grafana/{one.get('dashboardUID') or ''}/{one.get('panelId') or ''}/{made}"),
        "event.action": _kind(_short(" ".join(tags)), text),
        "message": text,
        "host.name": named,
        "event.provider": "grafana",
    }
    end = one.get("timeEnd")
    return fields | _times(one.get("time") or None, end if end != one.get("time") else None)


def _kubernetes_event(one: Mapping[str, Any]) -> dict[str, Any]:
    """The object of the event, and the pods whose names begin as it does, are its machines.

    The event of what happened again has its old id and a count: each time is a change of its own.

    Raises:
        NewnormalError: ``NO_CHANGE`` if nothing was changed.
    """
    reason = str(one["reason"])
    if reason not in _REASONS:
        known = ", ".join(_REASONS)
        raise NewnormalError(NO_CHANGE, f"an event of Kubernetes with the reason {reason[:60]!r}", "reason", known)
    regarding, metadata = _object(one.get("involvedObject") or one.get("regarding")), _object(one.get("metadata"))
    name, kind = str(regarding.get("name") or ""), str(regarding.get("kind") or "")
    series = _object(one.get("series"))
    last = series.get("lastObservedTime") or one.get("lastTimestamp") or one.get("deprecatedLastTimestamp")
    times = series.get("count") or one.get("count") or one.get("deprecatedCount") or 1
    text = str(one.get("message") or one.get("note") or reason)
    where = "/".join(filter(None, [str(regarding.get("namespace") or ""), name]))
    known_as = str(metadata.get("uid") or f"kubernetes/{where}/{reason}/{last or one.get('eventTime')}")
    fields = {
        "event.id": _id(known_as if times == 1 else f"{known_as}/{times}"),
        "event.action": _REASONS[reason],
        "message": _short(f"{kind} {where}: {text}"),
        "host.name": [name, *([f"{name}-*"] if kind in _WITH_PODS else [])] if name else [],
        "event.provider": "kubernetes",
    }
    return fields | _times(last or one.get("eventTime") or one.get("firstTimestamp"), None)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _times(begin: Any, end: Any) -> dict[str, Any]:
    return ({} if begin is None else {"@timestamp": begin}) | ({} if end is None else {"event.end": end})


def _kind(*texts: str) -> ChangeKind:
    """What kind of change the first text speaks of that speaks of one.

    >>> _kind("dev.cdevents.service.upgraded.0.2.0", ""), _kind("", "Feature flag x on"), _kind("night", "")
    ('deployment', 'feature_flag', 'other')
    """
    return next((kind for text in texts for kind, words in _KINDS.items() if words.search(text)), "other")


def _first(data: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((data[name] for name in names if data.get(name)), None)


def _names(machines: Any) -> list[str]:
    """The machines of a list, or of a text with commas.

    >>> _names("web-1, web-2"), _names(["db"]), _names(None)
    (['web-1', 'web-2'], ['db'], [])
    """
    parts = machines.split(",") if isinstance(machines, str) else machines if isinstance(machines, list) else []
    return [name for each in parts if (name := str(each).strip())]


def _short(text: Any) -> str:
    return str(text).strip()[:_LONGEST]


def _id(text: str) -> str:
    """A text as an id: its hash if it is too long for one.

    >>> _id("ci/17"), len(_id("x" * 300))
    ('ci/17', 32)
    """
    return text if len(text) <= _LONGEST_ID else blake2b(text.encode(), digest_size=16).hexdigest()
