"""What the words in run-mlperf-inference's inputs mean: NVIDIA's names, LoadGen's modes, origins of targets. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from crowdperf.rules.app_names import AppNames
from crowdperf.rules.names import Mode, Scenario, UnknownName, parse_modes, parse_scenario

ALL = "all"
QUERY = "run,mlperf,inference"
FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
LONGEST_NAME = 200
"""File systems allow 255 bytes. Names next to the folder are longer, such as `NAME-baseline`."""
SEVERAL_BENCHMARKS = "cm run script --tags=run,mlperf,make --target=run --run_args=--benchmarks="


class Problems(list[str]):
    """What is wrong with a call, a line for each input."""

    def note(self, name: str, why: str) -> None:
        """Add what is wrong with an input."""
        self.append(f"--{name}: {why}")


def one_model(values: Mapping[str, Any], known: AppNames, problems: Problems) -> str:
    """Return the benchmark, which must be one alone, with its accuracy level."""
    names = values["model"]
    if len(names) > 1:
        several = f"for several: {SEVERAL_BENCHMARKS}{','.join(names)}"
        problems.note("model", f"only one benchmark per run, found {','.join(names)!r}, {several}")
    return known.aliases.get(names[0], names[0])


def with_config_ver(config_ver: str, model: str, backend: str, known: AppNames, problems: Problems) -> tuple[str, str]:
    """Return the model and the backend that NVIDIA's name of a configuration means: an accuracy level, or a server.

    The names are those of README.md and code/*/tensorrt/README.md in mlcommons/inference_results_v0.7,
    closed/NVIDIA (31060d57).
    """
    if "high_accuracy" in config_ver and not model.endswith("-99.9"):
        higher = f"{model.removesuffix('-99')}-99.9"
        if higher not in known.models:
            problems.note(f"config_ver={config_ver}", f"{model} has one accuracy level")
        model = higher
    return model, "triton" if "triton" in config_ver else backend


def modes_of(words: tuple[str, ...], problems: Problems, *, is_finding: bool) -> tuple[Mode, ...]:
    """Return which runs to make of each scenario; a search makes performance runs only."""
    try:
        modes = parse_modes(",".join(words))
    except UnknownName as error:
        problems.note("mode", str(error))
        return tuple(Mode)
    if is_finding and Mode.PERFORMANCE not in modes:
        problems.note("find", "accuracy runs have no target to find. Omit --mode")
    return (Mode.PERFORMANCE,) if is_finding else modes


def resume_rule(text: str | None) -> str:
    """Return which runs to make again, empty for a call that starts anew; `--resume` without a value means all."""
    return {None: "", "yes": ALL, "no": ""}.get(text, text or "")


def folder_name(name: str, text: str | None, problems: Problems) -> str:
    """Return the name of one folder; empty when nothing is given."""
    if text and len(text) > LONGEST_NAME:
        problems.note(name, f"found a name of {len(text)} characters; allowed: at most {LONGEST_NAME}")
    elif text and not FOLDER_NAME.fullmatch(text):
        allowed = "letters, digits, dot, underscore, plus, hyphen, beginning with a letter or digit"
        problems.note(name, f"found {text!r}; allowed: {allowed}")
    return text or ""


def origins(name: str, text: str | None, problems: Problems) -> dict[Scenario, str]:
    """Return words by scenario, written `Offline: measured; Server: found`."""
    found = {}
    for part in filter(None, (part.strip() for part in (text or "").split(";"))):
        scenario, _, words = part.partition(":")
        try:
            found[parse_scenario(scenario.strip())] = words.strip()
        except UnknownName as error:
            problems.note(name, f"{error}, expected the form written 'Offline: words; Server: words'")
    return found
