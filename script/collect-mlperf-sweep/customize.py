"""Hooks of collect-mlperf-sweep: sweep.json, sweep.csv, sweep.html and summary.txt from what is there."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from crowdperf.sweeps import commands


def plan(i):
    """Crowdperf hook of `cm plan script`: this recipe calls no other one."""
    return {"return": 0, "runs": []}


def preprocess(i):
    """CM hook: writes the files; code 2 where a point has no valid result."""
    return commands.collect(i["values"]["sweep_dir"], i["state"])
