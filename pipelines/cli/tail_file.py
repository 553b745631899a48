"""``newnormal tail-file``: follows log files. `datagen.followed_files` finds what is new in them."""

from __future__ import annotations

import socket
import time
from glob import has_magic
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Console

from engine.clock import now_ms
from engine.printing import cell
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from pipelines.cli.input_commands import To, agents_sink, saying, stopping
from pipelines.cli.options import Overrides, with_kafka
from pipelines.contracts.settings import load
from pipelines.contracts.topics import LOGS_JSON


@with_kafka
def tail_file(
    overrides: Overrides,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Log files, or globs in quotes.")],
    machine: Annotated[
        str, typer.Option(help="The machine of lines that name none. Default: the host name of this machine.")
    ] = "",
    from_start: Annotated[
        bool,
        typer.Option("--from-start", help="At the first start read files from their beginning."),
    ] = False,
    to: To = None,
    every: Annotated[str, typer.Option(help="Time between two looks at the files.")] = "500ms",
    duration: Annotated[str | None, typer.Option(help="Stop after this time. Default: until Ctrl-C.")] = None,
) -> None:
    """Follow log files and write their lines to the topic logs.json, so that logs work without another agent.

    Lines of syslog's files, of containers, of web servers, logfmt and JSON are read as docs/input.md says; of other
    lines a time and a level at the beginning are used, and the file names the program. Lines that begin with a blank
    belong to the line before. Rotation is followed, by renaming or by emptying. The command remembers its place in each
    file, and goes on there after a restart; lines wait in a buffer on disk until Kafka has accepted them.

    For example:

      newnormal tail-file /var/log/syslog /var/log/auth.log         new lines, from now on

      newnormal tail-file '/var/log/nginx/*.log' --machine web-1    also of files that appear later

      newnormal tail-file app.log --from-start --to lines           what is there, to files in the folder lines
    """
    from datagen.followed_files import FollowedFiles
    from pipelines.formats.rules import Rules
    from pipelines.formats.tailed import TailedLines

    for path in paths:
        if not has_magic(path) and not Path(path).is_file():
            accepted = "a file, or a glob in quotes such as 'app*.log' for files that come later"
            raise NewnormalError("LOG_FILE_ABSENT", f"there is no file {path}", "PATH", accepted, "nothing was read")
    settings = load(**overrides)
    name, say = machine or socket.gethostname(), Console(stderr=True, highlight=False)
    period = duration_ms(every, "--every")
    if period < 100:
        raise NewnormalError("SETTING_INVALID", f"{every}", "tail-file --every", "100ms or more", "nothing was started")
    until = time.monotonic() + duration_ms(duration, "--duration") / 1000 if duration is not None else None
    memory = settings.common_folder("tail") / f"{quote(name, safe='')}.json"
    files, reader = FollowedFiles(paths, memory, from_start), TailedLines(name, Rules.of(settings.input, LOGS_JSON))
    sent = left = 0
    with stopping() as stop, agents_sink(settings, to, f"tail-file {name}", saying(say)) as sink:
        say.print(cell(f"{name}: following {', '.join(paths)}, until {'Ctrl-C' if until is None else duration}"))
        while True:
            ended = stop.is_set() or (until is not None and time.monotonic() > until)
            grown = False
            for each in files.new():
                frame, unusable = reader.read(each.path, each.lines, now_ms())
                sink.logs(frame)
                sent, left, grown = sent + frame.height, left + unusable, True
            if grown:
                sink.flush() if to else None
                files.save()
            if ended:
                break
            stop.wait(period / 1000)
        sink.flush()
    say.print(f"{sent:,} lines sent" + (f"; {left:,} lines could not be used" if left else ""))
