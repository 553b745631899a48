"""The error codes of the engine, and those that any package may raise: name, what it means, what to do."""

from __future__ import annotations

from engine.spec.errors import section

setting = section("Settings and command line")
setting("SETTING_INVALID", "a setting is wrong or unknown; all wrong ones are named", "see [settings.md](settings.md)")
setting(
    "DURATION_INVALID", "a value is not a duration", "give a number and a unit: `250ms`, `10s`, `5m`, `1h30m`, `7d`"
)
setting("TIME_INVALID", "a value is not a time", "give ISO 8601, e.g. `2026-11-21T00:00:00Z`")
setting("TOPIC_UNKNOWN", "there is no topic of that name", "check the spelling and `namespace`")

job = section("Definition of a job")
job("WINDOW_INVALID", "a window's length, slide, zone or beginning is not possible", "see [engine.md](engine.md)")
job(
    "TRIGGER_INVALID",
    "a trigger's period or count is not positive, or it is made of no triggers",
    "give a positive one",
)
job("EVICTOR_INVALID", "an evictor that keeps no record", "keep 1 record or more")
job("AGGREGATE_INVALID", "an aggregate's parameter is wrong", "give what the message says is accepted")
job("AGGREGATE_UNSUPPORTED", "windows of this kind cannot hold this aggregate", "use aligned windows for rates")
job("RATE_TWICE", "one job has two rates", "write a second job for the second rate")
job("PARTIAL_CLASH", "two aggregates keep different partial results under one name", "give them names of their own")
job("WATERMARK_INVALID", "a watermark strategy's parameter is wrong", "give what the message says is accepted")
job("LATE_MISFIT", "the late topic cannot hold the records that may be late", "give it another record type")
job("INPUTS_CLASH", "inputs of a job differ in clock, time column or type of a column", "`select` or `map` to one name")
job("NAME_INVALID", "a job or a topic has a name that Kafka does not take", "letters, digits, dots, `_` and `-`")
job("STREAM_ORDER", "a step stands after an operator where it must stand before", "put it first, or use a second job")
job("EXPRESSION_INVALID", "a SQL expression does not parse, or names an unknown column", "mend the expression")
job("CHOICE_INVALID", "a word, such as the kind of a join, is not one of a few", "give one that the message lists")
job("PATTERN_INVALID", "a pattern has no events that can follow one another", "see [engine.md](engine.md)")
job("INTERVAL_INVALID", "an interval join ends before it begins", 'e.g. `lower="-5s"`, `upper="5s"`')
job("PROCESSOR_UNKNOWN", "tests only: the reference interpreter does not know this processor", "give it `reference()`")

job("KEY_MISSING", "a stream is computed or written without a key", "call `key_by(...)` first")
job("KEY_INVALID", "the first key column holds no text", 'make text of it: `map(user="cast(user as varchar)")`')
job("COLUMN_UNKNOWN", "a key, an aggregate, a step or an operator names a column that is not there", "see the columns")
job("STEP_FAILED", "a function of a step fails on a table without rows", "let it return a table with its columns")
job("STREAM_INCOMPLETE", "a window without `aggregate`, or a trigger without a window", "add what is missing")
job(
    "OUTPUT_MISFIT",
    "a record type does not fit the results that are written as it",
    "give it the columns of the results",
)
job(
    "OUTPUT_UNKNOWN",
    "the columns of the results are not known: a user's own logic may emit any",
    "name a record type: `write(name, Type)`",
)
job("OUTPUT_DOUBLED", "two outputs of a job have one name or one topic", "give each its own")
job("RECORD_INVALID", "a record type has a field of a type that columns cannot hold", "see the types that are accepted")

kafka = section("Kafka")
kafka("KAFKA_UNREACHABLE", "no broker answers, or none was named and none is running", "start it, or `kafka.bootstrap`")
kafka(
    "KAFKA_TLS_FAILED",
    "the encrypted connection to a broker is not made: a certificate has expired, comes from an unknown authority "
    "or is of another host, or one side does not use TLS",
    "see [security.md](security.md#when-it-does-not-work); renew the certificate, or correct the CA file",
)
kafka(
    "KAFKA_LOGIN_REFUSED",
    "a broker does not accept user and password, token or mechanism",
    "correct what the message names; see [security.md](security.md#when-it-does-not-work)",
)
kafka(
    "KAFKA_NOT_ALLOWED",
    "Kafka does not let this user do something with a topic, a group or a transactional id",
    "let an administrator add the ACL that the message names; [security.md](security.md#acls) lists all",
)
kafka("KAFKA_READ_FAILED", "the broker did not give a topic's messages in time", "see the broker's log, then try again")
kafka("TOPIC_NOT_CHANGED", "the broker refused another retention for a topic", "see the reason in the message")
kafka("TOPIC_NOT_CREATED", "the broker refused a topic, or it did not appear in time", "see the reason in the message")

jobs = section("Jobs")
jobs("JOB_TWICE", "two jobs of one start have one name", "give each its own: it names checkpoint and ledger")
jobs("QUERY_FAILED", "a job that `engine.run` has started failed", "mend the reason in the message, start again")
jobs(
    "ALREADY_RUNNING",
    "another process runs one of these jobs, with this state directory or with this namespace on another machine",
    "stop that process, or start with `--take-over`, or use another `state_dir` and `namespace`",
)
jobs(
    "STATE_FORMAT",
    "the checkpoints have a state format that this version cannot read",
    "use a new `namespace` or `state_dir`",
)
jobs(
    "SAVEPOINT_INCOMPLETE",
    "Spark removed files of a checkpoint each time they were copied",
    "try again when the job has less to do",
)
jobs(
    "SPARK_ENDED",
    "Spark's JVM was killed or has ended: mostly the memory of the machine or container was used up",
    "give it more memory, or run fewer jobs in it; start again, it goes on from the checkpoints",
)
jobs("CLUSTER_UNREACHABLE", "no master answers, or the cluster gives no executor", "start it, or mend `spark.master`")
jobs(
    "CHECKPOINT_PLACE",
    "where the checkpoints are to lie is neither a folder nor a whole address",
    "a folder that all machines of the cluster see, or `scheme://authority/path`, see [cluster.md](cluster.md)",
)
jobs(
    "CHECKPOINT_UNREACHABLE",
    "the HDFS or object store of the checkpoints does not answer, or does not let this user in",
    "the message has Hadoop's reason; see [cluster.md](cluster.md#checkpoints-at-an-address)",
)
jobs(
    "CHECKPOINT_NOT_SHARED",
    "a machine of the cluster does not see the folder of the checkpoints, or cannot write to it",
    "`spark.checkpoints`: a folder that all machines see under one path",
)
jobs(
    "WORKERS_UNFIT",
    "a machine of the cluster has no Newnormal, another version of it or of Python, or does not reach Kafka",
    "see [cluster.md](cluster.md): the same image, the same path, or `spark.packages`",
)
jobs("OFFSETS_MISSING", "Kafka no longer has what a job must read next", "see [savepoints.md](savepoints.md)")
jobs(
    "SHARDS_APART",
    "shards that would become one have different watermarks",
    "savepoint the job when it has caught up, or choose a multiple of the old number of shards",
)
jobs(
    "RESCALE_UNSUPPORTED",
    "a user's own logic cannot divide its state by key",
    "give its processor the method `rescale`, see [savepoints.md](savepoints.md)",
)
jobs(
    "SHARDS_FIXED",
    "the number of shards differs from the number that a checkpoint was made with",
    "restore the old number; or divide the state anew, with the two commands in the message",
)
jobs(
    "JOB_CHANGED",
    "a job's key, windows, triggers or other operators differ from those that its stored state was made with",
    "restore the former definition, or give the job another name",
)
jobs(
    "CHECKPOINT_UNREADABLE",
    "a file that says how a checkpoint was made is damaged; the state itself has not been touched",
    "put the file back as the message says",
)
jobs(
    "ARGUMENT_INVALID",
    "a call of a job's definition has an argument of a wrong type, too many, or too few",
    "call it as the message shows",
)
jobs(
    "NAME_RESERVED",
    "a column has the name of another one of the results, or begins with two underscores, as the engine's own do",
    "give the column another name, e.g. by `map(...)` before `key_by(...)`",
)
jobs(
    "OUTPUT_READ",
    "a job writes a topic that it also reads, so that its results would come in again for ever",
    "write another topic, or read it by `loop(...)`",
)
jobs(
    "PANES_REPEATED",
    "an aggregation over the results of windows would count several results of one window",
    "let the first windows retract (`AccumulatingAndRetracting`) or discard, or give one result each",
)
jobs(
    "SIDE_UNKNOWN",
    "a user's own logic emits to a side output that its job does not have",
    "name it in `write(..., side=...)`",
)
jobs("CHECKPOINT_MISSING", "a job has output but no checkpoint", "put the checkpoint back, or `run --write-again`")
jobs(
    "DIRECTORY_FOREIGN",
    "a directory in a place where everybody may write is a link or somebody else's: Elasticsearch's as root, or that "
    "of the locks of checkpoints in a store",
    "remove it",
)
jobs("CHECKPOINT_BEHIND", "a job's checkpoint is older than its output", "use the newest one, or `run --write-again`")
kafka(
    "JOB_FENCED",
    "another process has begun to write as this job: a second `newnormal run` of the same namespace",
    "end one of them, or give it a `namespace` of its own",
)

dead = section("Dead letters")
dead(
    "TIME_MISSING", "the steps of a job leave a record without an event time", "mend the expression that makes the time"
)
dead(
    "TIME_AHEAD", "event time more than `watermark.max_ahead` after the arrival: a wrong clock", "mend the clock (NTP)"
)
dead("TIME_TOO_EARLY", "event time before `watermark.earliest`: a wrong clock", "mend the clock")
dead(
    "TIME_UNIT", "event time looks like seconds, microseconds or nanoseconds", "send epoch *milli*seconds, or ISO 8601"
)
dead(
    "KEY_ASTRAY",
    "a record lies in another partition than its key says",
    "use the Murmur2 partitioner (of Java clients)",
)
dead(
    "TOO_MANY_KEYS",
    "a record has a new key, and there are as many keys as accepted; known ones go on",
    "let the sender make fewer series and machines; or raise `input.max_series_per_machine` or `input.max_series`",
)
dead(
    "RECORD_TOO_LARGE",
    "a record, or its compressed batch, becomes too many bytes when it is decompressed; it was not",
    "send messages of at most 16 MiB; see [bounds.md](bounds.md#what-a-record-in-kafka-may-cost)",
)
dead(
    "RESULT_BEYOND",
    "a result, such as the sum of a window, leaves 64 bits; the letter has its key and window, and no message",
    'send smaller values, or sum them as floats: `map(v="cast(v as double)")`',
)
dead("VALUE_INVALID", "NaN, infinite or beyond 1e150; or an empty machine or metric", "send finite numbers and names")
dead(
    "COLUMNAR_BROKEN",
    "a message is no Arrow stream: another program wrote to a columnar topic",
    "write to a `telemetry.*` topic",
)
dead("COLUMNAR_SCHEMA", "a required column is missing, doubled, of another type, or holds nulls", "send that column")
dead("JSON_MALFORMED", "a message is empty, no JSON, or no JSON object", "send one JSON object a message")
dead("FIELD_INVALID", "a field is missing, of the wrong type, too long or out of range", "see [input.md](input.md)")
