"""Changes of a site as they are reported: CloudEvents, annotations of Grafana, events of Kubernetes, our own.

Sources: CloudEvents 1.0.2 (JSON format; CDEvents are such events); Grafana's HTTP API, ``POST /api/annotations``;
Kubernetes' API, ``Event`` of ``v1`` and ``events.k8s.io/v1``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.contracts.globs import is_glob
from pipelines.contracts.records import Change
from pipelines.contracts.records.change import OF_SINGLE_MACHINES, ChangeKind, id_of
from pipelines.formats.instants import moment
from pipelines.formats.refusals import FORMAT_UNKNOWN
from pipelines.gateway import cloud_events
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
_COMPLETED = "Completed"
_REASONS: Mapping[str, ChangeKind] = {
    "ScalingReplicaSet": "deployment",
    "DeploymentRollback": "deployment",
    "SuccessfulRescale": "deployment",
    "SuccessfulUpdate": "deployment",
    "Killing": "ending",
    "BackOff": "restart",
    "Rebooted": "restart",
    "Preempting": "restart",
    "SuccessfulDelete": "ended",
    "Preempted": "ended",
    "Evicted": "ending",
    "EvictedByVPA": "ending",
    "Descheduled": "ending",
    "TaintManagerEviction": "ending",
    "ScaleDown": "cordon",
    _COMPLETED: "ended",
    "Drain": "restart",
    "NodeNotSchedulable": "cordon",
    "NodeSchedulable": "uncordon",
    "ConfigMapUpdated": "configuration",
}
"""Reasons of events of Kubernetes that change something; controllers have many more, which tell how it goes."""
_KNOWN = ", ".join(_REASONS)
_DELETED = re.compile(r"(?i)delete[d]?\s+pod:?\s+(\S+)")
"""What controllers of sets of replicas say of a pod that they have ended: ``Deleted pod: cart-7d4b9c6f5-x2x7p``, or
``delete Pod db-0 in StatefulSet db successful``."""
_STOPPING = re.compile(r"(?i)^stopping container|need to kill pod")
"""What the kubelet says of a container whose pod it ends, rather than to start it again, as after a failed probe."""
_CANCELLED = re.compile(r"(?i)^cancel")
"""What the controller of taints says of a pod that is not evicted after all: ``Cancelling deletion of Pod``."""
_MACHINES = ("host.name", "machines", "machine", "hosts", "host", "hostname", "instance", "node", "pod")
_TEXTS = ("message", "text", "description", "title", "summary")
_TAG = re.compile(rf"(?:{'|'.join(map(re.escape, _MACHINES))})[:=](.+)")
_OF_KIND = {_COMPLETED: "Job", "ScaleDown": "Node", "NodeNotSchedulable": "Node", "NodeSchedulable": "Node"}
"""Of what events with some reasons are; those of other objects change nothing."""
_LISTS = frozenset({"List", "EventList"})
_LONGEST = 1_024
_WITH_PODS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "HorizontalPodAutoscaler"})


def changes_of(content: Any, now: int) -> Iterator[Change | NewnormalError]:
    """The changes in the JSON of a request, each as a record, or why it is none.

    Args:
        content: An object, a list of objects, or a list of Kubernetes'.
        now: When it was received, epoch milliseconds: the time of what has none.
    """
    if isinstance(content, dict) and isinstance(content.get("items"), list):
        kind = content.get("kind")
        content = content["items"] if isinstance(kind, str) and kind in _LISTS else content
    for one in content if isinstance(content, list) else [content]:
        try:
            yield _change(one, now)
        except NewnormalError as error:
            yield error
        except (ValueError, RecursionError) as error:
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
    if fields.get("@timestamp") is None:
        fields["@timestamp"] = now
    for name in ("@timestamp", "event.end"):
        if name in fields and fields[name] is not None:
            fields[name] = moment(fields[name])
    change = accepted(Change, _json(fields))
    if change.end is not None and change.end < change.time:
        what = f"event.end: it ended at {iso(change.end)}, before it began at {iso(change.time)}"
        raise NewnormalError("CHANGE_INVALID", what)
    if change.kind in OF_SINGLE_MACHINES and (not change.machines or any(map(is_glob, change.machines))):
        what = "what was ended or cordoned is named, machine by machine: only newnormal change may end many by a glob"
        raise NewnormalError("CHANGE_INVALID", what, "host.name")
    return change


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
    """Machines and text are in its data; an event that names no machine is one of the whole site.

    Raises:
        NewnormalError: ``CHANGE_INVALID``, ``JSON_MALFORMED``.
    """
    cloud_events.check(one)
    content = cloud_events.data(one)
    data = {"message": content} if isinstance(content, str) else _object(content)
    kind, subject = _short(one["type"]), _short(one.get("subject"))
    text = _short(_first(data, _TEXTS) or " ".join(filter(None, [kind, subject])))
    who = data.get("user.name") or data.get("user") or data.get("by")
    fields = {
        "event.id": id_of(cloud_events.name(one)),
        "event.action": _kind(kind, text),
        "message": text,
        "host.name": _names(data),
        "event.provider": str(one["source"])[:512],
        "event.reference": _short(data.get("url")),
        "user.name": _short(who)[:256],
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
        "event.id": id_of(f"grafana/{one.get('dashboardUID') or ''}/{one.get('panelId') or ''}/{made}"),
        "event.action": _kind(_short(" ".join(tags)), text),
        "message": text,
        "host.name": named,
        "event.provider": "grafana",
    }
    begin = one.get("time") or now
    end = one.get("timeEnd") or begin
    if isinstance(begin, int | float) and isinstance(end, int | float):
        begin, end = min(begin, end), max(begin, end)
    return fields | _times(begin, end if end != begin else None)


def _kubernetes_event(one: Mapping[str, Any]) -> dict[str, Any]:
    """The object of the event, and the pods whose names begin as it does, are its machines, with and without namespace.

    The event of what happened again has its old id and a count: each time is a change of its own.

    Raises:
        NewnormalError: ``NO_CHANGE`` if nothing was changed.
    """
    reason = str(one["reason"])
    if reason not in _REASONS:
        raise NewnormalError(NO_CHANGE, f"an event of Kubernetes with the reason {reason[:60]!r}", "reason", _KNOWN)
    regarding, metadata = _object(one.get("involvedObject") or one.get("regarding")), _object(one.get("metadata"))
    name, kind = str(regarding.get("name") or ""), str(regarding.get("kind") or "")
    series = _object(one.get("series"))
    last = series.get("lastObservedTime") or one.get("lastTimestamp") or one.get("deprecatedLastTimestamp")
    times = series.get("count") or one.get("count") or one.get("deprecatedCount") or 1
    text = str(one.get("message") or one.get("note") or reason)
    where = "/".join(filter(None, [str(regarding.get("namespace") or ""), name]))
    ends = ["", "-*"] if kind in _WITH_PODS else [""]
    machines = [where, name]
    action = _action(reason, kind, text)
    if action == "ended" and kind != "Pod" and reason != _COMPLETED:
        pod = _DELETED.search(text)
        if pod is None:
            why = f"{kind} {where[:60]}: {text[:60]!r} names no pod"
            raise NewnormalError(NO_CHANGE, why, "message", "Deleted pod: x")
        machines, ends = [where.removesuffix(name) + pod[1], pod[1]], [""]
    ends = [""] if action in OF_SINGLE_MACHINES else ends
    known_as = str(metadata.get("uid") or f"kubernetes/{where}/{reason}/{last or one.get('eventTime')}")
    fields = {
        "event.id": id_of(known_as if times == 1 else f"{known_as}/{times}"),
        "event.action": action,
        "message": _short(f"{kind} {where}: {text}"),
        "host.name": [f"{each}{end}" for each in dict.fromkeys(machines) if name for end in ends],
        "event.provider": "kubernetes",
    }
    return fields | _times(last or one.get("eventTime") or one.get("firstTimestamp"), None)


def _action(reason: str, kind: str, text: str) -> ChangeKind:
    """What an event with a known reason says that was done.

    Raises:
        NewnormalError: ``NO_CHANGE`` if it takes back what was said, or is of another object than those that it ends.

    >>> _action("Killing", "Pod", "Stopping container app"), _action("ScaleDown", "Pod", "deleting pod for node")
    ('ending', 'ending')
    >>> _action("Killing", "Pod", "Container app failed liveness probe, will be restarted")
    'restart'
    """
    action = _REASONS[reason]
    if reason == "ScaleDown" and kind == "Pod":
        return "ending"
    of = _OF_KIND.get(reason, kind)
    if kind != of or (action == "ending" and _CANCELLED.search(text)):
        raise NewnormalError(NO_CHANGE, f"{reason} of {kind[:60]}: {text[:60]!r}", "involvedObject", of)
    return "restart" if reason == "Killing" and not _STOPPING.search(text) else action


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


def _names(data: Mapping[str, Any]) -> list[str]:
    """The machines that data name: a text with commas, an object with a name as in ECS, a number, or a list of these.

    Raises:
        NewnormalError: ``CHANGE_INVALID`` if they are something else, which would be the whole site if it was left out.

    >>> _names({"host": "web-1, web-2"}), _names({"machines": ["db", {"name": "b"}]}), _names({})
    (['web-1', 'web-2'], ['db', 'b'], [])
    """
    field = next((name for name in _MACHINES if data.get(name)), "")
    found = data.get(field) or []
    names: list[str] = []
    for each in found if isinstance(found, list) else [found]:
        name = each.get("name") if isinstance(each, dict) else each
        if type(name) not in (str, int):
            raise NewnormalError("CHANGE_INVALID", f"{field} of the data is no name of a machine, and no list of names")
        names += str(name).split(",") if found is each else [str(name)]
    return [name.strip() for name in names if name.strip()]


def _short(value: Any) -> str:
    """A text without space around it, as long as one may be; of another value its JSON, of nothing nothing."""
    text = value if isinstance(value, str) else "" if value is None else _json(value).decode()
    return text.strip()[:_LONGEST]
