"""The backends of the harness, collected from their records (record.py,
crowdperf/harness/backends/<name>/record.py)."""

from collections.abc import Mapping
from typing import Any

from crowdperf.kit.text_documents import part
from crowdperf.rules.benchmarks import RECORDS, model_of
from crowdperf.rules.record import BackendRecord
from crowdperf.rules.record_files import read_records

BACKENDS: Mapping[str, BackendRecord] = read_records("backends", BackendRecord)
"""Every backend by its name, sorted."""

STAND_IN_BACKENDS = tuple(name for name, record in BACKENDS.items() if record.stand_in)
"""Backends whose speed is no machine's: they prove pipelines."""

SIMULATORS: Mapping[str, str] = {one.simulates: name for name, one in BACKENDS.items() if one.simulates}
"""The stand-in that `--simulate=BACKEND` runs in the place of a backend."""


def is_of_client(result: Mapping[str, Any]) -> bool:
    """Return whether `machine` of a result.json is that of a client: a server given by its URL was measured, and the
    client cannot see what that runs on, also where a tunnel makes it look like this machine."""
    known = BACKENDS.get(str(part(result, "run", "backend", "value")))
    return known is not None and known.is_remote


def simulated(simulate: str, backend: str, device: str) -> tuple[str, str]:
    """Return the backend and the device that run: with `--simulate=BACKEND` its stand-in, else those that are given.

    Raises ValueError where another backend is asked for.
    """
    if not simulate:
        return backend, device
    stand_in = SIMULATORS.get(simulate, "")
    if not stand_in or backend not in (simulate, stand_in):
        allowed = " or ".join(f"{name} with backend {name}" for name in SIMULATORS)
        raise ValueError(f"found {simulate!r} with backend {backend}; allowed: {allowed}")
    return stand_in, BACKENDS[stand_in].devices[0]


def default_backend(benchmark: str, *, asks_server: bool = False) -> str:
    """Return the backend that runs a benchmark where none is named; `asks_server`: a server of the user's is given."""
    remote = next((name for name, one in BACKENDS.items() if one.is_remote), "")
    if asks_server and remote:
        return remote
    known = RECORDS.get(model_of(benchmark))
    is_text = known is not None and known.generation is not None
    if known is not None and known.generation is not None and known.generation.usual_backend:
        return known.generation.usual_backend
    fitting = {name: one for name, one in BACKENDS.items() if one.is_text == is_text and not one.is_remote}
    return next((name for name, one in fitting.items() if one.is_default), next(iter(fitting), ""))


def benchmarks_on(backend: str) -> tuple[str, ...]:
    """Return the names without level of the benchmarks that a backend offers."""
    needed = BACKENDS[backend].only_with
    return tuple(one.name for one in RECORDS.values() if not needed or getattr(one, needed) is not None)


def default_precision(backend: str) -> str:
    """Return the precision of a run by default: the backend's first."""
    record = BACKENDS.get(backend)
    return "fp32" if record is None else record.precisions[0]


def weight_type(precision: str) -> str:
    """Return the type of the weights that a run in `precision` computes with, as MLPerf's descriptions name it: TF32 is
    how fp32 weights are multiplied."""
    return "fp32" if precision == "tf32" else precision


def weight_changes(precision: str, backend: str, quantisation: str = "") -> str:
    """Return what is done with a model's weights for a run, as `weight_transformations` names it: "none" for nothing.

    quantisation: how quantized weights were made.
    """
    own = {"fp16": "cast to fp16", "bf16": "cast to bf16", "tf32": "fp32 weights, multiplied in TF32"}
    of_backend = BACKENDS[backend].transformation if backend in BACKENDS else ""
    return "; ".join(text for text in (quantisation or own.get(precision, ""), of_backend) if text) or "none"


def misfit(backend: str, benchmark: str, device: str, precision: str = "") -> str:
    """Return why a backend cannot run a benchmark on a device, and in a precision where one is given, where its record
    says so; else an empty text."""
    record = BACKENDS.get(backend)
    if record is None:
        return ""
    known = RECORDS.get(model_of(benchmark))
    reasons = {f"on {device}": record.unfit.get(device, "")}
    if precision and device in record.devices and precision not in record.precisions_on(device):
        reasons[f"{precision} on {device}"] = f"it can: {', '.join(record.precisions_on(device))}"
    if record.is_served and known is not None:
        reasons[benchmark] = known.unservable
    if known is not None and record.is_text != (known.generation is not None):
        fitting = ", ".join(name for name, one in BACKENDS.items() if one.is_text != record.is_text)
        words = "it answers prompts with texts" if record.is_text else "it runs networks on tensors"
        reasons[benchmark] = f"{words} (supported backends: {fitting})"
    elif known is not None and known.name not in benchmarks_on(backend):
        reasons[benchmark] = f"it runs {', '.join(benchmarks_on(backend))}"
    return "; ".join(f"backend {backend} cannot run {what}: {why}" for what, why in reasons.items() if why)
