"""What a call asks for, read from CM's env keys: one frozen `Request`, or every problem at once.

Input names and env keys are those of cm4mlops' generate-mlperf-inference-submission, so that its callers need no
change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crowdperf.call.values import is_yes, text_of
from crowdperf.rules.names import with_problems
from crowdperf.rules.rounds import ROUNDS

RESULTS_DIR, RESULTS_BASE = "CM_MLPERF_INFERENCE_RESULTS_DIR_", "CM_MLPERF_INFERENCE_RESULTS_DIR"
SUBMISSION_DIR, SUBMISSION_BASE = "CM_MLPERF_INFERENCE_SUBMISSION_DIR", "CM_MLPERF_INFERENCE_SUBMISSION_BASE_DIR"
BASE_NAME = "mlperf_inference_submission"
"""The folder that cm4mlops makes below --submission_base_dir."""
RESULTS_NAME = "results"
"""Where run,mlperf,inference leaves its results, in folders that begin with the moment when they were made."""

REHEARSAL_SUBMITTER, REHEARSAL_TREE = "Rehearsal", "rehearsal/tree"
DIVISIONS: Mapping[str, tuple[str, ...]] = {
    "open": ("open",),
    "closed": ("closed",),
    "open-closed": ("open", "closed"),
    "closed-open": ("open", "closed"),
}
CATEGORIES: Mapping[str, str] = {
    "edge": "edge",
    "datacenter": "datacenter",
    "datacenter,edge": "datacenter,edge",
    "datacenter-edge": "datacenter,edge",
    "edge,datacenter": "datacenter,edge",
    "edge-datacenter": "datacenter,edge",
}
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
    def facts_folder(self) -> Path:
        """Beside the tree: origins of the systems' facts, and the list of the files that were made."""
        return beside(self.submission_folder, "_facts")

    @property
    def repository_folder(self) -> Path:
        """Beside the tree: what a rehearsal pushes to, a bare git repository."""
        return self.submission_folder.with_name("repository.git")

    @property
    def logs_folder(self) -> Path:
        """Beside the tree: accuracy logs as they were before they were truncated."""
        return beside(self.submission_folder, "_logs")


def beside(folder: Path, suffix: str) -> Path:
    """Return the folder of the same name with `suffix`."""
    return folder.with_name(folder.name + suffix)


def read_request(env: Mapping[str, object], start: Path) -> Request:
    """Return what the env keys ask for; paths begin at `start`. Raises RequestError."""
    problems: list[str] = []

    def text(key: str) -> str:
        return text_of(env, key)

    style = text("CM_MLPERF_RUN_STYLE") or "valid"
    is_rehearsal = is_yes(env.get("CM_MLPERF_REHEARSAL"))
    folders: tuple[Path, ...] = ()
    results = text(RESULTS_DIR) or text(RESULTS_BASE) or (_newest_results(start) if is_rehearsal else "")
    if is_rehearsal and not results:
        problems.append(f"{RESULTS_NAME}/ has no results to rehearse with")
    else:
        folders = _results_folders(results, style, start, problems)
    division = text("CM_MLPERF_SUBMISSION_DIVISION").lower() or "open"
    category = text("CM_MLPERF_SUBMISSION_CATEGORY").lower().replace(" ", "") or "edge"
    if division not in DIVISIONS:
        problems.append(_division_problem(division))
    if category not in CATEGORIES:
        problems.append(f"--category={category} is unknown; allowed: edge, datacenter, datacenter-edge")
    submitter = text("CM_MLPERF_SUBMITTER") or (REHEARSAL_SUBMITTER if is_rehearsal else "")
    if not submitter:
        problems.append("--submitter is missing: the name of who submits, which also names a folder")
    elif not SAFE_NAME.fullmatch(submitter):
        problems.append(
            f"--submitter={submitter!r} cannot name a folder that the checkers accept: letters, digits, . _ + - only"
        )
    maps = _model_maps(text("CM_MLPERF_MODEL_MAPS"), problems)
    tree, base = text(SUBMISSION_DIR), text(SUBMISSION_BASE)
    folder = _submission_folder(tree or ("" if base or not is_rehearsal else REHEARSAL_TREE), base, start, problems)
    round_name = _round(text("CM_MLPERF_SUBMISSION_VERSION") or text("CM_VERSION"), problems)
    hw_name = re.sub(r"\s+", "_", text("CM_HW_NAME"))
    if hw_name and not SAFE_NAME.fullmatch(hw_name):
        problems.append(f"--hw_name={hw_name!r} cannot name a folder: letters, digits, . _ + - only")
    if problems or folder is None:
        lacks_runs = is_rehearsal and not results
        raise RequestError(tuple(problems), "hint: cm run script --tags=run,mlperf,inference" if lacks_runs else "")
    return Request(
        results_folders=folders,
        submission_folder=folder,
        divisions=DIVISIONS[division],
        category=CATEGORIES[category],
        submitter=submitter,
        round_name=round_name,
        model_maps=maps,
        hw_name=hw_name,
        is_clean=bool(text("CM_MLPERF_CLEAN_SUBMISSION_DIR")) and text("CM_MLPERF_CLEAN_SUBMISSION_DIR") != "no",
        is_checked=is_yes(env.get("CM_RUN_SUBMISSION_CHECKER")),
        is_truncated=not is_yes(env.get("CM_SKIP_TRUNCATE_ACCURACY")),
        is_packed=is_yes(env.get("CM_TAR_SUBMISSION_DIR")),
        is_inferred=is_yes(env.get("CM_MLPERF_DUPLICATE_SCENARIO_RESULTS")),
        is_preprocessed=is_yes(env.get("CM_RUN_MLPERF_SUBMISSION_PREPROCESSOR")),
        allows_synthetic=is_rehearsal or is_yes(env.get("CM_MLPERF_ALLOW_SYNTHETIC")),
        is_rehearsal=is_rehearsal,
        facts_file=start / Path(facts).expanduser() if (facts := text("CM_SUT_DESC_FACTS_FILE")) else None,
    )


def _newest_results(start: Path) -> str:
    """Return the newest results in results/ that `run,mlperf,inference` made of both modes, empty without any."""
    folders = (path.parent for path in (start / RESULTS_NAME).glob("*/results.json"))
    names = sorted(
        folder.name
        for folder in folders
        if any(folder.glob("*/*/accuracy/accuracy.txt")) and any(folder.glob("*/*/performance/run_1/result.json"))
    )
    return f"{RESULTS_NAME}/{names[-1]}" if names else ""


def _division_problem(division: str) -> str:
    allowed = "open, closed, open-closed"
    if division == "network":
        return (
            "--division=network: its runs need a system under test behind a network (LoadGen's QDL), which this "
            f"project does not have; allowed: {allowed}"
        )
    return f"--division={division} is unknown; allowed: {allowed}"


def _results_folders(text: str, style: str, start: Path, problems: list[str]) -> tuple[Path, ...]:
    """Return the folders of a comma list; one that holds `<style>_results` stands for that, as in the tutorial."""
    if not text:
        problems.append("--results_dir is missing: the folder (or a comma list of folders) with the results")
        return ()
    folders = []
    for part in text.split(","):
        folder = start / Path(part.strip()).expanduser()
        inner = folder / f"{style}_results"
        chosen = inner if inner.is_dir() else folder
        if not chosen.is_dir():
            problems.append(f"--results_dir: there is no folder {chosen}")
        folders.append(chosen)
    return tuple(dict.fromkeys(folders))


def _submission_folder(text: str, base: str, start: Path, problems: list[str]) -> Path | None:
    if text:
        folder = start / Path(text).expanduser()
    elif base:
        folder = start / Path(base).expanduser() / BASE_NAME
    else:
        problems.append("--submission_dir is missing: the folder that the submission is written to")
        return None
    folder = folder.resolve()
    if len(folder.parts) < 3 or folder == Path.home() or folder in start.resolve().parents:
        problems.append(f"--submission_dir={folder} would replace a folder that is not a submission's; name a new one")
    elif folder.exists() and not folder.is_dir():
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


def _model_maps(text: str, problems: list[str]) -> dict[str, str]:
    maps = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        own, separator, official = (piece.strip() for piece in part.partition(":"))
        if not separator or not own or not official:
            problems.append(f"--model_maps={part!r}: must be own-name:official-name, as in digits:resnet")
        else:
            maps[own] = official
    return maps
