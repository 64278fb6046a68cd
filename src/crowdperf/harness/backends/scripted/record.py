"""The backend scripted: a stand-in."""

from crowdperf.rules.record import BackendRecord

RECORD = BackendRecord(
    framework=None,
    devices=("cpu",),
    precisions=("fp32",),
    is_text=True,
    stand_in="the scripted backend replays known answers at a set pace: its results reflect a clock, not a computation",
)
