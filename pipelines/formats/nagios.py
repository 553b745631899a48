"""The decoder of performance data of Nagios and its kin (Icinga, Naemon), as their process command writes lines of it.

Sources: the Nagios plugin guidelines, "Performance data"; the template of PNP4Nagios for the settings
``service_perfdata_file_template`` and ``host_perfdata_file_template``, with tabs between ``NAME::value``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.formats.plain_lines import LineSample, PlainLineDecoder
from pipelines.formats.samples import short

_VALUE = re.compile(r"\s*(?:'((?:[^']|'')+)'|([^\s='][^\s=]*))=(U|[-+]?[0-9.,]+(?:[eE][-+]?[0-9]+)?)([^\s;]*)(?:;\S*)?")
_ACCEPTED = (
    "accepted: DATATYPE::SERVICEPERFDATA, TIMET::…, HOSTNAME::…, SERVICEDESC::…, SERVICEPERFDATA::… between tabs"
)


@dataclass(frozen=True)
class NagiosDecoder(PlainLineDecoder):
    r"""Decodes lines of performance data; each value is a gauge ``service.label``, for checks of hosts ``host.label``.

    Thresholds and units are left out: a plugin reports a value always in the same unit. ``U`` is no value.

    >>> line = "DATATYPE::SERVICEPERFDATA\tTIMET::1795220820\tHOSTNAME::a\tSERVICEDESC::PING"
    >>> list(NagiosDecoder().samples(line + "\tSERVICEPERFDATA::rta=0.5ms;100"))
    [('a', 'PING.rta', 1795220820.0, 0.5)]
    """

    def samples(self, line: str) -> Iterator[LineSample]:
        fields = dict(each.split("::", 1) for each in line.split("\t") if "::" in each)
        service = fields.get("DATATYPE") == "SERVICEPERFDATA"
        data = fields.get("SERVICEPERFDATA" if service else "HOSTPERFDATA")
        machine, name = fields.get("HOSTNAME", ""), fields.get("SERVICEDESC", "") if service else "host"
        time = fields.get("TIMET", "")
        if data is None or not machine or not name or not (time.isascii() and time.isdigit()) or len(time) > 12:
            raise ValueError(_ACCEPTED)
        at, data = 0, data.rstrip()
        while at < len(data):
            match = _VALUE.match(data, at)
            if match is None:
                raise ValueError(
                    f"performance data {data[at : at + 40]!r}; accepted: 'label'=value[unit];warn;crit;min;max"
                )
            at = match.end()
            label = match[1].replace("''", "'") if match[1] else match[2]
            value = math.nan if match[3] == "U" else float(match[3].replace(",", "."))
            if math.isinf(value):
                raise ValueError(f"{label[:40]}: a finite number is accepted")
            yield machine, short(f"{name}.{label}"), float(time), value
