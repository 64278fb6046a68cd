"""What a curve is asked for: the inputs of the recipe, checked all at once. Reads the data set, changes nothing."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from crowdperf.curves.choice import automatic_points, missing
from crowdperf.curves.client import ClientSettings, DatasetSettings
from crowdperf.curves.pointinputs import PointInputs
from crowdperf.curves.probe import root_of
from crowdperf.curves.sizing import FLOORS_S
from crowdperf.endpoints.edition import Edition, SeedSet, read_edition
from crowdperf.endpoints.pointfiles import Offline
from crowdperf.endpoints.regions import Regions, regions_of
from crowdperf.kit.numbers import WHOLE, whole_number
from crowdperf.kit.text_documents import Json
from crowdperf.kit.user_paths import expanded
from crowdperf.kit.whole_file import file_sha256
from crowdperf.rules.names import with_problems
from crowdperf.rules.prompt_settings import DEFAULT_KEY_VARIABLE, DEFAULT_URL_VARIABLE

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
_Read = TypeVar("_Read")


class RequestError(ValueError):
    """The curve cannot be made as it was asked for; the text has every reason, one a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveRequest:
    """A curve. points: ascending. c_min_override: the C_min that is declared, where it is not the lowest point.

    notes: what a submission would miss; none stops a curve that is no valid run.
    """

    name: str
    mode: str
    edition: Edition
    model: str
    regions: Regions
    points: tuple[int, ...]
    offline: Offline
    has_accuracy: bool
    seed_set: SeedSet
    target_cohort: str
    division: str
    dataset_samples: int
    dataset_sha256: str
    settings: ClientSettings
    notes: tuple[str, ...]

    def floor_s(self, concurrency: int) -> float:
        """Return the least seconds of steady state at a concurrency."""
        if self.mode in FLOORS_S:
            return FLOORS_S[self.mode]
        return self.edition.floor_s(concurrency, is_agentic=False)

    def point_inputs(self, client_version: str, client_commit: str) -> tuple[PointInputs, ...]:
        """Return the points in the order of their runs: ascending, a dedicated Offline run last."""
        scored = self._scored()
        numbers = [*self.points, *([0] if self.offline is Offline.DEDICATED else [])]
        return tuple(
            PointInputs(
                concurrency=number,
                floor_s=self.floor_s(number) if number else 0.0,
                dataset_samples=self.dataset_samples,
                dataset_sha256=self.dataset_sha256,
                has_accuracy=number in scored,
                client_version=client_version,
                client_commit=client_commit,
                settings=self.settings,
            )
            for number in numbers
        )

    def _scored(self) -> set[int]:
        """The points with an accuracy run: the lowest in each mandatory region, and the Offline result."""
        if not self.has_accuracy:
            return set()
        regions = self.regions
        bounds = (regions.ultra_low, regions.low, regions.medium, regions.high)
        found = {next((one for one in self.points if one in each), None) for each in bounds}
        offline = {Offline.ELECTED: regions.c_max, Offline.DEDICATED: 0}.get(self.offline)
        return {one for one in (*found, offline) if one is not None}


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a call by name, each of its type. here: where the user stands. problems: what is wrong."""

    values: Mapping[str, Any]
    here: Path
    problems: list[str] = field(default_factory=list)

    def text(self, name: str, otherwise: str = "") -> str:
        """A text; `otherwise` where there is none."""
        return self.values[name] or otherwise

    def needed(self, name: str, what: str = "") -> Any:
        """A value that must be given, None where it is not. what: what is said of it then."""
        if self.values[name] is None:
            self.problems.append(f"--{name} is missing{what and f': {what}'}")
        return self.values[name]

    def path(self, name: str) -> Path | None:
        """A path without links; None without it."""
        path: Path | None = self.values[name]
        return path and path.resolve()

    def tokenizer(self) -> str:
        """The tokenizer's folder without links, or its name where there is no such folder; empty without one."""
        text = self.text("tokenizer")
        folder = (self.here / expanded(text)).resolve()
        return str(folder) if text and folder.is_dir() else text

    def refusal(self) -> RequestError:
        """All that was found wrong, each once."""
        return RequestError(with_problems("these inputs cannot be used", tuple(dict.fromkeys(self.problems))))

    def attempt(self, make: Callable[[], _Read]) -> _Read | None:
        """What `make` returns; None, and the problem noted, where it refuses."""
        try:
            return make()
        except (ValueError, OSError) as error:
            self.problems.append(str(error))
            return None


_EXTRACTORS = ("identity_extractor", "abcd_extractor", "boxed_math_extractor", "python_code_extractor",
               "function_call_extractor")  # fmt: skip
_NO_EXTRACTOR = ("agentic_inference_inline", "vbench", "legacy_mlperf_deepseek_r1", "swe_bench_scorer")
"""What the client takes answers out of texts with, and its scorers that need nothing of the kind: it ends with code 2
where it lacks one. extractor.py, scoring.py and swe_bench_scorer.py in src/inference_endpoint/evaluation of
mlcommons/endpoints ea332753 (2026-08-21)."""


def rows_of(path: Path) -> int | None:
    """Return the rows of a .jsonl file; None for other formats, of which --dataset_samples must say them."""
    if path.suffix != ".jsonl":
        return None
    with path.open("rb") as stream:
        return sum(1 for line in stream if line.strip())


def _dataset(reader: Inputs, key: str, columns: Mapping[str, str], scoring: Mapping[str, Json]) -> DatasetSettings:
    path = reader.path(key)
    if path and not path.is_file():
        reader.problems.append(f"--{key}: {path} is not a file")
    name = reader.text(f"{key}_name", path.stem if path else "")
    return DatasetSettings(name=name, path=str(path or ""), columns=dict(columns), scoring=dict(scoring))


def _datasets(reader: Inputs, has_accuracy: bool) -> tuple[DatasetSettings, DatasetSettings | None]:
    columns = {"prompt": reader.values["prompt_column"]}
    reader.needed("dataset", "the file with the prompts of the performance runs")
    performance = _dataset(reader, "dataset", columns, {})
    if not has_accuracy:
        return performance, None
    scoring: dict[str, Json] = {
        "eval_method": reader.needed("eval_method", "a scorer of the client, such as pass_at_1 or string_match"),
        "ground_truth": reader.values["answer_column"],
        "num_repeats": reader.values["accuracy_repeats"],
    }
    if extractor := reader.text("extractor"):
        scoring["extractor"] = extractor
    elif scoring["eval_method"] and scoring["eval_method"] not in _NO_EXTRACTOR:
        found = f"--extractor is missing: --eval_method={scoring['eval_method']} needs one"
        reader.problems.append(f"{found}, such as {', '.join(_EXTRACTORS)}")
    reader.needed("accuracy_dataset", "the file with the answers, or --accuracy=none")
    accuracy = _dataset(reader, "accuracy_dataset", columns, scoring)
    if accuracy.name == performance.name:
        accuracy = DatasetSettings(name=f"{accuracy.name}_accuracy", path=accuracy.path, columns=columns,
                                   scoring=scoring)  # fmt: skip
    return performance, accuracy


def _samples(reader: Inputs, performance: DatasetSettings) -> int:
    path, given = Path(performance.path), reader.values["dataset_samples"]
    if given or not path.is_file():
        return given or 1
    found = rows_of(path)
    if found == 0:
        reader.problems.append(f"--dataset: {path} has no rows")
    return reader.needed("dataset_samples", WHOLE) or 1 if found is None else found


def _generation(reader: Inputs) -> dict[str, Json]:
    """model_params of the client that change what is generated."""
    text = reader.text("generation", "{}")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        reader.problems.append(f"--generation must be a JSON object of the client's model_params, got {text[:60]!r}")
        found = {}
    return {"temperature": 0.0, "max_new_tokens": reader.values["max_new_tokens"], **found}


def _points(reader: Inputs) -> tuple[Regions | None, tuple[int, ...]]:
    """The regions and the points, ascending; C_min is the lowest point unless it is given beside a list."""
    c_max = reader.needed("c_max", WHOLE)
    if c_max is None:
        return None, ()
    text = reader.values["points"]
    if text == "auto":
        c_min = reader.values["c_min"] or 1
        regions = reader.attempt(lambda: regions_of(c_max, c_min))
        return regions, automatic_points(regions) if regions else ()
    numbers = [whole_number(word.strip()) for word in text.split(",")]
    points = tuple(sorted(number for number in numbers if number is not None))
    if len(set(points)) < len(numbers):
        reader.problems.append(f"--points must be auto or different whole numbers like 1,4,12, got {text!r}")
        return None, ()
    c_min = reader.values["c_min"] or points[0]
    regions = reader.attempt(lambda: regions_of(c_max, c_min, is_override=c_min != points[0]))
    if regions and points[-1] > regions.margin.end:
        reader.problems.append(f"--points: {points[-1]} is above 1.1 x C_max, which is {regions.margin.end}")
    return regions, points


def _seeds(reader: Inputs, edition: Edition) -> tuple[SeedSet | None, str]:
    seeds = reader.attempt(lambda: edition.seed_set(reader.text("seed_set", next(iter(edition.seed_sets)))))
    cohorts = [str(one) for one in seeds.cohorts] if seeds else []
    cohort = reader.text("target_cohort", cohorts[0] if cohorts else "")
    if seeds and cohort not in cohorts:
        reader.problems.append(f"--target_cohort: seed set {seeds.id} is for {', '.join(cohorts)}, got {cohort!r}")
    return seeds, cohort


def _settings(reader: Inputs, model: str, seeds: SeedSet, datasets: tuple[DatasetSettings, DatasetSettings | None]
              ) -> ClientSettings:  # fmt: skip
    key = reader.text("api_key_variable") or (DEFAULT_KEY_VARIABLE if os.environ.get(DEFAULT_KEY_VARIABLE) else "")
    if key and not _VARIABLE.fullmatch(key):
        reader.problems.append("--api_key_variable must be the name of an environment variable (the given value is not "
                               "shown: it may be the key itself)")  # fmt: skip
    url = reader.values["url"] or os.environ.get(DEFAULT_URL_VARIABLE, "").strip()
    if not url:
        reader.needed("url", f"the URL of the server (or set {DEFAULT_URL_VARIABLE})")
    reader.needed("tokenizer")
    return ClientSettings(
        name=model,
        url=(reader.attempt(lambda: root_of(url)) if url else "") or "",
        model=reader.text("served_model", model),
        tokenizer=reader.tokenizer(),
        generation=_generation(reader),
        workers=reader.values["workers"],
        scheduler_seed=seeds.scheduler,
        sample_seed=seeds.sample_index,
        performance=datasets[0],
        accuracy=datasets[1],
        key_variable=key,
    )


def read_request(values: Mapping[str, Any], here: Path) -> CurveRequest:
    """Return the curve that the inputs ask for, each of its type; raises RequestError. here: where the user stands."""
    reader = Inputs(values, here)
    edition = reader.attempt(lambda: read_edition(reader.path("seed_sets"))) or read_edition()
    name = reader.needed("model") or ""
    model = reader.attempt(lambda: edition.model(name)) if name else None
    if model and model.is_agentic:
        reader.problems.append(f"{name} is an agentic model, which is not measured here: run the client yourself, and "
                               "give its folders with --from_recorded")  # fmt: skip
    mode = values["execution_mode"]
    offline = Offline(values["offline"])
    has_accuracy = values["accuracy"] == "mandatory"
    regions, points = _points(reader)
    if regions and offline is Offline.ELECTED and points and regions.c_max not in points:
        reader.problems.append(f"--offline=elected needs the point at C_max: add {regions.c_max} to --points")
    seeds, cohort = _seeds(reader, edition)
    datasets = _datasets(reader, has_accuracy)
    samples = _samples(reader, datasets[0])
    settings = _settings(reader, name, seeds, datasets) if seeds else None
    notes = list(missing(regions, points)) if regions and points else []
    if mode == "valid":
        reader.problems.extend(notes)
    if settings and settings.model != name:
        notes.append(f"the server knows the model as {settings.model!r}: a submission needs {name!r} in config.yaml")
    curve = reader.text("curve", f"{name or 'some'}-curve")
    if not _NAME.fullmatch(curve):
        reader.problems.append(f"--curve must be letters, digits, '.', '_' and '-' (80 at most), got {curve!r}")
    if reader.problems or model is None or regions is None or seeds is None or settings is None:
        raise reader.refusal()
    return CurveRequest(
        name=curve,
        mode=mode,
        edition=edition,
        model=name,
        regions=regions,
        points=points,
        offline=offline,
        has_accuracy=has_accuracy,
        seed_set=seeds,
        target_cohort=cohort,
        division=values["division"],
        dataset_samples=samples,
        dataset_sha256=file_sha256(Path(settings.performance.path)),
        settings=settings,
        notes=tuple(notes),
    )
