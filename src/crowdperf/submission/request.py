"""What a call asks for: one frozen `Request` of its inputs, or every problem at once.

Input names and env keys are those of cm4mlops' generate-mlperf-inference-submission, so that its callers need no
change.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.call.values import text_of
from crowdperf.kit.user_paths import given_path, home_folder, users_folder
from crowdperf.logs.layout import RESULTS_NAME
from crowdperf.logs.tree import BesideTree
from crowdperf.rules.names import with_problems
from crowdperf.rules.rounds import ROUNDS

RESULTS_BASE = "CM_MLPERF_INFERENCE_RESULTS_DIR"
"""Where other recipes of CM say where results are."""

BASE_NAME = "mlperf_inference_submission"
"""The folder that cm4mlops makes below --submission_base_dir."""
REHEARSAL_SUBMITTER, REHEARSAL_TREE = "Rehearsal", "rehearsal/tree"
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


class RequestError(Exception):
    """A call that cannot be carried out; `problems` has one text for each reason, `hint` the line that helps, if the
    usual one does not."""

    def __init__(self, problems: tuple[str, ...], hint: str = "") -> None:
        super().__init__(with_problems("cannot make a submission tree", problems))
        self.problems, self.hint = problems, hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A checked call. round_name: None stands for the round whose seeds the logs hold. facts_file: with what no program
    can know of the system; where it is not there yet, the open questions are written to it."""

    results_folders: tuple[Path, ...]
    submission_folder: Path
    divisions: tuple[str, ...]
    category: str
    submitter: str
    round_name: str | None
    model_maps: Mapping[str, str]
    hw_name: str
    is_clean: bool
    is_checked: bool
    is_truncated: bool
    is_packed: bool
    is_inferred: bool
    is_preprocessed: bool
    allows_synthetic: bool
    is_rehearsal: bool
    facts_file: Path | None = None

    @property
    def beside(self) -> BesideTree:
        """What is kept beside the tree."""
        return BesideTree(self.submission_folder)

    @property
    def repository_folder(self) -> Path:
        """Beside the tree: what a rehearsal pushes to, a bare git repository."""
        return self.submission_folder.with_name("repository.git")


def read_request(values: Mapping[str, Any], env: Mapping[str, Any]) -> Request:
    """Return what the inputs, each of its type, ask for; env: of the call. Raises RequestError."""
    problems: list[str] = []
    start, is_rehearsal = users_folder(env), values["rehearsal"] is True
    base = given_path(env, RESULTS_BASE) or (_newest_results(start) if is_rehearsal else None)
    results = values["results_dir"] or ((base,) if base else ())
    if is_rehearsal and not results:
        problems.append(f"{RESULTS_NAME}/ has no results to rehearse with")
    elif not results:
        problems.append("--results_dir is missing: the folder (or a comma list of folders) with the results")
    folders = _results_folders(results, values["run_style"], problems)
    submitter = values["submitter"] or (REHEARSAL_SUBMITTER if is_rehearsal else "")
    if not submitter:
        problems.append("--submitter is missing: the name of the submitter, also used as a folder name")
    elif not SAFE_NAME.fullmatch(submitter):
        problems.append(
            f"--submitter={submitter!r} cannot name a folder that the checkers accept: letters, digits, . _ + - only"
        )
    maps = _model_maps(values["model_maps"] or (), problems)
    tree, parent = values["submission_dir"], values["submission_base_dir"]
    tree = tree or (parent and parent / BASE_NAME) or (start / REHEARSAL_TREE if is_rehearsal else None)
    folder = _submission_folder(tree, start, problems)
    round_name = _round(values["submission_version"] or text_of(env, "CM_VERSION"), problems)
    hw_name = re.sub(r"\s+", "_", values["hw_name"] or "")
    if hw_name and not SAFE_NAME.fullmatch(hw_name):
        problems.append(f"--hw_name={hw_name!r} cannot name a folder: letters, digits, . _ + - only")
    if problems or folder is None:
        lacks_runs = is_rehearsal and not results
        raise RequestError(tuple(problems), "hint: cm run script --tags=run,mlperf,inference" if lacks_runs else "")
    return Request(
        results_folders=folders,
        submission_folder=folder,
        divisions=("open", "closed") if "-" in values["division"] else (values["division"],),
        category="datacenter,edge" if "-" in values["category"] else values["category"],
        submitter=submitter,
        round_name=round_name,
        model_maps=maps,
        hw_name=hw_name,
        is_clean=bool(values["clean"]),
        is_checked=bool(values["run_checker"]),
        is_truncated=not values["skip_truncation"],
        is_packed=bool(values["tar"]),
        is_inferred=bool(values["infer_scenario_results"]),
        is_preprocessed=bool(values["preprocess_submission"]),
        allows_synthetic=is_rehearsal or bool(values["allow_synthetic"]),
        is_rehearsal=is_rehearsal,
        facts_file=values["system_facts"],
    )


def _newest_results(start: Path) -> Path | None:
    """Return the newest results in results/ that `run,mlperf,inference` made of both modes, None without any."""
    folders = (path.parent for path in (start / RESULTS_NAME).glob("*/results.json"))
    both = (
        folder
        for folder in folders
        if any(folder.glob("*/*/accuracy/accuracy.txt")) and any(folder.glob("*/*/performance/run_1/result.json"))
    )
    return max(both, default=None, key=lambda folder: folder.name)


def _results_folders(given: Sequence[Path], style: str, problems: list[str]) -> tuple[Path, ...]:
    """Return the folders; one that holds `<style>_results` stands for that, as in the tutorial."""
    folders = []
    for folder in given:
        inner = folder / f"{style}_results"
        chosen = inner if inner.is_dir() else folder
        if not chosen.is_dir():
            problems.append(f"--results_dir: the folder {chosen} does not exist")
        folders.append(chosen)
    return tuple(dict.fromkeys(folders))


def _submission_folder(given: Path | None, start: Path, problems: list[str]) -> Path | None:
    if given is None:
        problems.append("--submission_dir is missing: the folder that the submission is written to")
        return None
    folder = Path(os.path.realpath(given))
    if len(folder.parts) < 3 or folder == home_folder() or folder in Path(os.path.realpath(start)).parents:
        problems.append(f"--submission_dir={folder} would replace a folder that is not a submission. Choose a new one")
    elif os.path.lexists(folder) and not folder.is_dir():
        problems.append(f"--submission_dir={folder} is not a folder")
    return folder


def _round(text: str, problems: list[str]) -> str | None:
    if not text:
        return None
    name = text if text.startswith("v") else f"v{text}"
    if name not in ROUNDS:
        problems.append(f"--version={text} is not a round; allowed: {', '.join(ROUNDS)}")
        return None
    return name


def _model_maps(parts: Sequence[str], problems: list[str]) -> dict[str, str]:
    maps = {}
    for part in parts:
        own, separator, official = (piece.strip() for piece in part.partition(":"))
        if not separator or not own or not official:
            problems.append(f"--model_maps={part!r}: must be own-name:official-name, as in digits:resnet")
        else:
            maps[own] = official
    return maps
