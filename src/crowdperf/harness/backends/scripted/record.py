"""The backend scripted: a stand-in."""

from crowdperf.rules.record import BackendRecord

RECORD = BackendRecord(
    framework=None,
    devices=("cpu",),
    precisions=("fp32",),
    is_text=True,
    stand_in="the scripted backend says known answers at a set pace: its figures are those of a clock",
)
