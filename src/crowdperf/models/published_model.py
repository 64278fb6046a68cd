"""Makes a model and its model.json in the current folder, a cache entry, as ``crowdperf.data.model_sources`` plans it.

    python3 -m crowdperf.models.published_model -m crowdperf.standins.fits.detection

Run by the run.sh of recipes with published models; CM_PUBLISHED_MODEL_WORK says how. The words are those of Python that
call the program which makes the tiny one.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def make(env: Mapping[str, str], tiny: Sequence[str], folder: Path) -> int:
    """Return the exit status of the program that makes it, 2 for an unknown work."""
    work = env["CM_PUBLISHED_MODEL_WORK"]
    if work == "take":  # the published file is the model
        return 0
    if work not in ("tiny", "random", "convert"):
        print(f"CM_PUBLISHED_MODEL_WORK is {work}; allowed: tiny, random, take, convert", file=sys.stderr)
        return 2
    words = ["--architecture", env["CM_PUBLISHED_MODEL_ARCHITECTURE"], "--framework", env["CM_ML_MODEL_FRAMEWORK"]]
    words += ["--output_dir", str(folder)]
    archived = None
    if work == "tiny":
        words = [*tiny, *words, "--dataset_dir", env["CM_DATASET_PATH"]]
    else:
        words = ["-m", "crowdperf.models.make_model", *words, "--config", "full"]
    if work == "convert":
        is_archive = env.get("CM_PUBLISHED_MODEL_IS_ARCHIVE") == "yes"
        archived = folder / env["CM_PUBLISHED_MODEL_MEMBER"] if is_archive else None  # unpacked by extract,file
        weights = archived or env["CM_PUBLISHED_MODEL_FILE_WITH_PATH"]
        words += ["--weights", str(weights), "--facts", env["CM_PUBLISHED_MODEL_FACTS"]]
    else:
        words += ["--seed", env["CM_ML_MODEL_SEED"]]
    status = subprocess.run([env["CM_PYTHON_BIN_WITH_PATH"], "-B", *words], cwd=folder, check=False).returncode
    if archived and not status:
        archived.unlink(missing_ok=True)  # the archive stays
    return status


if __name__ == "__main__":
    sys.exit(make(os.environ, sys.argv[1:], Path.cwd()))
