"""What the columns, numbers and times of CSV mean, wherever it is read: in messages, and in recorded files.

`exports` knows the forms that programs write (InfluxDB, sadf, typeperf), `columns` which column is for what,
`numbers` and `times` how people and spreadsheets write both, `separators` what stands between two fields. Several
messages may be read at once: what decides how a number or a date is meant is decided for each
message by itself; a file is one message.
"""
