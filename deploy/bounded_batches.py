"""Spark's Kafka source with a bound in bytes on a micro-batch, beside the one on messages.

``maxOffsetsPerTrigger`` counts messages, and offsets do not tell sizes: a thousand legal messages are 20 kB or 16 GB.
So one method of ``spark-sql-kafka`` is changed (docs/decisions/0039). When Spark has planned where a micro-batch ends,
a consumer in the driver reads up to there, keeps what each message weighs and nothing else, and the end of each
partition is moved to where its share of the bytes is used up. A message weighs its bytes without compression, those
of its headers too, and, if it is text, 30 more for each separator in it, as ``:1`` becomes a row of so many bytes. A
plan of few messages is not looked at.
"""

from __future__ import annotations

from typing import Any

from engine.spec.too_large import MOST_IN_RECORD

OPTION = "maxbytespertrigger"
"""The option of the source: what the messages of a micro-batch may weigh."""
_PACKAGE = "org.apache.spark.sql.kafka010"
_CLIENTS = "org.apache.kafka.clients.consumer"
_TP = "org.apache.kafka.common.TopicPartition"
_STREAM = f"{_PACKAGE}.KafkaMicroBatchStream"
_OFFSET = f"{_PACKAGE}.KafkaSourceOffset"
_MAP = "scala.collection.immutable.Map"
_SECONDS = 30
"""Seconds without a message after which a plan ends where it has been read to; where nothing was, it stays."""
_ROW = 30
"""Bytes of a sample in columns."""
_WEIGHS = f"""private Long weight(java.nio.ByteBuffer data) {{
  if (data == null) return Long.valueOf(0L);
  int begin = data.position(), end = data.limit();
  long parts = 0L;
  // the columnar log begins with four bytes 255
  if (end - begin < 4 || data.getInt(begin) != -1)
    for (int at = begin; at < end; at++) {{
      byte one = data.get(at);
      if (one == ':' || one == ',' || one == ' ' || one == 10 || one == ';' || one == 9 || one == '|') parts++;
    }}
  return Long.valueOf((long) (end - begin) + {_ROW}L * parts);
}}"""
_DESERIALIZES = (
    "public Object deserialize(String topic, byte[] data)"
    " { return weight(data == null ? null : java.nio.ByteBuffer.wrap(data)); }",
    "public Object deserialize(String topic, org.apache.kafka.common.header.Headers headers, byte[] data)"
    " { return deserialize(topic, data); }",
    "public Object deserialize(String topic, org.apache.kafka.common.header.Headers headers, java.nio.ByteBuffer data)"
    " { return weight(data); }",
    "public void configure(java.util.Map given, boolean key) { }",
    "public void close() { }",
)
_CONSUMER = f"""private {_CLIENTS}.KafkaConsumer weights() {{
  if (weights == null) {{
    java.util.HashMap given = new java.util.HashMap(executorKafkaParams);
    given.put("auto.offset.reset", "earliest");  // what Kafka has removed is the business of the tasks
    given.put("enable.auto.commit", "false");
    given.remove("group.id");
    given.put("max.poll.records", "10000");
    given.put("fetch.max.bytes", String.valueOf(8 << 20));
    given.put("max.partition.fetch.bytes", String.valueOf(1 << 20));
    given.put("key.deserializer", "{_PACKAGE}.Weight");
    given.put("value.deserializer", "{_PACKAGE}.Weight");
    weights = new {_CLIENTS}.KafkaConsumer(given);
  }}
  return weights;
}}"""
_BOUNDED = f"""private Object bounded(Object from, Object planned) {{
  long most = options.getLong("{OPTION}", 0L);
  if (most <= 0L || planned == null) return planned;
  {_MAP} begins = from == null ? null : (({_OFFSET}) from).partitionToOffsets();
  {_MAP} ends = (({_OFFSET}) planned).partitionToOffsets();
  java.util.HashMap starts = new java.util.HashMap();
  long messages = 0L;
  scala.collection.Iterator all = ends.iterator();
  while (all.hasNext()) {{
    scala.Tuple2 each = (scala.Tuple2) all.next();
    scala.Option begin = begins == null ? (scala.Option) scala.None$.MODULE$ : begins.get(each._1());
    long first = begin.isDefined() ? ((Long) begin.get()).longValue() : 0L;
    long count = ((Long) each._2()).longValue() - first;
    if (count > 0L) {{ starts.put(each._1(), Long.valueOf(first)); messages += count; }}
  }}
  if (messages * {MOST_IN_RECORD}L <= most) return planned;
  java.util.Map reached = reached(starts, ends, most / starts.size());
  java.util.Iterator moved = reached.entrySet().iterator();
  while (moved.hasNext()) {{
    java.util.Map.Entry each = (java.util.Map.Entry) moved.next();
    ends = ({_MAP}) ends.updated(each.getKey(), each.getValue());
  }}
  return new {_OFFSET}(ends);
}}"""
_REACHED = f"""private java.util.Map reached(java.util.HashMap starts, {_MAP} ends, long share) {{
  {_CLIENTS}.KafkaConsumer consumer = weights();
  consumer.assign(starts.keySet());
  java.util.HashMap reached = new java.util.HashMap(), used = new java.util.HashMap();
  java.util.Iterator them = starts.entrySet().iterator();
  while (them.hasNext()) {{
    java.util.Map.Entry each = (java.util.Map.Entry) them.next();
    consumer.seek(({_TP}) each.getKey(), ((Long) each.getValue()).longValue());
    used.put(each.getKey(), Long.valueOf(0L));
  }}
  consumer.resume(consumer.assignment());
  long moved = System.nanoTime();
  while (!used.isEmpty()) {{
    {_CLIENTS}.ConsumerRecords some = consumer.poll(java.time.Duration.ofMillis(100L));
    java.util.Iterator open = new java.util.ArrayList(used.keySet()).iterator();
    while (open.hasNext()) {{
      {_TP} each = ({_TP}) open.next();
      long end = ((Long) ends.apply(each)).longValue(), start = ((Long) starts.get(each)).longValue();
      long bytes = ((Long) used.get(each)).longValue(), stop = -1L;
      java.util.Iterator records = some.records(each).iterator();
      while (stop < 0L && records.hasNext()) {{
        {_CLIENTS}.ConsumerRecord record = ({_CLIENTS}.ConsumerRecord) records.next();
        moved = System.nanoTime();
        long weight = 1L + Math.max(record.serializedKeySize(), 0);
        org.apache.kafka.common.header.Header[] skipped = record.headers().toArray();
        if (skipped.length > 0) weight += Long.parseLong(skipped[0].key());  // see bounded_records
        if (record.value() != null) weight += ((Long) record.value()).longValue();  // a tombstone has none
        if (record.offset() >= end) stop = end;
        else if (bytes > 0L && bytes + weight > share) stop = record.offset();
        else bytes += weight;
      }}
      if (stop < 0L && consumer.position(each) >= end) stop = end;
      if (stop < 0L) {{ used.put(each, Long.valueOf(bytes)); continue; }}
      reached.put(each, Long.valueOf(Math.min(end, Math.max(stop, start + 1L))));
      used.remove(each);
      if (stop >= end && !used.isEmpty()) share += Math.max(0L, share - bytes) / used.size();
      consumer.pause(java.util.Collections.singleton(each));
    }}
    if (System.nanoTime() - moved > {_SECONDS}000000000L) break;
  }}
  java.util.Iterator late = used.keySet().iterator();
  while (late.hasNext()) {{
    {_TP} each = ({_TP}) late.next();
    long at = consumer.position(each), end = ((Long) ends.apply(each)).longValue();
    if (at > ((Long) starts.get(each)).longValue()) reached.put(each, Long.valueOf(Math.min(end, at)));
  }}
  return reached;
}}"""

_CLOSED = """if (weights != null) {
  try { weights.close(); } catch (RuntimeException interrupted) { } finally { weights = null; }
}"""


def changed(assist: Any, pool: Any) -> list[Any]:
    """The changed and new classes of ``spark-sql-kafka``.

    Args:
        assist: The package of Javassist, in a JVM.
        pool: Its classes, with those of Spark and of Kafka's client.
    """
    weight = pool.makeClass(f"{_PACKAGE}.Weight")
    weight.addInterface(pool.get("org.apache.kafka.common.serialization.Deserializer"))
    weight.addConstructor(assist.CtNewConstructor.defaultConstructor(weight))
    for method in (_WEIGHS, *_DESERIALIZES):
        weight.addMethod(assist.CtNewMethod.make(method, weight))
    stream = pool.get(_STREAM)
    stream.addField(assist.CtField.make(f"private transient {_CLIENTS}.KafkaConsumer weights = null;", stream))
    for method in (_CONSUMER, _REACHED, _BOUNDED):
        stream.addMethod(assist.CtNewMethod.make(method, stream))
    planned = next(one for one in stream.getDeclaredMethods("latestOffset") if len(one.getParameterTypes()) == 2)
    offset = "org.apache.spark.sql.connector.read.streaming.Offset"
    planned.insertAfter(f"$_ = ({offset}) bounded($1, $_);")
    stream.getDeclaredMethod("stop").insertBefore(_CLOSED)
    return [weight, stream]
