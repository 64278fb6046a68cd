"""Hooks of show-mlperf-sweep: the states of all points, from files and the queue; works while the sweep runs."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from crowdperf.call.answers import runs_to_its_end
from crowdperf.sweeps import commands

plan = runs_to_its_end


def preprocess(i):
    """CM hook: prints the table; code 3 where points are under way."""
    return commands.show(i["values"]["sweep_dir"], i["state"])
