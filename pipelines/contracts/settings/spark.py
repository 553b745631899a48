"""The settings of the section `spark`: the cluster on which the jobs run, if they do not run in this process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from engine.spark.cluster import FIXED
from pipelines.contracts.setting_types import (
    Accepts,
    CheckpointPlace,
    Confidential,
    FilePath,
    OptionalHost,
    is_address,
)

_KUBERNETES = "k8s://https://"
_OPTION = re.compile(r"spark\.[\w.-]{1,200}", re.ASCII)


def is_master(text: str) -> bool:
    """True for nothing, or the address of a cluster.

    >>> [is_master(text) for text in ("", "spark://a:7077,b:7077", "yarn", "k8s://https://a:6443", "local[2]", "spark://a")]
    [True, True, True, True, False, False]
    """
    if text.startswith("spark://"):
        return all(map(is_address, text.removeprefix("spark://").split(",")))
    return text in ("", "yarn") or (text.startswith(_KUBERNETES) and is_address(text.removeprefix(_KUBERNETES)))


def _master(text: str) -> str:
    try:
        if is_master(text):
            return text
    except ValueError:
        pass
    raise ValueError("not accepted")


def _option(name: str) -> str:
    if not _OPTION.fullmatch(name) or name in FIXED:
        raise ValueError("not accepted")
    return name


def _text(value: object) -> object:
    """The value of an option as Spark reads it; TOML and JSON have numbers and true and false of their own."""
    return str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int | float) else value


Master = Annotated[
    str, AfterValidator(_master),
    Accepts("nothing, spark://host:port (several with commas between them), yarn, or k8s://https://host:port"),
]  # fmt: skip
Options = Annotated[
    dict[Annotated[str, AfterValidator(_option)], Annotated[str, BeforeValidator(_text)]],
    Accepts("names that begin with `spark.`, each with a value; not those that Newnormal needs or has a setting for"),
    Confidential(),
]  # fmt: skip


class SparkSettings(BaseModel):
    """Where Spark runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    master: Master = Field(
        "", description="address of a Spark cluster on which the jobs run; empty: in this process; see cluster.md"
    )
    driver_host: OptionalHost = Field(
        "",
        description="name or address under which the cluster's machines reach this one; empty: what Spark finds out",
    )
    checkpoints: CheckpointPlace = Field(
        None,
        description="folder of the checkpoints, which on a cluster all machines must see under this path; or an "
        "address of HDFS or an object store, see cluster.md. Empty: `checkpoints` in `state_dir`",
    )
    packages: FilePath = Field(
        "",
        description="archive of Python packages that `newnormal cluster pack` made, for machines on which "
        "Newnormal is not installed",
    )
    python: FilePath = Field(
        "", description="Python interpreter on the machines of the cluster; empty: the path of the one that runs this"
    )
    options: Options = Field(
        {},
        description="further settings of Spark on a cluster, e.g. `spark.executor.memory`, by name; those of "
        "Hadoop (`spark.hadoop.*`) also without one",
    )

    @property
    def packed(self) -> Path | None:
        """The archive of packages, absolute."""
        return Path(self.packages).expanduser().resolve() if self.packages else None


def contradictions(spark: SparkSettings) -> dict[str, tuple[str, str]]:
    """What contradicts another setting of the section: for each setting what is wrong, and what is accepted."""
    if spark.master:
        return {}
    of_cluster = sorted(name for name in spark.options if not name.startswith("spark.hadoop."))
    given = {"spark.packages": spark.packages, "spark.python": spark.python, "spark.options": of_cluster}
    return {
        name: (f"{name} = {value!r}, which is for a cluster, but spark.master is empty", "spark.master beside it")
        for name, value in given.items()
        if value
    }
