"""More forged results: logs of tests that were left out, cut or thinned out, and models that the others leave aside."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from changes import DETAIL, SUMMARY, Change, both, drop, edit, line_without, put, replace
from forgeries_of_results import ANSWER_TESTS, Forgery, fit_summary, in_both_settings, performance

SUBMITTED_TESTS = ("gpt-oss-120b", "e2e-rag-qna")
"""Models with TEST07 or TEST09, whose text says which logs must be submitted."""

STREAMS, TIMED = ("SingleStream", "MultiStream"), ("Server", "Interactive")


def in_tests(change: Callable[[str], Change], *tests: str) -> Callable[[str], Change]:
    """Change the folder of each of these tests, by default all that log answers, that a result has."""

    def changed(folder: str) -> Change:
        paths = [f"{folder}/{test}" for test in tests or ANSWER_TESTS]
        return lambda root: [change(path)(root) for path in paths if (root / path).is_dir()] and None

    return changed


def file_of(change: Callable[[str], Change], name: str) -> Callable[[str], Change]:
    """Change a file of a test's folder."""
    return lambda folder: change(f"{folder}/{name}")


def shortened(name: str, lines: slice) -> Change:
    """Keep some of the lines of a file."""

    def change(root: Path) -> None:
        rows = (root / name).read_text().splitlines(keepends=True)
        replace(root / name, "".join(rows[lines]))

    return change


def half_of(name: str) -> Change:
    """Cut a file in the middle, within a line."""
    return lambda root: replace(root / name, (root / name).read_bytes()[: (root / name).stat().st_size // 2])


def of_left_out_logs() -> Iterator[Forgery]:
    """Tests whose verdict stands, but not what it follows from."""
    run, every = "performance/run_1", ("llama2-70b-99.9", *SUBMITTED_TESTS)
    detail, summary = f"{run}/{DETAIL}", f"{run}/{SUMMARY}"
    rows: Sequence[tuple[str, tuple[str, ...], str, Callable[[str], Change]]] = (
        ("no detail log", SUBMITTED_TESTS, "TEST-021", file_of(drop, detail)),
        ("no summary", SUBMITTED_TESTS, "TEST-021", file_of(drop, summary)),
        ("no logged answers", SUBMITTED_TESTS, "TEST-021", file_of(drop, "accuracy")),
        ("empty detail log", every, "RUN-003", file_of(lambda name: put(name, ""), detail)),
        ("detail log cut within a line", every, "RUN-003", file_of(half_of, detail)),
        ("detail log without its end", every, "LOG-004", file_of(lambda name: shortened(name, slice(-1)), detail)),
        ("empty summary", every, "SUM-001", file_of(lambda name: put(name, ""), summary)),
    )  # fmt: skip
    for name, trees, rule, change in rows:
        yield Forgery(f"logs of an answer test: {name}", trees, rule, in_tests(change))


def with_max_duration(folder: str) -> Change:
    """A limit that the run went beyond, without the error that LoadGen ends it with."""
    run = performance(folder)
    fit: Change = lambda root: fit_summary(root / run)  # noqa: E731
    return both(in_both_settings(run, max_duration_ms=620000), fit)


def of_other_models() -> Iterator[Forgery]:
    """Alterations of models, scenarios and tests that have few others."""
    overhead, late = "TPS w/o loadgen overhead", ("yolo-99", "llama3.1-8b-edge", "deepseek-r1", "stable-diffusion-xl")
    rows: Sequence[tuple[str, tuple[str, ...], str, tuple[str, ...], Callable[[str], Change]]] = (
        ("rate without overhead in the summary", ("llama3.1-8b-edge",), "SUM-002", STREAMS, lambda folder: edit(
            f"{performance(folder)}/{SUMMARY}", rf"^{re.escape(overhead)}.*$", f"{overhead} : 1337.00")),
        ("a run beyond its max_duration", late, "SET-004", (*STREAMS, *TIMED), with_max_duration),
        ("a submitted run without its count of errors", ("rgat", "3d-unet-99", "e2e-rag-db"), "LOG-004", (),
            lambda folder: line_without(f"{performance(folder)}/{DETAIL}", "num_errors")),
    )  # fmt: skip
    for name, trees, rule, only, change in rows:
        yield Forgery(f"other models: {name}", trees, rule, change, only)


def of_models() -> tuple[Forgery, ...]:
    """All of them."""
    return (*of_left_out_logs(), *of_other_models())
