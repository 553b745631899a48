"""`newnormal status`: shows the servers and jobs that run for a state directory and namespace, and their health."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any

import typer
from rich.console import Console

from dashboards.live_view import jobs_table
from dashboards.status import JobStatus
from deploy.embedded import services
from engine.clock import now_ms
from engine.printing import cell
from pipelines.cli.hints import hint
from pipelines.cli.options import Overrides, with_namespace
from pipelines.contracts.access_token import console_headers
from pipelines.contracts.quantities.words import duration
from pipelines.contracts.settings import Settings, load
from pipelines.notify.status import NotifierStatus, notifier
from pipelines.runtime import processes

_SECONDS = 5.0
_FIELDS = [each.name for each in fields(JobStatus)]
WELL, UNWELL, NOTHING = 0, 1, 3
"""Exit codes: all jobs are healthy; a job has a problem; no job runs."""


@dataclass(frozen=True)
class Answer:
    """The state of a process that runs jobs, as its console reports it.

    Attributes:
        process: The process.
        jobs: The state of its jobs, as the console's `/api/status` returns it; empty if the console does not answer.
        problems: What is wrong with the process or its jobs, one sentence each.
    """

    process: processes.JobProcess
    jobs: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@with_namespace
def status(
    overrides: Overrides, as_json: Annotated[bool, typer.Option("--json", help="Write JSON for programs.")] = False
) -> None:
    """Show which servers and jobs run, with each job's rate, lag, watermark and last error; and who tells people.

    Exit code 0 if all jobs are healthy, 1 if one has a problem, 3 if no job runs.
    """
    settings = load(**overrides)
    headers = console_headers(settings.console)
    answers = [_asked(process, headers) for process in processes.job_processes(settings)]
    servers, telling = services.status(settings), notifier(settings)
    code = NOTHING if not answers else UNWELL if any(process.problems for process in answers) else WELL
    if as_json:
        answer = {
            "state_dir": str(settings.state),
            "namespace": settings.namespace,
            "status": {WELL: "ok", UNWELL: "unwell", NOTHING: "nothing runs"}[code],
            "servers": [asdict(server) for server in servers.servers] if servers else [],
            "processes": [asdict(process) for process in answers],
            "notifications": asdict(telling) if telling else None,
        }
        typer.echo(json.dumps(answer))
    else:
        _show(settings, servers.servers if servers else (), answers, telling)
    raise typer.Exit(code)


def _asked(process: processes.JobProcess, headers: dict[str, str]) -> Answer:
    try:
        answer = _get(f"{process.url}/api/status", headers)
        health = _get(f"{process.url}/health", headers)
    except urllib.error.HTTPError as error:
        login = "it wants a token (console.token_file), or this machine's address in console.proxies"
        return Answer(process, [], [f"its console does not answer: {login if error.code == 401 else error}"])
    except (OSError, ValueError) as error:
        return Answer(process, [], [f"its console does not answer: {error}"])
    jobs = (answer.get("pipeline") or {}).get("jobs") or []
    if not jobs:
        return Answer(process, [], ["it is starting: no job runs yet"])
    problems = [] if health.get("status") == "ok" else _reasons(health)
    return Answer(process, jobs, problems)


def _get(url: str, headers: dict[str, str]) -> dict[str, Any]:
    """Reads a JSON object over HTTP; also from an answer with status 503, which the health check gives."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_SECONDS) as reply:
            body = reply.read()
    except urllib.error.HTTPError as error:
        if error.code != 503:
            raise
        body = error.read()
    found = json.loads(body)
    return found if isinstance(found, dict) else {}


def _reasons(health: dict[str, Any]) -> list[str]:
    reasons = health.get("reasons") or [f"{health.get('code', '')}: {health.get('detail', 'not well')}"]
    return [str(reason) for reason in reasons]


def _show(settings: Settings, servers: Any, answers: list[Answer], telling: NotifierStatus | None = None) -> None:
    console = Console(highlight=False)
    place = f"{settings.state}, namespace {settings.namespace or 'none'}"
    console.print(cell(f"state directory {place}"), soft_wrap=True)
    for server in servers:
        up = duration(round((time.time() - server.started) * 1000))
        console.print(cell(f"{server.name} at {server.address}, process {server.pid}, up {up}"), soft_wrap=True)
    if not servers:
        console.print("no embedded server runs")
    for answer in answers:
        process = answer.process
        console.print(cell(f"process {process.pid}, version {process.version}, {process.url}"), soft_wrap=True)
        if answer.jobs:
            jobs = [JobStatus(**{name: job[name] for name in _FIELDS if name in job}) for job in answer.jobs]
            console.print(jobs_table(jobs, now_ms(), console.width))
        for job in answer.jobs:
            if job.get("last_error"):
                console.print(cell(f"{job['name']}: last error: {job['last_error']}"), soft_wrap=True)
        for problem in answer.problems:
            console.print(cell(f"not well: {problem}", "bold red"), soft_wrap=True)
    if telling:
        _show_notifications(console, telling)
    if not answers:
        console.print(cell(hint("no job runs; `newnormal run` starts the jobs")), soft_wrap=True)


def _show_notifications(console: Console, telling: NotifierStatus) -> None:
    now = now_ms()
    console.print(cell(f"notifications by process {telling.pid}, metrics at {telling.url}"), soft_wrap=True)
    for channel in telling.channels:
        oldest = f" for {duration(now - channel.oldest)}" if channel.oldest is not None else ""
        given_up = f", {channel.given_up} given up" if channel.given_up else ""
        held = f"{channel.waiting} waiting{oldest}, {channel.suppressed} suppressed"
        sent = f"{channel.sent} sent, {channel.failed} failed{given_up}"
        console.print(cell(f"  {channel.name}: {sent}, {held}"), soft_wrap=True)
        if channel.failing_since is not None:
            since = duration(now - channel.failing_since)
            text = f"  not well: {channel.name} has taken no message for {since}: {channel.reason}"
            console.print(cell(text, "bold red"), soft_wrap=True)
