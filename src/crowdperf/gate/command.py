"""One run of the gate, from the words of the command to the output. Shared by the command and the recipe."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from crowdperf.gate import gate, official, report
from crowdperf.gate.views import Options
from crowdperf.kit.privacy import known_here
from crowdperf.kit.text_documents import Json
from crowdperf.logs.tree import BesideTree, read_manifest
from crowdperf.rules.rounds import ROUNDS


class CallError(Exception):
    """A call that cannot be understood, or cannot be done."""


class _Parser(argparse.ArgumentParser):
    """Raises instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise CallError(message.removeprefix("argument "))


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """A call. round_name: the round; official: a checkout of mlcommons/inference, None without."""

    root: Path
    round_name: str
    format: str
    official: Path | None
    options: Options


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The outcome."""

    verdict: gate.Verdict
    official: list[official.OfficialVerdict] | None


def _folders(text: str) -> list[Path]:
    return [Path(one) for one in text.split(",") if one]


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = _Parser(
        prog="check-mlperf-submission",
        description="Checks an MLPerf Inference submission tree.",
        epilog="Exit codes: 0 accepted, 1 refused, 2 not judged: a wrong call, or a folder that cannot be read.",
    )
    parser.add_argument("submission_dir", type=Path, help="folder with closed/, open/ or network/")
    parser.add_argument("--version", required=True, help=f"round of the submission: {', '.join(ROUNDS)}")
    parser.add_argument("--submitter", help="only this submitter")
    parser.add_argument("--expected_results", type=int, metavar="N", help="refuse any other number of results")
    parser.add_argument("--allow_synthetic", action="store_true", help="to test a pipeline (shown in the verdict)")
    parser.add_argument("--infer_scenarios", action="store_true", help="accept legal inference between scenarios")
    parser.add_argument("--rehearsal", action="store_true", help="judge the tree of a rehearsal: short runs")
    parser.add_argument("--backup_dir", type=Path, metavar="DIR", help="whole accuracy logs, to compare hashes with")
    parser.add_argument(
        "--results_dir", type=_folders, metavar="DIR,...", help="the folder of the runs, for the commands"
    )
    parser.add_argument("--official", type=Path, metavar="CHECKOUT", help="run both checkers of mlcommons/inference")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--list_rules", action="store_true", help="show every rule and end")
    return parser


def parse(words: list[str]) -> GateOptions:
    """Return what the words of a call mean. Raises CallError."""
    return asked_for(vars(make_parser().parse_args(words)))


def asked_for(given: Mapping[str, Any]) -> GateOptions:
    """Return what a call means by its inputs, each of its type. Looks at the machine for what is private on it.

    Raises CallError for a round that there is not.
    """
    root, version, backup = given["submission_dir"], given["version"], given["backup_dir"]
    if version not in ROUNDS:
        raise CallError(f"--version={version} is not a round; allowed: {', '.join(ROUNDS)}")
    beside = BesideTree(Path(os.path.realpath(root)))  # a link that leads to itself is no folder, which `run` says
    logs = beside.logs_folder
    options = Options(
        submitter=given["submitter"],
        expected_results=given["expected_results"],
        allow_synthetic=bool(given["allow_synthetic"]),
        infer_scenarios=bool(given["infer_scenarios"]),
        is_rehearsal=bool(given["rehearsal"]),
        backup_folder=backup or (logs if logs.is_dir() else None),
        is_backup_complete=backup is not None,
        known=known_here(public=public_names(root)),
        results_folders=tuple(given["results_dir"] or ()),
        made_files=read_manifest(beside),
    )
    return GateOptions(
        root=root, round_name=version, format=given["format"], official=given["official"], options=options
    )


def public_names(root: Path) -> tuple[str, ...]:
    """Return the names of submitters and systems: they are published on purpose, whatever a user is called."""
    found = (*root.glob("*/*"), *root.glob("*/*/results/*"))
    return tuple(sorted({path.name for path in found if path.is_dir()}))


def run(asked: GateOptions) -> Answer:
    """Do the call. Raises CallError, also for a tree that is no folder."""
    try:
        verdict = gate.check(asked.root, asked.round_name, asked.options)
    except OSError as error:
        raise CallError(f"{asked.root} is not a readable folder: {error.strerror}") from error
    if asked.official is None:
        return Answer(verdict=verdict, official=None)
    try:
        verdicts = official.run_official(asked.official, asked.root, asked.round_name, asked.options.submitter)
    except official.OfficialError as error:
        raise CallError(str(error)) from error
    return Answer(verdict=verdict, official=verdicts)


def as_json(asked: GateOptions, answer: Answer) -> dict[str, Json]:
    """Return the answer as JSON values."""
    content = report.as_json(answer.verdict, str(asked.root))
    if answer.official is not None:
        content["official"] = official.as_json(answer.verdict.is_accepted, answer.official, answer.verdict.is_rehearsal)
    return content


def as_text(asked: GateOptions, answer: Answer) -> str:
    """Return the answer for people."""
    text = report.as_text(answer.verdict, str(asked.root))
    if answer.official is None:
        return text
    return official.as_text(answer.verdict.is_accepted, answer.official, answer.verdict.is_rehearsal) + text
