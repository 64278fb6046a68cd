"""Hooks of generate-submission: read the call, refuse it with everything that is wrong, or make the tree and check it.

The work is done by the package submission/ beside; facts of systems come from get-mlperf-inference-sut-description,
the verdict at the end from check,mlperf,submission.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import contextlib
import io
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.call.answers import failure
from crowdperf.call.recipe_calls import RecipeFailed, run_recipe
from crowdperf.kit.user_paths import filled
from crowdperf.rules.backends import is_of_client
from crowdperf.rules.names import counted
from crowdperf.submission import call_summary, placement, request, tree_builder
from crowdperf.submission.program import Program
from crowdperf.submission.run_discovery import FoundRun, Sut

REPORT_TAGS, PUSH_TAGS = "report,mlperf,submission", "push,github,mlperf,inference,submission"
SUT_TAGS, CHECK_TAGS = "get,mlperf,sut,description", "check,mlperf,submission"
HINT = (
    "hint: cm run script --tags=generate,inference,submission --results_dir=RESULTS --submission_dir=TREE "
    "--submitter=NAME --system_facts=FILE --run_checker=yes"
)
PLACES = {
    "RESULTS": "CM_MLPERF_INFERENCE_RESULTS_DIR_",
    "TREE": "CM_MLPERF_INFERENCE_SUBMISSION_DIR",
    "NAME": "CM_MLPERF_SUBMITTER",
    "FILE": "CM_SUT_DESC_FACTS_FILE",
}


def hint_of(i: Mapping[str, Any]) -> str:
    """The command to try next, with the inputs that were given."""
    values, command = i["values"], filled(HINT, i["env"], PLACES)
    given = {name: values.text(name) for name in values if values.is_given(name) and f" --{name}=" not in command}
    return command + "".join(f" --{name}={shlex.quote(text)}" for name, text in given.items())


class Access:
    """Calls the recipes below with what of the call concerns them."""

    def __init__(self, i: dict[str, Any], wanted: request.Request) -> None:
        self._access, self._env, self._inputs = i["automation"].cmind.access, i["env"], i["input"]
        self._values, self._request = i["values"], wanted

    def _call(self, tags: str, inputs: Mapping[str, Any], *, is_silent: bool) -> dict[str, Any]:
        quiet = self._inputs.get("quiet") or self._env.get("CM_QUIET")
        return run_recipe(self._access, {"tags": tags, "quiet": bool(quiet), **inputs, "silent": is_silent})

    def describe(self, sut: Sut, run: FoundRun, division: str) -> Mapping[str, Any]:
        """The facts of a system: see tree_builder.Recipes."""
        versions = run.result.get("versions") or {}
        software = ", ".join(f"{name} {text}" for name, text in sorted(versions.items()) if name != sut.backend)
        facts_file = self._request.facts_file
        inputs = {
            "name": sut.hw_name or run.place.system,
            "division": division,
            "submitter": self._request.submitter,
            "category": self._request.category,
            "framework": f"{sut.backend} v{sut.backend_version}" if sut.backend_version else sut.backend,
            "software": software,
            "run_machine": {"is_client": True} if is_of_client(run.result) else dict(run.result.get("machine") or {}),
            "system": dict(self._inputs.get("system") or {}),
            "system_facts": str(facts_file) if facts_file is not None and facts_file.exists() else "",
            **{name: self._values[name] for name in ("hw_notes_extra", "sw_notes_extra")},
            "env": {"CM_SUT_DESC_IS_COMPLETE_NEEDED": "no"},
        }
        is_asking = sys.stdin is not None and sys.stdin.isatty() and not self._inputs.get("quiet")
        with contextlib.nullcontext() if is_asking else contextlib.redirect_stdout(io.StringIO()):
            answer = self._call(SUT_TAGS, {key: value for key, value in inputs.items() if value}, is_silent=True)
        facts: Mapping[str, Any] = answer["new_state"]["CM_SUT_DESCRIPTION"]
        return facts

    def check(self, round_name: str) -> None:
        """The gate, whose verdict ends the call. Raises RecipeFailed."""
        wanted = self._request
        inputs: dict[str, Any] = {"submission_dir": str(wanted.submission_folder), "version": round_name}
        inputs["submitter"] = wanted.submitter
        inputs["results_dir"] = ",".join(map(str, wanted.results_folders))
        if wanted.is_rehearsal:
            inputs["rehearsal"] = True
        elif wanted.allows_synthetic:
            inputs["allow_synthetic"] = True
        if wanted.is_inferred or wanted.is_preprocessed:
            inputs["infer_scenarios"] = True
        try:
            answer = self._call(CHECK_TAGS, inputs, is_silent=False)
        except RecipeFailed:
            print("SUMMARY: submission has errors", flush=True)
            raise
        verdict = str(answer.get("env", {}).get("CM_MLPERF_SUBMISSION_VERDICT") or "accepted")
        print(f"SUMMARY: submission looks OK{'' if verdict == 'accepted' else f' ({verdict})'}", flush=True)

    def report(self) -> None:
        """The page about the tree. Raises RecipeFailed."""
        wanted = self._request
        output = str(wanted.submission_folder.with_name("report"))
        inputs = {"input": str(wanted.submission_folder), "output": output}
        self._call(REPORT_TAGS, inputs, is_silent=False)

    def push(self) -> None:
        """A push into a repository beside the tree, made when it is not there. Raises RecipeFailed."""
        repository = self._request.repository_folder
        if not repository.exists():
            subprocess.run(["git", "init", "--quiet", "--bare", str(repository)], check=True, timeout=60)
        inputs = {"submission_dir": str(self._request.submission_folder), "repo_url": str(repository), "push": True}
        self._call(PUSH_TAGS, {**inputs, "rehearsal": True, "branch": "rehearsal"}, is_silent=False)


def program_here(env: dict[str, Any]) -> Program:
    """The program that makes runs: the recipes beside this one."""
    from recipe_engine.disk.digests import recipe_digest  # only a hook's process has the engine; the rest works without
    from recipe_engine.disk.repos import used_digests

    folder = Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]).parent
    return Program(recipes_folder=folder, digest=recipe_digest, used=lambda asked: used_digests(folder.parent, asked))


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Crowdperf hook of `cm plan script`: the recipe calls that preprocess will make; changes nothing."""
    try:
        wanted = request.read_request(i["values"], i["env"])
    except request.RequestError as error:
        return failure(error, error.hint or hint_of(i))
    runs = [{"tags": SUT_TAGS, "submitter": wanted.submitter, "quiet": True}]
    if wanted.is_checked:
        runs.append({"tags": CHECK_TAGS, "submission_dir": str(wanted.submission_folder), "quiet": True})
    return {"return": 0, "runs": runs}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: the whole call. Error with every problem at once, or with the findings of the gate."""
    env, state = i["env"], i["state"]
    try:
        wanted = request.read_request(i["values"], env)
        access = Access(i, wanted)
        gathered = tree_builder.gather(wanted)
        systems, questions = tree_builder.describe_systems(gathered, access)
        problems = (*gathered.problems, *questions)
        refusing = tuple(problem for problem in problems if not (problem.is_later and wanted.is_rehearsal))
        if refusing:
            raise tree_builder.Refused(refusing)
        for line in (
            *(call_summary.cleaning(wanted) if wanted.is_clean else ()),
            *tree_builder.story_of_left_out(gathered),
        ):
            print(line, flush=True)
        made = tree_builder.make(gathered, systems, program_here(env), print)
        env["CM_MLPERF_INFERENCE_SUBMISSION_DIR"] = str(wanted.submission_folder)
        env["CM_MLPERF_SUBMISSION_VERSION"] = made["round"]
        state["mlperf_submission"] = made
        if wanted.is_checked or wanted.is_rehearsal:
            access.check(made["round"])
        if wanted.is_rehearsal:
            access.report()
            access.push()
            print(tree_builder.rehearsed(wanted, problems), flush=True)
    except request.RequestError as error:
        return failure(error, error.hint or hint_of(i))
    except tree_builder.Refused as error:
        return failure(
            f"{counted(len(error.problems), 'problem')} must be fixed before these runs can be submitted:\n{error}",
            hint_of(i),
        )
    except placement.PlacingError as error:
        return failure(error, "hint: no changes were made")
    except OSError as error:
        return failure(
            f"the tree could not be written: {error}",
            "hint: the previous tree is intact. Fix the cause, then rerun the command",
        )
    except RecipeFailed as error:
        return error.answer
    return {"return": 0}
