"""What the official checkers call a benchmark, and which names stand for it: in folders, and in what users type.

A submission's folder may have any of these names; in the open division model_mapping.json gives more. Source:
`model_mapping` and `get_mlperf_model` of the checkers of mlcommons/inference (b66003e1, August 2026; tag v4.0 for older
rounds).
"""

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

from crowdperf.rules.benchmarks import BENCHMARKS, RECORDS, record_of
from crowdperf.rules.names import UnknownName
from crowdperf.rules.rounds import ROUNDS, rounds_of

CHECKER_NAMES: Mapping[str, str] = {
    name: name.replace(row.record.name, row.record.checker_name, 1)
    for name, row in BENCHMARKS.items()
    if row.record.checker_name
}
"""The benchmarks of this project that the checkers know under another name."""

_LLAMA_ALIASES: Mapping[str, str] = {"llama3_1-405b": "llama3.1-405b"}


_CHECKER_WORDS: tuple[tuple[str, str], ...] = (
    *(
        (word, word if word in BENCHMARKS and not record.checker_name else record.checker_name)
        for record in RECORDS.values()
        for word in record.checker_words
    ),
    ("llama3_1-405b", "llama3.1-405b"),
)


def aliases_in(round_name: str) -> Mapping[str, str]:
    """Return the names that a round's checker takes for a canonical one."""
    here = ROUNDS.index(round_name)
    ours = (
        (ROUNDS.index(since), alias, row.record.checker_name or row.record.name)
        for row in BENCHMARKS.values()
        for alias, since in row.record.checker_aliases.items()
    )
    return MappingProxyType({**_LLAMA_ALIASES, **{alias: name for since, alias, name in sorted(ours) if since <= here}})


def checker_name(benchmark: str) -> str:
    """Return the checkers' name of one of this project's benchmarks."""
    return CHECKER_NAMES.get(benchmark, benchmark)


def benchmark_of(name: str, round_name: str) -> str | None:
    """Return this project's benchmark behind a checker's name in a round; None where the project has none."""
    for benchmark in BENCHMARKS:
        if checker_name(benchmark) == name and round_name in rounds_of(benchmark):
            return benchmark
    return None


def resolve(
    name: str, known: Collection[str], aliases: Mapping[str, str], own_names: Mapping[str, str] | None = None
) -> str:
    """Return the canonical name that a folder's name stands for, `name` itself where none does.

    In order: a canonical name, an alias of the round, the submitter's own names (model_mapping.json), a name that
    contains one of a few well-known words.
    """
    if name in known:
        return name
    direct = aliases.get(name) or (own_names or {}).get(name)
    if direct:
        return direct
    found = next((canonical for word, canonical in _CHECKER_WORDS if word in name), name)
    return aliases.get(found, found)


def canonical_name(name: str, round_name: str = ROUNDS[-1]) -> str:
    """Return the checkers' name for a benchmark's name or a folder's name, `name` itself where it stands for none."""
    ours = name in BENCHMARKS and round_name in rounds_of(name)
    if ours:
        return checker_name(name)
    known = {checker_name(benchmark) for benchmark in BENCHMARKS if round_name in rounds_of(benchmark)}
    return resolve(name, known, aliases_in(round_name))


SPELLINGS: Mapping[str, str] = {
    spelling: record.name for record in RECORDS.values() for spelling in (record.name, *record.spellings)
}
"""What users may type for a benchmark, in small letters, and its name without a level."""


def _plain(text: str) -> str:
    return re.sub(r"[-_ ]", "", text).lower()


def parse_benchmark(text: str) -> tuple[str, float | None]:
    """Return a benchmark's name without a level, and the level that the text ends with (0.95, 0.99, 0.999; None
    without).

    Case, hyphens and underscores do not matter: NVIDIA's harness has ResNet50, SSDResNet34, RNN-T, 3D-UNET (alias table
    of mlcommons/inference_results_v0.7, closed/NVIDIA/code/common/__init__.py at 31060d57, read 2026-11-23). Raises
    UnknownName, also for a level that the benchmark does not have.
    """
    levels = {"": None, "-95": 0.95, "-99": 0.99, "-99.9": 0.999}
    stem, suffix = re.fullmatch(r"(.*?)(-95|-99(?:\.9)?)?", text.strip(), re.DOTALL).groups(default="")  # type: ignore[union-attr]
    by_letters = {_plain(spelling): name for spelling, name in SPELLINGS.items()}
    name = by_letters.get(_plain(stem))
    if name is None or (suffix and levels[suffix] not in record_of(name).levels):
        raise UnknownName("benchmark", text, tuple(one for record in RECORDS.values() for one in record.names))
    return name, levels[suffix]


def official_name(text: str) -> str:
    """Return the official name, with its level (99 % where none is named), of what users type; raises UnknownName."""
    name, level = parse_benchmark(text)
    return record_of(name).names[0] if level is None else f"{name}-{level * 100:.12g}"
