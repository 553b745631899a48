"""Error codes of the jobs and the commands. A line each: name, what it means, what to do."""

from __future__ import annotations

from engine.spec.errors import section

setting = section("Settings and command line")
setting("USAGE_INVALID", "the command line is not understood", "`newnormal COMMAND --help` shows what is")
setting("JOB_UNKNOWN", "there is no job of that name", "name one of those in the message")
setting("RULE_UNKNOWN", "there is no rule of that name", "`newnormal rule list` shows the names")
setting("SQL_INVALID", "a query does not parse, or names an unknown table or column", "mend the query")
setting("SQL_WINDOW", "a window of a query is not complete or not possible", "e.g. `TUMBLE(time, '1m')`")
setting("SQL_LIVE_NEEDS_WINDOW", "a live query has no event-time window", "group by `TUMBLE` or `HOP`")
setting("SQL_STANDING", "a query cannot go on as a job of its own", "one topic in a window, grouped; see the example")
setting("SQL_LIVE_TOPIC", "a live query over a topic whose records have no type", "ask one that the message names")
setting("EXAMPLE_UNKNOWN", "there is no example of that name", "name one of those in the message")
setting("SPEED_INVALID", "`--speed` is no number from 0 up, nor `max`", "e.g. `1`, `60`, `max`")
setting("BENCH_ABSENT", "this benchmark is not here", "`newnormal bench` needs a checkout")

file = section("Files and ports")
file("SERIES_UNREADABLE", "a file of values cannot be read, or has no time or value column", "see [input.md](input.md)")
file("SERIES_EMPTY", "no line of a file has a time and a number", "the message names the line and what is accepted")
file("FILE_UNUSABLE", "a file or folder is not there, or not to be used so", "mend the path or the rights")
file("DATA_ABSENT", "the data set of an evaluation is not there", "download it; `--data` names its folder")
file("TRUTH_UNREADABLE", "a file of labels has wrong lines or lacks a column", "see [evaluation.md](evaluation.md)")
file("TRUTH_ABSENT", "nothing is known of the series to evaluate", "name labels or a ground truth")
file("TRUTH_ELSEWHERE", "the labels are about other machines or times than the verdicts", "labels of these series")
file("OUTPUT_NOT_WRITABLE", "a file cannot be written", "a folder that is there and may be written")
file("DOCS_NOT_WRITTEN", "a page of the docs cannot be written", "a folder that may be written")

ours = section("Faults of ours")
ours(
    "UNEXPECTED_ERROR", "an error that no code was foreseen for; exit code 70", "report it with the trace that it names"
)

jobs = section("Jobs")
jobs("JOBS_FILE", "a file of jobs cannot be loaded, or has no such job", "see what the message says is accepted")
jobs("JOB_FAILED", "a job failed again and again; the reason is in the message", "mend the reason, start again")
jobs("SETTINGS_FIXED", "a setting is not what the state was made with", "the old value, or a new `namespace`")
jobs(
    "PARTITIONS_FIXED",
    "topics have another number of partitions than `kafka.partitions`",
    "theirs, or a new `namespace`",
)
jobs("STATE_INVALID", "the detector's state in the checkpoint is not of its kind", "a new `namespace`; report it")
jobs("NOTICE_NOT_WRITTEN", "Kafka did not take a rule or label", "see that the broker answers, then say it again")

elastic = section("Elasticsearch")
elastic(
    "ELASTICSEARCH_UNREACHABLE", "it does not answer. The sink itself waits for it", "start it; `elasticsearch.url`"
)
elastic(
    "ELASTICSEARCH_REFUSED", "it answers but lets us not write, or is no Elasticsearch 8", "the account; the version"
)
elastic("INDEX_NAME_TAKEN", "`elasticsearch.index` is the name of an index", "a name that is free for an alias")
elastic("INDEX_TEMPLATE_REFUSED", "another template claims the same indices with the same priority", "remove that one")
elastic(
    "MAPPING_CONFLICT", "a field has another type in an existing index", "another `elasticsearch.index`, or reindex"
)
elastic("SINK_STOPPED", "stopped while it waited", "nothing: the documents are written at the next start")

dead = section("Dead letters")
dead("RULE_INVALID", "a rule with a wrong, missing or unknown field", "see [rules.md](rules.md); say it again")
dead("LABEL_INVALID", "a label with a wrong, missing or unknown field", "see [rules.md](rules.md); say it again")
dead("INVALID_JSON", "sink: no JSON; NaN counts as none", "nobody but the detector writes to `novelties`")
dead("INVALID_RECORD", "sink: JSON, but no such record; unknown fields count", "nobody but the detector writes there")
dead("TIME_OUT_OF_RANGE", "sink: event time before 1970 or after 2100", "mend the clock of the machine")
dead("TOO_LARGE", "sink: a document of more than 10 MB, or too much for Elasticsearch", "give the server more memory")
dead("DOCUMENT_REFUSED", "sink: Elasticsearch refused a document; its own error is the reason", "mend what it names")
