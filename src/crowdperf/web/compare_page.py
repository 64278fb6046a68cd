"""The page of a comparison: values with their ratios and spread, then what differs, then what is equal."""

from collections.abc import Sequence

from crowdperf.kit.numbers import quantity
from crowdperf.kit.plot import Bar, bars
from crowdperf.store.model import Result
from crowdperf.store.query import Filter
from crowdperf.store.store import Store
from crowdperf.web import comparison
from crowdperf.web.links import Links
from crowdperf.web.render import page
from crowdperf.web.tables import table_of
from crowdperf.web.wording import name_of, system_words

SPREAD_OF = 200
"""Results of each configuration that its whisker is made of, the newest ones."""


def compare_page(store: Store, link: Links, results: Sequence[Result], missing: Sequence[str]) -> str:
    """Two to four results beside each other, or why that cannot be. missing: ids that were asked for in vain."""
    why = comparison.refusal(results)
    if missing:
        why = f"Result not found: {', '.join(missing)}. {why}" if len(results) < 2 else ""
    ids = [one.id for one in results]
    rows = [row for one in ids for row in store.find(Filter(chosen={"id": (one,)}), limit=1).rows]
    given = dict(zip("abcd", ids, strict=False))
    content = {} if why else _comparison(store, results)
    named = f"{name_of(results[0].result.configuration)}: comparison" if results and not why else "Comparison"
    return page(
        "compare",
        link,
        title=named,
        heading=named,
        refusal=why,
        inputs=[(letter, given.get(letter, "")) for letter in "abcd"],
        picked=table_of(rows, link) if rows else None,
        **content,
    )


def _comparison(store: Store, results: Sequence[Result]) -> dict[str, object]:
    first = results[0].result
    letters = comparison.LETTERS[: len(results)]
    facts = comparison.facts_of(results)
    figures = comparison.figures_of(results)
    names, drawn, lines = comparison.names_of(results, facts), [], []
    is_one_configuration = len({one.key for one in results}) == 1
    for name, one in zip(names, results, strict=True):
        values = [row.value for row in store.find(Filter(chosen={"key": (one.key,)}), limit=SPREAD_OF).rows] or [
            one.result.value
        ]
        low, high = min(*values, one.result.value), max(*values, one.result.value)
        relative = comparison.relative_words(comparison.ratio(one, results[0])) if one is not results[0] else "-"
        whisker = (one.result.value,) * 2 if is_one_configuration else (low, high)
        drawn.append(Bar(name, one.result.value, *whisker, "" if relative == "-" else f"({relative})"))
        spread = f"{quantity(low)} to {quantity(high)} ({len(values)})" if len(values) > 1 else "-"
        lines.append(
            (
                name,
                system_words(one.result.configuration.system),
                f"{quantity(one.result.value)} {one.result.unit}",
                relative,
                spread,
                ", ".join(one.result.labels) or f"{one.result.kind} {one.result.configuration.round}".strip(),
            )
        )
    return {
        "lead": f"{first.metric}, {first.unit} ({'higher' if first.higher_is_better else 'lower'} is better).",
        "warning": comparison.cautions(results),
        "chart": bars(f"{first.metric} of {len(results)} results", drawn, first.unit),
        "chart_words": "In brackets: relative to A, + is better."
        + ("" if is_one_configuration else " The whisker spans all results of the configuration."),
        "figure_headings": (
            "Result",
            "System",
            "Value",
            "Relative to A",
            "Configuration, min to max",
            "Labels",
        ),
        "figures": lines,
        "figure_numbers": (2, 3, 4),
        "fact_headings": ("Fact", *letters),
        "differing": [(fact.name, *fact.values) for fact in facts if fact.differs],
        "equal": [(fact.name, fact.values[0]) for fact in facts if not fact.differs],
        "latencies": [(figure.name, *figure.values) for figure in figures],
        "figure_columns": tuple(range(1, len(results) + 1)),
    }
