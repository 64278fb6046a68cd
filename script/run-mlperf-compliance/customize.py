"""Hooks of run-mlperf-compliance: make the compliance tests that finished runs need, verify them, say the verdict.

What to make is decided in `asking.py` from what `finding.py` finds; `making.py` makes it, `verifying.py` judges it,
`record.py` remembers it.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import shlex

from crowdperf.call.answers import failure
from crowdperf.call.recipe_calls import RecipeFailed, passed_on_inputs

from . import asking, finding, making

RUNS = "results/RUN_ID"


def hint_of(values, error) -> str:
    """The call again with what would do, on a usual folder where that is not known."""
    given = {
        "results_dir": str(values["results_dir"] or RUNS) if error.changed else RUNS,
        "division": values["division"],
        "version": values["version"] or "",
        "test": ",".join(values["test"]),
        "source": values["source"] or "",
    }
    asked = {name: text for name, text in {**given, **error.changed}.items() if text and text != asking.ALL}
    flags = [f"--{name}={text}" for name, text in asked.items()]
    return f"hint: cm run script --tags=run,mlperf,compliance {shlex.join(flags)}"


def read_work(i) -> tuple[str, tuple[making.Step, ...]]:
    """What a user sees first, and the tests in order. Raises asking.WrongCall."""
    call = asking.parse_call(i["values"])
    runs = finding.find_runs(call.folder)
    steps = making.steps_of(call, runs, passed_on_inputs(i["input"]))
    return making.describe(call, runs, steps), steps


def plan(i):
    """Crowdperf hook of `cm plan script`: the LoadGen runs that preprocess will make; changes nothing."""
    try:
        _, steps = read_work(i)
    except asking.WrongCall as error:
        return failure(error, hint_of(i["values"], error))
    runs = [{**step.inputs, "quiet": True} for step in steps if step.is_to_run]
    return {"return": 0, "runs": runs}


def preprocess(i):
    """CM hook: makes and verifies the tests. Error when one fails or cannot be made."""
    try:
        story, steps = read_work(i)
    except asking.WrongCall as error:
        return failure(error, hint_of(i["values"], error))
    print(story, flush=True)
    maker = making.Maker(access=i["automation"].cmind.access, passed_on=passed_on_inputs(i["input"]))
    try:
        rows = [maker.make(step) for step in steps]
    except RecipeFailed as error:
        return error.answer
    except OSError as error:
        return failure(error, "hint: look at the folder's permissions and at the space on its disk")
    failed = [row["name"] for row in rows if not row["passed"]]
    i["env"]["CM_MLPERF_COMPLIANCE_PASSED"] = "no" if failed else "yes"
    i["state"]["mlperf_compliance"] = {"passed": not failed, "tests": rows}
    if failed:
        words = (
            "stop other programs on the machine and rerun the command: failed tests are repeated, passed ones are kept"
        )
        return failure(Exception(f"compliance tests failed: {', '.join(failed)}"), f"hint: {words}")
    return {"return": 0}
