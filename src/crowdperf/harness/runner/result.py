"""Makes result.json: the request, each setting's final value and reason, and LoadGen's results. Pure, except
`write_json` and the user's home, which is masked."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from crowdperf.harness.base.model_facts import CalibrationSource
from crowdperf.harness.runner.config import FORMAT, RunConfig
from crowdperf.harness.runner.settings import Origin, Setting, Settings
from crowdperf.kit.path_redaction import HOME, RESULT, KnownFolders, honest
from crowdperf.kit.user_paths import home_folder
from crowdperf.logs.log_record import record_of_log
from crowdperf.logs.run_log import Json, LoadGenLog
from crowdperf.rules.names import (
    DEPARTURE_LABEL,
    FULL_RULES_MIN_DURATION_MS,
    STAND_IN_LABEL,
    SYNTHETIC_LABEL,
    TEST_RUN_LABEL,
)
from crowdperf.rules.provenance import Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts of a run in addition to its settings and LoadGen's log.

    kept_shape_utc: the time at which an earlier run found the shape (shape.json), None if this run searched for it.
    candidates: the shapes that this run measured. serving: the server's setup, if a server answered.
    """

    command: tuple[str, ...]
    started_utc: str
    versions: Mapping[str, str]
    model_sha256: Mapping[str, str]
    calibration: CalibrationSource | None
    is_official_model: bool
    is_synthetic: Mapping[str, bool]
    provenance: Provenance
    issue_shape: str
    warm_up: Mapping[str, float | None]
    kept_shape_utc: str | None
    candidates: Sequence[Mapping[str, Json]]
    serving: Mapping[str, Json] | None = None


def run_label(settings: Settings, log: LoadGenLog, facts: Facts, compliance_test: str | None = None) -> str:
    """Return the words that must be shown with the result."""
    words = [] if compliance_test is None else [f"compliance test {compliance_test}"]
    if settings.departures:
        words.append(f"{DEPARTURE_LABEL} ({', '.join(settings.departures)}), not an MLPerf result")
    if facts.is_synthetic["model"] or facts.is_synthetic["dataset"]:
        words.append(SYNTHETIC_LABEL)
    if facts.is_synthetic["backend"]:
        words.append(STAND_IN_LABEL)
    words += facts.provenance.labels
    if settings.min_duration_ms.value < FULL_RULES_MIN_DURATION_MS:
        words.append(TEST_RUN_LABEL)
    elif not log.is_valid:
        words.append("INVALID, not an MLPerf result")
    elif not facts.is_official_model:
        words.append("full-length run of a model that MLPerf does not know")
    elif not words:
        words.append("full-length run, not submitted to MLPerf")
    return "; ".join(words)


def _requested(value: str | int | list[int] | None) -> Json:
    """A setting as run.json has it. Without a value, and for the first GPU alone, it is the default."""
    origin = Origin.DEFAULT if value in (None, [], [0]) else Origin.REQUEST
    return {"value": value, "origin": origin.value}


def _resolved(setting: Setting[int] | Setting[float] | None) -> Json:
    return None if setting is None else {"value": setting.value, "origin": setting.origin.value}


def _path(path: Path | None) -> Json:
    return _requested(None if path is None else str(path))


def _run_part(config: RunConfig, settings: Settings) -> dict[str, Json]:
    """Return every resolved key of run.json: {"value", "origin"}, or None if the scenario has no such setting."""
    return {
        "model": _requested(config.model),
        "backend": _requested(config.backend),
        "device": _requested(config.device),
        "scenario": _requested(config.scenario.value),
        "mode": _requested(config.mode.value),
        "execution_mode": _requested(config.execution_mode.value),
        "compliance_test": _requested(config.compliance_test),
        "find": config.find,
        "model_path": _path(config.model_path),
        "model_info_path": _path(config.model_info_path),
        "dataset_path": _path(config.dataset_path),
        "preprocessed_path": _path(config.preprocessed_path),
        "precision": _requested(config.precision),
        "gpus": _requested(list(config.gpus)),
        "output_dir": _path(config.output_dir),
        "batch_size": _resolved(settings.shape.batch_size),
        "instances": _resolved(settings.shape.instances),
        "threads": _resolved(settings.shape.threads),
        "is_spinning": settings.shape.is_spinning,
        "batch_timeout_us": _requested(config.batch_timeout_us),
        "target_qps": _resolved(settings.target_qps),
        "target_latency_ms": _resolved(settings.target_latency_ms),
        "min_duration_ms": _resolved(settings.min_duration_ms),
        "min_query_count": _resolved(settings.min_query_count),
        "performance_sample_count": _resolved(settings.performance_sample_count),
        "user_conf": _path(config.user_conf),
    }


def build_result(config: RunConfig, settings: Settings, log: LoadGenLog, facts: Facts) -> dict[str, Json]:
    """Return the content of result.json, without a path of the machine. `valid` is LoadGen's verdict and no error.
    An accuracy run is valid without errors."""
    content: dict[str, Json] = {
        "format": FORMAT,
        "label": run_label(settings, log, facts, config.compliance_test),
        "run": {**_run_part(config, settings), **({} if facts.serving is None else {"serving": dict(facts.serving)})},
        "user_conf_lines": dict(settings.user_lines),
        "is_synthetic": dict(facts.is_synthetic),
        "provenance": asdict(facts.provenance),
        "issue_shape": facts.issue_shape,
        "shape_found_utc": facts.kept_shape_utc,
        "shape_candidates": list(facts.candidates),
        "warm_up": dict(facts.warm_up),
        **record_of_log(log),
        "error_messages": list(log.errors),
        "versions": dict(facts.versions),
        "model_sha256": dict(facts.model_sha256),
        "calibration": None if facts.calibration is None else asdict(facts.calibration),
        "command": list(facts.command),
        "started_utc": facts.started_utc,
    }
    written: dict[str, Json] = honest(content, KnownFolders({RESULT: str(config.output_dir), HOME: str(home_folder())}))
    return written
