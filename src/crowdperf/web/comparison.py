"""Compares two to four results: whether they may be, their ratios, and which facts differ. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from crowdperf.kit.numbers import quantity
from crowdperf.store.model import Result
from crowdperf.web.formats import minute
from crowdperf.web.result_page import configuration_pairs, system_pairs
from crowdperf.web.wording import RUN_CLASSES, figure_words

MOST: Final = 4
LETTERS: Final = "ABCD"


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact of each of the results, as text."""

    name: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the results differ in it."""
        return len(set(self.values)) > 1


def refusal(results: Sequence[Result]) -> str:
    """Why these results cannot be compared; empty where they can."""
    if len(results) < 2:
        return "A comparison needs two to four results: select them in the table, or give their ids below."
    for words, values in (
        ("benchmarks", [one.result.configuration.benchmark for one in results]),
        ("scenarios", [one.result.configuration.scenario for one in results]),
        ("metrics", [f"{one.result.metric} in {one.result.unit}" for one in results]),
    ):
        found = list(dict.fromkeys(values))
        if len(found) > 1:
            return f"These results have different {words} ({', '.join(found)}): a ratio of them is meaningless."
    return ""


def cautions(results: Sequence[Result]) -> str:
    """What to be careful about where results can be compared; empty without such."""
    found = []
    kinds = {one.result.kind for one in results}
    if len(kinds) > 1 and "published" in kinds:
        found.append("Some of these results are published, others are unofficial: MLCommons did not review those.")
    for words, values in (
        ("kinds of data", {one.result.configuration.data_kind for one in results}),
        ("lengths of run", {RUN_CLASSES.get(one.result.configuration.run_class, "?") for one in results}),
        ("quality tiers", {one.result.configuration.tier for one in results}),
    ):
        if len(values) > 1:
            found.append(f"The results have different {words}: {', '.join(sorted(filter(None, values)))}.")
    return " ".join(found)


def ratio(result: Result, base: Result) -> float | None:
    """How many times as good a result is as `base`; more is better for latencies, too. None without a sound one."""
    better, worse = result.result.value, base.result.value
    if not result.result.higher_is_better:
        better, worse = worse, better
    return better / worse if worse > 0 else None


def relative_words(value: float | None) -> str:
    """How much better than the base a result is, as text: `+8 %`; more is better for latencies also."""
    return "-" if value is None else f"{100 * (value - 1):+,.{0 if abs(value - 1) >= 0.1 else 1}f} %"


_NAMING: Final = ("Accelerator", "Accelerators", "Processor", "Software", "Precision", "Device", "Nodes", "Kind",
                  "Round", "Division", "Made")  # fmt: skip
"""Facts by which results of a comparison are named, the most telling first; chosen settings stand before `Kind`."""
_LONGEST_NAME: Final = 60


def names_of(results: Sequence[Result], facts: Sequence[Fact]) -> list[str]:
    """What tells each result from the others: `A: onnxruntime 1.29`; its letter alone where no fact does."""
    differing = {fact.name: fact.values for fact in facts if fact.differs}
    chosen = [name for name in differing if name.endswith("(chosen)")]
    order = [*_NAMING[: _NAMING.index("Kind")], *chosen, *_NAMING[_NAMING.index("Kind") :]]
    names: list[tuple[str, ...]] = [()] * len(results)
    for name in order:
        if len(set(names)) == len(results):
            break
        if name in differing:
            told = name.removesuffix(" (chosen)") + " " if name in chosen or name in ("Accelerators", "Nodes") else ""
            names = [(*found, f"{told}{value}") for found, value in zip(names, differing[name], strict=True)]
    words = (": ".join(filter(None, (letter, ", ".join(name)))) for letter, name in zip(LETTERS, names, strict=False))
    return [one if len(one) <= _LONGEST_NAME else f"{one[: _LONGEST_NAME - 1]}…" for one in words]


def facts_of(results: Sequence[Result]) -> list[Fact]:
    """Everything that is known of all results, those that differ first."""
    columns = [_facts(one) for one in results]
    names = list(dict.fromkeys(name for column in columns for name in column))
    facts = [Fact(name, tuple(column.get(name, "-") for column in columns)) for name in names]
    return sorted(facts, key=lambda fact: not fact.differs)


def _facts(one: Result) -> dict[str, str]:
    result = one.result
    accelerators = result.configuration.system.accelerator_count
    found = dict(configuration_pairs(result.configuration)) | dict(system_pairs(result.configuration.system))
    found |= {
        "Software": result.stack_version or result.configuration.stack,
        "Per accelerator": quantity(result.value / accelerators) if accelerators and result.higher_is_better else "",
        "LoadGen": {True: "VALID", False: "INVALID", None: ""}[result.valid],
        "Kind": result.kind,
        "Checked": result.verification,
        "Labels": ", ".join(result.labels),
        "Made": minute(result.made_utc),
    }
    return {name: str(value) or "-" for name, value in found.items()}


def figures_of(results: Sequence[Result]) -> list[Fact]:
    """Further metrics that at least two of the results have."""
    columns = [
        {f"{figure_words(one.name)}, {one.unit}": quantity(one.value) for one in found.result.figures}
        for found in results
    ]
    names = dict.fromkeys(name for column in columns for name in column)
    return [
        Fact(name, tuple(column.get(name, "-") for column in columns))
        for name in names
        if sum(name in column for column in columns) > 1
    ]
