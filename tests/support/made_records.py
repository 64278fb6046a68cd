"""The content of a record of a made-up result, for tests that compare results."""

from typing import Any

A, B = "a" * 64, "b" * 64


def thing(version: str = "1", sha256: str = A, numpy: str = "2.0") -> dict[str, Any]:
    return {
        "recipe": "get-x,u",
        "variations": ["v"],
        "tags": [],
        "inputs": {},
        "is_made": True,
        "version": version,
        "files": {"x.bin": {"size_bytes": 1, "sha256": sha256}},
        "facts": {"python_packages": {"numpy": {"version": numpy}}},
    }


def row(**changes: Any) -> dict[str, Any]:
    lock = {"format": 1, "command": "cm", "host": {}, "recipes": {"get-x,u": A}, "things": [thing()]}
    base: dict[str, Any] = {
        "name": "thing/one",
        "made_utc": "2026-11-21T00:00:00.000Z",
        "duration_s": 1.5,
        "command": "cm run script --tags=make",
        "request": {"inputs": {"tags": "make", "adr": {"x": {"tags": "_a"}}}, "secrets": [], "folder_input": "out"},
        "attachments": {},
        "lock": lock,
        "recipe_files": {"get-x,u": {"customize.py": A, "run.sh": A}},
        "journal": [],
        "inputs": {"user.conf": {"a.b": "1"}},
        "settings": {"batch": {"value": 4, "origin": "default"}},
        "machine": {"cores": 2},
        "outcome": {"exact": {"score": 0.5}, "within": {"speed": {"value": 100.0, "unit": "1/s"}}},
        "files": {},
    }
    return {**base, **changes}
