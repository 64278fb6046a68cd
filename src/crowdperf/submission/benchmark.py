"""The benchmark behind a model's folder in a round: the row of our table, and what the checkers call it."""

from collections.abc import Mapping
from dataclasses import dataclass

from crowdperf.rules.official_names import benchmark_of, canonical_name, checker_name
from crowdperf.rules.rounds import RoundRules, rules_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A model of a tree. benchmark: our row's name; official: the checkers' name; rules: those of the round.

    is_mapped: only model_mapping.json says what the folder stands for, which the open division allows.
    """

    folder: str
    benchmark: str
    official: str
    rules: RoundRules
    is_mapped: bool


def named(folder: str, maps: Mapping[str, str], round_name: str) -> Named | None:
    """Return the benchmark that a model's folder stands for, by the user's mapping first; None for none."""
    official = canonical_name(maps.get(folder, folder), round_name)
    benchmark = benchmark_of(official, round_name)
    if benchmark is None:
        return None
    return Named(
        folder=folder,
        benchmark=benchmark,
        official=checker_name(benchmark),
        rules=rules_in(benchmark, round_name),
        is_mapped=folder in maps and canonical_name(folder, round_name) != official,
    )
