"""Bayesian online models on arrays. Imports no Spark, no Kafka, and reads no clock.

From one value of one series to its verdict. `detector.Detector` holds the state, and runs `series/one_value.py` over
any number of values; `series/judging.py` calls the other files in this order::

    value
      │ what the series should be
      ├─ experts/level.py, log_level.py, hour_of_day.py     three forecasts; a new series begins with series/peers.py
      ├─ series/mixture.py                                  one forecast: each expert by how well it has done so far
      ├─ families/suited.py                                 instead of it for counts, shares and few values
      │       surprise of the value (numbers/normal.py, special.py), and the band: typical, lower, upper
      │
      │ channels of evidence; each is calibrated on the history of this series (numbers/calibration.py)
      ├─ evidence/point.py       the value alone                   ┐
      ├─ evidence/window.py      the mean of the last windows      ├─ evidence/score.py:   one weight of evidence
      ├─ evidence/record.py      never so high, or so low          │
      ├─ evidence/change.py      the step from the value before    ┘
      ├─ evidence/lingering.py   what ranks ordinary values
      ├─ evidence/departure.py   away from the median of the last 15 values
      ├─ evidence/frozen.py      the same value again and again
      ├─ regimes/again.py        what was news before lends evidence
      ├─ evidence/recurring.py   expected at this time of the day, week or month: takes evidence off
      ├─ series/feedback.py      what operators said of this series weighs all of it
      │
      │ the score becomes an alarm, or does not
      ├─ series/alarm.py         record_score from the weight; the bar from `threshold`, false alarms and clock
      ├─ evidence/score.py       `is_alarm`: the one place where a score is compared with its bar
      │
      │ what kind of news it is
      ├─ regimes/regimes.py      excursion, new normal, return; regimes/company.py: what the machine's other metrics do
      ├─ evidence/repeats.py     unrest outside of regimes: alarms that keep coming weigh less
      ├─ series/kinds.py         the kind, from both; series/course.py: its incident is open, or over
      ├─ series/explanation.py   what words rest on, with series/past.py and experts/days.py
      ▼
    verdict (verdicts.py); then learning, in series/learning.py: what belongs to an incident teaches no expert,
                           and series/before_outage.py puts back what they knew before an outage

    the verdicts on all metrics of a machine at one time
      ├─ machine/multivariate.py (conditional, moments, tail, blocks)   each metric, given the others
      ├─ machine/joined.py (joined_again)                               one verdict on the machine
      ▼
    verdict on the machine

    when it is full: filling/filling.py (clocks, crossing)
    the values of one metric of all machines of a role at one time
      ├─ fleet/outliers.py                           who leaves its peers is an outlier
      ▼
    verdict on the series beside its peers

    no value: regimes/absence.py (silence.py) · counts of log templates: templates/model.py (mix, newcomers, phases)

What all of this stands on: `kernels.py` compiles the functions, `records.py` gives them the state of a series as one
record, `numbers/arrays.py` names the columns; `config.py` and the `config.py` of each room hold the constants, which
`model_config.py` gathers.
"""
