"""The README.md of one run: how to repeat it, on what machine it was made, what it was given and what it said. Pure.

Made from the files of the run and from environment.json; it names neither the host nor a user, and folders below the
home folder are written as `$HOME/...`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdperf.rules.backends import is_of_client

HOST_FACTS = {
    "CM_HOST_CPU_MODEL_NAME": "processor",
    "CM_HOST_CPU_SOCKETS": "sockets",
    "CM_HOST_CPU_TOTAL_PHYSICAL_CORES": "physical cores",
    "CM_HOST_CPU_TOTAL_LOGICAL_CORES": "logical cores",
    "CM_HOST_MEMORY_CAPACITY": "memory",
    "CM_HOST_OS_FLAVOR": "system",
    "CM_HOST_OS_VERSION": "version of the system",
    "CM_HOST_OS_KERNEL_VERSION": "kernel",
    "CM_HOST_OS_GLIBC_VERSION": "C library",
}
"""What is told of the machine; nothing else of it enters a README."""
LEFT_OUT = ("results_dir", "submission_dir", "output_dir")
"""Inputs that only say where files go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """One run: its row of environment.json, its result.json, the lines of its user.conf, its accuracy.txt."""

    title: str
    row: Mapping[str, Any]
    result: Mapping[str, Any]
    conf: Sequence[str]
    score: str


def flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested inputs as names with dots between."""
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        found += flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [(prefix + name, value)]
    return found


def command(tags: str, inputs: Mapping[str, Any], home: str) -> str:
    """A `cm` line for a shell; the home folder is written as $HOME."""
    words = [f"cm run script --tags={shlex.quote(tags)}"]
    for name, value in sorted(flat(inputs)):
        if name.split(".")[0] not in LEFT_OUT and value not in (None, ""):
            words.append(f"--{name}" if value is True else f"--{name}={_quoted(str(value), home)}")
    return " \\\n    ".join(words)


def _quoted(text: str, home: str) -> str:
    if home and home != "/" and home in text:
        escaped = text
        for sign in '\\"$`':
            escaped = escaped.replace(sign, f"\\{sign}")
        return '"' + escaped.replace(home, "$HOME") + '"'
    return shlex.quote(text)


def host_lines(host: Mapping[str, Any]) -> list[str]:
    """What is told of the machine."""
    return [f"- {words}: {host[key]}" for key, words in HOST_FACTS.items() if host.get(key)]


def render(facts: RunFacts, host: Mapping[str, Any], repeat: str, passed_on: Mapping[str, Any], home: str) -> str:
    """The text of the README. `repeat` is the line that makes this run among those of its call."""
    result, row = facts.result, facts.row
    metric = result.get("metric")
    own = command(str(row["recipe_query"]), {**row["recipe_inputs"], **passed_on}, home)
    lines = [f"# {facts.title}", "", f"{result['label']}.", ""]
    lines += ["Made by crowdperf; this page repeats what the files of the run say.", "", "## Command", ""]
    lines += ["```bash", repeat, "```", "", "The LoadGen run alone:", "", "```bash", own, "```", ""]
    whose = "Client, which asked the measured server" if is_of_client(result) else "Machine"
    lines += [f"## {whose}", "", *host_lines(host), ""]
    lines += [f"- {name}: {version}" for name, version in sorted(result["versions"].items())] + [""]
    lines += ["## Dependencies", "", "The recipes that the run rests on, in order:", ""]
    words = dict(passed_on)
    lines += [
        f"{number}. `{' '.join(command(tags, words, home).replace(chr(92), ' ').split())}`"
        for number, tags in enumerate(row.get("dependencies") or (), start=1)
    ]
    lines += ["", "## Settings", "", "```", *facts.conf, "```", "", "## Result", ""]
    lines.append(f"- LoadGen: {'VALID' if result['valid'] else 'INVALID'}, started {result['started_utc']}")
    lines += [f"- {metric['name']}: {metric['value']:g} {metric['unit']}"] if metric else []
    lines += [f"- accuracy: `{facts.score}`"] if facts.score else []
    seeds = ", ".join(f"{name} {value}" for name, value in sorted(result["seeds"].items()))
    lines += [f"- LoadGen {result['loadgen_version']}, seeds: {seeds}"]
    for name, digest in sorted(result["model_sha256"].items()):
        lines.append(f"- sha256 of {name}: {digest}")
    return "\n".join(lines) + "\n"
