"""What the recipe does beside measuring: trees from recorded runs, checks, the official viewer. Gives texts to show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crowdperf.curves.declaration import read_declaration
from crowdperf.curves.official import OfficialFinding, build_site, check_officially, export_view
from crowdperf.curves.recorded import facts_of, recorded_points, with_offline
from crowdperf.curves.request import Inputs, RequestError
from crowdperf.curves.tokens import counter_of
from crowdperf.endpoints.edition import Edition, read_edition
from crowdperf.endpoints.events import CountTokens
from crowdperf.endpoints.findings import grouped
from crowdperf.endpoints.pointfiles import Offline
from crowdperf.endpoints.readtree import Beside, tree_of_curve
from crowdperf.endpoints.rules import CheckReport, check_tree
from crowdperf.endpoints.tree import write_tree
from crowdperf.kit.privacy import known_here
from crowdperf.rules.names import counted

BUNDLE, SITE = "bundle.json", "site"
CLIENT_PROGRAMS = ("bin/inference-endpoint", ".venv/bin/inference-endpoint")
"""Where the client is in its virtual environment, and in its checkout."""


def edition_of(given: Inputs) -> Edition:
    """The edition of the rules, with the seed sets of `--seed_sets`; raises ClientFileError."""
    return read_edition(given.path("seed_sets"))


def tree_from_recorded(given: Inputs, folder: Path, target: Path) -> Path:
    """Writes the tree of recorded runs below `target`; gives the submission's folder. Raises ValueError, OSError."""
    offline = Offline(given.values["offline"])
    changed = {key: one for key in ("c_max", "c_min", "dataset_samples") if (one := given.values[key]) is not None}
    points = with_offline(recorded_points(folder, _counter(given)), offline)
    facts = facts_of(points, edition_of(given), given.values["division"], offline)
    facts = replace(facts, **changed, target_cohort=given.text("target_cohort", facts.target_cohort))
    return write_tree(target, read_declaration(given.path("submission"), facts), points)


def _counter(given: Inputs) -> CountTokens | None:
    """What counts tokens by `--tokenizer`; None without it. Raises TokenizerError."""
    tokenizer, client = given.tokenizer(), given.path("client")
    programs = [client / name for name in ("", *CLIENT_PROGRAMS)] if client else []
    return counter_of(Path(tokenizer), next(filter(Path.is_file, programs), None)) if tokenizer else None


def tree_of(given: Inputs) -> tuple[Path, dict[str, Path]]:
    """The submission that `--curve_dir` names, and its points' samples where it is a curve's folder.

    Raises NoTree, RequestError.
    """
    folder = given.path("curve_dir")
    if folder is None:
        raise RequestError("--curve_dir is missing: the folder of a curve, or of a submission tree")
    return tree_of_curve(folder)


def own_check(given: Inputs, submission: Path, events: Mapping[str, Path]) -> CheckReport:
    """What the rules E1 to E19 find in a submission; raises NoTree, ClientFileError, TokenizerError, OSError."""
    beside = Beside(known=known_here(), events=events, count_tokens=_counter(given))
    return check_tree(submission, edition_of(given), beside)


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdicts of both checkers. lines: for people."""

    own_errors: int
    official_errors: int
    lines: tuple[str, ...]

    @property
    def is_accepted(self) -> bool:
        """True where neither refuses the tree."""
        return not self.own_errors and not self.official_errors


def official_lines(findings: Sequence[OfficialFinding]) -> tuple[str, ...]:
    """A line for each rule of the official checker: its first finding, and how many more there are."""
    by_rule: dict[tuple[str, str], list[OfficialFinding]] = {}
    for one in findings:
        by_rule.setdefault((one.severity, one.rule), []).append(one)
    return tuple(
        f"{severity} {rule}: {found[0].path}: {found[0].message}"
        + (f" (and {len(found) - 1} more of this rule)" if len(found) > 1 else "")
        for (severity, rule), found in by_rule.items()
    )


def check_both(given: Inputs, program: Path) -> Checked:
    """Checks a tree by MLCommons' checker and by the rules E1 to E19; raises ValueError, OfficialError, OSError."""
    submission, events = tree_of(given)
    official = check_officially(program, submission, given.path("seed_sets"))
    own = own_check(given, submission, events)
    lines = [f"official checker: {len(official.errors)} errors, {len(official.warnings)} warnings"]
    lines += [f"  {line}" for line in official_lines((*official.errors, *official.warnings))]
    lines.append(f"rules E1 to E19: {counted(len(own.errors), 'error')} in {counted(own.points, 'point')}")
    lines += [f"  {line}" for line in grouped(own.findings)]
    return Checked(len(own.errors), len(official.errors), tuple(lines))


def view(given: Inputs, program: Path) -> tuple[str, ...]:
    """Writes what MLCommons' viewer makes of a tree, below `--output`; gives lines. Raises as `check_both`."""
    submission, _ = tree_of(given)
    target = given.values["output"].resolve()
    target.mkdir(parents=True, exist_ok=True)
    runs = export_view(program, submission, target / BUNDLE)
    build_site(program, submission, target / SITE)
    return (
        f"{runs} runs: {target / BUNDLE}",
        f"official page: {target / SITE}",
        "the official page contacts two other hosts (fonts, a visitor counter), while curve.html makes "
        "no network requests",
    )
