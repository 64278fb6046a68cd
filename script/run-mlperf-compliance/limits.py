"""What the tests of language models hold answers against: the model's end tokens, TEST07's score, TEST09's lengths.

With published models and data the limits are the rules'. With generated ones those would say nothing: there the run
itself is the reference, its accuracy run's score and its performance run's mean length.
"""

from pathlib import Path

from crowdperf.kit.text_documents import given_object
from crowdperf.logs.accuracy_log import DamagedLog
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import LogError, read_detail_log
from crowdperf.rules import end_tokens as endtokens
from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.record import Generation

from .asking import MeasuredRun

OWN_SCORE_PART, OWN_LENGTH_PART = 0.99, 0.10
"""How far from the run's own figures a test with generated data may be: as the rules allow beside the reference."""

_TOKENS = {"Offline": "result_tokens_per_second"}, "result_completed_tokens_per_second"
_SAMPLES = {"Offline": "result_samples_per_second"}, "result_completed_samples_per_sec"


def model_folder(run: MeasuredRun) -> Path | None:
    """The folder of the model's files, None where the run had none."""
    given = run.request.get("model_info_path") or run.request.get("model_path")
    path = Path(given) if given else None
    return path if path is None or path.is_dir() else path.parent


def end_tokens(folder: Path | None) -> tuple[int, ...]:
    """The tokens that end an answer, as the model's files name them. Raises DamagedLog."""
    try:
        return endtokens.end_tokens(folder)
    except ValueError as error:
        raise DamagedLog(str(error)) from error


def _generation(run: MeasuredRun) -> Generation:
    found = record_of(run.request["model"]).generation
    if found is None:
        raise DamagedLog(f"{run.request['model']} is not a language model: this test is not for it")
    return found


def _is_synthetic(run: MeasuredRun) -> bool:
    return any(run.result["is_synthetic"].values())


def least_score(run: MeasuredRun) -> float:
    """What TEST07's answers must score, in percent. Raises DamagedLog where that is not known."""
    official = _generation(run).least_score
    if official is None:
        raise DamagedLog(f"TEST07 has no threshold for {run.request['model']}")
    if not _is_synthetic(run):
        return official
    rows = given_object(RunPaths(run.scenario_folder / "accuracy").accuracy_json, DamagedLog)["metrics"]
    value = next((float(row["value"]) for row in rows if row["name"] == "exact_match"), None)
    if value is None:
        raise DamagedLog("the accuracy run has no exact_match, which TEST07 requires for synthetic data")
    return round(OWN_SCORE_PART * value, 3)


def mean_tokens(run: MeasuredRun) -> tuple[float, float]:
    """Between what the mean number of tokens of TEST09's answers must lie. Raises DamagedLog, LogError and OSError."""
    official = _generation(run).mean_tokens
    if official is None:
        raise DamagedLog(f"TEST09 has no lengths for {run.request['model']}")
    if not _is_synthetic(run):
        return official
    log = RunPaths(run.scenario_folder / "performance" / "run_1").detail_log
    values = read_detail_log(log).values.beginning("result_")
    rates = [values.get(by.get(run.request["scenario"], other)) for by, other in (_TOKENS, _SAMPLES)]
    if not all(isinstance(rate, int | float) and rate > 0 for rate in rates):
        raise LogError(f"{log} has no rates of tokens and samples: TEST09 of generated data needs them")
    mean = float(rates[0]) / float(rates[1])  # type: ignore[arg-type]
    return round(mean * (1 - OWN_LENGTH_PART), 2), round(mean * (1 + OWN_LENGTH_PART), 2)
