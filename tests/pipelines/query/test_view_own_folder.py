"""Two consoles on one state directory: each view has a folder whose database it alone writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pipelines.query.view.database import Database
from pipelines.query.view.followed import own_folder

_HOLDER = """
import sys
from pathlib import Path
from pipelines.query.view.followed import own_folder
with own_folder(Path(sys.argv[1]), "console") as folder:
    print(folder.name, flush=True)
    sys.stdin.read()
"""


def test_each_of_several_views_of_one_name_writes_a_folder_of_its_own(tmp_path: Path) -> None:
    with own_folder(tmp_path, "console") as first, own_folder(tmp_path, "console") as second:
        assert [first.name, second.name] == ["console", "console-2"]
        databases = [Database(folder / "data") for folder in (first, second)]  # RocksDB refuses one that is open
        for each in databases:
            each.close()
        with own_folder(tmp_path, "run") as other:
            assert other.name == "run"


def test_who_begins_again_alone_has_the_folder_from_before_also_after_the_end_of_another_process_by_force(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", _HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == "console"
        with own_folder(tmp_path, "console") as mine:
            assert mine.name == "console-2"
        holder.kill()
        holder.wait()
    with own_folder(tmp_path, "console") as mine:
        assert mine.name == "console"
