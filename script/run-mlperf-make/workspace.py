"""Makes a workspace: the folder of a submitter with its Makefile."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from crowdperf.call.command import COMMAND
from crowdperf.kit.whole_file import write_whole
from crowdperf.rules.names import unknown_text
from crowdperf.rules.rounds import ROUNDS

from .request import MakeError, misfit, table

FIRST_LINE = "# Made by crowdperf (cm run script --tags=run,mlperf,make,_init): the targets of NVIDIA's Makefile."
TEMPLATE = Path(__file__).with_name("Makefile.template")
"""`eval` makes each variable a simple one with the text that was given, which exporting does not expand again."""


def own_cm(recipe_folder: Path, outer: Mapping[str, str]) -> str:
    """The program of a workspace: `crowdperf` where its `crowdperf cm` was called, the cm of this checkout where that
    was, else the one of PATH."""
    checkout = recipe_folder.parent.parent
    if outer.get("CROWDPERF_CM") == COMMAND:
        return COMMAND.partition(" ")[0]
    return str(checkout / "cm") if "CROWDPERF_CM" in outer and os.access(checkout / "cm", os.X_OK) else "cm"


def in_make(text: str) -> str:
    """A path as a Makefile writes it. Raises MakeError for one that no Makefile can hold."""
    if re.search(r"[\n\r\0\\]", text) or text != text.strip():
        raise MakeError(f"{text!r} cannot be written into a Makefile", "put the checkout into another folder")
    return text.replace("#", r"\#").replace("$", "$$")


def make_workspace(root: Path, submitter: str, division: str, cm: str, round_name: str = "") -> Path:
    """Writes the Makefile and gives its folder. Raises MakeError."""
    variables = table("variables")
    problems = misfit("--submitter", submitter, variables["SUBMITTER"][2:] if submitter else ["!", "a name"])
    if round_name and round_name not in ROUNDS:
        raise MakeError(unknown_text("round", round_name, ROUNDS), "--round=v0.7, or leave it out")
    if problems:
        raise MakeError(problems[0], "--submitter=NVIDIA --division=closed")
    file = root / division / submitter / "Makefile"
    given = [f'$${{{name}:+"--{row[0]}=$${name}"}}' for name, row in variables.items()]
    text = TEMPLATE.read_text(encoding="utf-8").format(
        first=FIRST_LINE,
        cm=in_make(cm),
        submitter=submitter,
        round=f"ROUND ?= {round_name}\n" if round_name else "",
        names=" ".join(variables),
        inputs=" ".join(given),
    )
    try:
        if file.exists() and not file.read_text(encoding="utf-8", errors="replace").startswith(FIRST_LINE):
            raise MakeError(
                f"{file} was made by something else and is left as it is", "--path=FOLDER names another place"
            )
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text)
    except OSError as error:
        raise MakeError(f"cannot write {file}: {error.strerror}", "--path=FOLDER names another place") from error
    return file.parent
