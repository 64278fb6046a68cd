"""What a submission of rounds up to v5.1 says of a run beside its user.conf: <system>_<Scenario>.json, README.md and
calibration.md in measurements/. LoadGen has mlperf.conf in itself since v4.1, so there is no file of that name.

Effects: writes these three files. Source of names and keys: submission rules of mlcommons/policies and measurements/ of
mlcommons/inference_results_v0.7 (31060d57), read 2026-11-28.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

from crowdperf.kit.whole_file import write_json, write_whole
from crowdperf.rules.backends import weight_changes, weight_type
from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.names import SYNTHETIC_LABEL

NOT_YET = "not known before make generate_engines"


@dataclass(frozen=True, slots=True)
class Described:
    """A configuration. engine: the place of the model's file or engine in the workspace."""

    system: str
    benchmark: str
    scenario: str
    backend: str
    precision: str
    engine: str
    source: str
    run_args: str

    @property
    def label(self) -> str:
        """What must be beside the run; empty with the published model and data."""
        return "" if self.source == "real" else SYNTHETIC_LABEL


def write(workspace: Path, place: str, run: Described) -> None:
    """Writes the files into the folder `place`."""
    folder, engine = workspace / place, workspace / run.engine
    weights = engine.resolve().name if engine.exists() else NOT_YET
    content = {
        "input_data_types": record_of(run.benchmark).input_type,
        "retraining": "no (weights made by a program)" if run.label else "no",
        "starting_weights_filename": weights,
        "weight_data_types": weight_type(run.precision),
        "weight_transformations": weight_changes(
            run.precision, run.backend, "int8 by crowdperf's quantize-ml-model" if run.precision == "int8" else ""
        ),
        **({"crowdperf": {"label": run.label}} if run.label else {}),
    }
    write_json(folder / f"{run.system}_{run.scenario}.json", content)
    write_whole(folder / "README.md", _readme(run, weights))
    write_whole(folder / "calibration.md", _calibration(run))


def _readme(run: Described, weights: str) -> str:
    line = (
        f"make run RUN_ARGS={shlex.quote(run.run_args or f'--benchmarks={run.benchmark} --scenarios={run.scenario}')}"
    )
    source = f" SOURCE={run.source}" if run.label else ""
    label = f"\n**{run.label}**\n" if run.label else ""
    return f"""# {run.benchmark} {run.scenario} on {run.system}
{label}
    {line}{source}

Harness: crowdperf, backend {run.backend}, precision {run.precision}. Weights: {weights}.
Settings of LoadGen: user.conf, while mlperf.conf is the one in LoadGen.
Made before the run, by `make generate_conf_files`. It contains no results.
"""


def _calibration(run: Described) -> str:
    is_quantized = run.precision == "int8"
    text = (
        "The weights are quantized to int8, with the benchmark's official calibration list. `make calibrate` makes\n"
        "build/calibration/<benchmark>/calibration.json with its digests and the scales."
        if is_quantized
        else f"Not quantized: the weights are {weight_type(run.precision)}."
    )
    return f"# Calibration of {run.benchmark}\n\n{text}\n"
