"""``cm add script [repo:]alias[,uid]``: writes a new recipe that runs and passes the audit.

The templates are the folders of automation/script/templates, with placeholders such as ``@ALIAS@``; what is below
``repo`` goes to that place in the repository. One that has tests of recipes, as this one, also gets a test of it.
"""

import json
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.files import remove_tree, write_text
from ..disk.repos import AUTOMATION, CHECKOUT, RepoInfo
from ..rules.errors import NotFound, RequestError
from ..rules.query import RecipeIndex, parse_query
from ..rules.spelling import meant
from .adapter import Home

logger = logging.getLogger(__name__)

TEMPLATES = AUTOMATION / "script" / "templates"
SCHEMA = CHECKOUT / "docs" / "reference" / "cm-recipe.schema.json"
ENDING = ".template"
PLAIN = re.compile(r"(?i)(?!(?:y|n|yes|no|on|off|true|false|null)$)[a-z][a-z0-9._-]*")
"""A name or tag that YAML reads as a text without quotes."""
UID = re.compile(r"[0-9a-f]{16}")
PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")


class NewRecipe(NamedTuple):
    """The checked request: ``program`` is the one that the template ``tool`` looks for."""

    repo: RepoInfo
    alias: str
    uid: str
    tags: tuple[str, ...]
    template: str
    program: str

    @property
    def folder(self) -> Path:
        """Where the recipe will be."""
        return self.repo.path / "script" / self.alias

    @property
    def schema_line(self) -> str:
        """The line by which editors find the schema; none where its path would name this machine's folders."""
        if CHECKOUT not in (self.repo.path, self.repo.path.parent / CHECKOUT.name):
            return ""
        return f"# yaml-language-server: $schema={Path(os.path.relpath(SCHEMA, self.folder)).as_posix()}\n"

    def fill_in(self, text: str) -> str:
        """A template's text for this recipe."""
        own_name = re.sub(r"[^A-Za-z0-9]+", "_", self.alias.removeprefix("get-") or self.alias).strip("_").upper()
        values = {
            "ALIAS": self.alias,
            "KEY": f"CM_{own_name}",  # what the recipe's env keys start with
            "NAME": own_name.lower(),
            "PROGRAM": self.program,
            "SCHEMA_LINE": self.schema_line,
            "TAGS": "\n".join(f"- {tag if PLAIN.fullmatch(tag) else json.dumps(tag)}" for tag in self.tags),
            "TAG_TEXT": ",".join(self.tags),
            "UID": self.uid,
        }
        return re.sub(r"@([A-Z_]+)@", lambda match: values[match[1]], text)


def add_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm add script [repo:]alias[,uid] [--tags=...] [--template=...] [--program=...]``.

    Raises RequestError for a name, uid, tag or template that cannot be used, NotFound for an unknown repository.
    """
    recipe = parse_new(i, home)
    files = write_recipe(recipe)
    logger.info("new recipe: %s", recipe.folder)
    logger.info("  try it:     cm run script --tags=%s", ",".join(recipe.tags))
    logger.info("  check it:   cm audit script %s:%s", recipe.repo.alias, recipe.alias)
    return {
        "return": 0,
        "alias": recipe.alias,
        "uid": recipe.uid,
        "tags": list(recipe.tags),
        "path": str(recipe.folder),
        "files": [str(path) for path in files],
    }


def parse_new(i: Mapping[str, Any], home: Home) -> NewRecipe:
    """The request of ``cm add script``; raises as ``add_action`` does."""
    place, colon, name = str(i.get("artifact") or "").strip().rpartition(":")
    alias, _, uid = name.partition(",")
    index = home.source().index
    if not alias:
        raise RequestError("the new recipe has no name", hint="cm add script get-my-tool --tags=get,my-tool")
    if not PLAIN.fullmatch(alias) or UID.fullmatch(alias):
        raise RequestError(
            f"'{alias}' cannot be the name of a recipe",
            hint="a letter, then letters, digits, '-', '_' and '.', but not 16 hex digits",
        )
    if uid and not UID.fullmatch(uid):
        raise RequestError(f"'{uid}' is not a uid", hint="16 lower-case hex digits, or omit it to generate one")
    program = str(i.get("program") or alias.removeprefix("get-"))
    if not PROGRAM.fullmatch(program):
        raise RequestError(f"--program={program} is not the name of a program", hint="for example --program=make")
    recipe = NewRecipe(
        repo=_repo(place if colon else "local", home),
        alias=alias,
        uid=uid or _new_uid(index),
        tags=_tags(i.get("tags") or alias.replace("-", ","), index),
        template=_template(str(i.get("template") or "plain")),
        program=program,
    )
    if found := (*index.by_name(alias), *index.by_name(recipe.uid)):
        what = f"name '{alias}'" if found[0].alias == alias else f"uid {recipe.uid}"
        owner = f"{found[0].repo_alias}:{found[0].alias}"
        raise RequestError(f"the {what} is in use by {owner}", hint=f"see {found[0].path}")
    for path in beside(recipe):
        if path.exists() or not path.parents[1].is_dir():
            what = "exists already" if path.exists() else f"has no place: {path.parents[1]} is missing"
            hint = (
                "use another name" if path.exists() else "use a checkout of crowdperf: cm add script crowdperf:get-NAME"
            )
            raise RequestError(f"--template={recipe.template}: {path} {what}", hint=hint)
    if recipe.folder.exists():
        raise RequestError(f"the folder {recipe.folder} exists already", hint="use another name, or remove the folder")
    return recipe


def beside(recipe: NewRecipe) -> dict[Path, str]:
    """The files that a template has for other folders of the repository, with their texts."""
    root = TEMPLATES / recipe.template / "repo"
    found = {path: path.relative_to(root).as_posix() for path in sorted(root.rglob("*" + ENDING))}
    return {
        recipe.repo.path / recipe.fill_in(name.removesuffix(ENDING)): recipe.fill_in(path.read_text(encoding="utf-8"))
        for path, name in found.items()
    }


def _repo(name: str, home: Home) -> RepoInfo:
    for repo in home.repos:
        if name in (repo.alias, repo.uid):
            return repo
    known = sorted(repo.alias for repo in home.repos)
    hint = (
        f"known repositories: {', '.join(known)}. Put one in front: cm add script {known[0] if known else 'REPO'}:ALIAS"
    )
    raise NotFound(f"no registered repository is called '{name}'", hint=hint)


def _template(name: str) -> str:
    known = sorted(path.name for path in TEMPLATES.iterdir() if path.is_dir())
    if name not in known:
        near = meant(name, known)
        guess = f"did you mean --template={near}? " if near else ""
        raise RequestError(f"--template={name} is not known", hint=f"{guess}templates are: {', '.join(known)}")
    return name


def _tags(asked: Any, index: RecipeIndex) -> tuple[str, ...]:
    query = parse_query(asked)
    odd = [tag for tag in query.all_of if not re.fullmatch(r"[^\s\"'\\#]+", tag)]
    if odd or query.variations or query.none_of or query.excluded_variations or not query.all_of:
        raise RequestError(
            f"--tags={query.text} cannot be the tags of a recipe",
            hint="words separated by commas, without whitespace, quotes and '#', not starting with '_' or '-'",
        )
    if found := index.by_tags(query.all_of, ()):
        raise RequestError(
            f"the tags {query.text} already match {found[0].repo_alias}:{found[0].alias}",
            hint="add a unique tag, such as its name",
        )
    return query.all_of


def _new_uid(index: RecipeIndex) -> str:
    import secrets  # here, because only a new recipe needs it

    while True:
        uid = secrets.token_hex(8)
        if not re.fullmatch(r"\d+e?\d*", uid) and not index.by_name(uid):
            return uid


def write_recipe(recipe: NewRecipe) -> list[Path]:
    """Writes the recipe's folder as a whole, then its test; the paths of all files.

    Raises RequestError when another process has made the folder since.
    """
    import tempfile  # here, because only a new recipe needs it

    paths = sorted((TEMPLATES / recipe.template).glob("*" + ENDING))
    texts = {path.name.removesuffix(ENDING): recipe.fill_in(path.read_text(encoding="utf-8")) for path in paths}
    test_text = texts.pop("test.py")
    recipe.folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".new-recipe-", dir=recipe.repo.path))
    try:
        for name, text in texts.items():
            write_text(draft / name, text)
        draft.chmod(0o755)
        draft.rename(recipe.folder)
    except OSError as error:
        raise RequestError(f"cannot write {recipe.folder}: {error.strerror}") from None
    finally:
        if draft.is_dir():
            remove_tree(draft)
    files = [recipe.folder / name for name in texts]
    for path, text in beside(recipe).items():
        path.parent.mkdir(exist_ok=True)
        write_text(path, text)
        files.append(path)
    tests = recipe.repo.path / "tests" / "recipes"
    test = tests / f"test_{re.sub(r'[^A-Za-z0-9]+', '_', recipe.alias).lower()}.py"
    if (recipe.repo.path / "tests" / "support" / "recipe_loader.py").is_file() and not test.exists():
        write_text(test, test_text)
        files.append(test)
    return files
