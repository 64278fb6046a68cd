"""Hooks of cancel-mlperf-sweep: takes back what a sweep has queued or running, and nothing else."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from crowdperf.call.answers import runs_to_its_end
from crowdperf.sweeps import commands

plan = runs_to_its_end


def preprocess(i):
    """CM hook: cancels."""
    return commands.cancel(i["values"]["sweep_dir"], i["state"])
