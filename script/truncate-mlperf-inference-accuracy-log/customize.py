"""Hooks of truncate-mlperf-inference-accuracy-log: shorten the logs of a tree in place, as the official tool does.

The work is done by crowdperf.logs.truncation. Where generate-submission made the tree, its list of what it made is
brought up to date, so that the shortened logs are not taken for somebody else's.
"""

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

from crowdperf.kit.user_paths import filled
from crowdperf.kit.whole_file import write_json
from crowdperf.logs.tree import DIVISIONS, BesideTree
from crowdperf.logs.truncation import SCORE_NAME, truncate_tree

BACKUP_KEY = "CM_MLPERF_ACCURACY_LOG_BACKUP_DIR"
PLACES = {"TREE": "CM_MLPERF_INFERENCE_SUBMISSION_DIR"}
HINT = "hint: cm run script --tags=truncate,mlperf,accuracy-log --submission_dir=TREE"


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned: no recipe is called, nothing is changed."""
    return {"return": 0}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: shortens the logs; state mlperf_truncation has digest and backup of each. Error for a lost score."""
    env, values = i["env"], i["values"]
    root, backup = values["submission_dir"], values["backup"]
    if root is None:
        return {"return": 1, "error": f"--submission_dir is missing\n{HINT}"}
    root = root.resolve()
    if not any((root / division).is_dir() for division in DIVISIONS):
        found = f"{root} contains none of the folders {', '.join(DIVISIONS)}"
        return {"return": 1, "error": f"{found}: it is not a submission tree\n{HINT}"}
    submitter = values["submitter"] or ""
    there = sorted({path.name for division in DIVISIONS for path in (root / division).glob("*/")})
    if submitter and submitter not in there:
        found = f"--submitter={submitter} has no folder in {root}; there: {', '.join(there) or 'none'}"
        again = f"--submission_dir={shlex.quote(str(root))} --submitter={shlex.quote((there or ['NAME'])[0])}"
        return {"return": 1, "error": f"{found}\n{HINT.partition(' --submission_dir')[0]} {again}"}
    backup = backup.resolve() if backup else BesideTree(root).logs_folder
    if backup == root or root in backup.parents:
        found = f"--backup={backup} is inside the tree and would be submitted with it"
        return {"return": 1, "error": f"{found}\n{filled(HINT, env, PLACES)}"}
    try:
        done, skipped = truncate_tree(root, submitter, backup)
    except OSError as error:
        return {
            "return": 1,
            "error": f"a log could not be shortened: {error}\nhint: rerun the command. Finished logs are kept",
        }
    _note(root, {root / row.log: row.sha256 for row in done})
    for row in done:
        print(f"Truncated {row.log}, the whole log is {row.backup}", flush=True)
    for left in skipped:
        print(f"Left: {left.log}: {left.reason}", flush=True)
    print(f"{len(done)} accuracy logs truncated, {len(skipped)} left as they were", flush=True)
    env[BACKUP_KEY] = str(backup)
    i["state"]["mlperf_truncation"] = {
        "truncated": [{"log": row.log.as_posix(), "sha256": row.sha256, "backup": str(row.backup)} for row in done],
        "left": [{"log": left.log.as_posix(), "reason": left.reason} for left in skipped],
    }
    lost = [str(left.log) for left in skipped if SCORE_NAME in left.reason]
    if lost:
        score = "cm run script --tags=process,mlperf,accuracy --result_dir=THE RUN'S FOLDER, then recreate the tree"
        return {"return": 1, "error": f"no {SCORE_NAME} next to {', '.join(lost)}\nhint: {score}"}
    return {"return": 0}


def _note(root: Path, logs: dict[Path, str]) -> None:
    """Brings the tree's manifest up to date, where there is one and the log was as generate-submission left it.

    ``logs`` has the digest that each log had before.
    """
    manifest = BesideTree(root).manifest
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
        files = content["files"]
        for log, before in logs.items():
            if before in files.get(log.relative_to(root).as_posix(), ()):
                for path in (log, log.with_name(SCORE_NAME)):
                    files[path.relative_to(root).as_posix()] = [hashlib.sha256(path.read_bytes()).hexdigest()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    write_json(manifest, content)
