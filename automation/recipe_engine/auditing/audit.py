"""``cm audit script``: checks recipes without running anything, and reports what is wrong with them and where.

It reads every registered recipe, because whether a recipe exists for a dependency depends on all of them; findings are
reported for the selected ones. The rules are in metadata.py and code.py.
"""

import fnmatch
import logging
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..actions.adapter import Home, show
from ..actions.run import parse_query_input
from ..disk.metadata import (
    CM_NAMES,
    belongs_to_recipes,
    check_automation,
    file_text,
    meta_files,
    read_meta,
    recipe_texts,
)
from ..disk.packages import Library
from ..disk.repos import RepoInfo
from ..rules.amounts import counted
from ..rules.env import INPUT_TO_ENV
from ..rules.errors import NotFound, RecipeError, RequestError
from ..rules.inputs import FLAGS
from ..rules.query import RecipeIndex, candidates, nearest_hint
from ..rules.schema import Reader, parse_recipe
from ..running.process import run_process
from . import code, metadata
from .findings import LEVELS, Finding
from .recipes import AuditedRecipe, Block, Places, Registered, Rule, blocks_of, places_of, registered

logger = logging.getLogger(__name__)

RULES = [rule for module in (metadata, code) for rule in vars(module).values() if isinstance(rule, Rule)]
SHELL_ERROR = re.compile(r"(?P<file>.+?): line (?P<line>\d+): (?P<text>.*)")


def audit_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm audit script [[repo:]alias] [--tags=..] [--level=error|warning|info]``; code 1 if there are errors.

    Raises RequestError for an unknown level, NotFound when no recipe is selected.
    """
    level = str(i.get("level") or "warning")
    if level not in LEVELS:
        raise RequestError(f"--level={level} is not known", hint=f"one of: {', '.join(LEVELS)}")
    roots = [repo.path for repo in home.repos]
    recipes = [audited for repo in home.repos for audited in read_repo(repo, roots)]
    chosen = chosen_recipes(i, recipes)
    inputs = {name: INPUT_TO_ENV.get(name, "") for name in FLAGS}
    findings = audit(with_shell_errors(chosen), registered(recipes, inputs))
    levels = LEVELS[: LEVELS.index(level) + 1]
    shown = [finding for finding in findings if finding.level in levels]
    found: dict[str, int] = {name: sum(finding.level == name for finding in findings) for name in LEVELS}
    show(i, *lines_of(shown))
    if i.get("out") == "con":
        logger.info("%s", summary(len(chosen), found, level))
    answer: dict[str, Any] = {
        "return": 0,
        "recipes": len(chosen),
        "counts": found,
        "findings": [{"level": finding.level, **finding._asdict()} for finding in shown],
    }
    if found["error"]:
        answer.update({"return": 1, "error": f"the audit found {counted(found['error'], 'error')}"})
    return answer


def audit(recipes: Sequence[AuditedRecipe], among: Registered) -> tuple[Finding, ...]:
    """What all rules find in these recipes, ordered by recipe, file and line, without repeats."""
    found = [
        finding
        for audited in recipes
        for rule in RULES
        if audited.parsed is not None or not rule.is_of_recipe
        for finding in rule.check(audited, among)
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda row: (row.repo, row.recipe, row.file, row.line)))


def lines_of(findings: Iterable[Finding]) -> Iterator[str]:
    """One line for each finding, in the form that editors know: ``file:line: level code: text``; hints below."""
    for finding in findings:
        place = f"{_short(finding.file)}:{finding.line}" if finding.line else _short(finding.file)
        key = f" [{finding.key}]" if finding.key else ""
        yield f"{place}: {finding.level} {finding.code}: {finding.text}{key}"
        if finding.hint:
            yield f"    hint: {finding.hint}"


def summary(count: int, found: Mapping[str, int], level: str) -> str:
    """The last line for a user."""
    parts = [counted(found[name], word) for name, word in zip(LEVELS, ("error", "warning", "note"), strict=True)]
    more = " (--level=info shows the notes)" if level != "info" and found["info"] else ""
    return f"checked {counted(count, 'recipe')}: {', '.join(parts)}{more}"


def _short(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def chosen_recipes(i: Mapping[str, Any], recipes: Sequence[AuditedRecipe]) -> list[AuditedRecipe]:
    """The recipes that ``--tags``, ``repo:`` or ``[repo:]alias`` (with ``*`` and ``?``) ask for; all without any."""
    artifact = str(i.get("artifact") or "").strip()
    repo, colon, rest = artifact.partition(":")
    name = rest if colon else artifact
    found = list(recipes)
    if colon:
        found = [audited for audited in found if repo in (audited.repo, audited.folder.parent.parent.name)]
        if not found:
            known = sorted({audited.repo for audited in recipes})
            raise NotFound(f"no registered repository '{repo}' has recipes", hint=f"known are: {', '.join(known)}")
    if " " in name or i.get("tags"):
        query, _ = parse_query_input({**i, "artifact": name if " " in name else ""})
        index = RecipeIndex([audited.entry for audited in found if audited.entry], {})
        paths = {entry.path for entry in candidates(query, "", index)}
        return [audited for audited in found if audited.folder in paths]
    if name:
        found = [audited for audited in found if _is_called(audited, name)]
    if not found:
        hint = nearest_hint(name, [audited.alias for audited in recipes], otherwise="cm find script lists all recipes")
        raise NotFound(f"no recipe is called '{name}'" if name else "no recipe is registered", hint=hint)
    return found


def _is_called(audited: AuditedRecipe, name: str) -> bool:
    names = {audited.alias, audited.folder.name, str(audited.meta.get("uid", ""))}
    return any(fnmatch.fnmatchcase(each, part) for each in names for part in name.split(","))


# --- reading ---


def read_repo(repo: RepoInfo, roots: Sequence[Path]) -> Iterator[AuditedRecipe]:
    """The recipes of a repository as an audit sees them, those that the engine cannot use too."""
    root = repo.path / "script"
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if meta_files(folder):
            audited = read_audited(folder, repo, roots)
            if belongs_to_recipes(audited.meta):
                yield audited


def read_audited(folder: Path, repo: RepoInfo, roots: Sequence[Path]) -> AuditedRecipe:
    """One recipe folder, whatever state it is in."""
    files = meta_files(folder)
    file_name = files[0].name if files else CM_NAMES[0]
    meta, recipe = {}, None
    blocks: list[Block] = []
    errors: list[RecipeError] = []
    try:
        meta = read_meta(folder, roots).values
        check_automation(meta, folder / file_name)
        recipe = parse_recipe(meta, folder, folder.parent.parent, file_name)
        blocks, errors = blocks_of(recipe)
    except (RecipeError, OSError, ValueError) as error:
        errors = [error if isinstance(error, RecipeError) else RecipeError(str(error))]
    return AuditedRecipe(
        repo=repo.alias,
        folder=folder,
        file_name=file_name,
        meta=meta,
        parsed=recipe,
        blocks=blocks,
        errors=errors,
        places=places_of(file_text(files[0])) if files else Places({}),
        texts=recipe_texts(folder, is_deep=True),
        files=frozenset(os.listdir(folder)),
        unknown_modules=list(_unknown_modules(blocks, repo)),
    )


def _unknown_modules(blocks: Iterable[Block], repo: RepoInfo) -> Iterator[tuple[str, str, str]]:
    """The modules that blocks declare and the repository's packages lack: key, what is wrong, hint."""
    for block in blocks:
        for name in Reader(block.source, block.where).texts("library"):
            try:
                if not repo.packages:
                    raise RequestError("cmr.yaml has no 'python' folder", hint="python: src")
                if "#" not in name:
                    Library(repo.path, repo.packages).check(name)
            except RecipeError as error:
                yield f"{block.where}library", error.message.removeprefix("library: "), error.hint


def with_shell_errors(recipes: Sequence[AuditedRecipe]) -> list[AuditedRecipe]:
    """The recipes with what ``bash -n`` says of their scripts; bash reads them and runs nothing."""
    scripts = [str(audited.folder / name) for audited in recipes for name in audited.texts if name.endswith(".sh")]
    with tempfile.TemporaryDirectory() as place:
        out = Path(place, "errors")
        out.touch()
        check = 'out=$1; shift; for file; do LC_ALL=C bash -n -- "$file" 2>>"$out"; done; true'  # words: ok P23
        for start in range(0, len(scripts), 500):
            words = ["bash", "-c", check, "bash", str(out), *scripts[start : start + 500]]
            run_process(words, Path(place), extra_env={}, log_path=None)
        lines = file_text(out).splitlines()
    found: dict[Path, tuple[int, str]] = {}
    for match in filter(None, map(SHELL_ERROR.fullmatch, lines)):
        found.setdefault(Path(match["file"]), (int(match["line"]), match["text"]))
    return [
        audited._replace(
            shell_errors={name: found[path] for name in audited.texts if (path := audited.folder / name) in found}
        )
        for audited in recipes
    ]
