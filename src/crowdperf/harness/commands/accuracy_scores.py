"""Scores the accuracy log of a run: accuracy.txt with the line the official checkers parse, accuracy.json with the
verdict."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import cast

from crowdperf.harness.base.errors import ConfigError
from crowdperf.harness.base.model import Model, PictureModel
from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.harness.datasets.parts import sample_folder
from crowdperf.harness.runner import registry
from crowdperf.harness.runner.accuracy import ResponseLog, all_passed, judge, official_targets
from crowdperf.harness.runner.config import RunConfig
from crowdperf.harness.runner.metadata_json import metadata
from crowdperf.harness.text.model import TextModel
from crowdperf.kit.records import Problem
from crowdperf.kit.whole_file import read_object, write_json
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.round_tables import files_beside_score
from crowdperf.logs.run_log import Json
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.compliance import SAMPLED_TEST, SCORED_TESTS
from crowdperf.rules.names import SYNTHETIC_LABEL, Mode
from crowdperf.rules.rounds import rounds_of

PICTURES_FOLDER = "images"
"""Where pictures lie beside a score, as in a submission."""
PART_OF_REFERENCE = 0.99
"""Lowest accepted accuracy as a part of the one that model.json gives, where no official target applies (synthetic
models and data, models that are not MLPerf's): what the closed division asks of most models."""


def _basis(is_synthetic: bool, is_official: bool, has_reference: bool) -> str:
    """Return in words what the targets stand on."""
    if not is_synthetic and is_official:
        return "the target of the closed division"
    if has_reference:
        return "a part of the fp32 model's own score on this data set"
    return "none: no reference is known, so the score does not qualify the model"


def named_pictures(benchmark: str) -> frozenset[int]:
    """Return the samples whose pictures a round wants to see beside the score; none of a model that makes none."""
    if not record_of(benchmark).has_pictures:
        return frozenset()
    names = (files_beside_score(benchmark, one).get(PICTURES_FOLDER, ()) for one in rounds_of(benchmark))
    return frozenset(int(name) for row in names for name in row)


def _keeping(
    log: Iterable[tuple[int, bytes]], wanted: frozenset[int], kept: dict[int, bytes]
) -> Iterator[tuple[int, bytes]]:
    """Pass on the responses of a log; those that are wanted are put into `kept`."""
    for index, data in log:
        if index in wanted:
            kept[index] = data
        yield index, data


def score(config: RunConfig) -> dict[str, Json]:
    """Score the accuracy log in the request's output folder; writes accuracy.txt and accuracy.json and returns the
    latter. Raises ConfigError and HarnessError."""
    is_sampled = config.compliance_test == SAMPLED_TEST
    if config.mode is not Mode.ACCURACY and config.compliance_test not in SCORED_TESTS:
        tests = " and ".join(SCORED_TESTS)
        problem = Problem("mode", config.mode.value, f"accuracy: a performance run is scored in {tests} only")
        raise ConfigError("the run", [problem])
    paths = RunPaths(config.output_dir)
    facts = read_model_facts(config.model_path, config.model_info_path)
    model: Model | TextModel
    if record_of(config.model).generation is None:
        model = registry.load_model(config.model).open_model(facts)
    else:
        model = registry.load_text(config.model).open_text(facts)
    dataset = registry.load_dataset_of(config.model).open_dataset(
        sample_folder(config.dataset_path, config.mode, config.compliance_test)
    )
    log = ResponseLog(paths.accuracy_log, dataset.count, is_part=is_sampled)
    kept: dict[int, bytes] = {}
    scored = model.score(_keeping(log, named_pictures(config.model), kept), dataset)
    if kept and not is_sampled:
        cast(PictureModel, model).write_pictures(paths.folder / PICTURES_FOLDER, kept, dataset)
    is_made_model = facts.is_synthetic and not BACKENDS[config.backend].is_remote
    is_synthetic = is_made_model or dataset.facts.is_synthetic
    official = () if is_synthetic else official_targets(config.model)
    most = {one.metric: one.most for one in record_of(config.model).references if one.most}
    judged = judge(scored, official, facts.reference, PART_OF_REFERENCE, most)
    content: dict[str, Json] = {
        "format": 2,
        "metrics": [{**asdict(item), "passed": item.is_passed} for item in judged],
        "passed": all_passed(judged),
        "target_basis": _basis(is_synthetic, record_of(config.model).is_official, facts.reference is not None),
        "line": scored.line,
        "label": SYNTHETIC_LABEL if is_synthetic else "",
        "is_synthetic": {"model": is_made_model, "dataset": dataset.facts.is_synthetic},
        "response_count": log.response_count,
        "duplicate_count": log.duplicate_count,
        "log_sha256": log.sha256,
    }
    paths.accuracy_text.write_text(scored.line + "\n", encoding="utf-8")
    write_json(paths.accuracy_json, content)
    if (result := read_object(paths.result_json)) is not None:  # a log may come without one
        write_json(paths.metadata_json, metadata(result, content))
    return content
