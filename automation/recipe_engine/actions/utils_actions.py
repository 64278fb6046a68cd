"""``cm ... utils``: the helpers that recipes call through ``cm.access``, with CM's arguments and answers.

Downloads and archives are the work of two recipes of this repository, download-file and extract-file. Their hooks are
called here, so that a helper and a recipe that do the same thing do it in the same way: whole and checked, or not.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..disk.checkout import CHECKOUT
from ..disk.metafile import read_meta
from ..rules.env import Env, plain_copy
from ..rules.errors import RecipeError, RequestError
from ..rules.schema import is_yes, parse_recipe
from ..rules.version import compare
from ..running.hooks import call_hook
from ..running.host import os_info, passed_on_env

Answer = dict[str, Any]

VERIFY_VARIABLE = "CM_UTILS_DOWNLOAD_VERIFY_SSL"
"""Process variable that decides for all downloads whether certificates are checked: ``yes`` or not (cm4mlops 2024)."""
CMIND_KEYS = frozenset(["action", "automation", "cmd", "out", "parsed_automation", "parsed_artifact", "self_module"])
"""Input keys that cmind puts in; ``prune_input`` drops them (reference engine, cm4mlops e1d5c7cf0)."""
UID_BYTES = 8


class FileMissing(RecipeError):
    """A file that a helper shall read is not there; CM's code for it is 16."""

    code = 16


def get_host_os_info(i: Mapping[str, Any]) -> Answer:
    """CM's ``os_info`` as ``info``; ``bits`` replaces the bits of the host."""
    info = plain_copy(os_info())
    if i.get("bits"):
        info["bits"] = str(i["bits"])
    _show(i, json.dumps(info, indent=2, sort_keys=True))
    return {"return": 0, "info": info}


def download_file(i: Mapping[str, Any]) -> Answer:
    """Downloads ``url`` to ``filename`` in ``path`` (the current folder); ``filename``, ``path`` and ``size`` in bytes.

    ``md5sum`` and ``sha256sum`` are checked before the file gets its name. Raises HookFailed when it cannot be had.
    """
    url = _wanted(i, "url", "the address of the file")
    verifies = os.environ[VERIFY_VARIABLE] == "yes" if VERIFY_VARIABLE in os.environ else _is_on(i.get("verify", True))
    env: Env = {
        **passed_on_env(),
        "CM_DOWNLOAD_URL": url,
        "CM_DOWNLOAD_FILENAME": str(i.get("filename") or ""),
        "CM_DOWNLOAD_PATH": str(i.get("path") or os.getcwd()),
        "CM_DOWNLOAD_CHECKSUM": str(i.get("md5sum") or ""),
        "CM_DOWNLOAD_SHA256": str(i.get("sha256sum") or ""),
        "CM_DOWNLOAD_MAX_SIZE_BYTES": str(i.get("max_size_bytes") or ""),
        "CM_VERIFY_SSL": "yes" if verifies else "no",
    }
    _run_hook("download-file", "preprocess", env)
    path = Path(str(env["CM_DOWNLOAD_DOWNLOADED_PATH"]))
    _show(i, str(path))
    return {"return": 0, "filename": path.name, "path": str(path), "size": path.stat().st_size}


def unzip_file(i: Mapping[str, Any]) -> Answer:
    """Unpacks ``filename`` (zip, tar ...) into ``path`` (the current folder), without the first ``strip_folders``.

    Files that are there are replaced. An archive with a member that would leave the folder is refused as a whole.
    """
    path = Path(_wanted(i, "filename", "the archive"))
    if not path.is_file():
        raise FileMissing(f"the archive {path.absolute()} is not there")
    strip_folders = str(i.get("strip_folders") or 0)
    if not strip_folders.isdigit():
        raise RequestError(f"strip_folders is {strip_folders!r}, allowed is a whole number from 0")
    env: Env = {
        "CM_EXTRACT_FILEPATH": str(path),
        "CM_EXTRACT_PATH": str(i.get("path") or os.getcwd()),
        "CM_EXTRACT_STRIP_FOLDERS": strip_folders,
        "CM_EXTRACT_OVERWRITE": "yes",
        "CM_EXTRACT_MAX_SIZE_BYTES": str(i.get("max_size_bytes") or ""),
    }
    _run_hook("extract-file", "postprocess", env)
    return {"return": 0, "path": str(env["CM_EXTRACT_EXTRACTED_PATH"])}


def _run_hook(alias: str, hook: str, env: Env) -> None:
    """Calls a hook of one of this repository's recipes, which changes ``env``."""
    folder = CHECKOUT / "script" / alias
    if not folder.is_dir():
        raise RequestError(
            f"this helper is the recipe {alias}, and {folder} is not there",
            hint="register the whole repository and not a part of it",
        )
    call_hook(parse_recipe(read_meta(folder).values, folder, CHECKOUT), hook, {"env": env})


def compare_versions(i: Mapping[str, Any]) -> Answer:
    """``comparison``: 1 when ``version1`` is the newer one, 0 when both are the same, -1 when ``version2`` is newer."""
    result = compare(_wanted(i, "version1", "a version"), _wanted(i, "version2", "a version"))
    _show(i, str(result))
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
    _show(i, both)
    return {"return": 0, "ret": ended.status, "stdout": out, "stderr": err, "std": both}


def json2yaml(i: Mapping[str, Any]) -> Answer:
    """Writes the JSON file ``input`` as YAML to ``output``, by default beside it."""
    source = _file(i, "input")
    return _write(i, source.with_suffix(".yaml") if source.suffix == ".json" else source, _yaml_text(_json_of(source)))


def yaml2json(i: Mapping[str, Any]) -> Answer:
    """Writes the YAML file ``input`` as JSON to ``output``, by default beside it."""
    source = _file(i, "input")
    target = source.with_suffix(".json") if source.suffix in (".yaml", ".yml") else source
    return _write(i, target, json.dumps(_yaml_of(source), indent=2, default=str) + "\n")


def sort_json(i: Mapping[str, Any]) -> Answer:
    """Writes the JSON file ``input`` with its keys in order to ``output``, by default over it."""
    source = _file(i, "input")
    return _write(i, source, json.dumps(_json_of(source), indent=2, sort_keys=True) + "\n")


def dos2unix(i: Mapping[str, Any]) -> Answer:
    """Writes the text file ``input`` without carriage returns to ``output``, by default over it."""
    source = _file(i, "input")
    return _write(i, source, _text_of(source).replace("\r", ""))


def replace_string_in_file(i: Mapping[str, Any]) -> Answer:
    """Writes the text file ``input`` with ``string`` replaced to ``output`` (over it); ``update`` tells a change."""
    source = _file(i, "input")
    old = _wanted(i, "string", "the text to replace")
    if "replacement" not in i:
        raise RequestError("--replacement is missing: the text to put in its place, which may be empty")
    before = _text_of(source)
    after = before.replace(old, str(i["replacement"]))
    return {**_write(i, source, after), "update": after != before}


def create_toc_from_md(i: Mapping[str, Any]) -> Answer:
    """Writes the headings of the Markdown file ``input`` as a folded list of links to ``output`` (``<input>.toc``)."""
    source = _file(i, "input")
    rows = []
    is_code = False
    for line in _text_of(source).splitlines():
        is_code ^= line.lstrip().startswith("```")
        heading = re.match(r"(#+)\s+(.*\S)", line.strip())
        if heading and not is_code:
            title = heading.group(2)
            rows.append(f"{'  ' * (len(heading.group(1)) - 1)}* [{title}](#{_anchor(title)})")
    lines = ["<details>", "<summary>Click here to see the table of contents.</summary>", "", *rows, "", "</details>"]
    return _write(i, source.with_name(source.name + ".toc"), "\n".join(lines) + "\n")


def _anchor(title: str) -> str:
    return re.sub(r"[:+.(),*]", "", title.lower().replace(" ", "-"))


def copy_to_clipboard(i: Mapping[str, Any]) -> Answer:
    """Puts ``string`` into the desktop's clipboard; with ``skip_fail`` a failure is only a ``warning``."""
    text = str(i.get("string") or "")
    text = f'"{text}"' if i.get("add_quotes") else text
    try:
        import tkinter

        window = tkinter.Tk()
        window.withdraw()
        window.clipboard_clear()
        window.clipboard_append(text)
        window.update()
        window.destroy()
    except Exception as error:  # tkinter is missing, or there is no desktop: its own TclError
        if not i.get("skip_fail"):
            raise RequestError(f"there is no clipboard to copy to: {error}") from None
        return {"return": 0, "warning": str(error)}
    return {"return": 0}


def list_files_recursively(i: Mapping[str, Any]) -> Answer:
    """Prints the files below the current folder in one line, with commas between; ``files`` is the list."""
    found = [
        os.path.relpath(os.path.join(folder, name)).replace(os.sep, "/")
        for folder, _, names in os.walk(".")
        for name in names
    ]
    _show(i, ",".join(sorted(found)))
    return {"return": 0, "files": sorted(found)}


def generate_secret(i: Mapping[str, Any]) -> Answer:
    """A fresh random text of 16 bytes that a URL can hold, as ``secret``."""
    import secrets

    secret = secrets.token_urlsafe(16)
    _show(i, secret)
    return {"return": 0, "secret": secret}


def uid(i: Mapping[str, Any]) -> Answer:
    """A fresh UID of 16 hexadecimal digits."""
    made = os.urandom(UID_BYTES).hex()
    _show(i, made)
    return {"return": 0, "uid": made}


def detect_tags_in_artifact(i: Mapping[str, Any]) -> Answer:
    """Moves a first word that holds tags with blanks between to ``tags``, in the dict ``input`` itself."""
    given = _dict(i)
    artifact = str(given.get("artifact") or "")
    if artifact == ".":
        del given["artifact"]
    elif " " in artifact:
        given.pop("artifact")
        given.pop("parsed_artifact", None)
        given["tags"] = artifact.replace(" ", ",")
    return {"return": 0}


def prune_input(i: Mapping[str, Any]) -> Answer:
    """``new_input``: the dict ``input`` without cmind's keys and those that ``extra_keys_starts_with`` names."""
    import copy

    starts = tuple(i.get("extra_keys_starts_with") or ())
    kept = {key: value for key, value in _dict(i).items() if key not in CMIND_KEYS and not key.startswith(starts)}
    return {"return": 0, "new_input": copy.deepcopy(kept)}


def print_yaml(i: Mapping[str, Any]) -> Answer:
    """Prints the YAML file ``file`` as JSON; its value is ``meta``."""
    meta = _yaml_of(_file(i, "file"))
    _show(i, json.dumps(meta, indent=2, default=str))
    return {"return": 0, "meta": meta}


def print_json(i: Mapping[str, Any]) -> Answer:
    """Prints the JSON file ``file``; its value is ``meta``."""
    meta = _json_of(_file(i, "file"))
    _show(i, json.dumps(meta, indent=2))
    return {"return": 0, "meta": meta}


def _show(i: Mapping[str, Any], text: str) -> None:
    if i.get("out") == "con":
        sys.stdout.write(text + "\n")


def _is_on(value: Any) -> bool:
    return is_yes(value) or str(value).strip().lower() not in ("no", "false", "off", "0", "")


def _dict(i: Mapping[str, Any]) -> dict[str, Any]:
    given = i.get("input")
    if not isinstance(given, dict):
        raise RequestError(f"'input' must be the input of a CM action, a dict; found {given!r}")
    return given


def _wanted(i: Mapping[str, Any], key: str, what: str) -> str:
    value = str(i.get(key) or "").strip()
    if not value:
        raise RequestError(f"--{key} is missing: {what}", hint=f"add --{key}=...")
    return value


def _file(i: Mapping[str, Any], key: str) -> Path:
    path = Path(_wanted(i, key, "a file"))
    if not path.is_file():
        raise FileMissing(f"--{key}: the file {path.absolute()} is not there")
    return path


def _text_of(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except ValueError as error:
        raise RequestError(f"{path} is no text in UTF-8: {error}") from None


def _json_of(path: Path) -> Any:
    try:
        return json.loads(_text_of(path))
    except ValueError as error:
        raise RequestError(f"{path} is no JSON: {error}") from None


def _yaml_of(path: Path) -> Any:
    import yaml

    try:
        return yaml.safe_load(_text_of(path))
    except yaml.YAMLError as error:
        raise RequestError(f"{path} is no YAML: {error}") from None


def _yaml_text(value: Any) -> str:
    import yaml

    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


def _write(i: Mapping[str, Any], default: Path, text: str) -> Answer:
    """Writes ``output`` as a whole; a file that is there keeps its mode, and a link stays a link to its target."""
    target = Path(str(i.get("output") or default))
    real = Path(os.path.realpath(target))
    scratch = real.with_name(f".{real.name}.{os.getpid()}.new")
    try:
        scratch.write_text(text, encoding="utf-8")
        if real.exists():
            shutil.copymode(real, scratch)
        os.replace(scratch, real)
    finally:
        scratch.unlink(missing_ok=True)
    return {"return": 0, "path": str(target)}
