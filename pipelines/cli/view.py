"""`newnormal view`: serves the state view: what the detector believes of each series, and the last windows of each."""

from __future__ import annotations

import re
from typing import Annotated
from zlib import crc32

import typer

from deploy.embedded.services import running
from engine.spec.errors import NewnormalError
from pipelines.cli.log_output import configure
from pipelines.cli.options import Overrides, ShownVersion, with_servers
from pipelines.contracts.access_token import access_token
from pipelines.contracts.settings import load

_PART = re.compile(r"([1-9]\d{0,3})/([1-9]\d{0,3})")


@with_servers
def view(
    overrides: Overrides,
    version: ShownVersion = None,
    part: Annotated[
        str, typer.Option(help="Part of the partitions that this process has, e.g. 2/3: the second of three.")
    ] = "1/1",
    peer: Annotated[
        list[str] | None, typer.Option(help="URL of each part, in order; questions go on to the part that knows.")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option(help="Serve the last row of each key of a topic of your own jobs instead.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: view.host.")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port; if it is taken, the next free one. Default: view.port.")
    ] = None,
) -> None:
    """Serve what the detector believes of each series, or the results of your own jobs, over HTTP until Ctrl-C."""
    from pipelines.contracts.web_answers import origin
    from pipelines.query.view.follower import Follower
    from pipelines.query.view.part import Part
    from pipelines.query.view.rows import JobTopics
    from pipelines.query.view.scores.endpoint import authorization
    from pipelines.query.view.serving import Served, serve_view
    from pipelines.serving.server import address, listening  # the web server is heavy: only for this
    from pipelines.versions.promotion import shown_version
    from pipelines.versions.registry import Registry

    overrides |= {"view.host": host, "view.port": port}
    parts = _PART.fullmatch(part)
    if not parts or int(parts[1]) > int(parts[2]):
        raise NewnormalError("USAGE_INVALID", f"{part!r} is no part", "--part", "e.g. 2/3", "nothing was started")
    if peer and len(peer) != int(parts[2]):
        what = f"{len(peer)} URLs, but {parts[2]} parts"
        raise NewnormalError("USAGE_INVALID", what, "--peer", "the URL of each part, in order", "nothing was started")
    asked = load(**overrides)
    token = access_token(asked.view)
    if topic:
        if version or peer or part != "1/1":
            given = "--as" if version else "--peer" if peer else "--part"
            raise NewnormalError("USAGE_INVALID", f"{given} with --topic", given, "one of them", "nothing was started")
        settings = running(asked, elasticsearch=False)
        content = JobTopics(topic)
        folder = settings.folder("view") / f"topics-{crc32(content.layout.encode()):08x}"
        follower = Follower(settings, folder=folder, content=content)
        name, mine, whole = ", ".join(content.topics), settings, None
    else:
        settings = running(asked, elasticsearch=version is None)
        name = version or shown_version(settings) or "v1"
        mine, whole = settings.of(Registry(settings).get(name).names), None if version else settings
        authorization(mine.scores)
        follower = Follower(mine, Part(int(parts[1]), int(parts[2])))
    served = Served(
        mine,
        whole,
        follower.partitions,
        follower.part,
        follower.folder,
        configure,
        tuple(peer or ()),
        token,
        follower.content.topics if topic else (),
    )
    try:
        listener = listening(settings.view.host, settings.view.port, "view")
    except NewnormalError:
        follower.close()
        raise
    url = address(listener)

    def ready() -> None:
        typer.echo(f"state view of {name} at {url} (Ctrl-C ends it); /openapi.json describes it")
        if mine.scores.remote_write_url and not topic:
            typer.echo(f"scores are pushed to {origin(mine.scores.remote_write_url)}")

    serve_view(follower, served, listener, ready)
