"""What to say where data has to be fetched by hand because its license must be accepted."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where data comes from.

    name: what it is called. pages: addresses to go to. license: its name and terms in a few words. steps: what to do,
    in order. layout: the files the folder must hold then. command: what to run then, with --path=FOLDER in it.
    """

    name: str
    pages: tuple[str, ...]
    license: str
    steps: tuple[str, ...]
    layout: tuple[str, ...]
    command: str


def refusal(source: Source, folder: Path | None = None, wrong: str = "", instead: str = "") -> str:
    """Return the text that refuses to go on: what is wrong with `folder`, where to get the data and, as the hint, the
    command to run then.

    wrong: lines as `file_check.check_folder` gives them. instead: what else this data may be.
    """
    if folder is None:
        lines = [f"{source.name} must be fetched by hand, because its license has to be accepted."]
    else:
        lines = [f"{folder} does not contain {source.name}:\n{wrong}"]
    lines += [f"  from: {page}" for page in source.pages]
    lines.append(f"  license: {source.license}")
    lines += [f"  {number}. {step}" for number, step in enumerate(source.steps, start=1)]
    lines.append(f"  expected contents: {', '.join(source.layout)}")
    lines += [f"  instead: {instead}"] if instead else []
    lines.append("  for a trial without it: --source=tiny at a benchmark, _tiny at this recipe")
    lines.append(f"hint: {source.command}   # once: later runs find it")
    return "\n".join(lines)
