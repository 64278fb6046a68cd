"""What flags add to a run: records of it, figures, a shell at its end.

``--print_versions``, ``--dump_version_info``, ``--print_readme`` and ``--repro`` show which recipes took part;
``--time`` and ``--space`` what they took; ``--print_env`` and ``--debug_script`` show native scripts at work;
``--shell`` and ``--pause`` wait for the user when all is done. This listens to the engine and steers nothing.
"""

import json
import logging
import os
import shlex
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.entries import ENV_FILE
from ..disk.files import write_json, write_text
from ..rules.env import texts_of
from ..rules.errors import RecipeError, RequestError
from ..rules.model import Configured, StepEvent, StepResult
from ..rules.query import split_words
from ..rules.rerun import given_line, request_text
from ..rules.schema import is_yes
from ..rules.secrets import hidden, hidden_text, hidden_texts, without_secrets
from ..running.console import has_terminal, wait_for_enter
from ..running.context import StepContext, cm_version
from ..running.effects import RealEffects
from ..running.engine import Engine, running_trace
from ..running.shell import RUN_FILE, secret_variables, write_env_file

logger = logging.getLogger(__name__)

STEP_COMMAND = "cm run script"
BYTES_PER_MB = 1_000_000
VERSION_FILES = ("cm-run-script-versions.json", "version_info.json")
README_FILE = "README-cm.md"
REPRO_FOLDER, REPRO_PREFIX = "cm-repro", "cm-run-script"
REPRO_ANSWER = "cm-output.json"
DEBUG_FILE = "tmp-run-without-cm.sh"
"""Names that users and CM's experiment tools know (reference engine, cm4mlops e1d5c7cf0)."""


class WatchedEffects(RealEffects):
    """Effects that show native scripts.

    ``shows_env``: the env before each; kept for debugging are those of recipes with ``debug_tags``, and those of the
    recipes that ``debug_depth`` others led to.
    """

    shows_env = False
    debug_tags: frozenset[str] = frozenset()
    debug_depth: int | None = None

    def run_script(self, step: StepContext) -> None:
        """Runs the script; shows its env before, keeps a copy of it after."""
        label, tags = step.configured.label, self.debug_tags
        if self.shows_env:
            values = json.dumps(hidden(without_secrets(step.env)), indent=2, sort_keys=True, default=str)
            logger.info("%senv of %s:\n%s", step.indent, label, values)
        try:
            super().run_script(step)
        finally:
            is_kept = len(step.configured.request.trace) == self.debug_depth or (tags and tags <= {*step.recipe.tags})
            run_file = (step.scratch or Path()) / RUN_FILE
            if is_kept and run_file.is_file():
                shutil.copy(run_file, DEBUG_FILE)
                path = shlex.quote(os.path.join(os.getcwd(), DEBUG_FILE))
                logger.info("%s* %s: to rerun its script: bash %s", step.indent, label, path)


class Step(NamedTuple):
    """One recipe that took part, and the chain of recipes down to it."""

    configured: Configured
    result: StepResult
    trace: tuple[str, ...]

    @property
    def parent(self) -> str:
        """The label of the recipe that asked for it; empty for the command line."""
        return self.trace[-2] if self.trace[1:] else ""

    @property
    def query(self) -> str:
        """The words the step was asked for by."""
        return self.configured.request.query.text or self.configured.recipe.id.alias


def run_with_extras(
    i: Mapping[str, Any], engine: Engine, run: Callable[[Mapping[str, Any], Engine], dict[str, Any]]
) -> dict[str, Any]:
    """What ``run`` answers, with all the extras that the input asks for around it.

    Raises RequestError for ``--shell`` without a terminal, else what ``run`` raises.
    """
    if is_yes(i.get("shell")) and not has_terminal():
        raise RequestError("--shell needs a terminal, and stdin is not one", hint="--save_env leaves tmp-env.sh")
    effects = engine.effects
    if isinstance(effects, WatchedEffects):
        effects.shows_env = is_yes(i.get("print_env"))
        effects.debug_tags = frozenset(split_words(texts_of(i.get("debug_script_tags"))))
        effects.debug_depth = len(running_trace()) if is_yes(i.get("debug_script")) else None
    engine.remembers_choices = not is_yes(i.get("skip_remembered_selections"))
    extras = Extras(i)
    engine.observers.append(extras.take)
    try:
        answer = run(i, engine)
    except RecipeError as error:
        extras.write_files({"return": error.code, "error": error.describe()})
        raise
    extras.write_files(answer)
    extras.finish()
    return answer


class Extras:
    """What the flags of one call ask for; collects the steps while they happen."""

    def __init__(self, i: Mapping[str, Any]) -> None:
        self._i = i
        self._input = _shown(i)
        self._steps: list[Step] = []
        self._prefix = str(i.get("script_call_prefix") or STEP_COMMAND).strip()
        self._folder = Path.cwd()
        self._started_s = time.time()
        self._free_bytes = shutil.disk_usage(self._folder).free
        self._command = f"{self._prefix} {given_line(i).text.removeprefix('cm run script ')}"

    def take(self, event: StepEvent) -> None:
        """Collects a step that ended, also of runs that a recipe starts itself; a step that starts over forgets what
        those below it did.
        """
        if event.kind == "again":
            length = len(event.trace)
            self._steps = [step for step in self._steps if step.trace[:length] != event.trace]
        elif event.kind == "done" and event.configured and event.result:
            self._steps.append(Step(event.configured, event.result, event.trace))

    def write_files(self, answer: Mapping[str, Any]) -> None:
        """Writes the files that were asked for, also after a failure."""
        if is_yes(self._i.get("dump_version_info")):
            for name in VERSION_FILES:
                write_json(self._folder / name, self._version_info())
        if is_yes(self._i.get("print_readme")):
            write_text(self._folder / README_FILE, self._readme())
            logger.info("* the steps are recorded in %s", self._folder / README_FILE)
        if is_yes(self._i.get("repro")):
            self._write_repro(answer)

    def finish(self) -> None:
        """Prints what was asked for, and waits for the user."""
        for flag, show in {
            "print_versions": self._print_versions,
            "time": self._print_times,
            "space": self._print_space,
            "shell": self._open_shell,
            "pause": self._pause,
        }.items():
            if is_yes(self._i.get(flag)):
                show()

    def _print_versions(self) -> None:
        logger.info("Versions:")
        with_version = [step for step in self._steps if step.result.version]
        for line in dict.fromkeys(f"  {step.query}: {step.result.version}" for step in with_version):
            logger.info(line)

    def _print_times(self) -> None:
        logger.info("Seconds (including dependencies):")
        seconds: dict[str, list[float]] = {}
        for step in self._steps:
            seconds.setdefault(step.configured.label, []).append(step.result.duration_s)
        for label, each in seconds.items():
            logger.info("  %8.2f  %s%s", sum(each), label, f" ({len(each)} times)" if each[1:] else "")

    def _print_space(self) -> None:
        used = self._free_bytes - shutil.disk_usage(self._folder).free
        logger.info("Disk space used where %s is: %.1f MB", self._folder, used / BYTES_PER_MB)

    def _open_shell(self) -> None:
        from ..running.process import hand_over

        if self._steps:
            new_env, rule = self._steps[-1].result.new_env, self._steps[-1].configured.recipe.values
            path = self._folder / ENV_FILE
            write_env_file(path, new_env, rule)
            logger.info("* a shell with the env of the result (%s), type exit to leave", path)
            hand_over(["bash", "--rcfile", str(path), "-i"], self._folder, extra_env=secret_variables(new_env))

    def _pause(self) -> None:
        if has_terminal():
            wait_for_enter("Press Enter to continue ...")
        else:
            logger.warning("! --pause has no effect: stdin is not a terminal")

    def _version_info(self) -> list[dict[str, dict[str, str]]]:
        """A row for each step in order of their ends, by the words it was asked for."""
        rows: list[dict[str, dict[str, str]]] = [
            {
                step.query: {
                    "script_uid": step.configured.recipe.id.uid,
                    "script_alias": step.configured.recipe.id.alias,
                    "script_tags": ",".join(step.configured.recipe.tags),
                    "script_variations": ",".join(applied.name for applied in step.configured.applied),
                    "version": step.result.version,
                    "parent": step.parent,
                }
            }
            for step in self._steps
        ]
        return [hidden_texts(row) for row in rows]

    def _readme(self) -> str:
        """A page on the command, the machine and the steps, without secrets."""
        lines = ["# How this result was made", "", f"    {self._command}", ""]
        lines += [f"{key}: {value}  " for key, value in self._host().items()]
        lines += ["", "## Steps, in order of their ends", ""]
        for number, step in enumerate(self._steps, start=1):
            version = f", version {step.result.version}" if step.result.version else ""
            lines += [
                f"{number}. {step.configured.recipe.id.alias} ({step.result.status}{version})",
                "",
                f"       {self._prefix} {shlex.quote(request_text(step.configured.request))}",
                "",
            ]
        return hidden_text("\n".join(lines))

    def _host(self) -> dict[str, str]:
        """The machine and the programs, without names of people or of the machine."""
        import platform

        return {
            "run_iso_datetime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._started_s)),
            "host_system": platform.system(),
            "host_os_release": platform.release(),
            "host_machine": platform.machine(),
            "host_python_version": platform.python_version(),
            "cmind_version": cm_version(),
        }

    def _write_repro(self, answer: Mapping[str, Any]) -> None:
        """The input, the host, the answer and the steps, each as a file; no secrets."""
        folder = Path(str(self._i.get("repro_dir") or self._folder / REPRO_FOLDER))
        folder.mkdir(parents=True, exist_ok=True)
        prefix = str(self._i.get("repro_prefix") or REPRO_PREFIX)
        versions = {"version_info": self._version_info()}
        values: dict[str, Any] = {"input": self._input, "info": self._host(), "output": _shown(answer)}
        for name, value in {**values, "run-state": versions}.items():
            write_json(folder / f"{prefix}-{name}.json", value)
        write_text(folder / f"{prefix}-{README_FILE}", self._readme())
        write_json(self._folder / REPRO_ANSWER, {**values, **versions})
        logger.info("* a record of this run is in %s", folder)


def _shown(values: Mapping[str, Any]) -> dict[str, Any]:
    """A CM input or answer that a file may hold: nothing of cmind's own, no secrets at any depth."""
    own = ("cmd", "parsed_automation", "parsed_artifact", "parsed_artifacts")
    return {key: hidden(value) for key, value in without_secrets(values).items() if key not in own}
