"""Pages of many results: what is asked for, and the SQL that answers it with every value bound. Pure.

    WHERE state IN (?) AND benchmark IN (?, ?) AND seq NOT IN (SELECT seq FROM label WHERE label IN (?)) ...

Names of columns come from the closed lists here, never from a caller's text. A page goes on after the sort value and
number of the row before (key-set paging), so that page 1000 costs as much as page 2.
"""

import base64
import binascii
import functools
import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, cast

from crowdperf.store.result_json import kept_text

FACETS = ("benchmark", "scenario", "division", "kind", "accelerator", "stack", "precision")
"""What a page counts values of, beside the labels."""

CHOICES = (*FACETS, "suite", "round", "category", "tier", "device", "data_kind", "run_class", "verification",
           "submitter", "signer", "key", "system_key", "id")  # fmt: skip
"""What results can be chosen by."""

SORTS = ("added", "made_utc", "value", "benchmark", "scenario", "precision", "division", "accelerator", "stack",
         "submitter", "system_name")  # fmt: skip
"""What results can be sorted by; `added` is the order in which they came."""

NEW_CONTRIBUTOR = "new contributor"
"""The label of results whose key no moderator knows; it is not kept, because it ends when one does."""

LARGEST_PAGE = 100_000
_WORD = re.compile(r"\w+")
_MAX_WORDS = 16

State = Literal["shown", "hidden"]


class BadQuery(ValueError):
    """A filter, a sort or a place that no page has; the text says which are allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which results. chosen: by name of CHOICES, any of the values. labels: any of them; without_labels: none of them.

    text: words that all begin a word of the result. states: "shown" alone is what the public sees.
    """

    chosen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    labels: Sequence[str] = ()
    without_labels: Sequence[str] = ()
    text: str = ""
    states: Sequence[State] = ("shown",)


@dataclass(frozen=True, slots=True)
class Sort:
    """The order of a page: a name of SORTS; equal ones in the order in which they came."""

    by: str = "added"
    descending: bool = True


class Row(NamedTuple):
    """A result as a table shows it: a tuple, because a table may have tens of thousands.

    system_key, key: as of Result. signer: a key id or ""; alias: its name or "". labels: those that are kept, and
    NEW_CONTRIBUTOR. settings: those that the user chose, as a JSON object. score: the first one of an accuracy run.
    ttft_p99_ms, tpot_p99_ms: of a language model. Without details the keys, settings, score and these are empty.
    """

    id: str
    key: str
    system_key: str
    state: State
    kind: str
    suite: str
    benchmark: str
    round: str
    division: str
    category: str
    scenario: str
    precision: str
    tier: str
    stack: str
    stack_version: str
    device: str
    data_kind: str
    run_class: str
    accelerator: str
    accelerator_count: int
    nodes: int
    cpu: str
    submitter: str
    system_name: str
    signer: str
    alias: str
    metric: str
    value: float
    unit: str
    higher_is_better: bool
    valid: bool | None
    verification: str
    labels: tuple[str, ...]
    made_utc: str
    added_utc: str
    settings: str
    score: float | None
    ttft_p99_ms: float | None
    tpot_p99_ms: float | None


@dataclass(frozen=True, slots=True)
class Page:
    """Rows in order. next_key: what `after` is for the next page, "" on the last one."""

    rows: tuple[Row, ...]
    next_key: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How many results, and how many of each value of a facet: the facet's own choice is left out of its counts.

    facets: by name of FACETS and "label", the values by count, the most frequent first.
    """

    total: int
    facets: Mapping[str, tuple[tuple[str, int], ...]]


@dataclass(frozen=True, slots=True)
class Sql:
    """A part of a statement with its values."""

    text: str
    values: tuple[Any, ...] = ()


_METRIC = "(SELECT m.value FROM figure AS m WHERE result_id = listing.id AND name = '{}' LIMIT 1)"  # words: ok P15
_DETAILS = {
    "settings": "(SELECT settings FROM configuration WHERE configuration.key = listing.key)",
    "score": "(SELECT accuracy.value FROM accuracy WHERE result_id = listing.id ORDER BY place LIMIT 1)",
    **{f"{name}_p99_ms": _METRIC.format(f"{name.upper()} 99") for name in ("ttft", "tpot")},
}
_NO_DETAILS = {
    **dict.fromkeys(("key", "system_key", "settings"), "''"),
    **dict.fromkeys(("score", "ttft_p99_ms", "tpot_p99_ms"), "NULL"),
}


@functools.cache
def _columns(has_details: bool) -> str:
    elsewhere = {"alias": "''", **(_DETAILS if has_details else _NO_DETAILS)}
    return ", ".join(elsewhere.get(name, f"listing.{name}") for name in Row._fields)


def _any_of(column: str, values: Sequence[str]) -> Sql:
    return Sql(f"{column} IN ({', '.join('?' * len(values))})", tuple(map(kept_text, values)))


def match_of(text: str) -> str:
    """The FTS5 expression of a user's words: each a prefix in quotes, so that none is an operator; "" without words."""
    words = [word for word in _WORD.findall(text)[:_MAX_WORDS] if word.strip("_")]
    return " ".join(f'"{word}"*' for word in words)


def where(wanted: Filter, state: str = "listing.state") -> Sql:
    """The condition of a filter. Raises BadQuery."""
    unknown = sorted(set(wanted.chosen) - set(CHOICES))
    if unknown:
        raise BadQuery(f"results cannot be chosen by {', '.join(unknown)}; by: {', '.join(CHOICES)}")
    parts = [_any_of(state, wanted.states)]
    parts += [_any_of(f"listing.{name}", found) for name, found in wanted.chosen.items() if found]
    if wanted.labels:
        inner = _any_of("label", wanted.labels)
        parts.append(Sql(f"listing.seq IN (SELECT seq FROM label WHERE {inner.text})", inner.values))
    if wanted.without_labels:
        inner = _any_of("label", wanted.without_labels)
        parts.append(Sql(f"listing.seq NOT IN (SELECT seq FROM label WHERE {inner.text})", inner.values))
    if wanted.text.strip():
        match = match_of(wanted.text)
        parts.append(Sql("listing.seq IN (SELECT rowid FROM search WHERE search MATCH ?)", (match,)) if match
                     else Sql("0"))  # fmt: skip
    return Sql(" AND ".join(part.text for part in parts), tuple(value for part in parts for value in part.values))


def key_of(sort: Sort, value: Any, seq: int) -> str:
    """What names the place after a row."""
    text = json.dumps([sort.by, sort.descending, value, seq])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _place(sort: Sort, after: str) -> tuple[Any, int]:
    try:
        content = json.loads(base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)))
        by, descending, value, seq = content
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise BadQuery("this is not a place in a list of results. Begin at the first page") from error
    kind = float | int if sort.by in ("value", "added") else str
    if (by, descending) != (sort.by, sort.descending) or not isinstance(value, kind) or type(seq) is not int:
        raise BadQuery("the place belongs to a list in another order. Begin at the first page")
    if (isinstance(value, int) and not -(2**53) < value < 2**53) or not 0 <= seq < 2**53:
        raise BadQuery("this is not a place in a list of results. Begin at the first page")
    return kept_text(value) if isinstance(value, str) else value, seq


def page_sql(wanted: Filter, sort: Sort, after: str, limit: int, has_details: bool = True) -> Sql:
    """The statement of a page with one row more than `limit`; seq and the sort value lead. Raises BadQuery.

    has_details: with the keys and the columns that are in other tables, which take as long as all the rest.
    """
    if sort.by not in SORTS:
        raise BadQuery(f"results cannot be sorted by {sort.by}; by: {', '.join(SORTS)}")
    if not 1 <= limit <= LARGEST_PAGE:
        raise BadQuery(f"a page has 1 to {LARGEST_PAGE} rows, got {limit}")
    column = "listing.seq" if sort.by == "added" else f"listing.{sort.by}"
    # with a +, no index is used for it: the newest are found from the end on, and few rows are hidden
    condition = where(wanted, state="+listing.state" if sort.by == "added" else "listing.state")
    text, values = condition.text, condition.values
    if after:
        place = _place(sort, after)
        text += f" AND ({column}, listing.seq) {'<' if sort.descending else '>'} (?, ?)"
        values = (*values, *place)
    way = "DESC" if sort.descending else "ASC"
    return Sql(
        f"SELECT listing.seq, {column}, {_columns(has_details)} FROM listing WHERE {text} "
        f"ORDER BY {column} {way}, listing.seq {way} LIMIT ?",
        (*values, limit + 1),
    )


@functools.lru_cache(maxsize=1024)
def _labels(text: str, trust: str = "") -> tuple[str, ...]:
    kept = tuple(json.loads(text))
    return (*kept, NEW_CONTRIBUTOR) if trust == "none" else kept


_SIGNER, _ALIAS, _BETTER, _VALID, _LABELS = map(
    Row._fields.index, ("signer", "alias", "higher_is_better", "valid", "labels")
)


_ROW = cast("Callable[[tuple[Any, ...]], Row]", functools.partial(tuple.__new__, Row))
"""`Row._make` without its check of the length, which takes longer than the rest."""


def signers_of(found: Sequence[Sequence[Any]]) -> set[str]:
    """The keys that signed the rows of a page's statement."""
    return {columns[2 + _SIGNER] for columns in found} - {""}


def rows_of(found: Sequence[Sequence[Any]], signers: Mapping[str, tuple[str, str]]) -> tuple[Row, ...]:
    """The rows of a page's statement, whose columns after the first two are in Row's order. signers: alias, trust."""
    columns: list[Any] = list(zip(*found, strict=True))[2:]
    if not columns:
        return ()
    signed = [signers.get(key, ("", "")) for key in columns[_SIGNER]]
    columns[_ALIAS] = [alias for alias, _ in signed]
    columns[_BETTER] = [bool(value) for value in columns[_BETTER]]
    columns[_VALID] = [None if value is None else bool(value) for value in columns[_VALID]]
    columns[_LABELS] = [_labels(text, trust) for text, (_, trust) in zip(columns[_LABELS], signed, strict=True)]
    return tuple(map(_ROW, zip(*columns, strict=True)))


Groups = Sequence[tuple[Any, ...]]
"""Combinations of values in the order of FACETS and of labels, as JSON, each with the number of its results."""

_INDEXED = ("benchmark", "precision", "scenario", "division", "kind", "accelerator", "stack", "labels")
"""The facets in the order of the index `listing_facets`, in which they are grouped without a sort."""


def groups_sql(wanted: Filter) -> Sql:
    """The statement of the groups that fit in all facets that are chosen, but for one at most. Raises BadQuery."""
    others = {name: values for name, values in wanted.chosen.items() if name not in FACETS}
    condition = where(replace(wanted, chosen=others, labels=(), without_labels=()))
    text, values = condition.text, condition.values
    chosen = [_any_of(f"listing.{name}", found) for name in FACETS if (found := wanted.chosen.get(name))]
    if len(chosen) > 1:
        text += f" AND {' + '.join(f'({one.text})' for one in chosen)} >= {len(chosen) - 1}"
        values = (*values, *(value for one in chosen for value in one.values))
    # the planner prefers an order to the index that has all columns, at a read of each row
    hint = "" if others or wanted.text.strip() else " INDEXED BY listing_facets"
    columns = ", ".join(f"listing.{name}" for name in (*FACETS, "labels"))
    grouped = ", ".join(f"listing.{name}" for name in _INDEXED)
    return Sql(f"SELECT {columns}, count(*) FROM listing{hint} WHERE {text} GROUP BY {grouped}", values)


def _frequent(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def _count(groups: Groups, place: int) -> dict[str, int]:
    """How many results have each value of a column of the groups."""
    found: dict[str, int] = defaultdict(int)
    for group in groups:
        found[group[place]] += group[-1]
    return found


def _count_labels(groups: Groups) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for text, count in _count(groups, -2).items():
        for label in set(_labels(text)):
            found[label] += count
    return found


def without(groups: Groups, labels: Sequence[str]) -> Groups:
    """The groups that have none of the labels."""
    unwanted = set(map(kept_text, labels))
    texts = {text for text in {group[-2] for group in groups} if not unwanted.isdisjoint(_labels(text))}
    return [group for group in groups if group[-2] not in texts] if texts else groups


def most_frequent(groups: Groups, names: Sequence[str]) -> dict[str, str]:
    """The most frequent value of the first of these facets, then of the second among its results, and so on; the empty
    text is none, and the last that is there ends it."""
    found: dict[str, str] = {}
    for place in map(FACETS.index, names):
        value = next((value for value, _ in _frequent(_count(groups, place)) if value), "")
        if not value:
            break
        found[FACETS[place]] = value
        groups = [group for group in groups if group[place] == value]
    return found


def counts_of(groups: Groups, wanted: Filter) -> Counts:
    """How many results of the groups a filter has; groups of `groups_sql` for it, or for one that chooses less."""
    fitting, missing = without(groups, wanted.without_labels), dict[str, Groups]()
    for name in (*FACETS, "label"):  # from what fits so far, and from what misses one other choice, take what misses
        chosen = wanted.labels if name == "label" else wanted.chosen.get(name)
        if not chosen:
            continue
        values, place = set(map(kept_text, chosen)), -2 if name == "label" else FACETS.index(name)
        if name == "label":
            values = {text for text in {group[-2] for group in groups} if not values.isdisjoint(_labels(text))}
        missing = {other: [group for group in left if group[place] in values] for other, left in missing.items()}
        missing[name] = [group for group in fitting if group[place] not in values]
        fitting = [group for group in fitting if group[place] in values]
    counts = {name: _count([*fitting, *missing.get(name, ())], place) for place, name in enumerate(FACETS)}
    counts["label"] = _count_labels([*fitting, *missing.get("label", ())])
    total = sum(group[-1] for group in fitting)
    return Counts(total, {name: _frequent(found) for name, found in counts.items()})
