"""The error codes of the jobs and the commands: for each its name, what happened, and what the user can do."""

from __future__ import annotations

from engine.spec.errors import section

setting = section("Settings and command line")
setting("USAGE_INVALID", "the command line is wrong", "`newnormal COMMAND --help` shows the options that it accepts")
setting("JOB_UNKNOWN", "no job has this name", "use one of the names in the message")
setting("ANSWER_TOO_LARGE", "an answer over MCP would be larger than is sent", "ask for fewer, or for one machine")
setting("ANSWER_TOO_SLOW", "an answer over MCP took too long", "ask for a shorter time, or run the command yourself")
setting("RULE_UNKNOWN", "no rule has this name", "`newnormal rule list` shows the names")
setting("TOPOLOGY_UNKNOWN", "no machine of this name has a place", "`newnormal topology list` shows the names")
setting(
    "LOGIN_FILE",
    "a file with a password, a key or certificates cannot be read, or holds something else",
    "correct its path, permissions or content",
)
for server in ("console", "view", "gateway", "notify"):
    what = f"the file of `{server}.token_file` cannot be read, or holds no token"
    setting(f"{server.upper()}_TOKEN", what, "correct its path, permissions or content")
for code, work in (("COMPARISON_ENDED", "compares two versions"), ("TRIAL_ENDED", "tries a rule")):
    what = f"the process that {work} for the console ended before it was done"
    setting(code, what, "see what is accepted; the log of the system may say why, e.g. too little memory")
setting("TRIAL_SLOW", "a rule could not be tried for the console in the time that it has", "see what is accepted")
setting("SQL_INVALID", "a query does not parse, or names an unknown table or column", "correct the query")
setting("SQL_WINDOW", "a window of a query is incomplete or impossible", "e.g. `TUMBLE(time, '1m')`")
setting("SQL_LIVE_NEEDS_WINDOW", "a live query has no event-time window", "group by `TUMBLE` or `HOP`")
setting(
    "SQL_STANDING",
    "`newnormal sql --into` cannot run this query as a job",
    "select from one topic and group by a window, as in the example of the message",
)
setting("SQL_LIVE_TOPIC", "a live query reads a topic that has no record type", "query a topic that the message names")
setting("FORMAT_NAME_UNKNOWN", "no input format has this name", "use one of the names in the message")
setting("EXAMPLE_UNKNOWN", "no example has this name", "use one of the names in the message")
setting("SPEED_INVALID", "`--speed` is neither a number from 0 up nor `max`", "e.g. `1`, `60`, `max`")
setting(
    "PLAN_INVALID", "an option of `newnormal plan` cannot be used", "the message names it, and says what is accepted"
)
setting(
    "CHECKOUT_ABSENT", "benchmarks and chaos runs are not installed", "run the command in a checkout of the repository"
)

file = section("Files and ports")
file("SERIES_UNREADABLE", "a file of values cannot be read, or has no time or value column", "see [input.md](input.md)")
file("SERIES_EMPTY", "no line of a file has a time and a number", "the message names the line and what is accepted")
file("FILE_UNUSABLE", "a file or folder is missing, or cannot be read or written", "correct its path or permissions")
file(
    "PLAN_COEFFICIENTS",
    "the file of coefficients of `newnormal plan` cannot be read, or holds something else",
    "name a file that `newnormal bench plan` wrote, or none",
)
file("LOG_FILE_ABSENT", "there is no log file of that name to follow", "correct the path, or give a glob")
file("TRUTH_UNREADABLE", "a file of labels has wrong lines or lacks a column", "see [evaluation.md](evaluation.md)")
file("TRUTH_ABSENT", "the series to evaluate have no labels and no ground truth", "give labels or a ground truth")
file(
    "TRUTH_ELSEWHERE",
    "no label overlaps the machines and times of the verdicts",
    "give labels of the machines that were judged",
)
file("TOPOLOGY_UNREADABLE", "a file of the topology has a wrong line or lacks a column", "correct what is named")
file(
    "BODY_REFUSED",
    "the body of a request to the console is larger than 64 kB, or has not arrived within 10 s",
    "send what the page sends",
)
file(
    "PORT_TAKEN",
    "a command finds no free port to answer at, or the address is not of this machine",
    "another port or address: the message names the settings",
)
file("OUTPUT_NOT_WRITABLE", "a file cannot be written", "name a folder that exists and is writable")
file("DOCS_NOT_WRITTEN", "a page of the docs cannot be written", "name a writable folder")

internal = section("Internal errors")
internal(
    "UNEXPECTED_ERROR",
    "an error in Newnormal that has no code of its own; exit code 70",
    "report it with the stack trace; the message names its file",
)

versions = section("Versions and replay")
versions("VERSION_INVALID", "a version cannot have this name", "use a name such as `v2`")
versions("VERSION_UNKNOWN", "there is no version of this name", "`newnormal versions` shows the names")
versions("VERSION_EXISTS", "a version of this name exists and was made otherwise", "use another name, or retire it")
versions("VERSION_SETTINGS", "a version cannot differ from its base in this setting", "the message says why")
versions("VERSION_SHOWN", "the alias shows the version, so it cannot be retired", "promote another version first")
versions("VERSION_NEEDED", "another version reads what this one writes", "retire that version first")
versions("VERSION_EMPTY", "the version has no verdicts, or no indices that could be shown", "wait until it has some")
versions("VERSION_NOT_WRITTEN", "Kafka did not accept the entry of a version", "make sure that Kafka answers")
versions(
    "PROOF_INPUT_DELETED",
    "a verdict cannot be computed again, as what it rests on has been deleted",
    "make savepoints or keep an archive, see [proof.md](proof.md)",
)
versions("REPLAY_BOUNDS", "a replay begins or ends where it cannot", "the message says what is accepted")

disturbed = section("Chaos")
disturbed(
    "CHAOS_FOREIGN",
    "`newnormal chaos` was about to disturb a process that it had not started itself",
    "report it; the process was left alone",
)
disturbed(
    "CHAOS_RUN_FAILED",
    "in `newnormal chaos` a server, the load or the pipeline failed, or the pipeline gave no result in time",
    "see the log that the message names; `--keep` keeps it",
)

savepoints = section("Savepoints")
savepoints("SAVEPOINT_NAME", "a savepoint cannot have this name", "letters, digits, dots, `_` and `-`")
savepoints("SAVEPOINT_EXISTS", "there is a savepoint of this name", "use another name, or delete it first")
savepoints("SAVEPOINT_UNKNOWN", "there is no savepoint of this name", "`newnormal savepoint list` shows the names")
savepoints("SAVEPOINT_UNREADABLE", "the manifest of a savepoint is broken", "delete the folder that the message names")
savepoints("SAVEPOINT_EMPTY", "none of the jobs has a checkpoint yet", "run the jobs first")
savepoints(
    "SAVEPOINT_FORMAT",
    "a savepoint has state of a format that this release cannot read",
    "restore it with the release that `newnormal savepoint list` shows",
)
savepoints("SAVEPOINT_SHARDS", "the topics' partitions cannot be divided among so many shards", "choose a divisor")
savepoints(
    "SAVEPOINT_CHAIN",
    "a version cannot begin with this savepoint: a job would lack what its state has read or what it must read",
    "fork from the detector on, or replay",
)
savepoints("SERIES_UNKNOWN", "a savepoint has no state of this series", "write it as in the topic `telemetry`")

jobs = section("Jobs")
jobs("JOBS_FILE", "a file of jobs cannot be loaded, or has no such job", "the message says what is accepted")
jobs(
    "JOB_FAILED",
    "a job failed several times in a row; the message says why",
    "remove the cause, then start again",
)
jobs(
    "SETTINGS_FIXED",
    "a setting differs from the value that the state was made with",
    "restore the old value, or use a new `namespace`",
)
jobs(
    "PARTITIONS_FIXED",
    "existing topics have another number of partitions than `kafka.partitions`",
    "set `kafka.partitions` to that number, or use a new `namespace`",
)
jobs("STATE_INVALID", "the checkpoint does not hold a detector's state", "use a new `namespace`, and report it")
jobs("NOTICE_NOT_WRITTEN", "Kafka did not accept what an operator says", "check the broker, then run the command again")

archive = section("Archive")
archive(
    "ARCHIVE_BROKEN",
    "a file of the archive cannot be read, or records are missing in it",
    "put the file back from a backup, or delete the archive's days up to it",
)
archive(
    "ARCHIVE_GAP",
    "messages are neither in the archive nor in Kafka",
    "begin at a later time, or put the missing files of the archive back",
)
archive(
    "ARCHIVE_OTHER_TOPIC",
    "the topic was made anew since it was archived, so that its offsets mean other messages",
    "choose another `archive.path`, or move the topic's folders of the archive away",
)

history = section("Import of history")
history("IMPORT_OPTION", "an option of `newnormal import` cannot be used", "the message names it, and what is accepted")
history(
    "IMPORT_BOUNDS",
    "the times that are to be imported lie where the log or the archive has samples already, or in the future",
    "an earlier `--from`, or no `--to`; `newnormal import remove` removes what was imported before",
)
history(
    "IMPORT_NOTHING",
    "there is no sample in the times that are to be imported",
    "see the reasons of what was refused; `--dry-run` shows what is there",
)
history(
    "IMPORT_LOGIN",
    "the server that has the history does not let this account in",
    "correct the options of the login; see [first-week.md](first-week.md)",
)
history(
    "IMPORT_REFUSED",
    "the server that has the history refuses the query",
    "the message has the reason that the server gives",
)
history(
    "IMPORT_UNREACHABLE",
    "the server that has the history does not answer, also after some minutes",
    "give the same command again when it does: it goes on where it stopped",
)
history(
    "IMPORT_ANSWER",
    "a server answers otherwise than the documented API",
    "correct the address; it is the part before `/api/v1`",
)
history(
    "IMPORT_TOO_LARGE",
    "a minute of the history holds more than is kept in memory at a time",
    "import fewer series at a time",
)

elastic = section("Elasticsearch")
elastic(
    "ELASTICSEARCH_UNREACHABLE",
    "Elasticsearch does not answer; the sink waits until it does",
    "start it, or correct `elasticsearch.url`",
)
elastic(
    "ELASTICSEARCH_TLS_FAILED",
    "the encrypted connection to Elasticsearch is not made: its certificate has expired, comes from an unknown "
    "authority or is of another host, or one side does not use TLS",
    "see [security.md](security.md#when-it-does-not-work); renew the certificate, or correct `elasticsearch.ca_file`",
)
elastic(
    "ELASTICSEARCH_REFUSED",
    "the server answers, but refuses the account, or is not Elasticsearch 8",
    "check the account and the version",
)
elastic("INDEX_NAME_TAKEN", "an index has the name in `elasticsearch.index`", "choose a name that no index has")
elastic(
    "INDEX_TEMPLATE_REFUSED",
    "another index template has the same index pattern and priority",
    "remove the other template",
)
elastic(
    "MAPPING_CONFLICT",
    "a field has another type in an existing index",
    "use another `elasticsearch.index`, or reindex",
)
elastic(
    "SINK_STOPPED",
    "the sink was stopped while it waited for Elasticsearch",
    "nothing: the documents are written at the next start",
)

dead = section("Dead letters")
dead("FORMAT_UNKNOWN", "a message is of no format that its topic accepts", "`newnormal decode FILE` tries a message")
dead("LINE_INVALID", "a line of a text format is broken; its message was refused", "see [input.md](input.md)")
dead(
    "LABEL_KEPT",
    "samples of a message differ only in labels of `input.left_out`, or in UUIDs; these were kept in their names",
    "take the label out of `input.left_out`, or name it in `input.folded` to make one series of them",
)
dead(
    "SAMPLE_TWICE",
    "a series has two values at one time in a message; both were used",
    "give the series a label that distinguishes them",
)
dead("MACHINE_UNKNOWN", "no label of a sample or line names the machine", "send one, or name it in `input.machine`")
dead("MESSAGE_EMPTY", "a message holds neither a number nor a line", "let its sender leave it out")
dead(
    "TOO_MANY_PARTS",
    "a message holds more samples, lines, labels and other parts than `input.max_parts`; it was not decoded",
    "send smaller batches, or raise `input.max_parts`",
)
dead(
    "TEXT_FIELD",
    "a message of metrics also has fields of text; its numbers were used",
    "send log lines to `logs.agents`; name fields that nobody needs in `input.text_left_out`",
)
dead("RULE_INVALID", "a rule has a wrong, missing or unknown field", "see [rules.md](rules.md); write the rule again")
dead("LABEL_INVALID", "a label has a wrong, missing or unknown field", "see [rules.md](rules.md); write it again")
dead("CHANGE_INVALID", "a message of `changes` has a wrong or unknown field", "see [changes.md](changes.md)")
dead("PLACEMENT_INVALID", "a message of `topology` has a wrong or unknown field", "see [incidents.md](incidents.md)")
dead(
    "ACKNOWLEDGEMENT_INVALID",
    "a message of `acknowledgements` has a wrong or unknown field",
    "see [incidents.md](incidents.md)",
)
dead("SILENCE_INVALID", "a message of `silences` has a wrong or unknown field", "let only Newnormal write there")
dead(
    "INVALID_JSON",
    "sink: a message is no JSON; NaN is not JSON either",
    "let only the detector write to `novelties`",
)
dead(
    "INVALID_RECORD",
    "sink: a message is JSON, but no valid novelty; an unknown field makes it invalid",
    "let only the detector write to `novelties`",
)
dead("TIME_OUT_OF_RANGE", "sink: the event time is before 1970 or after 2100", "correct the machine's clock")
dead(
    "TOO_LARGE",
    "sink: a document has more than 10 MB, or more than Elasticsearch accepts",
    "give Elasticsearch more memory",
)
dead("DOCUMENT_REFUSED", "sink: Elasticsearch refused a document; the reason holds its error", "remove the cause")

letters = section("Sending dead letters again")
letters("LETTER_UNKNOWN", "no dead letter is selected", "`newnormal deadletter list` shows them")
letters("LETTER_RETRIED", "the message of a letter was sent again before", "nothing; `--force` sends it once more")
letters(
    "LETTER_GONE",
    "the topic no longer holds the message of a letter; the letter has its first kilobyte only",
    "let its sender send it again; a longer `kafka.retention` keeps messages for longer",
)
letters(
    "LETTER_INDIVISIBLE",
    "only some records of the message were refused, and its format cannot be divided",
    "name the file of the user's job with `--file`, or let the sender send these records again",
)
letters(
    "LETTER_USED",
    "all records of the message were used; the letter is about something beside them, such as text beside numbers",
    "nothing; `input.text_left_out` names fields of text that nobody needs",
)
letters("LETTER_STILL_WRONG", "the job would refuse the message again", "mend the cause that the message names first")
letters(
    "LETTER_SHARED",
    "another job reads the topic and has used the message, which would count twice for it",
    "let the sender send it again where only the other job reads, or use `--force`",
)
letters("LETTERS_NOT_SENT", "Kafka did not take messages or marks", "check the broker, then run the command again")

incidents = section("Incidents")
incidents(
    "INCIDENT_UNKNOWN", "no incident, or more than one, has such an id", "`newnormal incidents list` shows the ids"
)
incidents("INCIDENT_OVER", "a resolved or merged incident cannot be acknowledged", "acknowledge one that is not over")

view = section("State view")
view(
    "VIEW_UNUSABLE",
    "the folder of the state view cannot be opened",
    "end the other view that has it open, or delete it",
)
view("VIEW_ROW_UNKNOWN", "the view of a topic knows no row of that key", "`/rows/TOPIC` lists what it knows")
view("VIEW_SERIES_UNKNOWN", "the state view knows nothing of a series", "`newnormal query states` shows which it knows")
view("VIEW_ELSEWHERE", "another process of the state view has this machine", "ask that one, or name it with `--peer`")
view(
    "VIEW_TOKEN_REQUIRED", "the state view wants its token", "the same `view.token_file` or `view.token`, or the header"
)
view("VIEW_HOST_REFUSED", "the state view was asked by a name that it does not know", "name it in `view.hosts`")
view("VIEW_QUESTION", "a question to the state view is wrong", "the message says what is accepted")
view("VIEW_UNREACHABLE", "the state view does not answer", "start it by `newnormal view`, or name it with `--view`")

notify = section("Notifications")
notify("NOTIFY_NO_CHANNELS", "the settings name no channel", "see [notifications.md](notifications.md)")
notify("NOTIFY_CHANNEL_UNKNOWN", "no channel has this name", "use one of the names in the message")
notify("NOTIFY_SECRET", "the secret of a channel cannot be read", "correct the file or variable that is named")
notify("NOTIFY_UNREACHABLE", "a channel does not answer; the message is sent again", "see that it can be reached")
notify("NOTIFY_REFUSED", "a channel answers, but does not take a message", "the message says what it answered")
notify("NOTIFY_UNUSABLE", "the folder of notifications cannot be opened", "end the other process that has it open")

gateway = section("Gateway")
gateway("GATEWAY_UNAUTHORIZED", "the gateway wants a token, and a request had none or another", "send the token")
gateway(
    "GATEWAY_BROWSER",
    "a request came from a web page; agents send no `Origin`",
    "let an agent push, or a program without that header",
)
gateway(
    "GATEWAY_TOO_LARGE",
    "a body is larger than the gateway accepts, as it was sent or after decompression; nothing of it was taken",
    "let the agent send smaller batches, or raise `gateway.max_body` and `gateway.max_decompressed`",
)
gateway(
    "GATEWAY_ENCODING",
    "a body is not compressed as its header says, or in a way that the gateway does not know",
    "see [gateway.md](gateway.md)",
)
gateway("GATEWAY_TYPE", "a body is of a type that this address does not take", "see [gateway.md](gateway.md)")
gateway("GATEWAY_PRECISION", "the parameter `precision` is unknown, or contradicts a timestamp", "see the message")
gateway("NO_CHANGE", "an event of Kubernetes changes nothing; it is left out", "nothing: the answer only counts it")
gateway("GATEWAY_SLOW", "a body did not arrive in time", "see why the network or the agent is so slow")
gateway(
    "GATEWAY_BUSY",
    "more bytes wait for Kafka than `gateway.max_in_flight`; the agent sends the same again later",
    "see whether Kafka is slow; `newnormal doctor`",
)
gateway(
    "GATEWAY_FAILED",
    "the gateway failed at a request (500): a fault of the gateway's own; its log names the place",
    "report it with the line of the log; see what this agent sends",
)
gateway(
    "STATSD_SERIES",
    "a gateway holds as many series of StatsD as `gateway.statsd_series` says, or too many bytes of events",
    "send fewer series, e.g. no ids in names and tags, or raise the setting",
)
gateway(
    "GATEWAY_FRAMING",
    "what comes over a port of logs cannot be divided into messages, or one is too long; the connection is closed",
    "let syslog send messages by line or with their length before them, GELF with a NUL after them",
)
gateway("GATEWAY_TLS", "the files for TLS cannot be used; the gateway does not start", "see the message")
gateway("GATEWAY_RATE", "a sender is faster than `gateway.rate`; it sends the same again later", "raise the setting")
gateway(
    "GATEWAY_KAFKA",
    "Kafka did not acknowledge a request in time, or refused it; the agent sends the same again",
    "see whether Kafka answers; `newnormal doctor`",
)
