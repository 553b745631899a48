"""Downloads jars with the Ivy that comes with PySpark, so that only Java is needed.

The list of jars is in ``deploy.artifacts``. ``NEWNORMAL_IVY_SETTINGS`` may name an Ivy settings file, for example for a
company's mirror; without it Ivy's default Maven repository is used.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from deploy.java import java_home
from engine.spec.errors import NewnormalError

_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


@dataclass(frozen=True)
class Artifact:
    """One pinned artifact.

    Attributes:
        organisation: Who publishes it.
        name: Its name.
        version: Its version.
        transitive: Whether its dependencies are included.
        type: The kind of file.
        replaces: The organisation that published it before, whose artifact of the same name is left out.
    """

    organisation: str
    name: str
    version: str
    transitive: bool = False
    type: str = "jar"
    replaces: str = ""

    def xml(self) -> str:
        """The dependency as Ivy writes it."""
        coordinates = f"org={quoteattr(self.organisation)} name={quoteattr(self.name)} rev={quoteattr(self.version)}"
        conf = "default" if self.transitive else "master"
        transitive = str(self.transitive).lower()
        other = f'<artifact name={quoteattr(self.name)} type="{self.type}" ext="{self.type}"/>'
        inner = "" if self.type == "jar" else other
        return f'<dependency {coordinates} conf="default->{conf}" transitive="{transitive}">{inner}</dependency>'


def retrieve(artifacts: Sequence[Artifact], target: Path, work: Path, on_bytes: Callable[[int], None]) -> None:
    """Downloads ``artifacts`` into ``target`` as ``name-version.ext``.

    Args:
        artifacts: The artifacts.
        target: An existing directory.
        work: Ivy's cache; files in it are not downloaded again.
        on_bytes: Called a few times a second with the bytes downloaded so far.

    Raises:
        NewnormalError: ``DOWNLOAD_FAILED`` with the reason that Ivy gave.
    """
    work.mkdir(parents=True, exist_ok=True)
    settings, module = work / "ivysettings.xml", work / "ivy.xml"
    settings.write_text(_SETTINGS)
    # the order is Ivy's: exclusions come after all dependencies
    left_out = (
        f"<exclude org={quoteattr(each.replaces)} module={quoteattr(each.name)}/>"
        for each in artifacts
        if each.replaces
    )
    dependencies = "\n    ".join([*(artifact.xml() for artifact in artifacts), *left_out])
    module.write_text(
        f"""<ivy-module version="2.0">
  <info organisation="newnormal" module="{target.name.lstrip(".")}"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    {dependencies}
  </dependencies>
</ivy-module>
"""
    )
    command = [str(java_home() / "bin" / "java"), "-jar", str(_jar())]
    command += ["-settings", os.environ.get("NEWNORMAL_IVY_SETTINGS") or str(settings), "-cache", str(work / "cache")]
    command += ["-ivy", str(module), "-confs", "default", "-retrieve", f"{target}/[artifact]-[revision].[ext]"]
    log = work / "ivy.log"
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as ivy:
        try:
            while ivy.poll() is None:
                on_bytes(_size(work / "cache"))
                time.sleep(0.2)
        except BaseException:
            ivy.kill()
            raise
    if ivy.returncode != 0 or not any(target.iterdir()):
        raise NewnormalError(
            "DOWNLOAD_FAILED",
            f"{', '.join(a.name for a in artifacts)} could not be downloaded: {_reason(log)}",
            str(log),
            "access to the Maven Central repository, or a file NEWNORMAL_IVY_SETTINGS naming a mirror of it",
            "not started; the next start tries again, and later starts need no network",
        )


def _jar() -> Path:
    spark = find_spec("pyspark")
    jars = sorted(Path(spark.origin or "").parent.glob("jars/ivy-*.jar")) if spark else []
    if not jars:
        raise NewnormalError(
            "IVY_MISSING", "PySpark has no jars/ivy-*.jar", "pyspark", "pyspark==4.2.1", "run `make setup`"
        )
    return jars[-1]


def _size(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size if path.suffix != ".xml" else 0
        except FileNotFoundError:  # renamed by Ivy meanwhile
            continue
    return total


def _reason(log: Path) -> str:
    lines = [line.strip(" :\t") for line in log.read_text(errors="replace").splitlines() if not line.startswith(".")]
    words = ("Exception", "not found", "FAILED", "unresolved")
    telling = [line for line in lines if any(word in line for word in words)]
    return "; ".join(dict.fromkeys(telling[:3])) or (lines[-1] if lines else "Ivy said nothing")
