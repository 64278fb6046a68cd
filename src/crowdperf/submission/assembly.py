"""From the chosen runs to the files of a tree: a list of `Piece`, each with its path and its text or source.

Nothing is written here; reading is limited to the results folders and the recipe beside.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.kit.whole_file import read_object
from crowdperf.logs.round_tables import files_beside_score
from crowdperf.logs.run_requests import named_request
from crowdperf.logs.tree import SubmissionTree, TreeLayout
from crowdperf.rules.names import Mode
from crowdperf.submission import program, readme_texts
from crowdperf.submission.benchmark import named
from crowdperf.submission.measurements import Weights, measurements, weights_of
from crowdperf.submission.program import Program
from crowdperf.submission.request import Request
from crowdperf.submission.run_discovery import FoundRun, Sut, accuracy_run_of

_PERFORMANCE_LOGS = ("mlperf_log_summary.txt", "mlperf_log_detail.txt")
_ACCURACY_LOGS = (*_PERFORMANCE_LOGS, "mlperf_log_accuracy.json", "accuracy.txt")
_TEST_ACCURACY = ("mlperf_log_accuracy.json", "accuracy.txt", "baseline_accuracy.txt", "compliance_accuracy.txt")
_VERDICTS = ("verify_accuracy.txt", "verify_performance.txt", "verify_output_len.txt")
_OLD_CONFIG = "mlperf.conf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One file of a tree: `path` below its root, and either the text of it or the file that it is a copy of."""

    path: Path
    text: str | None = None
    source: Path | None = None

    def read(self) -> bytes:
        """Return the content."""
        return self.text.encode() if self.text is not None else (self.source or Path()).read_bytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All that a tree is made of. systems: the 35 keys by system; program: what made the runs.

    former: the tree that is updated, None when there is none; what it says of other models is kept.
    """

    request: Request
    round_name: str
    division: str
    runs: tuple[FoundRun, ...]
    suts: Mapping[str, Sut]
    systems: Mapping[str, Mapping[str, str]]
    program: Program
    former: Path | None = None

    @property
    def tree(self) -> SubmissionTree:
        """The paths of the tree, relative to its root."""
        return SubmissionTree(
            root=Path(), division=self.division, submitter=self.request.submitter, round_name=self.round_name
        )


def pieces(material: Material) -> tuple[Piece, ...]:
    """Return every file of one division's tree, sorted by path. Raises measurements.UnknownWeights."""
    found = [*_systems(material), *_mapping(material), *_calibration(material), *_sources(material)]
    for run in material.runs:
        found += _logs(material, run)
        if run.mode is Mode.PERFORMANCE and not run.test and run.number == 1:
            found += _described(material, run)
    by_path = {piece.path: piece for piece in found}
    return tuple(by_path[path] for path in sorted(by_path))


def _systems(material: Material) -> Iterator[Piece]:
    for system in sorted({run.place.system for run in material.runs}):
        description = {**material.systems[system], "division": material.division}
        yield Piece(path=material.tree.system_json(system), text=json.dumps(description, indent=2) + "\n")


def _mapping(material: Material) -> Iterator[Piece]:
    """Yield model_mapping.json for models that the checkers do not know by their folder's name; others' stay in it."""
    maps = {}
    for model in sorted({run.place.model for run in material.runs}):
        name = named(model, material.request.model_maps, material.round_name)
        if name is not None and name.is_mapped:
            maps[model] = name.official
    if maps and material.division == "open":
        path = material.tree.model_mapping
        whole = {**(read_object(material.former / path) or {}), **maps} if material.former else maps
        yield Piece(path=path, text=json.dumps(whole, indent=2, sort_keys=True) + "\n")


def _first_runs(material: Material) -> dict[str, FoundRun]:
    plain = [run for run in material.runs if run.mode is Mode.PERFORMANCE and not run.test]
    return {run.place.model: run for run in reversed(plain)}


def _calibration(material: Material) -> Iterator[Piece]:
    rows: dict[str, Weights] = {model: weights_of(run) for model, run in _first_runs(material).items()}
    if rows and material.division != "open":
        path = material.tree.calibration_text
        before = ""
        if material.former and (material.former / path).is_file():
            before = (material.former / path).read_text(encoding="utf-8")
        yield Piece(path=path, text=readme_texts.calibration_text(rows, before))


def _sources(material: Material) -> Iterator[Piece]:
    """Yield the program that made the runs of each model on each system, and how to run it again."""
    for model, system in sorted({(run.place.model, run.place.system) for run in material.runs}):
        folder = source_folder(material.tree, model, system)
        mine = [run for run in material.runs if run.place_parts[:2] == (system, model) and not run.test]
        environments = [environment_of(run) for run in mine]
        recipes: list[Mapping[str, Any]] = next(
            (one["recipes"] for one in environments if isinstance(one.get("recipes"), list)), []
        )
        chain = program.chain(material.program, mine, recipes)
        requests = {
            f"{run.place.scenario}/{run.mode.value}": named_request(content)
            for run in mine
            if (content := read_object(run.paths.run_json))
        }
        commands = [repeat_command(run) for run in mine]
        versions = {name: text for run in mine for name, text in (run.result.get("versions") or {}).items()}
        readme = readme_texts.source_readme(model, commands, chain, (bool(recipes), bool(requests)), versions)
        yield Piece(path=folder / "README.md", text=readme)
        if recipes:
            yield Piece(path=folder / "recipes.json", text=json.dumps(recipes, indent=2) + "\n")
        for name, content in requests.items():
            yield Piece(path=folder / "runs" / f"{name}.json", text=json.dumps(content, indent=2) + "\n")
        for recipe in chain:
            for path, source in program.files_of(material.program, recipe.alias):
                yield Piece(path=folder / path, source=source)
        for path, source in program.library_files():
            yield Piece(path=folder / path, source=source)


def source_folder(tree: SubmissionTree, model: str, system: str) -> Path:
    """Return the folder with the sources of a model on a system, so that systems do not share files."""
    return tree.code_folder / model / system


def environment_of(run: FoundRun) -> Mapping[str, Any]:
    """Return environment.json of the run's session, or of its own folder; empty without."""
    places = (run.session / "environment.json", run.folder / "environment.json")
    return next(filter(None, map(read_object, places)), {})


def repeat_command(run: FoundRun) -> str:
    """Return the command that makes a run again, from what its session noted."""
    return readme_texts.repeat_command(run, environment_of(run), read_object(run.session / "session.json") or {})


def _logs(material: Material, run: FoundRun) -> Iterator[Piece]:
    tree = material.tree
    if run.test and material.division == "open":
        return  # which asks for none, and refuses further files
    if run.test:
        target = tree.compliance_folder(run.place, run.test)
        inner = Path("performance", f"run_{run.number}") if run.mode is Mode.PERFORMANCE else Path("accuracy")
        wanted = _PERFORMANCE_LOGS if run.mode is Mode.PERFORMANCE else _TEST_ACCURACY
        yield from _copies(run.folder, target / inner, wanted)
        yield from _copies(run.test_folder, target, _VERDICTS)
        yield from _copies(run.test_folder / "accuracy", target / "accuracy", _TEST_ACCURACY)
        return
    wanted = _PERFORMANCE_LOGS if run.mode is Mode.PERFORMANCE else _ACCURACY_LOGS
    target = tree.run(run.place, run.mode, run.number).folder
    yield from _copies(run.folder, target, wanted)
    if run.mode is Mode.ACCURACY:
        yield from _pictures(run.folder, target, material.round_name, run.place.model)


def _pictures(source: Path, target: Path, round_name: str, model: str) -> Iterator[Piece]:
    """Yield the pictures that a round names, with the file that says what each shows."""
    for folder, names in files_beside_score(model, round_name).items():
        wanted = (*(f"{name}{ending}" for name in names for ending in (".png", ".mp4")), "captions.txt")
        yield from _copies(source / folder, target / folder, wanted)


def _copies(source: Path, target: Path, names: tuple[str, ...]) -> Iterator[Piece]:
    for name in names:
        if (source / name).is_file():
            yield Piece(path=target / name, source=source / name)


def _described(material: Material, run: FoundRun) -> Iterator[Piece]:
    """Yield what stands beside the logs of a scenario: measurements, user.conf and README."""
    tree, sut = material.tree, material.suts[run.place.system]
    accuracy = accuracy_run_of(run, material.runs)
    commands = {one.mode.value: repeat_command(one) for one in (run, accuracy) if one is not None}
    content = measurements(run, accuracy, sut, commands[Mode.PERFORMANCE.value])
    path = tree.measurements_json(run.place, sut.implementation)
    folder = tree.measurements_folder(run.place)
    repeat = readme_texts.repetition(commands, readme_texts.made_by(environment_of(run)))
    readme = readme_texts.run_readme(run, accuracy, sut, weights_of(run), repeat)
    yield Piece(path=path, text=json.dumps(content, indent=2) + "\n")
    yield Piece(path=folder / "README.md", text=readme)
    yield Piece(path=folder / run.paths.user_conf.name, source=run.paths.user_conf)
    if tree.layout is TreeLayout.APART:
        yield Piece(path=folder / _OLD_CONFIG, text=_EMBEDDED_CONFIG.format(version=run.result.get("loadgen_version")))


_EMBEDDED_CONFIG = (
    "# LoadGen {version} has its mlperf.conf compiled in and read no other file of that name,\n"
    "# the runs' changes are in user.conf.\n"
)
"""Up to v5.1 the checkers want a file mlperf.conf beside user.conf."""
