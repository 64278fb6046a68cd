"""Hooks of get-nvidia-library-lib: make the package nvidia_library importable for get-cudnn and get-tensorrt.

Not cached, so that it holds in each process.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: puts this recipe's folder on sys.path."""
    folder = str(Path(i["env"]["CM_TMP_CURRENT_SCRIPT_PATH"]).resolve())
    if folder not in sys.path:
        sys.path.append(folder)
    i["env"]["CM_NVIDIA_LIBRARY_LIB_PATH"] = folder
    return {"return": 0}


plan = preprocess
