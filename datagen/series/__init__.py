"""Reads recorded series from CSV files: what `newnormal play`, `score` and `evaluate` take in.

Accepts what the public data sets use (NAB's ``timestamp,value``, Microsoft's ``TimeStamp,Value,Label``), wide files
with one metric in each column, long files with columns of machines and metrics, and the forms of numbers and dates that
spreadsheets write. It knows nothing of Kafka or of the use of the values.
"""

from datagen.series.csv_format import USUAL, Reading
from datagen.series.files import files_of, names_of, read_files
from datagen.series.reader import read_labels, read_series
from datagen.series.report import SeriesReport, Skipped

__all__ = [
    "USUAL",
    "Reading",
    "SeriesReport",
    "Skipped",
    "files_of",
    "names_of",
    "read_files",
    "read_labels",
    "read_series",
]
