"""The backend null: a stand-in."""

from crowdperf.rules.record import BackendRecord

RECORD = BackendRecord(
    framework=None,
    devices=("cpu",),
    precisions=("fp32",),
    # Nothing is computed, so a batch only spreads the cost of the calls: LoadGen loses little from 1,024 on
    # (benchmarks/harness_limits.py).
    batch_size=1024,
    stand_in="the null backend does not compute: its results show the speed of LoadGen and the harness",
)
