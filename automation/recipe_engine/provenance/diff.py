"""``cm diff script A B``: the figures of two results, or folders of results, side by side, then what differs.

A difference is printed once for all results that have it. What explains little (used on one side only, follows from
another difference, or was measured by the run) is counted, and printed with ``-v``.
"""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..actions.adapter import is_verbose, listing_width
from ..disk.files import write_text
from ..documents.console_text import cut, plain, table
from ..rules.amounts import counted
from ..rules.errors import RequestError
from ..rules.query import further_words
from ..rules.schema import is_yes
from ..running.context import user_path
from .compare import (
    Comparison,
    Difference,
    Figure,
    compare,
    difference_line,
    edited_files,
    failed,
    parse_tolerance,
    show_lines,
    value_text,
)
from .record import ResultRecord, find_results, is_number, reasons_by_side
from .slowdown import EXIT_CODES, judge_all, repeats_by_name, verdict
from .slowdown_text import common_start, headline, junit, markdown, table_lines

BY_USER = "user"
"""The origin of a setting that was given; others were defaults, or measured."""
REPORTS = ("junit", "markdown")
"""Files that ``--max_slowdown`` writes on request."""
VALUE_WIDTH = 28
NAME_WIDTH = 46


class Pair(NamedTuple):
    """Two results of one name, how they compare, and their files that were edited since."""

    records: tuple[ResultRecord, ResultRecord]
    comparison: Comparison
    edited: tuple[tuple[Difference, ...], tuple[Difference, ...]]


def diff_action(i: Mapping[str, Any]) -> dict[str, Any]:
    """Answers ``cm diff script A B [-v]``: results of the same name side by side; of one result each, those two.

    With ``--max_slowdown`` it answers whether the second is slower: 0 no, 1 yes, 2 unknown.

    Raises RequestError for a folder without results.
    """
    words = [str(word) for word in (i.get("artifact"), *further_words(i)) if word]
    if len(words) != 2:
        raise RequestError(
            f"two results are compared, found {len(words)}",
            hint="cm diff script FOLDER FOLDER, and options as --NAME=VALUE",
        )
    if i.get("max_slowdown") is not None:
        return _slowdown(i, words)
    if unused := [name for name in REPORTS if i.get(name)]:
        raise RequestError(f"--{unused[0]} only applies with --max_slowdown", hint="add --max_slowdown=5%")
    tolerance_percent = parse_tolerance(i.get("tolerance"))
    pairs, alone = paired(words)
    rows = [_row(pair, tolerance_percent) for pair in pairs]
    lines = [f"{letter}: {_place(word)}" for letter, word in zip("AB", words, strict=True)]
    lines += ["", *diff_lines(pairs, tolerance_percent, is_verbose=is_verbose(i))]
    lines += [_alone_line(letter, names, is_verbose(i)) for letter, names in zip("AB", alone, strict=True) if names]
    show_lines(i, lines)
    is_identical = not any(alone) and all(row["is_identical"] for row in rows)
    answer = {"identical": is_identical, "results": rows, "only_in_first": alone[0], "only_in_second": alone[1]}
    if is_yes(i.get("exit_code")) and not is_identical:  # 1, as git diff --exit-code
        return failed(i, "the results differ", answer)
    return {"return": 0, **answer}


def _slowdown(i: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """The answer with ``--max_slowdown``. Several results of a name are repeats, a word may name several folders."""
    if i["max_slowdown"] == "":
        raise RequestError("--max_slowdown has no value; allowed: a number of percent", hint="--max_slowdown=5%")
    allowed = parse_tolerance(i["max_slowdown"], "max_slowdown")
    if problems := list(report_problems(i)):
        raise RequestError("\n  ".join(problems))
    sides = repeats_by_name([_results_of(word) for word in words])
    rows = judge_all(sides, allowed)
    show_lines(i, [f"{letter}: {word}" for letter, word in zip("AB", words, strict=True)])
    show_lines(i, ["", *table_lines(rows, listing_width() if not is_verbose(i) else 1000), ""])
    state, words_of_all = verdict(rows), headline(rows, allowed)
    for name, text in (("junit", junit(rows)), ("markdown", markdown(rows, allowed))):
        if given := i.get(name):
            write_text(user_path(str(given)), text)
    answer = {"verdict": state, "max_slowdown_percent": allowed, "metrics": plain([row._asdict() for row in rows])}
    if state != "ok":
        return failed(i, words_of_all, answer, EXIT_CODES[state], _wanted(words) if state == "slower" else "")
    show_lines(i, [words_of_all])
    return {"return": 0, **answer}


def report_problems(given: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the files that ``given`` names for the verdicts, one line each."""
    paths = {name: user_path(str(given[name])) for name in REPORTS if given.get(name)}
    for name, path in paths.items():
        if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            yield f"--{name}: found {str(path)!r}; allowed: a file in an existing folder that you can write"
    if len(set(paths.values())) < len(paths):
        yield f"--{' and --'.join(paths)}: found the same file twice; allowed: two files"


def _wanted(words: Sequence[str]) -> str:
    """The command for a new baseline after a wanted slowdown, empty unless both sides are separate folders."""
    first, second = (user_path(word).absolute() for word in words)
    if not (first.is_dir() and second.is_dir()) or first.is_relative_to(second) or second.is_relative_to(first):
        return ""
    old, new = (shlex.quote(str(_place(word))) for word in words)
    return f"if that is wanted, make B the new baseline: rm -rf -- {old} && cp -r -- {new} {old}"


def _results_of(word: str) -> list[ResultRecord]:
    """The results of one folder, or of several by comma, each once."""
    folders = dict.fromkeys(user_path(part.strip()) for part in word.split(",") if part.strip())
    return list({one.folder.resolve(): one for folder in folders for one in find_results(folder)}.values())


def paired(words: Sequence[str]) -> tuple[list[Pair], list[list[str]]]:
    """The results of two folders by their names, and the names that only the first and only the second has.

    Raises RequestError when no name is in both.
    """
    first, second = (find_results(user_path(word)) for word in words)
    are_single = len(first) == len(second) == 1
    sides = [{"": first[0]}, {"": second[0]}] if are_single else list(map(_alone, repeats_by_name([first, second])))
    alone = [sorted(one.keys() - other.keys()) for one, other in (sides, sides[::-1])]
    pairs = []
    for name in (name for name in sides[0] if name in sides[1]):
        before, after = sides[0][name], sides[1][name]
        edited = (tuple(edited_files(before)), tuple(edited_files(after)))
        pairs.append(Pair((before, after), compare(before, after), edited))
    if not pairs:
        names = f"the first has {', '.join(sides[0])}, the second has {', '.join(sides[1])}"
        raise RequestError(f"no result of {words[0]} has the same name as one of {words[1]}: {names}")
    return pairs, alone


def _alone(results: Mapping[str, Sequence[ResultRecord]]) -> dict[str, ResultRecord]:
    """The only result of each name; raises RequestError when two have the same name."""
    for name, found in results.items():
        if len(found) > 1:
            raise RequestError(
                f"{name} was produced more than once: {found[0].folder} and {found[1].folder}",
                hint="use the folder of a single run, or compare repeats with --max_slowdown=5%",
            )
    return {name: found[0] for name, found in results.items()}


def _row(pair: Pair, tolerance_percent: float) -> dict[str, Any]:
    """The comparison as JSON."""
    return {
        **pair.comparison.row(tolerance_percent),
        "is_identical": pair.comparison.is_identical,
        "folders": [str(record.folder) for record in pair.records],
        "edited": plain(pair.edited),
    }


# --- text ---


def _place(word: str) -> str:
    path = user_path(word)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) and path != Path.cwd() else str(path)


def _alone_line(letter: str, names: Sequence[str], is_verbose: bool) -> str:
    text = f"only in {letter}: {', '.join(names)}"
    return text if is_verbose else cut(text, listing_width())


def diff_lines(pairs: Sequence[Pair], tolerance_percent: float, *, is_verbose: bool = False) -> Iterator[str]:
    """Results side by side: their figures, then what differs, once for all of them."""
    for letter, number in (("A", 0), ("B", 1)):
        edited = dict.fromkeys(difference_line(one) for pair in pairs for one in pair.edited[number])
        yield from (f"! {letter}: {line}" for line in edited)
    if all(pair.comparison.is_identical for pair in pairs):
        yield "identical: inputs, settings, machine and metrics"
        return
    yield from figure_lines(pairs, tolerance_percent, is_verbose=is_verbose)
    yield from _not_judged_lines(pairs)
    yield ""
    important, others = sorted_out(pairs)
    if is_verbose:
        important, others = {**important, **others}, {}
    if important:
        yield from _difference_lines(important, len(pairs), is_verbose=is_verbose)
    else:
        yield "no difference in the inputs, the software or the machine"
    if others:
        what = "used by one side only, measured, or following from these"
        yield f"and {counted(len(others), 'other difference')} ({what}). -v shows them"


def figure_lines(pairs: Sequence[Pair], tolerance_percent: float, *, is_verbose: bool) -> Iterator[str]:
    """A line for each figure that says something: A, B, their ratio, and which is better."""
    names = [pair.comparison.name for pair in pairs]
    common = common_start(names)
    rows = [(f"{common}..." if common else "result", "figure", "A", "B", "B / A", "B is")]
    for name, pair in zip(names, pairs, strict=True):
        for figure in pair.comparison.figures:
            if is_verbose or figure.kind != "exact" or _says_something(figure):
                rows.append((name[len(common) :], *_figure_cells(figure, tolerance_percent)))
    return table(rows, 1000 if is_verbose else listing_width(), rights=(2, 3, 4), flexible=1)


def _not_judged_lines(pairs: Sequence[Pair]) -> Iterator[str]:
    """Why differences are not called better or worse: a line for all results that have the same reasons, each with the
    sides that it holds for."""
    common = common_start([pair.comparison.name for pair in pairs])
    names: dict[str, list[str]] = {}
    for pair in pairs:
        for figure in pair.comparison.figures:
            reasons = reasons_by_side(figure.not_judged) if figure.before != figure.after else {}
            if words := "; ".join(f"{reason} ({letters})" for reason, letters in reasons.items()):
                names.setdefault(words, []).append(pair.comparison.name[len(common) :])
    yield from (f"not judged, {', '.join(found)}: {words}" for words, found in names.items())


def _says_something(figure: Figure) -> bool:
    """Whether an exact figure differs, or is a score: a number of errors that is 0, or a yes, is as it should be."""
    return figure.before != figure.after or (is_number(figure.before) and figure.before != 0)


def _figure_cells(figure: Figure, tolerance_percent: float) -> tuple[str, str, str, str, str]:
    name = f"{figure.name}, {figure.unit}" if figure.unit else figure.name
    ratio = f"{figure.after / figure.before:.3f}" if figure.percent is not None and figure.before else ""
    numbers = _number(figure.before), _number(figure.after)
    return name, *numbers, ratio, figure.verdict(tolerance_percent)


def _number(value: Any) -> str:
    if is_number(value):
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"
    return "-" if value is None else value_text(value)


Found = dict[str, list[tuple[str, Difference]]]
"""Differences by what they are called, each with the name of its result."""


def sorted_out(pairs: Sequence[Pair]) -> tuple[Found, Found]:
    """The differences of all results by name: those that explain something, and the others."""
    important: Found = {}
    others: Found = {}
    for pair in pairs:
        settings = {one.name: one for one in pair.comparison.settings}
        for one in (*pair.comparison.inputs, *pair.comparison.settings, *pair.comparison.machine):
            is_one_sided = one.group != "recipe" and None in (one.before, one.after)
            repeats = one.group not in ("setting", "machine") and one.name.rpartition(".")[2] in settings
            measured = one.group == "setting" and BY_USER not in one.note
            title = one.title.partition("/")[0] if one.group == "recipe" else one.title
            place = others if is_one_sided or repeats or measured else important
            place.setdefault(title, []).append((pair.comparison.name, one))
    return important, others


def _difference_lines(found: Found, n_results: int, *, is_verbose: bool) -> Iterator[str]:
    rows: list[tuple[str, str, str, str]] = []
    for title, places in found.items():
        rows += _whole_rows(places, n_results) if is_verbose else [_short_row(title, places, n_results)]
    titles = ("what differs", "A", "B", "where" if any(row[-1] for row in rows) else "")
    return table([titles, *rows], 1000 if is_verbose else listing_width())


def _short_row(title: str, places: Sequence[tuple[str, Difference]], n_results: int) -> tuple[str, str, str, str]:
    """One line for all differences of one name; of a recipe, with how many of its files differ."""
    where = _where({name for name, _ in places}, n_results)
    differences = dict.fromkeys((_value(one.before), _value(one.after)) for _, one in places)
    if places[0][1].group == "recipe":
        files = {one.name for _, one in places if "/" in one.name}
        note = f"{counted(len(files), 'file')} differ{'s' if len(files) == 1 else ''}" if files else places[0][1].note
        return cut(title, NAME_WIDTH), "", note or "changed", where
    before, after = next(iter(differences))
    many = f", {len(differences)} values" if len(differences) > 1 else ""
    return cut(title, NAME_WIDTH), cut(before, VALUE_WIDTH), cut(after, VALUE_WIDTH), where + many


def _whole_rows(places: Sequence[tuple[str, Difference]], n_results: int) -> list[tuple[str, str, str, str]]:
    """One line for each pair of values."""
    names: dict[tuple[str, str, str], list[str]] = {}
    notes: dict[tuple[str, str, str], str] = {}
    for name, one in places:
        key = (one.title, _value(one.before), _value(one.after))
        names.setdefault(key, []).append(name)
        notes[key] = one.note
    return [
        (*key, "; ".join(filter(None, (notes[key], _where(set(found), n_results))))) for key, found in names.items()
    ]


def _value(value: Any) -> str:
    """A value in a few words; of facts that are a version alone, the version."""
    is_version = isinstance(value, Mapping) and list(value) == ["version"]
    return value_text(value["version"] if is_version else value)


def _where(names: set[str], n_results: int) -> str:
    """In which results; empty when in all."""
    if len(names) == n_results:
        return ""
    return next(iter(names)) if len(names) == 1 else f"{len(names)} of {n_results} results"
