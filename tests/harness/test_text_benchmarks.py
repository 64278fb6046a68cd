"""MLPerf's language models, whole: their data, LoadGen, their scorers and compliance tests, with known answers."""

import ast
import json
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from harness_support import need, run_harness
from text_benchmarks import BENCHMARKS, COUNT, make_model, text_request, write_data

from crowdperf.compliance.answer_checks import verify_answers, verify_lengths
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.harness.datasets.parts import sample_folder
from crowdperf.harness.runner import registry
from crowdperf.harness.text.engine import Answer, Finish
from crowdperf.harness.text.tokenizer import open_tokenizer
from crowdperf.logs.score_lines import parse_scores
from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.names import Mode, parse_scenario

need("mlperf_loadgen", "tokenizers", "safetensors", "rouge_score", "nltk")

SHORT = {"min_duration_ms": 200, "min_query_count": 20}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    make_model(folder / "model")
    for benchmark in BENCHMARKS:
        write_data(benchmark, folder / benchmark)
    return folder


def run(root: Path, benchmark: str, **changes: object):
    content = text_request(root, benchmark, **changes)
    ended = run_harness(root / f"call-{Path(str(content['output_dir'])).name}", content)
    assert ended.code == 0, ended.stderr
    return content, ended


def scored(root: Path, content: dict[str, object]) -> dict:
    name = Path(str(content["output_dir"]))
    ended = run_harness(root / f"score-{name.name}", content, "score")
    assert ended.code == 0, ended.stderr
    return json.loads((name / "accuracy.json").read_text())


def opened(root: Path, benchmark: str):
    """The benchmark, its samples in accuracy runs, and what a perfect model would say to each."""
    text = registry.load_text(benchmark).open_text(read_model_facts(None, root / "model" / "model.json"))
    module = registry.load_dataset_of(benchmark)
    dataset = module.open_dataset(sample_folder(root / benchmark, Mode.ACCURACY))
    prompts = text.prompts(dataset.load(range(dataset.count)))
    answers = [Answer(tokens=prompt.expected, finish=Finish.STOP) for prompt in prompts]
    return text, dataset, [(index, text.response(answer).tobytes()) for index, answer in enumerate(answers)]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_known_answers_get_the_score_that_they_must(root: Path, benchmark: str) -> None:
    text, dataset, responses = opened(root, benchmark)
    score = text.score(responses, dataset)
    wanted = {reference.metric for reference in record_of(benchmark).references}
    assert wanted <= set(score.values)
    for metric in wanted:  # as the official checker finds them in accuracy.txt: one line, plain numbers
        (found,) = parse_scores(metric, score.line)
        assert found.value == pytest.approx(score.values[metric], abs=1e-9)
    assert "np." not in score.line and "\n" not in score.line
    if "ROUGE1" in wanted:
        assert score.values["ROUGE1"] == score.values["ROUGELSUM"] == 100.0
        characters = sum(len(reference.replace("\n", " ")) for reference in dataset.references)
        assert score.values["GEN_LEN"] == characters
    else:
        assert "'not-graded': " in score.line  # programs are not run here


def test_a_wrong_type_or_order_of_tokens_costs_the_score(root: Path) -> None:
    text, dataset, responses = opened(root, "llama2-70b-99.9")
    wide = [(index, np.frombuffer(data, np.int32).astype(np.int64).tobytes()) for index, data in responses]
    lengths = [text.score(one, dataset).values["TOKENS_PER_SAMPLE"] for one in (responses, wide)]
    assert lengths[1] == pytest.approx(2 * lengths[0], abs=0.1)
    turned = [(index, np.frombuffer(data, np.int32)[::-1].tobytes()) for index, data in responses]
    others = [(index, responses[index - 1][1]) for index, _ in responses]
    for changed in (turned, others):
        assert text.score(changed, dataset).values["ROUGE2"] < 100.0


def test_a_tokenizer_is_needed_to_score_and_not_to_ask(root: Path, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(json.dumps({"format": 1, "files": {}}))
    text = registry.load_text("llama3.1-8b").open_text(read_model_facts(None, tmp_path / "model.json"))
    dataset = registry.load_dataset_of("llama3.1-8b").open_dataset(root / "llama3.1-8b")
    (sample,) = dataset.load([3])
    object.__setattr__(sample, "answer", None)
    (prompt,) = text.prompts([sample])
    assert prompt.tokens.dtype == np.int32 and prompt.tokens.tolist() == sample.tokens.tolist()
    with pytest.raises(HarnessError, match=r"contains neither tokenizer\.json nor vocab\.json"):
        text.score([], dataset)


def test_decoding_cleans_spaces_where_the_model_says_so(root: Path, tmp_path: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((root / "model" / name).read_bytes())
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    tokens = open_tokenizer(tmp_path).encode("It is n't so , Ann 's dog said .")
    for said, wanted in ((True, "It isn't so, Ann's dog said."), (False, "It is n't so , Ann 's dog said .")):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({**config, "clean_up_tokenization_spaces": said}))
        assert open_tokenizer(tmp_path).decode(tokens) == wanted


def test_samples_without_references_are_measured_and_not_scored(root: Path, tmp_path: Path) -> None:
    samples = sample_folder(root / "llama3.1-8b", Mode.ACCURACY) / "samples.jsonl"
    rows = [json.loads(line) for line in samples.read_text().splitlines()]
    lines = [json.dumps({name: row[name] for name in row if name != "reference"}) for row in rows]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines))
    (tmp_path / "dataset.json").write_text(json.dumps({"format": 1, "is_synthetic": True}))
    given = {"dataset_path": str(tmp_path), "output_dir": str(tmp_path / "run")}
    refused = run_harness(tmp_path / "a", text_request(root, "llama3.1-8b", mode="accuracy", **given))
    assert refused.code != 0 and "have no reference answer, which an accuracy run needs" in refused.stderr
    assert "cm run script --tags=get,dataset,mlperf-text,_llama3.1-8b." in refused.stderr
    measured = run_harness(tmp_path / "b", text_request(root, "llama3.1-8b", scenario="Offline", **SHORT, **given))
    assert measured.code == 0, measured.stderr


def test_an_accuracy_run_has_the_score_of_its_answers(root: Path) -> None:
    content, ended = run(root, "gpt-oss-120b", scenario="Server", mode="accuracy")
    result = ended.result
    assert result["sample_counts"]["dataset"] == 16, "its own samples, not those of performance runs"
    assert result["text"]["sampling"]["max_tokens"] == 32_768
    entries = json.loads((ended.folder / "mlperf_log_accuracy.json").read_text())
    assert all(len(entry["data"]) == 8 * entry["token_count"] for entry in entries)
    assert all(entry["data"].startswith(entry["token_data"]) for entry in entries)
    text, dataset, responses = opened(root, "gpt-oss-120b")
    assert scored(root, content)["line"] == text.score(responses, dataset).line


@pytest.mark.full
@pytest.mark.parametrize("mode", ["performance", "accuracy"])
@pytest.mark.parametrize(
    ("benchmark", "scenario"),
    [(name, scenario) for name in BENCHMARKS for scenario in (
        ("Offline", "SingleStream") if name.endswith("edge") else ("Offline", "Server", "Interactive")
    )],
)  # fmt: skip
def test_every_scenario_of_every_benchmark_runs(root: Path, benchmark: str, scenario: str, mode: str) -> None:
    limits = SHORT if mode == "performance" else {}
    content, ended = run(root, benchmark, scenario=scenario, mode=mode, **limits)
    result, tally = ended.result, ended.result["text"]["tally"]
    assert result["errors"] == 0 and tally["issued"] == tally["completed"] >= 16
    detail = (ended.folder / "mlperf_log_detail.txt").read_text()
    assert re.search(r'"requested_use_token_latencies", "value": true', detail)
    if mode == "accuracy":
        text, dataset, responses = opened(root, benchmark)
        assert scored(root, content)["line"] == text.score(responses, dataset).line
    elif scenario in ("Server", "Interactive"):
        limits_of = getattr(record_of(benchmark).generation, scenario.lower())
        assert result["text"]["limits"] == asdict(limits_of)


@pytest.mark.full
@pytest.mark.parametrize("scenario", ["Offline", "Server", "Interactive"])
@pytest.mark.parametrize(
    ("benchmark", "test"),
    [("llama3.1-8b", "TEST06"), ("llama2-70b-99.9", "TEST06"), ("deepseek-r1", "TEST06"), ("gpt-oss-120b", "TEST07"),
     ("gpt-oss-120b", "TEST09")],
)  # fmt: skip
def test_every_compliance_test_runs_and_is_verified(root: Path, benchmark: str, test: str, scenario: str) -> None:
    content, ended = run(root, benchmark, scenario=scenario, compliance_test=test)
    result = ended.result
    count = 3 if test == "TEST07" else COUNT
    assert result["errors"] == 0 and result["sample_counts"]["dataset"] == count
    with (ended.folder / "mlperf_log_accuracy.json").open() as log:
        if test == "TEST06":
            assert verify_answers(log, parse_scenario(scenario), (2,), "int32").is_passed
        elif test == "TEST09":
            assert result["text"]["tally"]["issued"] == count, "each sample once"
            assert verify_lengths(log, (1.0, 100.0), count).is_passed
        else:
            assert ast.literal_eval(scored(root, content)["line"])["num-samples"] == count
