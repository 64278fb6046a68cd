"""get-mlperf-benchmark-config: the shipped registry, its figures, layers, scaling, and broken files."""

from __future__ import annotations

import pytest
from recipe_loader import RECIPES, load_recipe

for library in ("get-mlperf-results-lib", "get-machine-lib", "get-mlperf-benchmark-config"):
    load_recipe(library).preprocess({"env": {"CM_TMP_CURRENT_SCRIPT_PATH": str(RECIPES / library)}})

from mlperf_configs.registry import read_registry  # noqa: E402 - importable from here on
from mlperf_results.names import Scenario, UnknownName  # noqa: E402
from mlperf_results.officialnames import parse_benchmark  # noqa: E402

SS, MS, OFF, SRV = Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM, Scenario.OFFLINE, Scenario.SERVER


def test_the_whole_shipped_registry_is_right() -> None:
    read_registry().check()


def test_the_settings_of_bert_on_twenty_t4s_each_with_its_line() -> None:
    config = read_registry().effective("bert", OFF, "T4x20", "high_accuracy")
    values = {name: one.value for name, one in config.values.items()}
    assert config.benchmark == "bert-99.9"
    assert (values["gpu_batch_size"], values["gpu_inference_streams"], values["precision"]) == (256, 1, "fp16")
    assert values["offline_expected_qps"] == 4400
    path = RECIPES / "get-mlperf-benchmark-config"
    for name, one in config.values.items():
        file, _, line = one.origin.rpartition(":")
        assert (path / file).read_text(encoding="utf-8").splitlines()[int(line) - 1].strip().startswith(f"{name}: ")


def test_rates_of_another_count_are_scaled_and_say_so() -> None:
    config = read_registry().effective("resnet50", SRV, "A100-SXM4x8", accelerators=4)
    rate = config.values["server_target_qps"]
    assert (config.system, rate.value, rate.origin) == ("A100-SXM4x4", 127500, "scaled 4/8 from A100-SXM4x8")


@pytest.mark.parametrize(
    ("text", "name", "level"),
    [
        ("ResNet50", "resnet50", None),
        ("resnet", "resnet50", None),
        ("BERT", "bert", None),
        ("Bert-99.9", "bert", 0.999),
        ("dlrm_v2-99", "dlrm-v2", 0.99),
        ("Unet", "3d-unet", None),
        ("3D-UNET", "3d-unet", None),
        ("RNN-T", "rnnt", None),
        ("ssd-large", "ssd-resnet34", None),
        ("SSDResNet34", "ssd-resnet34", None),
        ("ssd-small", "ssd-mobilenet", None),
        ("GPT-J", "gptj", None),
    ],
)
def test_a_benchmark_has_many_spellings(text: str, name: str, level: float | None) -> None:
    assert parse_benchmark(text) == (name, level)


@pytest.mark.parametrize("text", ["", "-99", "resnet51", "resnet50-99", "bert-99.5", "bert-999", "be\nrt", "$(id)"])
def test_an_unknown_benchmark_is_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(UnknownName, match=r"known: .*bert-99, bert-99\.9"):
        parse_benchmark(text)
