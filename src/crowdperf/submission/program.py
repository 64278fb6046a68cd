"""The program that made the runs, for the code folder of a submission: the harness, what it stands on, and the recipes
of the chain, as files of a repository that runs again. No weights, no data, no caches.

    <code folder>/<model>/<system>/README.md         what this is and how to run it again
                                   recipes.json      every recipe of the checkout, its digest when the runs were made
                                   script/<recipe>/  the recipes of the chain
                                   src/crowdperf/    the harness, the benchmarks, and the rooms they stand on
                                   runs/<Scenario>/<mode>.json   the request of each run, folders left out
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.kit.whole_file import read_object
from crowdperf.submission.run_discovery import FoundRun

_PACKAGE = Path(__file__).resolve().parents[1]
ROOMS = ("kit", "rules", "logs", "compliance", "call", "machine", "harness", "benchmarks")
"""The harness and what it imports, in the order of docs/explanation/architecture.md."""

_ALWAYS = ("app-mlperf-inference", "get-mlperf-loadgen", "process-mlperf-accuracy", "run-mlperf-inference")
"""The recipes that every run rests on."""

_SUFFIXES = {".py", ".yaml", ".yml", ".sh", ".md", ".json", ".txt", ".toml", ".typed"}
_LARGEST_BYTES = 1_000_000
LEFT_OUT = ("privacy.py", "secret_shapes.py")
"""Modules that the harness does not use: they look for secrets, and hold examples of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Where the recipes are, and what gives the engine's digests: of the own files in a recipe's folder, and, by alias,
    of what recipes use of the packages with the variations asked for."""

    recipes_folder: Path
    digest: Callable[[Path], str]
    used: Callable[[Mapping[str, Sequence[str]]], Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainRecipe:
    """A recipe whose files are handed in. recorded: its digest when the runs were made, empty where none was kept.

    library_sha256, library_recorded: the same of what it uses of the packages; a list of before has none.
    """

    alias: str
    sha256: str
    recorded: str
    library_sha256: str = ""
    library_recorded: str = ""

    @property
    def state(self) -> str:
        """Whether the files here are those that ran, in words."""
        if not self.recorded:
            return "not recorded"
        if self.recorded != self.sha256:
            return f"another state: {self.recorded}"
        if self.library_recorded == self.library_sha256:
            return "the same"
        if self.library_recorded:
            return f"the same, but the code it uses from src/ was in another state: {self.library_recorded}"
        return "the same (the code it uses from src/ was not recorded)"


def chain(program: Program, runs: Iterable[FoundRun], recorded: Iterable[Mapping[str, Any]]) -> tuple[ChainRecipe, ...]:
    """Return the recipes that the runs rest on, sorted. `recorded`: the recipes of environment.json."""
    aliases = set(_ALWAYS)
    for run in runs:
        rows = (read_object(run.session / "session.json") or {}).get("runs")
        row = rows.get(run.folder.relative_to(run.session).as_posix()) if isinstance(rows, Mapping) else None
        aliases |= set((row or {}).get("recipes") or ())
    known = {str(row.get("alias")): row for row in recorded}
    there = [alias for alias in sorted(aliases) if (program.recipes_folder / alias / "_cm.yaml").is_file()]
    rows = {alias: known.get(alias, {}) for alias in there}
    used = program.used({alias: list(row.get("variations") or ()) for alias, row in rows.items()})
    return tuple(
        ChainRecipe(
            alias=alias,
            sha256=program.digest(program.recipes_folder / alias),
            recorded=str(row.get("sha256") or ""),
            library_sha256=used[alias],
            library_recorded=str(row.get("library_sha256") or ""),
        )
        for alias, row in rows.items()
    )


def files_of(program: Program, alias: str) -> Iterator[tuple[Path, Path]]:
    """Yield the files of a recipe: path below the code folder of a model, and source."""
    return _files_below(program.recipes_folder / alias, Path("script", alias))


def library_files() -> Iterator[tuple[Path, Path]]:
    """Yield the files of the package that a run needs: path below the code folder of a model, and source."""
    place = Path("src", _PACKAGE.name)
    yield place / "__init__.py", _PACKAGE / "__init__.py"
    for room in ROOMS:
        yield from _files_below(_PACKAGE / room, place / room)


def _files_below(folder: Path, place: Path) -> Iterator[tuple[Path, Path]]:
    for source in sorted(folder.rglob("*")):
        inner = source.relative_to(folder)
        is_hidden = any(part == "__pycache__" or part.startswith(".") for part in inner.parts)
        is_text = source.suffix in _SUFFIXES and source.is_file() and not source.is_symlink()
        if is_text and not is_hidden and source.name not in LEFT_OUT and source.stat().st_size <= _LARGEST_BYTES:
            yield place / inner, source
