"""The answer of a hook to CM when a call cannot be carried out. Pure."""

from typing import Any

Answer = dict[str, Any]


def failure(error: object, hint: str = "", code: int = 1) -> Answer:
    """Return CM's answer with the text of an error and below it a line that helps, "hint: ..."; code: of the process,
    above 0."""
    return {"return": code, "error": f"{error}\n{hint}" if hint else str(error)}
