"""Kafka's client and broker with a bound on what a compressed batch becomes in memory, and where changed jars lie.

Kafka compares ``max.message.bytes`` with the *compressed* batch: 950 MB of one letter are 29 kB for it, and its client
allocates the 950 MB at once. Nothing that Kafka can be told changes that (docs/decisions/0031). So some methods of
``kafka-clients`` are changed. A reader gets a small stand-in for a record that is too large
(`engine.spec.too_large`), at its own offset, and its polls end at so many bytes; a broker refuses the batch with
``MESSAGE_TOO_LARGE``, as it refuses a batch that is too large without compression. What is uncompressed is bounded by
``max.message.bytes`` itself, but for headers: an empty one has 2 bytes there and some 100 as objects. No job reads
headers, so a reader skips them and keeps how many bytes they have; a broker refuses a record with too many of them.

The changed jars are made once, beside the jars that were downloaded, by the Javassist that comes with PySpark: a reader
gets a changed source of Spark's, too (`deploy.bounded_batches`).
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from deploy import bounded_batches
from deploy.java import java_home
from engine.locks import locked
from engine.spec.too_large import MOST_HEADERS, MOST_IN_BATCH, MOST_IN_POLL, MOST_IN_RECORD, STAND_IN

_VERSION = 5
"""Version of the changes: a change here makes the jars anew."""
_PACKAGE = "org.apache.kafka.common.record"
_STREAM = "BoundedRecords"
_FIELDS = (
    f"long left = {MOST_IN_BATCH}L;",  # bytes that may still be decompressed
    "boolean spent = false;",  # whether the rest of the batch is not decompressed any more
    "int delta = -1;",  # of the last record: its offset less that of the batch
)
_METHODS = (
    "public BoundedRecords(java.io.InputStream in) { super(in); }",
    "public int read() throws java.io.IOException {"
    " if (spent) return -1; int one = in.read(); if (one >= 0) left--; return one; }",
    "public int read(byte[] into, int at, int most) throws java.io.IOException {"
    " if (spent) return -1; int count = in.read(into, at, most); if (count > 0) left -= count; return count; }",
    # the record that was announced with `size` bytes, or the next of a batch that is spent (size < 0)
    """public DefaultRecord standIn(int size, long baseOffset, long baseTimestamp, int baseSequence, Long appended)
        throws java.io.IOException {
      byte attributes = 0;
      long timestamp = baseTimestamp;
      if (size < 0) {
        delta++;
      } else {
        long after = left - size;
        attributes = (byte) read();
        timestamp = baseTimestamp + org.apache.kafka.common.utils.ByteUtils.readVarlong(this);
        delta = org.apache.kafka.common.utils.ByteUtils.readVarint(this);
        if (after < 0) {
          spent = true;
        } else {
          byte[] skipped = new byte[65536];
          while (left > after)
            if (read(skipped, 0, (int) Math.min((long) skipped.length, left - after)) < 0)
              throw new java.io.EOFException("a record ends before its size");
        }
      }
      if (appended != null) timestamp = appended.longValue();
      int sequence = baseSequence < 0 ? -1 : DefaultRecordBatch.incrementSequence(baseSequence, delta);
      byte[] said = ("$STAND_IN" + size).getBytes("US-ASCII");
      return new DefaultRecord(said.length, attributes, baseOffset + delta, timestamp, sequence, null,
        java.nio.ByteBuffer.wrap(said), new org.apache.kafka.common.header.Header[0]);
    }""".replace("$STAND_IN", STAND_IN.decode("ascii")),
)
_READ = f"""{{
  {_STREAM} bounded = $1 instanceof {_STREAM} ? ({_STREAM}) $1 : new {_STREAM}($1);
  if (bounded.spent) return bounded.standIn(-1, $2, $3, $4, $5);
  int size = org.apache.kafka.common.utils.ByteUtils.readVarint(bounded);
  if (size > {MOST_IN_RECORD} || size > bounded.left) return bounded.standIn(size, $2, $3, $4, $5);
  java.nio.ByteBuffer body = java.nio.ByteBuffer.allocate(size);
  int count = org.apache.kafka.common.utils.Utils.readFully(bounded, body);
  if (count != size)
    throw new org.apache.kafka.common.InvalidRecordException("Invalid record size: expected " + size + " bytes in " +
      "record payload, but the record payload reached EOF.");
  body.flip();
  {_PACKAGE}.DefaultRecord record = readFrom(body, size, $2, $3, $4, $5);
  bounded.delta = (int) (record.offset() - $2);
  return record;
}}"""
_REFUSE = f"""
  if ($2 > {MOST_IN_RECORD} + 5 || $1 instanceof {_STREAM} && $2 > (({_STREAM}) $1).left)
    throw new org.apache.kafka.common.errors.RecordTooLargeException("a record has " + $2 +
      " bytes without compression; accepted: {MOST_IN_RECORD} in a record, {MOST_IN_BATCH} in a batch");
"""
_WITHOUT_HEADERS = """{
  int begin = $1.position();
  for (int n = 0; n < $2; n++) {
    int key = org.apache.kafka.common.utils.ByteUtils.readVarint($1);
    if (key < 0) throw new org.apache.kafka.common.InvalidRecordException("Invalid negative header key size " + key);
    $1.position($1.position() + key);
    int value = org.apache.kafka.common.utils.ByteUtils.readVarint($1);
    if (value > 0) $1.position($1.position() + value);
  }
  String size = String.valueOf($1.position() - begin);
  org.apache.kafka.common.header.Header all =
    new org.apache.kafka.common.header.internals.RecordHeader(size, (byte[]) null);
  return new org.apache.kafka.common.header.Header[] { all };
}"""
"""What a reader makes of headers: one whose key is how many bytes all of them have (`deploy.bounded_batches`)."""
_REFUSE_HEADERS = f"""
  if ($2 > {MOST_HEADERS})
    throw new org.apache.kafka.common.errors.RecordTooLargeException("a record has " + $2 +
      " headers; accepted: {MOST_HEADERS}");
"""
_CONSUMER = "org.apache.kafka.clients.consumer.internals"
_NEXT = f"""private {_PACKAGE}.Record nextFetchedRecord({_CONSUMER}.FetchConfig config) {{
  if (kept > {MOST_IN_POLL}L) return null;
  {_PACKAGE}.Record record = nextOfAll(config);
  if (record != null) kept += record.sizeInBytes();
  return record;
}}"""
_FROM_STREAM = ("java.io.InputStream", "long", "long", "int", "java.lang.Long")
_PARTLY = ("java.io.InputStream", "int", "long", "long", "int", "java.lang.Long")


def reading(jars: Path) -> list[Path]:
    """The jars of a directory for readers, with bounded ones instead of ``kafka-clients`` and ``spark-sql-kafka``."""
    return sorted(_bounded(jars, "reader").glob("*.jar"))


def serving(jars: Path) -> str:
    """A class path of the jars of a directory for a broker that refuses what is too large."""
    return f"{_bounded(jars, 'broker')}/*:{jars}/*"


def place(jars: Path) -> Path:
    """Where the changed jars for the jars of a directory lie."""
    return jars.with_name(f"{jars.name}-bounded-{_VERSION}")


def _bounded(jars: Path, side: Literal["reader", "broker"]) -> Path:
    """The directory with the changed jars; for a reader the other jars are in it, too. It appears at once."""
    clients = sorted(jars.glob("kafka-clients-*.jar"))
    if not clients:
        return jars
    directory = place(jars)
    if directory.is_dir():
        return directory
    changed = [*clients, *(jars.glob("spark-sql-kafka-*.jar") if side == "reader" else ())]
    with locked(jars.with_name(".lock")), tempfile.TemporaryDirectory(dir=jars.parent, prefix=".bounded-") as temporary:
        if not directory.is_dir():
            target = Path(temporary) / "jars"
            target.mkdir(mode=0o755)
            for jar in jars.glob("*.jar") if side == "reader" else ():
                if jar not in changed:
                    shutil.copy2(jar, target)
            _change(changed, target, side)
            target.rename(directory)
    return directory


def _change(jars: Sequence[Path], target: Path, side: Literal["reader", "broker"]) -> None:
    """Writes copies of ``kafka-clients``, and of ``spark-sql-kafka`` if it is there, with the bounds."""
    with tempfile.TemporaryDirectory(prefix="newnormal-classes-") as folder:
        places = [Path(folder) / jar.stem for jar in jars]
        _compile(jars, places, side)
        for jar, place_ in zip(jars, places, strict=True):
            new = {str(path.relative_to(place_)): path for path in place_.rglob("*.class")}
            with zipfile.ZipFile(jar) as old, zipfile.ZipFile(target / jar.name, "w", zipfile.ZIP_DEFLATED) as out:
                for entry in old.infolist():
                    if entry.filename not in new:
                        out.writestr(entry, old.read(entry))
                for name, path in sorted(new.items()):
                    out.writestr(zipfile.ZipInfo(name), path.read_bytes())


def _compile(jars: Sequence[Path], places: Sequence[Path], side: Literal["reader", "broker"]) -> None:
    """Writes the changed classes of each jar into its place."""
    import pyspark  # noqa: PLC0415  half a second, and a jar is made once in the life of an installation
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway  # noqa: PLC0415  as above

    spark = Path(pyspark.__file__).parent / "jars"
    port, token = launch_gateway(
        classpath=":".join(map(str, (*jars, spark / "*"))),
        jarpath=str(next(iter(spark.glob("py4j-*.jar")))),
        java_path=str(java_home() / "bin" / "java"),
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        assist = gateway.jvm.javassist
        changes = [_records(gateway, assist, side)]
        if side == "reader":
            changes.append(bounded_batches.changed(assist, assist.ClassPool(True)))
        for classes, folder in zip(changes, places, strict=False):
            for made in classes:
                made.writeFile(str(folder))
    finally:
        gateway.shutdown()


def _records(gateway: Any, assist: Any, side: Literal["reader", "broker"]) -> list[Any]:
    """The changed and new classes of ``kafka-clients``."""
    pool = assist.ClassPool(True)
    pool.importPackage(_PACKAGE)

    def types(names: Sequence[str]) -> Any:
        found = gateway.new_array(assist.CtClass, len(names))
        for at, name in enumerate(names):
            found[at] = pool.get(name)
        return found

    stream = pool.makeClass(f"{_PACKAGE}.{_STREAM}", pool.get("java.io.FilterInputStream"))
    for field in _FIELDS:
        stream.addField(assist.CtField.make(field, stream))
    constructor, *methods = _METHODS
    stream.addConstructor(assist.CtNewConstructor.make(constructor, stream))
    for method in methods:
        stream.addMethod(assist.CtNewMethod.make(method, stream))
    batch, record = pool.get(f"{_PACKAGE}.DefaultRecordBatch"), pool.get(f"{_PACKAGE}.DefaultRecord")
    changed = [stream, batch, record]
    batch.getDeclaredMethod("recordInputStream").insertAfter(f"$_ = new {_PACKAGE}.{_STREAM}($_);")
    headers = record.getDeclaredMethod("readHeaders")
    if side == "reader":
        record.getDeclaredMethod("readFrom", types(_FROM_STREAM)).setBody(_READ)
        headers.setBody(_WITHOUT_HEADERS)
        changed += _polls(assist, pool)
    else:
        record.getDeclaredMethod("readPartiallyFrom", types(_PARTLY)).insertBefore(_REFUSE)
        headers.insertBefore(_REFUSE_HEADERS)
    return changed


def _polls(assist: Any, pool: Any) -> list[Any]:
    """Lets a poll end when its records have so many bytes, whatever their number; returns the changed classes."""
    partition, collector, fetch = (
        pool.get(f"{_CONSUMER}.{name}") for name in ("CompletedFetch", "FetchCollector", "Fetch")
    )
    partition.addField(assist.CtField.make("long kept = 0L;", partition))
    partition.getDeclaredMethod("nextFetchedRecord").setName("nextOfAll")
    partition.addMethod(assist.CtNewMethod.make(_NEXT, partition))
    partition.getDeclaredMethod("fetchRecords").insertBefore("kept = 0L;")
    fetch.addField(assist.CtField.make("boolean full = false;", fetch))
    fetch.getDeclaredMethod("numRecords").insertBefore("if (full) return Integer.MAX_VALUE;")
    collector.getDeclaredMethod("fetchRecords").insertAfter(f"if ($1.kept > {MOST_IN_POLL}L) $_.full = true;")
    return [partition, collector, fetch]
