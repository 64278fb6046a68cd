"""Hooks of show-mlperf-sweep: the states of all points, from files and the queue; works while the sweep runs."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from crowdperf.sweeps import commands


def plan(i):
    """Crowdperf hook of `cm plan script`: this recipe calls no other one, and nothing is changed."""
    return {"return": 0, "runs": []}


def preprocess(i):
    """CM hook: prints the table; code 3 where points are under way."""
    return commands.show(i["values"]["sweep_dir"], i["state"])
