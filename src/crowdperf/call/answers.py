"""The answer of a hook to CM when a call cannot be carried out. Pure."""

from typing import Any

Answer = dict[str, Any]


def runs_to_its_end(_: dict[str, Any]) -> Answer:
    """Hook `plan` of a step that runs to its end with the dependencies that it has, and calls no other recipe. What it
    sets is known only then."""
    return {"return": 0}


def failure(error: object, hint: str = "", code: int = 1) -> Answer:
    """Return CM's answer with the text of an error and below it a line that helps, "hint: ...", unless the error ends
    with its own; code: of the process, above 0."""
    text = str(error)
    return {"return": code, "error": f"{text}\n{hint}" if hint and "\nhint: " not in text else text}
