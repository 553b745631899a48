"""A single Elasticsearch node: its settings, how it is started (also by root), and when it is ready.

Elasticsearch refuses to run as root. Started by root it runs as uid 65534 (nobody), which may not be able to enter
root's directories; so its data then lie in ``/var/tmp/newnormal-<hash>`` (of the state directory), and the state
directory holds a link to them. If that link is gone (the state directory was deleted), the next start deletes them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import stat
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from deploy.embedded import login
from deploy.embedded.kafka import LOG4J
from deploy.embedded.ports import HOST, local
from deploy.embedded.server_process import Launch
from engine.address import client_options
from engine.spec.errors import NewnormalError

NOBODY = 65534

_CONFIG = """\
cluster.name: newnormal
node.name: {node}
network.host: {host}
http.host: {listen}
http.port: {port}
discovery.type: single-node
xpack.security.enabled: {secured}
cluster.routing.allocation.disk.threshold_enabled: false
path.data: {data}
path.logs: {logs}
"""
# One user out of a file. This distribution lacks the parts with which it would hold users, roles and keys in an index.
_SECURED = """\
xpack.security.autoconfiguration.enabled: false
xpack.security.enrollment.enabled: false
xpack.security.authc.reserved_realm.enabled: false
xpack.security.authc.token.enabled: false
xpack.security.authc.api_key.enabled: false
"""
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy cannot reach our loopback address
_NO_ROLES_IN_AN_INDEX = "-Des.queryable_built_in_roles_enabled=false"
_UNWANTED_OPTIONS = ("-Xlog", "-XX:+HeapDump", "-XX:ErrorFile")


@dataclass(frozen=True)
class Elasticsearch:
    """An embedded node; all its settings but the ports are decided before the supervisor starts.

    Args:
        java: Folder of Java.
        home: Folder of Elasticsearch; it is only read.
        data: Folder of its files.
        heap: Size of its heap.
        listen: Address at which it listens.
        java_options: Further options of its JVM.
        password_file: File with the password of its only user. Empty: there is no login.
    """

    name: ClassVar[str] = "elasticsearch"
    preferred: ClassVar[dict[str, int]] = {"port": 9200}
    java: str
    home: str
    data: str
    heap: str
    listen: str = HOST
    java_options: Sequence[str] = ()
    password_file: str = ""

    @property
    def node_name(self) -> str:
        """A name that is unique on this machine, since no two nodes share a directory."""
        return _name(Path(self.data))

    def launch(self, ports: dict[str, int]) -> Launch:
        """Writes the node's files, gives them to the user it will run as, and says how to start it on ``ports``."""
        root = os.geteuid() == 0
        link = Path(self.data)
        base = _prepare(link, root)
        home, java = Path(self.home), Path(self.java)
        if root:
            home, java = _readable(home, base), _readable(java, base)
        config = base / "config"
        for written in (config, base / "tmp"):  # created anew, as processes of nobody may have left links in them
            shutil.rmtree(written, ignore_errors=True)
        for directory in (config, base / "data", base / "logs", base / "tmp"):
            directory.mkdir(exist_ok=True)
            directory.chmod(0o700)
        options = (Path(self.home) / "config" / "jvm.options").read_text().splitlines()
        kept = [o for o in options if o and not o.startswith(("#", *_UNWANTED_OPTIONS))]
        kept += [f"-XX:ErrorFile={base}/logs/hs_err_pid%p.log", _NO_ROLES_IN_AN_INDEX]
        (config / "jvm.options").write_text("\n".join(kept) + "\n")
        (config / "elasticsearch.yml").write_text(
            _CONFIG.format(
                host=HOST,
                listen=json.dumps(self.listen),
                node=self.node_name,
                data=json.dumps(str(base / "data")),
                logs=json.dumps(str(base / "logs")),
                secured=json.dumps(bool(self.password_file)),
                **ports,
            )
            + (_SECURED if self.password_file else "")
        )
        if self.password_file:
            (config / "users").write_text(login.users(login.password(self.password_file)))
            (config / "users_roles").write_text(f"superuser:{login.USER}\n")
        (config / "log4j2.properties").write_text(LOG4J)
        if root:
            for directory in (config, base / "data", base / "logs", base / "tmp"):
                _give(directory)
        environ = {name: value for name, value in os.environ.items() if name not in ("JAVA_TOOL_OPTIONS", "ES_HOME")}
        temporary = str(base / "tmp")  # also for the launcher, which litters; its options are split at spaces
        environ |= {
            "ES_JAVA_HOME": str(java),
            "ES_PATH_CONF": str(config),
            "ES_TMPDIR": str(base / "tmp"),
            "ES_JAVA_OPTS": " ".join((f"-Xms{self.heap}", f"-Xmx{self.heap}", *self.java_options)),
            "CLI_JAVA_OPTS": "-XX:TieredStopAtLevel=1" + ("" if " " in temporary else f" -Djava.io.tmpdir={temporary}"),
            "HOME": str(base / "tmp"),
        }
        return Launch([str(home / "bin" / "elasticsearch")], environ, base / "tmp", NOBODY if root else None)

    def address(self, ports: dict[str, int]) -> str:
        """The URL of the node for this machine, with the login of its clients."""
        return login.address(f"http://{local(self.listen)}:{ports['port']}", self.password_file)

    def is_ready(self, ports: dict[str, int]) -> bool:
        """Whether this node answers and its cluster is at least yellow: every index can be read and written.

        Another node may have taken the port since it was chosen; the answer of that node does not count.
        """
        try:
            address = self.address(ports)
            (answering,) = _get(address, "/_nodes/_local/http?filter_path=nodes.*.name")["nodes"].values()
            health = _get(address, "/_cluster/health?wait_for_status=yellow&timeout=1s")
            return answering["name"] == self.node_name and health["status"] in ("yellow", "green")
        except (OSError, ValueError, KeyError, AttributeError):  # refused, 408 while red, or cut off
            return False


def _get(address: str, path: str) -> dict[str, Any]:
    request = urllib.request.Request(str(address) + path)
    if account := client_options(address).get("basic_auth"):
        request.add_header("Authorization", f"Basic {base64.b64encode(':'.join(account).encode()).decode()}")
    with _DIRECT.open(request, timeout=3) as response:
        answer: dict[str, Any] = json.load(response)
        return answer


def _name(data: Path) -> str:
    return f"newnormal-{hashlib.sha256(str(data.absolute()).encode()).hexdigest()[:12]}"


def runtime_dir(data: Path) -> Path:
    """The real directory of the node's files: ``data``, or for root a directory that other users can enter."""
    if os.geteuid() != 0:
        return data
    return Path("/var/tmp") / _name(data)


def _prepare(data: Path, root: bool) -> Path:
    base = runtime_dir(data)
    if not root:
        base.mkdir(parents=True, exist_ok=True)
        return base
    _make_ours(base)
    if not data.is_symlink():
        shutil.rmtree(base)
        _make_ours(base)
        data.parent.mkdir(parents=True, exist_ok=True)
        data.symlink_to(base)
    return base


def _make_ours(base: Path) -> None:
    """Creates a directory in a place that all users can write to, or uses an existing one if root owns it.

    Nothing is changed before its owner is known. The directory that was checked is changed by its handle and not by its
    name, which could meanwhile refer to something else.
    """
    with suppress(FileExistsError):
        base.mkdir(mode=0o755)
    try:
        opened = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # a link, or no directory
        raise _foreign(base) from None
    try:
        if os.fstat(opened).st_uid != 0:
            raise _foreign(base)
        os.fchmod(opened, 0o755)
    finally:
        os.close(opened)


def _foreign(base: Path) -> NewnormalError:
    what = f"{base} is not a directory of root's"
    return NewnormalError("DIRECTORY_FOREIGN", what, str(base), "remove it", "Elasticsearch was not started")


def _readable(tree: Path, base: Path) -> Path:
    """``tree`` if every user can read it, else a copy (hard links where possible) in ``base``."""
    enterable = all(place.stat().st_mode & stat.S_IXOTH for place in (tree, *tree.resolve().parents))
    files = (path for path in tree.glob("lib/*") if path.exists())  # a system's Java may hold dangling links
    if enterable and all(path.stat().st_mode & stat.S_IROTH for path in files):
        return tree
    copy = base / tree.name
    if not copy.exists():
        part = base / f".{tree.name}.part"
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(tree, part, symlinks=True, copy_function=_link_or_copy)
        for directory, _, _ in os.walk(part):
            Path(directory).chmod(0o755)
        part.rename(copy)
    return copy


def _link_or_copy(source: str, target: str) -> None:
    mode = Path(source).stat().st_mode
    if mode & stat.S_IROTH:
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError:  # another file system
            shutil.copy2(source, target)
    else:
        shutil.copy2(source, target)
        Path(target).chmod(mode | 0o444 | (0o111 if mode & 0o100 else 0))


def _give(directory: Path) -> None:
    for parent, directories, files in os.walk(directory):
        for name in (".", *directories, *files):
            os.chown(Path(parent) / name, NOBODY, NOBODY, follow_symlinks=False)
