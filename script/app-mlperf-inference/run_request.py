"""Turns CM's env into the content of run.json, the request that the harness reads (its keys:
crowdperf/harness/runner/config.py).

Pure. All problems are collected, so that a user sees every wrong value at once, each with what is allowed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.call.connections import too_many_connections
from crowdperf.call.power_command import power_words
from crowdperf.data.given_prompts import tokenizer_file
from crowdperf.kit.user_paths import expanded, unusual_path
from crowdperf.rules.app_names import PRECISION_ALIASES, AppNames
from crowdperf.rules.backends import BACKENDS, simulated
from crowdperf.rules.benchmarks import RECORDS, model_of
from crowdperf.rules.names import TARGETS, RequestError, unknown_text
from crowdperf.rules.prompt_settings import SERVER_KEY, TIMEOUT, PromptSettings, chat_problem
from crowdperf.rules.rounds import scenarios_of
from crowdperf.rules.run_settings import EFFICIENCY, NUMBERS, SERVING, as_json, gpus_problem

FORMAT = 3

MODEL_KEY = "CM_MLPERF_MODEL"
BACKEND_KEY = "CM_MLPERF_BACKEND"
DEVICE_KEY = "CM_MLPERF_DEVICE"
FILE_KEYS = {
    "model_path": "CM_ML_MODEL_FILE_WITH_PATH",
    "model_info_path": "CM_ML_MODEL_INFO_FILE",
    "dataset_path": "CM_DATASET_PATH",
    "preprocessed_path": "CM_DATASET_PREPROCESSED_PATH",
}
"""What dependencies say of model and data set: env keys by the key in run.json."""
SERVER_FILE_KEY = "CM_TRITON_SERVER_FILE"
OWN_PATHS = ("dataset_path", "model_path")
OWN_TARGETS = {scenario.value: (name, own) for scenario, (name, own, _) in TARGETS.items()}
"""Of each scenario: the target it has, and the input that sets it for this scenario alone."""


def stand_in(env: Mapping[str, Any], simulate: str | None) -> dict[str, str]:
    """The env keys that `--simulate` changes: the backend and device of the stand-in; without it none.

    Reads no other key: what a plan does not know yet is not asked for. Raises RequestError where the backend is another
    one.
    """
    if not simulate:
        return {}
    try:
        found = simulated(simulate, str(env.get(BACKEND_KEY) or ""), str(env.get(DEVICE_KEY) or ""))
    except ValueError as error:
        raise RequestError([f"--simulate: {error}"]) from error
    return dict(zip((BACKEND_KEY, DEVICE_KEY), found, strict=True))


def the_one(values: Mapping[str, Any], name: str) -> str | None:
    """The value of a list with one value, None for any other: without one, or with several, this recipe makes no run
    itself."""
    words = values[name] or ()
    return words[0] if len(words) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call: what its variations choose, and its typed inputs. folder: where the user called."""

    model: str
    backend: str
    device: str
    values: Any
    prompts: PromptSettings
    folder: Path

    @classmethod
    def of(cls, env: Mapping[str, Any], values: Any, folder: Path) -> Asked:
        """The call in a hook's env and values."""
        names = (str(env.get(key) or "") for key in (MODEL_KEY, BACKEND_KEY, DEVICE_KEY))
        model, backend, device = names
        prompts = PromptSettings.of(values).with_default_server(backend)
        return cls(model=model, backend=backend, device=device, values=values, prompts=prompts, folder=folder)

    @property
    def is_served(self) -> bool:
        """Whether the backend asks a server that this project starts."""
        record = BACKENDS.get(self.backend)
        return record is not None and record.is_served

    @property
    def precision(self) -> str:
        """The number format, in the harness's spelling."""
        text = self.values["precision"] or "fp32"
        return PRECISION_ALIASES.get(text, text)

    def path(self, text: str | None) -> str | None:
        """An absolute path; a relative one counts from the user's folder."""
        return str(self.folder / expanded(text)) if text else None

    def targets(self) -> dict[str, float | None]:
        """The targets: of the scenario alone, where it is given, else of all."""
        found = {"target_qps": self.values["target_qps"], "target_latency_ms": self.values["target_latency_ms"]}
        name, own = OWN_TARGETS.get(the_one(self.values, "scenario"), ("", ""))
        if own and self.values[own] is not None:
            found[name] = self.values[own]
        return found

    def problems(self, known: AppNames) -> list[str]:
        """A line for everything that is wrong together; each value by itself is right."""
        lines = [
            f"{key}: {unknown_text(kind, found, names)}"
            for key, kind, found, names in (
                (MODEL_KEY, "model", self.model, known.models),
                (BACKEND_KEY, "backend", self.backend, known.backends),
                (DEVICE_KEY, "device", self.device, known.devices),
            )
            if found not in names
        ]
        return lines + [f"{self.values.called(name)}: {why}" for name, why in self._misfits()]

    def _misfits(self) -> Iterator[tuple[str, str]]:
        values = self.values
        if why := unusual_path(self.path(values["output_dir"]) or self.folder):
            yield "output_dir", why
        if self.prompts.endpoint and (why := too_many_connections(values["max_in_flight"] or 0)):
            yield "max_in_flight", why
        scenario, mode = the_one(values, "scenario"), the_one(values, "mode")
        allowed = [one.value for one in scenarios_of(self.model)]
        if scenario and scenario not in allowed:
            yield "scenario", f"{self.model} has no {scenario}, only {', '.join(allowed)}"
        if why := gpus_problem(values["gpus"] or (), self.device, "use _cuda"):
            yield "gpus", f"found {values.text('gpus')!r}: {why}"
        for name in (name for name in ("compliance_test", "find") if values[name] and mode == "accuracy"):
            yield name, f"found {values.text(name)!r} in mode {mode}, but it needs performance mode (_performance)"
        if values["find"] and values["compliance_test"]:
            yield "find", "a compliance test has the targets of the run that it is for"
        for taker, (_, own) in OWN_TARGETS.items():
            if values[own] is not None and scenario and taker != scenario:
                yield own, f"found {values.text(own)!r}, which is for {taker}, but this is a run of {scenario}"
        served = ", ".join(name for name, record in BACKENDS.items() if record.is_served)
        for name in () if self.is_served else (one.name for one in SERVING if values.is_given(one.name)):
            yield name, f"found {values.text(name)!r}, but only backend {served} asks a server"
        prompts = self.prompts.problems(self.backend)
        if why := chat_problem(self.model, self.prompts.endpoint_api):
            prompts.setdefault("endpoint_api", why)
        yield from prompts.items()
        yield from self._uneven_threads()
        for name, is_wrong in (("find", values["find"]), ("compliance_test", values["compliance_test"])):
            for own in EFFICIENCY if is_wrong else ():
                if values.is_given(own):
                    yield own, f"not supported with --{name}: only an ordinary performance run has energy and cost"
        if values["power_command"]:
            try:
                power_words(values["power_command"], self.folder)
            except ValueError as error:
                yield "power_command", str(error)
        known = RECORDS.get(model_of(self.model))
        brought = None if known is None else known.recipes.own
        if values["tokenizer"] is not None and (brought is None or "tokenizer" not in brought.inputs):
            yield "tokenizer", f"{self.model} has its own tokenizer. Omit it"
        own = OWN_PATHS if known is not None and known.recipes.is_fixed else ()
        for name in own[:1] if known is not None and known.recipes.is_own else own:
            if values.is_given(name):
                made = f"{self.model} generates its own data and model"
                yield (
                    name,
                    f"found {values.text(name)!r}, but {made}: docs/howto/add-model.md explains how to add your own "
                    "model",
                )

    def _uneven_threads(self) -> Iterator[tuple[str, str]]:
        """A problem for threads that instances cannot share evenly: they are those of all together."""
        instances, threads = self.values["instances"], self.values["threads"]
        if instances and threads and threads % instances:
            each = max(1, threads // instances)
            allowed = f"a multiple of {instances}, as they are those of all {instances} instances together"
            yield "threads", f"found '{threads}'; allowed: {allowed} ({each * instances} are {each} for each)"

    def as_json(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of run.json that the call decides. env: what starts the servers of some backends."""
        values = self.values
        found: dict[str, Any] = {
            "model": self.model,
            "backend": self.backend,
            "device": self.device,
            "precision": self.precision,
            "gpus": None if values["gpus"] is None else list(values["gpus"]),
            "scenario": the_one(values, "scenario"),
            "mode": the_one(values, "mode"),
            "execution_mode": values["execution_mode"],
            "compliance_test": values["compliance_test"],
            "find": values["find"] is True,
            "output_dir": self.path(values["output_dir"]),
            "user_conf": None if values["user_conf"] is None else str(values["user_conf"]),
            **as_json(NUMBERS, values),
            **self.targets(),
        }
        if self.is_served:
            found["serving"] = {"server": self.path(env.get(SERVER_FILE_KEY)), **as_json(SERVING, values)}
        text = self.prompts.as_json(self.backend, str(env.get(SERVER_KEY) or ""))
        if text is not None:
            found["text"] = text
        elif values[TIMEOUT] is not None:
            found["silence_s"] = values[TIMEOUT]
        if values["power_command"]:
            found["power_command"] = list(power_words(values["power_command"], self.folder))
        if values["price_per_hour"]:
            found["price_per_hour"] = values["price_per_hour"]
        return found


_COMMON = ("model", "backend", "device", "precision", "gpus", "scenario", "execution_mode", "user_conf")
_COMMON_PATHS = ("model_path", "dataset_path", "preprocessed_path")


def require_common(
    request: Mapping[str, object], reference: Mapping[str, object], is_there: Callable[[str], bool]
) -> None:
    """Raise RequestError for what a compliance test must have in common with the run that it is for, and has not.

    `reference` is that run's run.json. A path that is gone (`is_there`) is not compared: the files may have moved.
    """
    names = [*_COMMON, *(name for name in _COMMON_PATHS if is_there(str(reference.get(name) or "")))]
    wrong = [
        f"{name}: {request[name]!r}, in the run that the test is for {reference.get(name)!r}"
        for name in names
        if request[name] != reference.get(name)
    ]
    if wrong:
        raise RequestError([*wrong, "give the inputs of that run (--source, --adr.dataset.tags and so on) here too"])


def check_request(asked: Asked, known: AppNames) -> None:
    """Raises RequestError with every problem of what is asked for; dependencies need not have run."""
    if problems := asked.problems(known):
        raise RequestError(problems)


def build_request(asked: Asked, env: Mapping[str, Any], known: AppNames) -> dict[str, Any]:
    """The content of run.json but for a missing `output_dir`, which is None; raises RequestError with every problem."""
    check_request(asked, known)
    files = {name: asked.path(env.get(key)) for name, key in FILE_KEYS.items()}
    if (given := asked.values["tokenizer"]) is not None:
        files["model_path"] = str(tokenizer_file(given))  # the server has the weights
    return {"format": FORMAT, **asked.as_json(env), **files}
