"""What recipes use of CM and of its successor: ``i['automation']``, and the package ``mlc``.

The answers are CM's dictionaries on purpose: recipes of the community check ``r['return']`` themselves. Code 16 means
"not found", 1 any other trouble, 2 a failed script.

The successor's package need not be installed: ``from mlc import utils`` gets cmind's functions, which have the same
names and answers, and ``mlc.access`` asks cmind, so that what a recipe calls runs on this engine. ``utils`` is
``automation/utils.py`` of the recipe's repository, or, where only its ``script/`` folder was copied, our version of it.
"""

import importlib.util
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ..disk.repos import AUTOMATION
from ..rules.conditions import FALSE_WORDS, TRUE_WORDS, decide
from ..rules.env import PREFIX, with_lists
from ..rules.errors import RecipeError, RequestError
from ..rules.model import Recipe
from ..rules.query import VersionRange
from ..rules.schema import change_entry, is_yes, parse_condition_blocks

logger = logging.getLogger(__name__)

Answer = dict[str, Any]

VERSION_SUFFIX = r"[.-]?\d{1,3}(\.\d{1,3})?"
"""What may follow a searched file name: .N, -N, NN, N.NN and the like."""


class ActionObject:
    """What recipes of CM's successor get as ``action_object``: cmind's ``access``, asked in the successor's words."""

    def __init__(self, cmind: Any) -> None:
        self._cmind = cmind
        self.logger = logger

    def access(self, i: Mapping[str, Any]) -> Any:
        """cmind's answer; ``target`` is the successor's word for ``automation``."""
        renamed = dict(i)
        if "target" in renamed:
            renamed.setdefault("automation", renamed.pop("target"))
        return self._cmind.access(renamed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cmind, name)


class Automation:
    """The object that recipes get as ``i['automation']``; lives for one step.

    ``cmind`` is CM's own object and is only passed through. ``run_native`` runs a native script of the step by name,
    with an env that it may change; it returns the env afterwards or raises RecipeError. ``detect_version`` calls that
    hook with an env and returns its checked answer. ``prefix`` is what the keys start with that the recipe and the
    helpers share. ``cache_path`` is the folder of the cache entries. Recipes of CM's successor call ``logger``,
    ``action_object`` and ``cache_action``, not ``cmind``.
    """

    def __init__(
        self,
        cmind: Any,
        *,
        run_native: Callable[[str, dict[str, Any]], dict[str, Any]],
        detect_version: Callable[[dict[str, Any]], Answer],
        cache_path: str = "",
        prefix: str = PREFIX,
    ) -> None:
        self.cmind = cmind
        self.logger = logger
        self.action_object = self.cache_action = ActionObject(cmind)
        self._prefix = prefix
        self.path = str(AUTOMATION / "script")
        self.meta = {"alias": "script", "uid": "5b4e0237da074764"}
        self._run_native = run_native
        self._detect_version = detect_version
        self.cache_path = cache_path

    def _text(self, env: Mapping[str, Any], name: str) -> str:
        return str(env.get(self._prefix + name) or "")

    def _wanted(self, env: Mapping[str, Any]) -> VersionRange:
        return VersionRange(*(self._text(env, name) for name in ("VERSION", "VERSION_MIN", "VERSION_MAX")))

    def get_default_path_list(self, i: Mapping[str, Any]) -> list[str]:
        """The folders of the process variable named by ``default_path_env_key`` (PATH when absent)."""
        text = os.environ.get(str(i.get("default_path_env_key") or "PATH"), "")
        return [part for part in text.split(os.pathsep) if part]

    def parse_version(self, i: Mapping[str, Any]) -> Answer:
        """Finds a version in ``file_name`` (tmp-ver.out) by ``match_text``; sets ``which_env[env_key]``."""
        path = Path(i.get("file_name") or "tmp-ver.out")
        if not path.is_file():
            return {"return": 16, "error": f"the version file {path.absolute()} was not written"}
        text = path.read_text(encoding="utf-8", errors="replace")
        found = re.search(i["match_text"], text)
        if not found:
            return {"return": 1, "error": f"no version matching '{i['match_text']}' in: {text.strip()[:500]}"}
        version = found.group(i["group_number"])
        i["which_env"][i["env_key"]] = version
        i["which_env"][self._prefix + "DETECTED_VERSION"] = version
        return {"return": 0, "version": version, "string": text}

    def run_native_script(self, i: Mapping[str, Any]) -> Answer:
        """Runs another script of the recipe with ``env``, which it changes in place."""
        env = i["env"]
        try:
            after = self._run_native(str(i.get("script_name") or "run"), env)
            env.clear()
            env.update(after)
            detected = self._detect_version(env) if i.get("detect_version") else {}
        except RecipeError as error:
            return {"return": error.code, "error": error.describe()}
        return {"return": 0, "env_tmp": dict(after), **detected}

    def detect_version_using_script(self, i: Mapping[str, Any]) -> Answer:
        """Runs the recipe's script and ``detect_version``; 16 when it fails or the version is out of range."""
        env = dict(i["env"])
        answer = self.run_native_script({"env": env, "script_name": "run", "detect_version": True})
        if answer["return"] > 0:
            return {"return": 16, "error": answer["error"]}
        version = str(answer.get("version", ""))
        wanted = self._wanted(env)
        if not _in_range(version, wanted):
            return {"return": 16, "error": f"version {version} is not within {wanted.text}"}
        i["env"].update(env)
        return {"return": 0, "detected_version": version}

    def update_deps(self, i: Mapping[str, Any]) -> Answer:
        """Changes the entries of ``deps`` by handle; unknown handles are ignored.

        The entries themselves change, as recipes hand in lists made of several: ``prehook_deps + posthook_deps``.
        """
        env = i.get("env") or {}
        for handle, changes in i["update_deps"].items():
            if decide(parse_condition_blocks(changes, handle), env).answer != "yes":
                continue
            for entry in i["deps"]:
                names = entry.get("names") or ()
                if handle == names or (handle in names and not isinstance(names, str)):
                    entry.update(change_entry(entry, changes, env))
        return {"return": 0}

    def clean_some_tmp_files(self, i: Mapping[str, Any]) -> Answer:
        """Removes the engine's scratch files from the working folder."""
        env = i.get("env") or {}
        folder = Path(self._text(env, "TMP_CURRENT_SCRIPT_WORK_PATH") or os.getcwd())
        for name in ("tmp-run.bat", "tmp-state.json"):
            (folder / name).unlink(missing_ok=True)
        return {"return": 0}

    def find_file_back(self, i: Mapping[str, Any]) -> Answer:
        """Walks up from ``path`` to a folder that holds ``file_name``; ``found_path`` is empty when there is none."""
        start = Path(i["path"]).absolute()
        found = (str(folder) for folder in (start, *start.parents) if (folder / i["file_name"]).exists())
        return {"return": 0, "found_path": next(found, "")}

    def find_file_deep(self, i: Mapping[str, Any]) -> Answer:
        """The folders below ``paths`` that hold ``file_name`` and whose path has all ``restrict_paths`` as parts."""
        wanted = list(i.get("restrict_paths") or ())
        walked = (place for root in i["paths"] for place in os.walk(root))
        found = [folder for folder, _, names in walked if i["file_name"] in names]
        return {"return": 0, "found_paths": sorted(path for path in found if all(part in path for part in wanted))}

    def _available_variations(self, i: Mapping[str, Any]) -> Answer:
        """CM's refusal for a recipe that needs a variation."""
        names = ", ".join("_" + name for name in sorted(i["meta"].get("variations") or {}))
        return {"return": 1, "error": f"this recipe needs a variation, one of: {names}"}

    def find_artifact(self, i: Mapping[str, Any]) -> Answer:
        """Finds a file in CM_TMP_PATH, in the folder of CM_INPUT, or in the default path; see CM's contract.

        Sets ``env[env_path_key]`` and, for a folder outside the default path, the ``+PATH``-like keys.
        """
        env = i["env"]
        try:
            file_name, paths = self._where_to_look(i, env)
        except RequestError as error:
            return {"return": error.code, "error": error.message}
        found = self.find_file_in_paths({**i, "paths": paths, "file_name": file_name, "select": True})
        if found["return"] > 0:
            return found
        files = found["found_files"]
        if not files:
            return {"return": 16, "error": f"{file_name} was not found in: {os.pathsep.join(paths)}"}
        return self._take(files[0], i, env)

    def _where_to_look(self, i: Mapping[str, Any], env: Mapping[str, Any]) -> tuple[str, list[str]]:
        file_name = i["file_name"]
        given, as_input = self._text(env, "TMP_PATH").strip(), self._text(env, "INPUT").strip()
        if given:
            paths = [part for part in given.split(os.pathsep) if part]
            missing = [path for path in paths if not os.path.isdir(path)]
            if missing and not is_yes(self._text(env, "TMP_PATH_IGNORE_NON_EXISTANT")):
                raise RequestError(f"the folder {missing[0]} does not exist")
            return file_name, [path for path in paths if path not in missing]
        if as_input:
            if not os.path.isfile(as_input):
                raise RequestError(f"the file {as_input} given as input does not exist")
            return os.path.basename(as_input), [os.path.dirname(os.path.abspath(as_input))]
        return file_name, self.get_default_path_list(i)

    def find_file_in_paths(self, i: Mapping[str, Any]) -> Answer:
        """The files called ``file_name`` (or with a version behind the name) in ``paths``; with ``detect_version``
        only those that run and whose version fits. With ``select``, or when quiet, only the first of them.
        """
        hook = i.get("hook")
        wanted = self._wanted(i["env"])
        fitting, tried = [], []
        for path in list(_candidates(i["paths"], i["file_name"], i.get("file_name_re"))):
            if hook:
                answer = hook({"file": path})
                if answer["return"] > 0:
                    return dict(answer)
                if answer.get("skip"):
                    continue
            if i.get("detect_version"):
                env = {**i["env"], i["env_path_key"]: path}
                answer = self.run_native_script({"env": env, "script_name": "run", "detect_version": True})
                version = str(answer.get("version", ""))
                if answer["return"] > 0 or version == "-1" or not _in_range(version, wanted):
                    tried.append(f"{path} ({version or 'does not run'})")
                    continue
            fitting.append(path)
            if i.get("select") or is_yes(self._text(i["env"], "QUIET")):
                break
        if not fitting and tried:
            return {"return": 16, "error": f"none has the required version ({wanted.text}): {', '.join(tried)}"}
        return {"return": 0, "found_files": fitting}

    def _take(self, file: str, i: Mapping[str, Any], env: dict[str, Any]) -> Answer:
        folder, defaults = os.path.dirname(file), self.get_default_path_list(i)
        if i.get("env_path_key"):
            env[i["env_path_key"]] = file
        key = i.get("default_path_env_key")
        if key and folder not in defaults:
            above = os.path.dirname(folder)
            found = [("+" + key, folder)]
            found += [(name, os.path.join(above, sub)) for sub, name in (i.get("extra_paths") or {}).items()]
            for name, path in found:
                if os.path.isdir(path):
                    rest = [item for item in with_lists({name: env.get(name)})[name] if item != path]
                    env[name] = [path, *rest]
        return {
            "return": 0,
            "found_path": folder,
            "found_file_path": file,
            "found_file_name": os.path.basename(file),
            "default_path_list": defaults,
        }


def _candidates(paths: Iterable[str], file_name: str, pattern: str | None) -> Iterable[str]:
    """Files in ``paths`` by exact name first, then by name with a version behind it; the same file only once."""
    seen = set()
    matches = re.compile(pattern).match if pattern else re.compile(re.escape(file_name) + VERSION_SUFFIX).fullmatch
    for folder in paths:
        try:
            names = sorted(os.listdir(folder), key=lambda name: (name != file_name, name))
        except OSError:
            continue
        for name in (name for name in names if name == file_name or matches(name)):
            path = os.path.join(folder, name)
            real = os.path.realpath(path)
            if os.path.isfile(path) and real not in seen:
                seen.add(real)
                yield path


def _in_range(version: str, wanted: VersionRange) -> bool:
    return (not wanted.exact or version == wanted.exact) and wanted.admits(version)


PACKAGE = "mlc"
HELPERS = "utils"
_helpers: dict[str, ModuleType] = {}
"""The modules ``utils`` of this process by their file; the empty name is for ours."""


def offer_imports(recipe: Recipe) -> None:
    """Makes ``mlc`` and the ``utils`` of the recipe's repository importable; does nothing without cmind.

    A ``utils`` that another program imported is left alone.
    """
    cmind = sys.modules.get("cmind")
    if cmind is None:
        return
    if not hasattr(sys.modules.get(PACKAGE), "crowdperf"):
        package, functions = ModuleType(PACKAGE, __doc__), ModuleType(f"{PACKAGE}.{HELPERS}")
        plain = {name: value for name, value in vars(cmind.utils).items() if not name.startswith("__")}
        vars(functions).update(plain, logger=logger)
        vars(package).update(crowdperf=True, utils=functions, access=ActionObject(cmind).access, __path__=[])
        sys.modules.update({PACKAGE: package, functions.__name__: functions})
    if HELPERS not in sys.modules or sys.modules[HELPERS] in _helpers.values():
        _offer_helpers(recipe)


def _offer_helpers(recipe: Recipe) -> None:
    roots = (recipe.repo_path, Path(os.path.realpath(recipe.path)).parent.parent)
    path = next((found for root in roots if (found := root / "automation" / f"{HELPERS}.py").is_file()), None)
    known = _helpers.get(str(path or ""))
    if known:
        sys.modules[HELPERS] = known
        return
    spec = importlib.util.spec_from_file_location(HELPERS, path) if path else None
    module = importlib.util.module_from_spec(spec) if spec else ModuleType(HELPERS)
    sys.modules[HELPERS] = module
    if spec and spec.loader:
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[HELPERS]
            raise
    else:
        offered = vars(sys.modules[f"{PACKAGE}.{HELPERS}"])
        vars(module).update(offered, __name__=HELPERS, is_true=is_true, is_false=is_false)
    _helpers[str(path or "")] = module


def is_true(value: object) -> bool:
    """Whether a value is one of the words for yes."""
    return str(value).lower() in TRUE_WORDS


def is_false(value: object) -> bool:
    """Whether a value is one of the words for no."""
    return str(value).lower() in FALSE_WORDS
