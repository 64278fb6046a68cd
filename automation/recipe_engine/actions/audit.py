"""``cm audit script``: looks over recipes without running anything, and tells what is wrong with them and where.

It reads every registered recipe, because whether a dependency is answered depends on all of them; findings are told of
those that were asked for. The rules are in `auditing/rules.py`.
"""

from __future__ import annotations

import fnmatch
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..auditing.findings import LEVELS, Finding
from ..auditing.rules import audit, counts
from ..auditing.subject import Subject, registered
from ..disk.metafile import CM_NAMES, meta_files, read_meta
from ..disk.repos import IGNORED_IN_DIGEST, SCRIPT_AUTOMATION_UID
from ..rules.deps import INPUT_TO_ENV
from ..rules.errors import NotFound, RecipeError, RequestError
from ..rules.flags import FLAGS
from ..rules.index import RecipeIndex, RepoInfo
from ..rules.places import Places, places_of
from ..rules.schema import parse_recipe
from ..rules.select import candidates
from ..rules.tags import nearest
from .run import Home, parse_query_input

logger = logging.getLogger(__name__)

READ_ENDINGS = (".py", ".sh")
MAX_TEXT_BYTES = 1_000_000
"""Larger files are data, whatever they are called."""
SHELL_ERROR = re.compile(r"(?P<file>.+?): line (?P<line>\d+): (?P<text>.*)")


def audit_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm audit script [[repo:]alias] [--tags=..] [--level=error|warning|info]``; code 1 if there are errors.

    Raises RequestError for an unknown level, NotFound when no recipe is meant.
    """
    level = str(i.get("level") or "warning")
    if level not in LEVELS:
        raise RequestError(f"--level={level} is not known", hint=f"one of: {', '.join(LEVELS)}")
    subjects = [subject for repo in home.repos for subject in read_repo(repo, [other.path for other in home.repos])]
    chosen = chosen_subjects(i, subjects)
    inputs = {name: INPUT_TO_ENV.get(name, "") for name in FLAGS}
    findings = audit(with_shell_errors(chosen), registered(subjects, inputs))
    told = [finding for finding in findings if finding.severity <= LEVELS.index(level)]
    found = counts(findings)
    if i.get("out") == "con":
        sys.stdout.write("".join(line + "\n" for line in lines_of(told)))
        sys.stdout.flush()
        logger.info("%s", summary(len(chosen), found, level))
    answer: dict[str, Any] = {
        "return": 0,
        "recipes": len(chosen),
        "counts": dict(found),
        "findings": [{"level": finding.level, **finding._asdict()} for finding in told],
    }
    if found["error"]:
        answer.update({"return": 1, "error": f"the audit found {_number(found['error'], 'error')}"})
    return answer


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
    parts = [_number(found["error"], "error"), _number(found["warning"], "warning"), _number(found["info"], "note")]
    more = " (--level=info shows the notes)" if level != "info" and found["info"] else ""
    return f"looked at {_number(count, 'recipe')}: {', '.join(parts)}{more}"


def _number(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _short(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def chosen_subjects(i: Mapping[str, Any], subjects: Sequence[Subject]) -> list[Subject]:
    """The recipes that ``--tags``, ``repo:`` or ``[repo:]alias`` (with ``*`` and ``?``) ask for; all without any."""
    artifact = str(i.get("artifact") or "").strip()
    repo, colon, rest = artifact.partition(":")
    name = rest if colon else artifact
    found = list(subjects)
    if colon:
        found = [subject for subject in found if repo in (subject.repo, subject.folder.parent.parent.name)]
        if not found:
            known = sorted({subject.repo for subject in subjects})
            raise NotFound(f"no registered repository '{repo}' has recipes", hint=f"known are: {', '.join(known)}")
    if " " in name or i.get("tags"):
        query, _ = parse_query_input({**i, "artifact": name if " " in name else ""})
        index = RecipeIndex([subject.entry for subject in found if subject.entry], {})
        paths = {entry.path for entry in candidates(query, "", index)}
        return [subject for subject in found if subject.folder in paths]
    if name:
        found = [subject for subject in found if _is_called(subject, name)]
    if not found:
        known = [subject.alias for subject in subjects]
        close = nearest(name, known)
        raise NotFound(
            f"no recipe is called '{name}'" if name else "no recipe is registered",
            hint=f"the nearest are: {', '.join(close)}" if close else "cm find script lists all recipes",
        )
    return found


def _is_called(subject: Subject, name: str) -> bool:
    names = {subject.alias, subject.folder.name, str(subject.meta.get("uid", ""))}
    return any(fnmatch.fnmatchcase(each, part) for each in names for part in name.split(","))


# --- reading ---


def read_repo(repo: RepoInfo, roots: Sequence[Path]) -> Iterator[Subject]:
    """The recipes of a repository as an audit sees them, those that the engine cannot use too."""
    root = repo.path / "script"
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if meta_files(folder):
            subject = read_subject(folder, repo.alias, roots)
            if str(subject.meta.get("automation_uid", SCRIPT_AUTOMATION_UID)) == SCRIPT_AUTOMATION_UID:
                yield subject


def read_subject(folder: Path, repo: str, roots: Sequence[Path]) -> Subject:
    """One recipe folder, whatever state it is in."""
    files = meta_files(folder)
    file_name = files[0].name if files else CM_NAMES[0]
    problem, meta, recipe = "", {}, None
    try:
        meta = read_meta(folder, roots).values
        recipe = parse_recipe(meta, folder, folder.parent.parent, file_name)
    except (RecipeError, OSError, ValueError) as error:
        text = error.message if isinstance(error, RecipeError) else str(error)
        problem = text.removeprefix(f"{folder / file_name}: ")
    return Subject(
        repo=repo,
        folder=folder,
        file_name=file_name,
        meta=meta,
        recipe=recipe,
        problem=problem,
        places=places_of(_text(files[0])) if files else Places({}),
        texts=dict(_texts(folder)),
        files=frozenset(os.listdir(folder)),
    )


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in IGNORED_IN_DIGEST and not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if name.endswith(READ_ENDINGS) and path.is_file() and path.stat().st_size <= MAX_TEXT_BYTES:
                yield path.relative_to(folder).as_posix(), _text(path)


def _text(path: Path) -> str:
    encoding = "utf-8-sig" if path.suffix == ".py" else "utf-8"  # Python reads over a byte order mark, bash does not
    return path.read_bytes().decode(encoding, "replace")  # not read_text: it would hide Windows line ends


def with_shell_errors(subjects: Sequence[Subject]) -> list[Subject]:
    """The subjects with what ``bash -n`` says of their scripts; bash reads them and runs nothing."""
    import tempfile  # here, because only audits need them

    from ..running.process import run_process

    scripts = [str(subject.folder / name) for subject in subjects for name in subject.texts if name.endswith(".sh")]
    with tempfile.TemporaryDirectory() as place:
        out = Path(place, "errors")
        out.touch()
        check = 'out=$1; shift; for file; do LC_ALL=C bash -n -- "$file" 2>>"$out"; done; true'
        for start in range(0, len(scripts), 500):
            words = ["bash", "-c", check, "bash", str(out), *scripts[start : start + 500]]
            run_process(words, Path(place), extra_env={}, log_path=None)
        found: dict[str, tuple[int, str]] = {}
        for match in map(SHELL_ERROR.fullmatch, _text(out).splitlines()):
            if match and match["file"] not in found:
                found[match["file"]] = (int(match["line"]), match["text"])
    return [
        subject._replace(
            shell_errors={name: found[path] for name in subject.texts if (path := str(subject.folder / name)) in found}
        )
        for subject in subjects
    ]
