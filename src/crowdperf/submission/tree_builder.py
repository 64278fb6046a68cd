"""Makes the tree of a call: what is there, what is wrong with it, the building, the truncation, the exchange.

The only module of the package that changes the disk beside `placement`, which it uses. Other recipes are called through
`Recipes`, so that tests can stand in for them.

Fills missing scenarios of an edge system with the runs that the rules let stand for them, when the user asks.

Legal on edge systems only: SingleStream for MultiStream or Offline, MultiStream for Offline (inference rules, "edge";
performance_check.py of the official checker at b66003e1, August 2026). The logs are copied as they are: the checker
computes the figure.

A rehearsal: the whole way of a submission in minutes, with short runs that no submission may hold. Pure.

What is made says so in every file of its own, and the gate refuses it unless it is asked to judge a rehearsal.
"""

import shlex
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from crowdperf.kit import privacy
from crowdperf.kit.whole_file import read_object, write_json
from crowdperf.logs.truncation import LOG_NAME, truncate_tree, truncated_bytes
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.names import REHEARSAL_LABEL, Mode, Scenario, counted
from crowdperf.rules.official_names import checker_name
from crowdperf.rules.rounds import rounds_of, rules_in
from crowdperf.submission import call_summary, checks, placement, run_discovery
from crowdperf.submission.assembly import Material, Piece, pieces, source_folder
from crowdperf.submission.benchmark import named
from crowdperf.submission.checks import Problem
from crowdperf.submission.measurements import UnknownWeights
from crowdperf.submission.program import Program
from crowdperf.submission.request import Request
from crowdperf.submission.run_discovery import FoundRun, Sut

NOT_GIVEN = "not set (rehearsal)"
_STATUS = "rdi"
"""Research, development or internal: the one of the three kinds of system (submission rules) that a rehearsal is of."""


def stood_in(request: Request, runs: Sequence[FoundRun], round_name: str) -> Request:
    """Return the request with a mapping for each model that is no benchmark: to one of the round with its metrics."""
    maps = dict(request.model_maps)
    for run in runs:
        model, metrics = run.place.model, {row["name"] for row in run.accuracy.get("metrics") or ()}
        if metrics and named(model, maps, round_name) is None:
            for name in _with_metrics(metrics, round_name)[:1]:
                maps[model] = checker_name(name)
    return replace(request, model_maps=maps)


def _with_metrics(metrics: set[str], round_name: str) -> list[str]:
    here = [name for name in BENCHMARKS if round_name in rounds_of(name)]
    return [name for name in here if {target.metric for target in rules_in(name, round_name).targets} == metrics]


def labelled(runs: Sequence[FoundRun]) -> tuple[FoundRun, ...]:
    """Return the runs with the rehearsal's label before their own, from where it gets into the tree's files."""
    return tuple(replace(run, result={**run.result, "label": _label(run)}) for run in runs)


def _label(run: FoundRun) -> str:
    return "; ".join(filter(None, (REHEARSAL_LABEL, str(run.result.get("label") or ""))))


def described(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a system without open questions: what nobody said is called so."""
    facts = dict(answer["facts"])
    for key in answer["missing"]:
        facts[key] = {"value": _STATUS if key == "status" else NOT_GIVEN, "origin": REHEARSAL_LABEL}
    notes = "; ".join(filter(None, (REHEARSAL_LABEL, str(facts.get("hw_notes", {}).get("value", "")))))
    facts["hw_notes"] = {"value": notes, "origin": REHEARSAL_LABEL}
    return {**answer, "facts": facts, "missing": []}


SOURCES: Mapping[Scenario, tuple[Scenario, ...]] = {
    Scenario.MULTI_STREAM: (Scenario.SINGLE_STREAM,),
    Scenario.OFFLINE: (Scenario.MULTI_STREAM, Scenario.SINGLE_STREAM),
}
"""What a scenario may be inferred from, the better one first."""


def inferred(group: Iterable[FoundRun], wanted: Iterable[Scenario]) -> tuple[FoundRun, ...]:
    """Return the further runs of one model on one system: those of a present scenario in the place of a missing one."""
    runs = tuple(group)
    present = {run.place.scenario for run in runs}
    found: list[FoundRun] = []
    for scenario in wanted:
        if scenario.value in present:
            continue
        source = next((one for one in SOURCES.get(scenario, ()) if one.value in present), None)
        if source is not None:
            found += [
                replace(run, place=replace(run.place, scenario=scenario.value))
                for run in runs
                if run.place.scenario == source.value
            ]
    return tuple(found)


class Refused(Exception):
    """A call that is refused before anything is written; `problems` has everything that is wrong."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        lines = []
        for problem in self.problems:
            lines.append(f"- {problem.text}")
            if problem.hint:
                lines.append(f"    {problem.hint}")
        super().__init__("\n".join(lines))


class Recipes(Protocol):
    """The recipes that a call needs."""

    def describe(self, sut: Sut, run: FoundRun, division: str) -> Mapping[str, Any]:
        """Return CM_SUT_DESCRIPTION of a system: its facts with origins, and the open questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The chosen runs with their systems. request: the call, in a rehearsal with the benchmarks that are stood in for.

    left_out: runs that another one for the same place was taken before.
    """

    request: Request
    runs: tuple[FoundRun, ...]
    left_out: tuple[FoundRun, ...]
    suts: Mapping[str, Sut]
    round_name: str | None
    problems: tuple[Problem, ...]


def gather(request: Request) -> Gathered:
    """Return the runs of the request's folders and all that is wrong with them."""
    every: list[FoundRun] = []
    suts: dict[str, Sut] = {}
    for folder in request.results_folders:
        runs, systems = run_discovery.find_runs(folder, request.hw_name)
        every += runs
        suts.update(systems)
    if checks.CLOSED not in request.divisions:
        every = [run for run in every if not run.test]  # open asks for no compliance test
    chosen, left_out = run_discovery.choose(tuple(every))
    round_name, problems = checks.round_of(chosen, request.round_name)
    if round_name is None:
        if not chosen:
            problems = (*problems, *checks.check(chosen, request, ""))
        return Gathered(request=request, runs=chosen, left_out=left_out, suts=suts, round_name=None, problems=problems)
    if request.is_rehearsal:
        request, chosen = stood_in(request, chosen, round_name), labelled(chosen)
    if request.is_inferred or request.is_preprocessed:
        chosen = _with_inferred(chosen, request, round_name)
    problems = (*problems, *checks.check(chosen, request, round_name))
    return Gathered(
        request=request, runs=chosen, left_out=left_out, suts=suts, round_name=round_name, problems=problems
    )


def _with_inferred(runs: tuple[FoundRun, ...], request: Request, round_name: str) -> tuple[FoundRun, ...]:
    if "edge" not in request.category:
        return runs
    groups: dict[tuple[str, str], list[FoundRun]] = {}
    for run in runs:
        groups.setdefault((run.place.system, run.place.model), []).append(run)
    more: list[FoundRun] = []
    for (_, model), group in groups.items():
        name = named(model, request.model_maps, round_name)
        more += inferred(group, () if name is None else name.rules.edge)
    return tuple(sorted((*runs, *more), key=lambda run: run.key))


def describe_systems(gathered: Gathered, recipes: Recipes) -> tuple[dict[str, Mapping[str, Any]], tuple[Problem, ...]]:
    """Return the description of each system, and the questions about them that are open."""
    found_systems, problems, request = {}, [], gathered.request
    for system in sorted({run.place.system for run in gathered.runs}):
        runs = [run for run in gathered.runs if run.place.system == system]
        run = next((one for one in runs if one.mode is Mode.PERFORMANCE and one.result), runs[0])
        answer = recipes.describe(gathered.suts[system], run, request.divisions[0])
        found_systems[system] = described(answer) if request.is_rehearsal else answer
        if answer["missing"]:
            problems.append(_open_questions(system, answer, request))
    return found_systems, tuple(problems)


def _open_questions(system: str, answer: Mapping[str, Any], request: Request) -> Problem:
    """Write the questions to a file for the user, unless it is there, and say which they are."""
    given, key = request.facts_file, answer["missing"][0]
    path = given or request.beside.folder / f"{system}.questions.yaml"
    hint = f"fill in {path} and add --system_facts={shlex.quote(str(path))}, or give single ones: --system.{key}=..."
    if given is not None:
        hint = f"{'add them to' if given.exists() else 'fill in'} {given}, then rerun the command"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(answer["template"])
    except FileExistsError:
        if given is None and not any(
            line and not line.startswith("#") and not line.endswith(":") for line in path.read_text().split("\n")
        ):
            path.write_text(answer["template"], encoding="utf-8")  # nobody has answered anything in it
    lines = [f"{key}: {question}" for key, question in answer["questions"].items()]
    verb = "is" if len(lines) == 1 else "are"
    text = f"{counted(len(lines), 'fact')} of the system {system} {verb} not known and never invented:\n    "
    text += "\n    ".join(lines)
    return Problem(text, hint, is_later=True)


def make(
    gathered: Gathered, systems: Mapping[str, Mapping[str, Any]], program: Program, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Write the tree and bring it into place; return what was made. Raises Refused or placement.PlacingError."""
    request, round_name = gathered.request, gathered.round_name or ""
    materials = [
        Material(
            request=request, round_name=round_name, division=division, runs=gathered.runs, suts=gathered.suts,
            systems={name: _values(row) for name, row in systems.items()}, program=program,
            former=None if request.is_clean or not request.submission_folder.is_dir() else request.submission_folder,
        )
        for division in request.divisions
    ]  # fmt: skip
    try:
        by_division = {material.division: pieces(material) for material in materials}
    except UnknownWeights as error:
        raise Refused([Problem(str(error), "rebuild the model, and rerun the runs")]) from error
    every = [piece for division in by_division.values() for piece in division]
    _refuse_leaks(every, request, systems)
    place = placement.OutputFolder(folder=request.submission_folder)
    with placement.locked(place):
        if not request.is_clean:
            _refuse_collisions(place, every)
        placement.start_building(place, request.is_clean)
        for material in materials:
            placement.drop_former(place, _folders_of(material))
            for line in _division_lines(material, by_division[material.division]):
                tell(line)
        for piece in every:
            target = place.new / piece.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(piece.read())
        for line in call_summary.result_table(gathered.runs):
            tell(line)
        truncated = _truncate(request, place, tell)
        for material in materials:
            placement.without_empty_folders(place.new / material.tree.folder)
        _write_facts(request, systems)
        placement.exchange(place, sorted({piece.path.as_posix() for piece in every}))
        if request.is_packed:
            _pack(request.submission_folder, tell)
    return {
        "format": 1,
        "submission_dir": str(request.submission_folder),
        "round": round_name,
        "divisions": list(request.divisions),
        "submitter": request.submitter,
        "systems": sorted(systems),
        "results": len({run.place_parts for run in gathered.runs}) * len(request.divisions),
        "files": len(every),
        "truncated": truncated,
        "is_synthetic": any(any((run.result.get("is_synthetic") or {}).values()) for run in gathered.runs),
    }


def _values(description: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(fact["value"]) for key, fact in description["facts"].items()}


def _division_lines(material: Material, division: tuple[Piece, ...]) -> list[str]:
    lines = call_summary.head(material.request, material.round_name, material.division)
    for system in sorted({run.place.system for run in material.runs}):
        lines += call_summary.system(material.suts[system])
    models = sorted({run.place.model for run in material.runs})
    for model in models:
        lines += call_summary.model(model, [piece for piece in division if model in piece.path.parts])
    rest = [piece for piece in division if not any(model in piece.path.parts for model in models)]
    return lines + [f" * {piece.path.as_posix()}" for piece in rest]


def _folders_of(material: Material) -> tuple[Path, ...]:
    """Return the folders whose former content this call replaces: those of its scenarios."""
    tree = material.tree
    folders: set[Path] = set()
    for run in material.runs:
        folders |= {tree.scenario_folder(run.place), tree.measurements_folder(run.place)}
        folders.add(tree.compliance_folder(run.place, "TEST01").parent)
        folders.add(source_folder(tree, run.place.model, run.place.system))
    return tuple(sorted(folders))


def _refuse_leaks(every: Iterable[Piece], request: Request, systems: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise Refused when a file would carry a secret, a home folder, or the name of the user or the machine."""
    said = [request.submitter, request.hw_name]
    for row in systems.values():
        said += [
            fact["value"] for fact in row["facts"].values() if "given" in fact["origin"] or "answer" in fact["origin"]
        ]
    words = {word for text in said for word in (text, *text.replace(",", " ").split())}
    known = privacy.known_here(public=(*sorted(words), *privacy.NOBODYS_HOMES))
    problems = []
    for piece in every:
        content = piece.read()
        if request.is_truncated and piece.path.name == LOG_NAME:
            content = truncated_bytes(content)  # the rest is not published
        for leak in privacy.find_leaks(content, privacy.known_in(piece.path.as_posix(), known)):
            kind = str(getattr(leak.kind, "value", leak.kind))
            problems.append(
                Problem(f"{piece.path.as_posix()}, line {leak.line}: {kind} would be published: {leak.excerpt}")
            )
    if problems:
        raise Refused(problems)


def _refuse_collisions(place: placement.OutputFolder, every: Iterable[Piece]) -> None:
    taken = placement.in_the_way(place, (piece.path.as_posix() for piece in every))
    if taken:
        raise placement.PlacingError(
            f"these files in {place.folder} were changed since this recipe wrote them, and would be overwritten:\n  "
            + "\n  ".join(taken)
            + "\nhint: move them away, or give another --submission_dir"
        )


def _truncate(request: Request, place: placement.OutputFolder, tell: Callable[[str], None]) -> list[dict[str, str]]:
    if not request.is_truncated:
        tell("Accuracy logs are kept whole, as requested: no checker accepts them")
        return []
    done, skipped = truncate_tree(place.new, request.submitter, request.beside.logs_folder)
    for row in done:
        tell(f"Truncated {row.log}, the whole log is {row.backup}")
    for left in skipped:
        if left.reason != "truncated already":
            tell(f"Not truncated: {left.log}: {left.reason}")
    return [{"log": row.log.as_posix(), "sha256": row.sha256, "backup": str(row.backup)} for row in done]


def _write_facts(request: Request, systems: Mapping[str, Mapping[str, Any]]) -> None:
    """Add the origins of the systems' facts to those of systems written before."""
    path = request.beside.systems_json
    before = (read_object(path) or {}).get("systems") or {}
    rows = {name: {"facts": row["facts"], "is_this_machine": row["is_this_machine"]} for name, row in systems.items()}
    write_json(path, {"format": 1, "systems": {**before, **rows}})


def _pack(folder: Path, tell: Callable[[str], None]) -> None:
    """Pack the tree beside it; owners and dates do not go along."""

    def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    target = folder.with_name(f"{folder.name}.tar.gz")
    unfinished = target.with_name(f".{target.name}.part")
    with tarfile.open(unfinished, "w:gz") as archive:
        for name, path in placement.files_below(folder).items():
            archive.add(path, arcname=f"{folder.name}/{name}", recursive=False, filter=anonymous)
    unfinished.replace(target)
    tell(f"Packed: {target}")


def story_of_left_out(gathered: Gathered) -> list[str]:
    """Return a line for each run that another one was taken before, and for each result that LoadGen did not make."""
    lines = [f"Skipped, another run is used: {run.folder}" for run in gathered.left_out]
    for folder in gathered.request.results_folders:
        for one in run_discovery.find_endpoint_results(folder):
            where = f"{gathered.request.submission_folder}/DIVISION/SUBMITTER/results/SYSTEM/MODEL/{one.name}"
            lines.append(f"Skipped, a result of MLPerf Endpoints, not of LoadGen: {one} (copy it to {where})")
    return lines


def rehearsed(request: Request, problems: Iterable[Problem]) -> str:
    """Return what is said at the end of a rehearsal: where everything is, and what the real thing needs beyond it."""
    folder = request.submission_folder
    lines = [
        "",
        "The rehearsal is complete. It cannot be submitted: the submission checker rejects its tree.",
        f"  tree:       {folder}",
        f"  report:     {folder.with_name('report')}",
        f"  repository: {request.repository_folder} (branch rehearsal)",
        "A submission also needs:",
        *(f"  - {problem.text}" for problem in problems),
    ]
    return "\n".join(lines)
