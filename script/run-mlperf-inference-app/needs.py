"""Which runs a submission of a benchmark needs, and which of them are there, made by this call, or missing. Pure.

The closed and the network division ask for every scenario of the category and for compliance tests, the open one for
those that are submitted. What is there is looked up by the caller.
"""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.compliance import tests_needed
from crowdperf.rules.names import Mode, Scenario
from crowdperf.rules.rounds import rounds_of

from .request import Request, valid_scenarios


@dataclass(frozen=True, slots=True)
class Need:
    """One run that a submission needs: `what` is a mode or a compliance test."""

    scenario: Scenario
    what: str

    @property
    def place(self) -> Path:
        """The folder of the run below that of the scenario."""
        if self.what == Mode.ACCURACY.value:
            return Path("accuracy")
        inner = Path("performance", "run_1")
        return inner if self.what == Mode.PERFORMANCE.value else Path(self.what) / inner


def needs_of(request: Request) -> tuple[Need, ...]:
    """The runs that a submission of this benchmark needs in its division, category and round."""
    is_open = request.division == "open"
    category = request.category
    scenarios = request.scenarios if is_open else valid_scenarios(request.model, request.round_name, category)
    tests: tuple[str, ...] = ()
    if not is_open and request.model in BENCHMARKS:
        tests = tests_needed(request.model, request.round_name, request.division)
    names = (*(mode.value for mode in Mode), *tests)
    return tuple(Need(scenario, name) for scenario in scenarios for name in names)


def is_made_by(request: Request, need: Need) -> bool:
    """Whether this call makes the run, or keeps it where it is there."""
    if request.is_finding or need.scenario not in request.scenarios:
        return False
    if need.what in [mode.value for mode in Mode]:
        return need.what in [mode.value for mode in request.modes]
    return request.has_compliance


def obstacle(request: Request) -> tuple[str, ...]:
    """Why no submission can hold the runs, however long they are, and how to try its way sooner; empty where it can."""
    if request.source not in ("", "real"):
        why = f"--source={request.source} uses synthetic data or weights"
    elif request.model not in BENCHMARKS or request.round_name not in rounds_of(request.model):
        why = f"{request.model} is not a benchmark of {request.round_name}"
    else:
        return ()
    return (
        f"! these runs cannot be submitted: {why}",
        "  hint: to try all its steps in minutes, make runs with --execution_mode=test, then:",
        "  cm run script --tags=generate,inference,submission --rehearsal "
        f"--results_dir={shlex.quote(str(request.results_folder / 'test_results'))}",
    )


def lines(request: Request, is_there: Callable[[Need], bool]) -> tuple[str, ...]:
    """The list that a user sees before the first run."""
    found = [*obstacle(request)]
    title = f"{request.division} {request.category} submission of {request.model} to {request.round_name}"
    found.append(f"{'An' if title[0] in 'aeiou' else 'A'} {title} needs these runs:")
    missing = False
    for need in needs_of(request):
        what = f"  {need.scenario.value} {need.what}"
        if is_there(need):
            found.append(f"{what}: there")
        elif is_made_by(request, need):
            found.append(f"{what}: made by this run")
        else:
            found.append(f"{what}: missing")
            missing = True
    if missing:
        found.append("to make all of them: the same command with _submission in the place of its other variation")
    return tuple(found)
