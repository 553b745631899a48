"""The settings of how the jobs run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.spark.java_options import Memory, When
from pipelines.contracts.setting_types import DriverHeap, Duration, Whole
from pipelines.contracts.settings.section import Section


class EngineSettings(Section):
    shards: Whole = Field(
        2,
        ge=1,
        le=1024,
        description="shards of each job's keyed state; `newnormal savepoint restore --shards` changes it later",
    )
    cores: Whole = Field(4, ge=1, le=1024, description="threads of the local Spark; a cluster has its own number")
    trigger: Duration = Field(
        "200ms",
        description="shortest time between the starts of two micro-batches; twice as long for "
        "normalizers, extractor and templates, whose input never pauses",
    )
    max_records: Whole = Field(
        2_000, ge=1, le=10**9, description="most Kafka messages of one micro-batch that reads columnar topics"
    )
    max_messages: Whole = Field(
        400_000, ge=1, le=10**9, description="most Kafka messages of one micro-batch that reads JSON topics"
    )
    max_bytes: Whole = Field(
        64_000_000,
        ge=1_000_000,
        le=10**12,
        description="most bytes of one micro-batch's Kafka messages, without compression; each partition has an equal "
        "share, and may have one message more",
    )
    on_missing_offsets: Literal["fail", "earliest", "archive"] = Field(
        "fail",
        description="what a start does if Kafka has removed messages that a job has not read: `fail`: it is refused; "
        "`earliest`: they are left out; `archive`: the job reads them from the archive",
    )
    output: Literal["auto", "driver", "shards"] = Field(
        "auto",
        description="who writes the results of a micro-batch to Kafka: `driver`: the driver, in one transaction; "
        "`shards`: each shard where it is computed, in a transaction of its own; `auto`: the driver on one machine, "
        "the shards on a cluster",
    )
    driver_memory: DriverHeap = Field("2g", description="heap of the Spark driver")
    memory: Memory = Field(
        "usual",
        description="how much memory Spark holds for speed: `small`: its JVM collects garbage in one thread and gives "
        "back what is free, and the states of all jobs share a small cache; `newnormal run --small` does so",
    )
    jvm_optimizes: When = Field(
        "usual",
        description="when the JVMs of the Spark driver and of the embedded servers optimize what runs often: `usual`: "
        "as JVMs do; `never`: a start takes a third less of the processor's time, but later on up to a third fewer "
        "records per second pass; `newnormal demo` does so",
    )
