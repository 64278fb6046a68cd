"""``cm ... utils``: the helpers that recipes call through ``cm.access``, with CM's arguments and answers.

Two recipes of this repository, download-file and extract-file, handle downloads and archives. Their hooks are called
here, so that a helper and a recipe with the same task do it in the same way: completely and checked, or not at all.

``load_cfg`` and ``select_cfg`` read the ``cfg/`` folders of registered repositories: ``cfg/<name>`` with a ``_cm.json``
or ``_cm.yaml`` is an artifact, each other JSON or YAML file in it a configuration, which may take over another one with
``_base: file.yaml`` or ``_base: "artifact:file.yaml"``.
"""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.metadata import meta_files, read_mapping, read_meta
from ..disk.repos import CHECKOUT, RepoInfo
from ..rules.amounts import whole_number
from ..rules.conditions import FALSE_WORDS
from ..rules.env import Env, merge_state, plain_copy
from ..rules.errors import MetaError, NothingFound, RequestError
from ..rules.query import compare, split_words
from ..rules.schema import parse_recipe
from ..running.console import pick
from ..running.context import os_info, passed_on_env
from ..running.hooks import call_hook
from .adapter import Home, show
from .run import split_artifact

Answer = dict[str, Any]

VERIFY_VARIABLE = "CM_UTILS_DOWNLOAD_VERIFY_SSL"
"""Process variable that decides for all downloads whether certificates are checked: ``yes`` or not (cm4mlops 2024)."""
ENDINGS = (".json", ".yaml")
JOINED_KEYS = ("tags", "name")
"""Texts of a configuration that are appended to those of its base instead of replacing them."""
MAX_BASES = 10
DEFAULT_TAGS = "basic,docker,configurations"
"""What ``select_cfg`` looks among when no tags are given (reference engine, cm4mlops e1d5c7cf0)."""


def get_host_os_info(i: Mapping[str, Any]) -> Answer:
    """CM's ``os_info`` as ``info``; ``bits`` replaces the bits of the host."""
    info = plain_copy(os_info())
    if i.get("bits"):
        info["bits"] = str(i["bits"])
    show(i, json.dumps(info, indent=2, sort_keys=True))
    return {"return": 0, "info": info}


def download_file(i: Mapping[str, Any]) -> Answer:
    """Downloads ``url`` to ``filename`` in ``path`` (the current folder); ``filename``, ``path`` and ``size`` in bytes.

    ``md5sum`` and ``sha256sum`` are checked before the file gets its name. Raises HookFailed when the download fails.
    """
    url = _wanted(i, "url", "the address of the file")
    asked = str(i.get("verify", True)).strip().lower() not in (*FALSE_WORDS, "")
    verifies = os.environ[VERIFY_VARIABLE] == "yes" if VERIFY_VARIABLE in os.environ else asked
    env: Env = {
        **passed_on_env(),
        "CM_DOWNLOAD_URL": url,
        "CM_DOWNLOAD_FILENAME": str(i.get("filename") or ""),
        "CM_DOWNLOAD_PATH": str(i.get("path") or os.getcwd()),
        "CM_DOWNLOAD_CHECKSUM": str(i.get("md5sum") or ""),
        "CM_DOWNLOAD_SHA256": str(i.get("sha256sum") or ""),
        "CM_DOWNLOAD_MAX_SIZE_BYTES": str(i.get("max_size_bytes") or ""),
        "CM_DOWNLOAD_RECORD": "no",
        "CM_VERIFY_SSL": "yes" if verifies else "no",
    }
    _run_hook("download-file", "preprocess", env)
    path = Path(str(env["CM_DOWNLOAD_DOWNLOADED_PATH"]))
    show(i, str(path))
    return {"return": 0, "filename": path.name, "path": str(path), "size": path.stat().st_size}


def unzip_file(i: Mapping[str, Any]) -> Answer:
    """Unpacks ``filename`` (zip, tar ...) into ``path`` (the current folder), without the first ``strip_folders``.

    Files that are there are replaced. An archive with a member that would leave the folder is refused as a whole.
    """
    path = Path(_wanted(i, "filename", "the archive"))
    if not path.is_file():
        raise NothingFound(f"the archive {path.absolute()} does not exist")
    strip_folders = str(i.get("strip_folders") or 0)
    if whole_number(strip_folders) is None:
        raise RequestError(f"strip_folders must be a whole number >= 0, got {strip_folders!r}")
    env: Env = {
        "CM_EXTRACT_FILEPATH": str(path),
        "CM_EXTRACT_PATH": str(i.get("path") or os.getcwd()),
        "CM_EXTRACT_STRIP_FOLDERS": strip_folders,
        "CM_EXTRACT_OVERWRITE": "yes",
        "CM_EXTRACT_MAX_SIZE_BYTES": str(i.get("max_size_bytes") or ""),
    }
    _run_hook("extract-file", "postprocess", env)
    return {"return": 0, "path": str(env["CM_EXTRACT_EXTRACTED_PATH"])}


def _wanted(i: Mapping[str, Any], key: str, what: str) -> str:
    value = str(i.get(key) or "").strip()
    if not value:
        raise RequestError(f"--{key} is missing: {what}", hint=f"add --{key}=...")
    return value


def _run_hook(alias: str, hook: str, env: Env) -> None:
    """Calls a hook of one of this repository's recipes, which changes ``env``."""
    folder = CHECKOUT / "script" / alias
    if not folder.is_dir():
        raise RequestError(
            f"this helper needs the recipe {alias}, but {folder} does not exist",
            hint="register the whole repository",
        )
    python = read_mapping(CHECKOUT / "cmr.yaml").get("python")
    packages = RepoInfo(CHECKOUT, "", "", python=python).packages
    recipe = parse_recipe(read_meta(folder).values, folder, CHECKOUT)._replace(packages=packages)
    call_hook(recipe, hook, {"env": env})


def compare_versions(i: Mapping[str, Any]) -> Answer:
    """``comparison``: 1 when ``version1`` is the newer one, 0 when both are the same, -1 when ``version2`` is newer."""
    result = compare(_wanted(i, "version1", "a version"), _wanted(i, "version2", "a version"))
    show(i, str(result))
    return {"return": 0, "comparison": result}


def system(i: Mapping[str, Any]) -> Answer:
    """Runs the shell line ``cmd`` in ``path``; ``ret`` is its exit status, ``stdout``, ``stderr`` and ``std`` (both).

    The inputs ``stdout`` and ``stderr`` name files that keep the output, counted from the folder of the call.
    """
    import tempfile

    from ..running.process import run_process

    folder = Path(str(i.get("path") or "") or os.getcwd())
    if not folder.is_dir():
        raise RequestError(f"the folder {folder} to run in does not exist")
    line = _wanted(i, "cmd", "a command line")
    with tempfile.TemporaryDirectory(prefix="cm-system-") as scratch:
        files = [Path(i.get(name) or os.path.join(scratch, name)).absolute() for name in ("stdout", "stderr")]
        into = " 2> ".join(shlex.quote(str(file)) for file in files)
        ended = run_process(["bash", "-c", f"(\n{line}\n) > {into}"], folder, extra_env={}, log_path=None)
        out, err = (file.read_text("utf-8", "replace").strip() if file.is_file() else "" for file in files)
    both = "\n".join(text for text in (out, err) if text)
    show(i, both)
    return {"return": 0, "ret": ended.status, "stdout": out, "stderr": err, "std": both}


class CfgArtifact(NamedTuple):
    """A folder of configurations, as recipes expect an artifact to look."""

    path: str
    meta: dict[str, Any]


def load_cfg(i: Mapping[str, Any], home: Home) -> Answer:
    """The configurations of the artifacts that ``tags`` or ``artifact`` ask for, as ``selection``; ``lst`` are these.

    ``key`` and ``key_end`` choose files by how their names begin and end, ``prune`` by their values; ``skip_files``
    gives the metadata of the artifacts instead.
    """
    artifacts = _artifacts(i, home)
    prune: Mapping[str, Any] = i.get("prune") or {}
    if i.get("skip_files"):
        kept = [found for found in artifacts if _has(found.meta, prune.get("key"), prune.get("key_uid"))]
        return {"return": 0, "lst": artifacts, "selection": [{**found.meta, "full_path": found.path} for found in kept]}
    roots = [repo.path / "cfg" for repo in home.repos]
    selection = [
        _described(meta, path, found)
        for found in artifacts
        if _has(found.meta, prune.get("meta_key"), prune.get("meta_key_uid"))
        for path in _files(found, str(i.get("key") or ""), tuple(i.get("key_end") or ENDINGS))
        if _is_kept(meta := _with_base(path, roots, 0), prune)
    ]
    return {"return": 0, "lst": artifacts, "selection": selection}


def _artifacts(i: Mapping[str, Any], home: Home) -> list[CfgArtifact]:
    """The folders of configurations that the tags and the name in the input ask for, in order of their paths."""
    words, name = split_artifact(i)
    found = []
    for folder in (path for repo in home.repos for path in sorted((repo.path / "cfg").glob("*")) if meta_files(path)):
        meta = read_meta(folder).values
        is_named = not name or name in (meta.get("alias"), meta.get("uid"), folder.name)
        if is_named and set(words) <= set(meta.get("tags") or ()):
            found.append(CfgArtifact(str(folder), meta))
    return found


def _has(meta: Mapping[str, Any], key: Any, uid: Any) -> bool:
    """Whether the list ``key`` of an artifact holds ``uid``; true when either was not asked for."""
    return not (key and uid) or uid in (meta.get(key) or ())


def _files(found: CfgArtifact, start: str = "", ends: tuple[str, ...] = ENDINGS) -> list[Path]:
    """The configurations of an artifact whose names begin and end so."""
    paths = [path for path in sorted(Path(found.path).iterdir()) if path.name.endswith(ENDINGS) and path.is_file()]
    return [path for path in paths if path.name.startswith(start) and path.name.endswith(ends) and path.name[0] != "_"]


def _with_base(path: Path, roots: Sequence[Path], depth: int) -> dict[str, Any]:
    """A configuration with what its bases say below it; raises MetaError for a base that cannot be used."""
    meta = read_mapping(path)
    base = str(meta.pop("_base", "") or "")
    if not base:
        return meta
    artifact, _, name = base.rpartition(":")
    folders = [root / artifact for root in roots] if artifact else [path.parent]
    base_path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if base_path is None or not name.endswith(ENDINGS):
        raise MetaError(f"{path}: _base: '{base}' does not exist as a .yaml or .json file")
    if depth >= MAX_BASES:
        raise MetaError(f"{path}: _base: '{base}' is more than {MAX_BASES} bases deep, possibly a cycle")
    below = _with_base(base_path, roots, depth + 1)
    both = [key for key in JOINED_KEYS if isinstance(below.get(key), str) and isinstance(meta.get(key), str)]
    return {**merge_state(below, meta), **{key: below[key] + meta[key] for key in both}}


def _is_kept(meta: Mapping[str, Any], prune: Mapping[str, Any]) -> bool:
    uid, key, value = meta.get("uid"), prune.get("key"), prune.get("key_uid")
    is_listed = uid in (prune.get("list") or [uid])
    return is_listed and uid == (prune.get("uid") or uid) and (not (key and value) or meta.get(key) == value)


def _described(meta: dict[str, Any], path: Path, found: CfgArtifact) -> dict[str, Any]:
    tags = split_words(meta.get("tags") or "")
    name = str(meta.get("name") or " ".join(tags)).strip()
    own = list(tags) or name.lower().split()
    all_tags = [*(found.meta.get("tags") or ()), *own]
    return {**meta, "name": name, "full_path": str(path), "all_tags": all_tags, "main_meta": found.meta}


def select_cfg(i: Mapping[str, Any], home: Home) -> Answer:
    """One configuration by ``alias`` (its file's name) or ``uid``, as ``selection``; asks when several fit.

    Raises NothingFound when none fits, Ambiguous when several do and none is picked.
    """
    asked = i if i.get("tags") or i.get("artifact") else {**i, "tags": DEFAULT_TAGS}
    rows: list[dict[str, Any]] = [
        {"path": str(path), "alias": path.stem, "meta": read_mapping(path)}
        for found in _artifacts(asked, home)
        for path in _files(found)
        if i.get("alias") in (None, "", path.stem)
    ]
    rows = [row for row in rows if not i.get("uid") or row["meta"].get("uid") == i["uid"]]
    if not rows:
        raise NothingFound("no matching configuration", hint="check --tags, --alias and --uid")
    rows.sort(key=lambda row: str(row["meta"].get("name", "")))
    names = [f"{row['meta'].get('name', row['alias'])} ({row['path']})" for row in rows]
    title = " ".join(filter(None, ["several", str(i.get("title") or ""), "configurations match:"]))
    hint = "select one with --alias=NAME or --uid=UID"
    return {"return": 0, "selection": rows[0 if len(rows) == 1 else pick(title, names, hint=hint)]}
