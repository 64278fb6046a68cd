"""Rules on the tree as files and folders: names, sizes, allowed places, and the existence of results.

A rule on the size of the files that are parsed: one too large for its kind is refused, not waited for.
"""

import posixpath
from collections.abc import Iterable, Iterator

from crowdperf.gate.documents import READ_LIMIT_BYTES, limit_of, sha256_of
from crowdperf.gate.endpoints import endpoints_of
from crowdperf.gate.listing import as_text, join
from crowdperf.gate.rulebook import BOTH, CLOSED, NEWER, OLDER, OURS, Scope, Severity, Violation, rule, shown
from crowdperf.gate.steps import Step
from crowdperf.gate.views import (
    SCENARIO_NAMES,
    ModelView,
    ScenarioView,
    SubmitterView,
    TreeView,
    canonical_scenario,
    divisions_of,
)
from crowdperf.logs.round_tables import ScenarioSets
from crowdperf.logs.tree import DIVISIONS, ScenarioPlace

_PARSED = ("results", "measurements", "compliance", "systems")


@rule("SIZE-001", Scope.TREE, "No log or description is larger than such files are.", source=OURS)
def sizes_are_of_kind(tree: TreeView) -> Iterator[Violation]:
    divisions = divisions_of(tree)
    for path, size in tree.listing.sizes.items():
        parts = path.split("/", 3)
        is_parsed = len(parts) > 3 and parts[0] in divisions and parts[2] in _PARSED
        is_of_submitter = tree.options.submitter in (None, parts[1] if len(parts) > 1 else "")
        if is_parsed and is_of_submitter and limit_of(path) < size <= READ_LIMIT_BYTES:  # FILE-002 has those above
            yield Violation(path=path, found=f"{size} bytes", allowed=f"at most {limit_of(path)} bytes")


_ROOT_ENDINGS = (".md", ".pdf")
_ROOT_FOLDERS = (*DIVISIONS, ".git", ".github", "assets")
_AUDIT_SETTINGS = "audit.config"
_UNREAD, _OWN_PARTS = ("code", "src", "documentation"), 4
"""The folders of a submitter whose files no rule judges one by one, and the parts of DIVISION/SUBMITTER/FOLDER/NAME."""
_TESTS = ("TEST01", "TEST04", "TEST04-A", "TEST04-B", "TEST05", "TEST06", "TEST07", "TEST08", "TEST09")
"""Every compliance test since v0.7 (compliance/ of mlcommons/inference, tags v0.7 to v5.1 and b66003e1)."""


def _last(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _in_divisions(tree: TreeView, paths: Iterable[str]) -> Iterator[str]:
    """Those of the divisions, or those of one submitter's folders on request."""
    tops, submitter = divisions_of(tree), tree.options.submitter
    starts = tuple(top if submitter is None else join(top, submitter) for top in tops)
    return (path for path in paths if any(path == start or path.startswith(f"{start}/") for start in starts))


def _all_names(tree: TreeView) -> Iterator[str]:
    listing = tree.listing
    odd = (oddity.path for oddity in listing.oddities)
    paths = [*listing.sizes, *listing.folders, *listing.links, *odd]
    return _in_divisions(tree, sorted(set(paths) - {""}))


@rule("TREE-003", Scope.TREE, "The root contains text for readers and divisions only.", source=OLDER)
def files_in_root(tree: TreeView) -> Iterator[Violation]:
    for name in tree.listing.files_in(""):
        if not name.endswith(_ROOT_ENDINGS):
            yield Violation(path=name, found="a file in the root", allowed="*.md and *.pdf there")


@rule("TREE-004", Scope.TREE, "The root contains the folders of divisions only. The checkers overlook anything else.",
      source=BOTH, severity=Severity.WARNING)  # fmt: skip
def folders_in_root(tree: TreeView) -> Iterator[Violation]:
    for name in tree.listing.folders_in(""):
        if name not in _ROOT_FOLDERS:
            yield Violation(path=name, found="a folder that no checker looks at", allowed="closed, open, network")


@rule("TREE-005", Scope.TREE, "A division contains submitters' folders, no files.", source=OLDER)
def files_in_division(tree: TreeView) -> Iterator[Violation]:
    for division in divisions_of(tree):
        for name in tree.listing.files_in(division):
            yield Violation(path=join(division, name), found="a file next to the submitters", allowed="folders only")


@rule("TREE-006", Scope.SUBMITTER, "A submitter's folder has results.", source=NEWER)
def submitter_has_results(owner: SubmitterView) -> Iterator[Violation]:
    path = as_text(owner.paths.results_folder)
    if not owner.systems:
        yield Violation(path=path, found="no system with results", allowed="results/SYSTEM/MODEL/SCENARIO")


@rule("NAME-001", Scope.TREE, "No name contains a space.", source=OLDER)
def no_spaces(tree: TreeView) -> Iterator[Violation]:
    for path in _all_names(tree):
        if " " in _last(path):
            yield Violation(path=path, found=shown(_last(path)), allowed="names without spaces")


@rule("NAME-002", Scope.TREE, "No name begins with a dot.", source=OLDER)
def no_hidden_names(tree: TreeView) -> Iterator[Violation]:
    for path in _all_names(tree):
        if _last(path).startswith("."):
            yield Violation(path=path, found=shown(_last(path)), allowed="names that are visible to git and people")


@rule("NAME-003", Scope.TREE, "Every name can be written as UTF-8 on one line.", source=OURS)
def plain_names(tree: TreeView) -> Iterator[Violation]:
    for path in _all_names(tree):
        if not _last(path).isprintable():
            yield Violation(path=path, found=ascii(_last(path)), allowed="printable characters")


@rule("NAME-004", Scope.TREE, "Python's caches do not belong to a submission.", source=OLDER)
def no_caches(tree: TreeView) -> Iterator[Violation]:
    for path in _in_divisions(tree, sorted(tree.listing.folders)):
        if path.endswith("__pycache__"):
            yield Violation(path=path, found="__pycache__", allowed="no such folder")


@rule("FILE-001", Scope.TREE, "No folder is empty (git would lose it).", source=OLDER)
def no_empty_folders(tree: TreeView) -> Iterator[Violation]:
    for path in _in_divisions(tree, sorted(tree.listing.folders)):
        if not tree.listing.folders[path]:
            yield Violation(path=path, found="an empty folder", allowed="folders with files")


@rule("FILE-002", Scope.TREE, "No file is larger than 50 MB.", source=OLDER)
def no_large_files(tree: TreeView) -> Iterator[Violation]:
    for path in _in_divisions(tree, tree.listing.sizes):
        size = tree.listing.sizes[path]
        if size > READ_LIMIT_BYTES:
            yield Violation(path=path, found=f"{size} bytes", allowed=f"at most {READ_LIMIT_BYTES} bytes")


@rule("FILE-003", Scope.TREE, "No file is a symbolic link: the older checker calls relative ones broken.", source=OLDER)
def no_links(tree: TreeView) -> Iterator[Violation]:
    """A link to a folder of sources or texts is a warning: neither checker sees it (os.walk lists it as a folder)."""
    top_links = (path for path in tree.listing.links if "/" not in path)
    for path in (*top_links, *_in_divisions(tree, sorted(tree.listing.links))):
        target = tree.listing.links[path]
        severity = Severity.WARNING if _is_overlooked(tree, path, target) else None
        yield Violation(
            path=path, found=f"a link to {shown(target)}", allowed="plain files and folders", severity=severity
        )


def _is_overlooked(tree: TreeView, path: str, target: str) -> bool:
    """Whether a link points to a folder of the tree, and is outside of all folders that the rules read."""
    parts = path.split("/")
    is_read = len(parts) < _OWN_PARTS or parts[_OWN_PARTS - 2] not in _UNREAD
    return not is_read and posixpath.normpath(posixpath.join(*parts[:-1], target)) in tree.listing.folders


@rule("FILE-004", Scope.TREE, "Everything in the tree can be read.", source=OURS)
def readable(tree: TreeView) -> Iterator[Violation]:
    kinds = {oddity.path: oddity.kind for oddity in tree.listing.oddities}
    for path in _in_divisions(tree, kinds):
        yield Violation(path=path, found=kinds[path], allowed="plain files and folders")


@rule(
    "FILE-005", Scope.SUBMITTER,
    "No settings of a compliance test are left over: they would silently affect the next run.",
    source=OURS, step=Step.TREE,
)  # fmt: skip
def no_audit_settings(owner: SubmitterView) -> Iterator[Violation]:
    for path in owner.tree.listing.below(as_text(owner.paths.results_folder)):
        if _last(path) == _AUDIT_SETTINGS:
            yield Violation(path=path, found=_AUDIT_SETTINGS, allowed="no such file among results")


@rule("FILE-006", Scope.TREE, "Every file that the tree's step made is there.", source=OURS)
def nothing_is_lost(tree: TreeView) -> Iterator[Violation]:
    for path in tree.options.made_files:
        if path not in tree.listing.sizes:
            yield Violation(path=path, found="missing", allowed="the file that the tree's step made")


@rule("FILE-007", Scope.TREE, "No file changed since the tree's step made it.", source=OURS, severity=Severity.WARNING)
def nothing_is_changed(tree: TreeView) -> Iterator[Violation]:
    for path, digests in tree.options.made_files.items():
        if path in tree.listing.sizes and sha256_of(tree.listing, path) not in digests:
            yield Violation(path=path, found="another content", allowed="the content that the tree's step wrote")


@rule("CODE-001", Scope.SUBMITTER, "The source code of the benchmark is there.", source=BOTH)
def has_code(owner: SubmitterView) -> Iterator[Violation]:
    folder = as_text(owner.paths.code_folder)
    if not any(True for _ in owner.tree.listing.below(folder)):
        yield Violation(path=folder, found="no file", allowed=f"{folder}/MODEL/ with the code that ran")


@rule("CODE-002", Scope.MODEL, "Each model has a folder in the source code.", source=OLDER, severity=Severity.WARNING)
def has_code_of_model(model: ModelView) -> Iterator[Violation]:
    folder = join(as_text(model.system.owner.paths.code_folder), model.model)
    if folder not in model.system.owner.tree.listing.folders:
        yield Violation(path=folder, found="no such folder", allowed="a folder with the model's code")


@rule("DOC-001", Scope.SUBMITTER, "The submitter describes the calibration of weights.", source=OLDER, divisions=CLOSED,
      since="v5.1")  # fmt: skip
def has_calibration_text(owner: SubmitterView) -> Iterator[Violation]:
    path = as_text(owner.paths.calibration_text)
    sizes = owner.tree.listing.sizes
    if not (sizes.get(path) or sizes.get(join(owner.folder, "calibration.md"))):
        yield Violation(path=path, found="no text", allowed="calibration.md, here or in the submitter's folder")


@rule("MAP-001", Scope.SUBMITTER, "model_mapping.json is an object of texts.", source=BOTH, divisions=("open",))
def mapping_is_readable(owner: SubmitterView) -> Iterator[Violation]:
    mapping = owner.mapping
    if mapping.problem:
        yield Violation(path=mapping.path, found=mapping.problem, allowed='{"own name": "canonical name"}')
    if name := mapping.doubled:
        found = f"two values of {shown(name)}, of which readers use the first or the last"
        yield Violation(
            path=mapping.path, found=found, allowed="one", line=mapping.line_of(name), severity=Severity.WARNING
        )
    for name, value in mapping.fields.items():
        if not isinstance(value, str):
            line = mapping.line_of(name)
            yield Violation(path=mapping.path, found=shown(value), allowed="a canonical name", line=line)


@rule("MAP-002", Scope.SUBMITTER, "model_mapping.json maps to models of the round.", source=BOTH, divisions=("open",))
def mapping_is_canonical(owner: SubmitterView) -> Iterator[Violation]:
    known = owner.tree.round.models
    for name, value in owner.own_names.items():
        if value not in known:
            allowed, line = ", ".join(known), owner.mapping.line_of(name)
            yield Violation(path=owner.mapping.path, found=shown(value), allowed=allowed, line=line)


@rule("MODEL-001", Scope.MODEL, "The round has the model.", source=BOTH)
def model_is_known(model: ModelView) -> Iterator[Violation]:
    if model.table is None:
        known = ", ".join(model.system.owner.tree.round.models)
        own = " (in the open division model_mapping.json may name others)"
        yield Violation(path=model.folder, found=shown(model.model), allowed=known + own)
    elif not model.scenarios:
        yield Violation(path=model.folder, found="no scenario", allowed="one folder for each scenario")


@rule("MODEL-002", Scope.MODEL, "The system's category has the model.", source=BOTH, step=Step.SYSTEM)
def model_fits_category(model: ModelView) -> Iterator[Violation]:
    category, table = model.system.category, model.table
    if category is not None and table is not None and category not in table.scenarios:
        allowed = f"{table.name} is for: {', '.join(table.scenarios) or 'no category'}"
        yield Violation(path=model.folder, found=f"a system of category {category}", allowed=allowed)


@rule("SCEN-001", Scope.MODEL, "Each folder of a model is a scenario.", source=BOTH)
def scenarios_are_known(model: ModelView) -> Iterator[Violation]:
    seen: dict[str, str] = {}
    for name in model.scenarios:
        scenario = canonical_scenario(name)
        if scenario is None or scenario in seen:
            found = shown(name) if scenario is None else f"{name} next to {seen[scenario]}"
            yield Violation(path=join(model.folder, name), found=found, allowed=", ".join(SCENARIO_NAMES))
        else:
            seen[scenario] = name
    for name in model.system.owner.tree.listing.files_in(model.folder):
        if canonical_scenario(name) is not None:
            yield Violation(path=join(model.folder, name), found="a file", allowed="a folder with the scenario's logs")


@rule("SCEN-002", Scope.MODEL, "A model has every scenario that its category requires.", source=BOTH,
      step=Step.PERFORMANCE, divisions=CLOSED)  # fmt: skip
def scenarios_are_complete(model: ModelView) -> Iterator[Violation]:
    sets = _scenario_sets(model)
    if sets is None:
        return
    present = {name.lower() for name in model.scenarios}
    for scenario in sorted(sets.required):
        if scenario.lower() not in present:
            yield Violation(path=join(model.folder, scenario), found="missing", allowed=f"{scenario} is required")
    either = {"Interactive", "Server"}
    if either <= sets.optional and not {one.lower() for one in either} & present:
        yield Violation(path=model.folder, found="neither Server nor Interactive", allowed="one of the two")


@rule("SCEN-003", Scope.MODEL, "A model has no scenario that its category does not know.", source=BOTH,
      divisions=CLOSED)  # fmt: skip
def scenarios_are_allowed(model: ModelView) -> Iterator[Violation]:
    sets = _scenario_sets(model)
    if sets is None:
        return
    allowed = sets.required | sets.optional
    for name in model.scenarios:
        if name.lower() not in {one.lower() for one in allowed}:
            yield Violation(path=join(model.folder, name), found=name, allowed=", ".join(sorted(allowed)))


@rule("SCEN-004", Scope.SCENARIO, "Every folder of a result is one that a rule knows.", source=OURS, step=Step.TREE)
def folders_are_known(scenario: ScenarioView) -> Iterator[Violation]:
    """A warning before v5.0: seven published results of round v4.1 have further runs in addition to the one that
    counts."""
    listing, owner = scenario.tree.listing, scenario.model.system.owner
    place = ScenarioPlace(system=scenario.subject.system, model=scenario.subject.model, scenario=scenario.name)
    runs = {f"run_{number}" for number in range(1, 6 if scenario.tree.round.name == "v0.7" else 2)}
    inner = ("performance", "accuracy", *_TESTS, *_audits(scenario))
    known = {
        scenario.folder: inner,
        as_text(owner.paths.compliance_folder(place, "TEST01").parent): inner,
        join(scenario.folder, "performance"): (*sorted(runs), "power", "ranging"),
    }
    for folder, names in known.items():
        for name in listing.folders_in(folder):
            if name not in names:
                severity = Severity.WARNING if scenario.tree.round.is_old else None
                found, allowed = f"a folder {shown(name)}", ", ".join(names)
                yield Violation(path=join(folder, name), found=found, allowed=allowed, severity=severity)


@rule("SCEN-005", Scope.SCENARIO, "A scenario's folder has the official spelling.", source=NEWER, step=Step.TREE,
      severity=Severity.WARNING, since="v6.1")  # fmt: skip
def folder_is_spelt_officially(scenario: ScenarioView) -> Iterator[Violation]:
    """The checker looks up what depends on the scenario by the folder's spelling, and calls others inferred."""
    table = scenario.model.table
    if scenario.scenario is not None and scenario.name != scenario.scenario:
        is_looked_up = table is not None and scenario.scenario in table.accuracy_samples
        severity = Severity.ERROR if is_looked_up else None
        yield Violation(path=scenario.folder, found=scenario.name, allowed=scenario.scenario, severity=severity)


def _audits(scenario: ScenarioView) -> tuple[str, ...]:
    return () if endpoints_of(scenario) is None else ("audit",)


def _scenario_sets(model: ModelView) -> ScenarioSets | None:
    category = model.system.category
    return None if model.table is None or category is None else model.table.scenarios.get(category)
