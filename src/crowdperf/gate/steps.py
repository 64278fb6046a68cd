"""The steps of this project that make the files of a submission, with the command of each."""

import enum
import shlex
from pathlib import Path

from crowdperf.gate.views import Subject
from crowdperf.logs.layout import RESULTS_NAME, results_dir_of


class Step(enum.Enum):
    """A step. The value is its name for people."""

    PERFORMANCE = "the performance run"
    ACCURACY = "the accuracy run"
    COMPLIANCE = "the compliance test"
    ENDPOINTS = "the client of MLPerf Endpoints"
    TREE = "the submission tree"
    SYSTEM = "the system description"
    CHECK = "this check"


def step_of_run(test: str, *, is_accuracy: bool) -> Step:
    """Return the step that made a run. test: the compliance test, empty for a run of the result itself."""
    return Step.COMPLIANCE if test else Step.ACCURACY if is_accuracy else Step.PERFORMANCE


_CLIENT = "inference-endpoint benchmark from-config --config config.yaml"
"""docs/CLI_QUICK_REFERENCE.md of mlcommons/endpoints at ea332753 (August 2026)."""

_CM = "cm run script --tags="
_TREE = f"{_CM}generate,inference,submission"
_RUNS = {
    Step.PERFORMANCE: f"{_CM}generate-run-cmds,inference,_performance-only",
    Step.ACCURACY: f"{_CM}generate-run-cmds,inference,_accuracy-only",
}


def _option(name: str, value: str) -> str:
    return f" --{name}={shlex.quote(value)}" if value else ""


def command_of(step: Step, subject: Subject, tree: str, round_name: str, results: tuple[Path, ...] = ()) -> str:
    """Return the command that makes the files of a step again; after a run or a test the tree is made from it.

    results: where the runs are that the tree was made of; without it, where runs go in the current folder.
    """
    division, owner = _option("division", subject.division), _option("submitter", subject.submitter)
    folder, version = _option("submission_dir", tree), f" --version={round_name}"
    if step is Step.ENDPOINTS:
        return _CLIENT
    if step is Step.CHECK:
        return f"{_CM}check,mlperf,submission{folder}{version}"
    runs = tuple(map(str, results)) or (RESULTS_NAME,)
    make_tree = f"{_TREE}{_option('results_dir', ','.join(runs))}{folder}{owner}{division}{version}"
    if step in (Step.TREE, Step.SYSTEM):
        return make_tree
    if step is Step.COMPLIANCE:
        test = _option("test", subject.test)
        run = f"{_CM}run,mlperf,compliance{_option('results_dir', runs[0])}{test}{division}{version}"
    else:
        what = _option("model", subject.benchmark) + _option("scenario", subject.scenario)
        folder_of_run = _option("results_dir", str(results_dir_of(Path(runs[0]))))
        run = f"{_RUNS[step]}{what}{division} --execution_mode=valid{folder_of_run}"
    return f"{run} && {make_tree}"
