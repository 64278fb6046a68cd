"""The request of a small curve against the stub, and a program that stands in for the client."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from recipe_loader import input_values
from stub_openai import MODEL

STANDIN = Path(__file__).resolve().parent / "standin_client.py"
SAMPLES = 8
SCORED = {"accuracy": "mandatory", "accuracy_dataset": "data.jsonl", "eval_method": "string_match",
          "extractor": "identity_extractor"}  # fmt: skip
"""Inputs of a curve with accuracy runs."""


def given(folder: Path, url: str, **changed: str) -> dict[str, str]:
    """The inputs of a curve of two points with data sets in `folder`; a value "" takes an input out."""
    rows = [{"prompt": f"w{number} w7", "answer": "w1"} for number in range(SAMPLES)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    texts = {
        "url": url,
        "model": "gpt-oss-120b",
        "served_model": MODEL,
        "dataset": "data.jsonl",
        "accuracy": "none",
        "tokenizer": "openai/gpt-oss-120b",
        "c_max": "40",
        "points": "1,4",
        "offline": "none",
        "execution_mode": "test",
        "max_new_tokens": "6",
        "curve": "small",
    }
    return {key: value for key, value in {**texts, **changed}.items() if value}


def typed(folder: Path, url: str, **changed: str) -> Any:
    """These inputs as a hook gets them."""
    return input_values("run-mlperf-curve", {"CM_TMP_CURRENT_PATH": str(folder)}, **given(folder, url, **changed))


def standin(folder: Path) -> Path:
    """A program that behaves as the client does."""
    program = folder / "inference-endpoint"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(STANDIN))} "$@"\n')
    os.chmod(program, 0o755)
    return program
