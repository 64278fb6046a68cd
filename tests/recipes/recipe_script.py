"""Runs a recipe's run.sh as the engine would, with this Python and the harness on its path."""

import os
import subprocess
import sys
from pathlib import Path

from recipe_loader import RECIPES


def run_script(alias: str, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The recipe's run.sh in `folder`, with this Python and the harness."""
    whole = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(RECIPES.parent / "src"),
        "CM_PYTHON_BIN_WITH_PATH": sys.executable,
        "CM_TMP_CURRENT_SCRIPT_PATH": str(RECIPES / alias),
        **env,
    }
    command = ["bash", "-c", f". '{RECIPES / alias}/run.sh'"]
    return subprocess.run(command, cwd=folder, env=whole, capture_output=True, text=True, timeout=120, check=False)
