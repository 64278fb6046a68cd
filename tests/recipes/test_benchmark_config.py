"""get-mlperf-benchmark-config: the shipped registry, its figures, layers, scaling, what is said, and broken files."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from benchmark_configs import BASE, CONFIG, write_sheet
from helpers import TemporaryHome
from machine_builder import MACHINES
from recipe_loader import input_values, load_module, recipe_meta

from crowdperf.fronts.nvidia import lookup
from crowdperf.fronts.nvidia.effective import EffectiveConfig
from crowdperf.fronts.nvidia.fields import FIELDS, BadSetting, Value, field_named
from crowdperf.fronts.nvidia.registry import SHIPPED, RegistryError, UnknownConfig, read_registry
from crowdperf.fronts.nvidia.sheets import CONFIG_VERSIONS, OURS
from crowdperf.rules.app_names import app_names
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import RECORDS, record_of
from crowdperf.rules.names import Scenario, UnknownName
from crowdperf.rules.official_names import parse_benchmark
from crowdperf.rules.rounds import scenarios_of

matrix = load_module("run-mlperf-inference", "matrix")

SS, MS, OFF, SRV = Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM, Scenario.OFFLINE, Scenario.SERVER
REGISTRY = read_registry()


def values(benchmark: str, scenario: Scenario, system: str, config_ver: str = "default", **more: Any) -> dict[str, Any]:
    """The values that hold, without their origins."""
    config = REGISTRY.effective(benchmark, scenario, system, config_ver, **more)
    return {name: one.value for name, one in config.values.items()}


# --- the shipped registry ---


def test_settings_of_triton_and_neuron_become_inputs_of_the_backends_that_have_them() -> None:
    given = {"instance_group_count": "2", "inferentia_request_batch_size": "100", "batch_triton_requests": "yes"}
    config = REGISTRY.effective("resnet50", OFF, "cpu", "triton", user=given)
    inputs = config.inputs()
    assert (inputs["instance_count"], inputs.get("batch_size")) == ("2", None)
    assert any(line.startswith("inferentia_request_batch_size 100: ") for line in config.told)
    assert any(line.startswith("batch_triton_requests: ") and "--batching" in line for line in config.told)
    inputs = replace(config, backend="neuron").inputs()
    assert (inputs["instance_count"], inputs["batch_size"]) == ("2", "100")
    plain = REGISTRY.effective("resnet50", OFF, "cpu", user=given)
    assert "instance_count" not in plain.inputs()
    assert "instance_group_count 2: a setting of the Triton server, and the backend is onnxruntime" in plain.told


def test_every_benchmark_of_the_harness_has_an_entry_for_a_cpu_in_each_of_its_scenarios() -> None:
    networks = {one.name for one in RECORDS.values() if one.generation is None and not one.recipes.is_own}
    assert set(REGISTRY.benchmarks()) == networks  # what answers prompts has no batch sizes or engines to configure
    names = app_names(recipe_meta("app-mlperf-inference"))
    for benchmark in REGISTRY.benchmarks():
        assert REGISTRY.scenarios(benchmark) == scenarios_of(record_of(benchmark).names[0])
        for scenario in REGISTRY.scenarios(benchmark):
            config = REGISTRY.effective(benchmark, scenario, "cpu")
            assert (config.device, config.backend, config.told) == ("cpu", "onnxruntime", ())
            assert config.inputs()["model"] in names.models


def every_entry() -> Iterator[tuple[str, Scenario, str, str]]:
    """Benchmark, scenario, system and config_ver of all that there is."""
    for benchmark in REGISTRY.benchmarks():
        for scenario in REGISTRY.scenarios(benchmark):
            for system in REGISTRY.sheet(benchmark, scenario):
                for config_ver in REGISTRY.config_versions(benchmark, scenario, system):
                    yield benchmark, scenario, system, config_ver


@pytest.mark.parametrize(
    ("benchmark", "scenario", "size", "values"),
    [
        ("resnet50", "Offline", "2xlarge", (1200, 4, 5, 100, True)),
        ("resnet50", "Offline", "6xlarge", (4000, 16, 5, 100, True)),
        ("resnet50", "Server", "2xlarge", (485, 4, 1, 1, False)),
        ("resnet50", "Server", "6xlarge", (2500, 16, 1, 1, False)),
        ("bert", "Offline", "2xlarge", (70, 4, 1, 1, False)),
        ("bert", "Offline", "6xlarge", (275, 16, 1, 4, False)),
        ("bert-99.9", "Server", "2xlarge", (37, 4, 1, 1, False)),
        ("bert-99.9", "Server", "6xlarge", (130, 16, 1, 1, False)),
    ],
)
def test_inferentia_has_the_documented_values(benchmark: str, scenario: str, size: str, values: Any) -> None:
    """closed/NVIDIA/configs of mlcommons/inference_results_v2.0 (425a0d30): Triton_Inferentia_INF1_*."""
    config = REGISTRY.effective(benchmark, Scenario(scenario), f"inf1.{size}", "triton")
    rate, cores, compiled, batch, is_batched = values
    seen = {name: one.value for name, one in config.values.items()}
    assert seen["offline_expected_qps" if scenario == "Offline" else "server_target_qps"] == rate
    assert seen["inferentia_neuron_core_count"] == seen["instance_group_count"] == cores
    assert (seen["inferentia_compiled_model_batch_size"], seen["inferentia_request_batch_size"]) == (compiled, batch)
    assert seen["batch_triton_requests"] is is_batched and seen["inferentia_threads_per_core"] == 1
    assert (config.backend, config.device) == ("neuron", "inferentia")
    given = config.inputs()
    assert (given["batch_size"], given["instance_count"], given["precision"]) == (str(batch), str(cores), "fp32")
    assert "gpus" not in given
    assert all(one.origin for one in config.values.values())


def test_every_entry_has_a_source_and_what_its_backend_can_run() -> None:
    assert len(list(every_entry())) > 400
    for key in every_entry():
        config = REGISTRY.effective(*key)
        backend = BACKENDS.get(config.backend)
        assert config.source == OURS or (re.search(r"2026-11-2[38]", config.source) and Path(config.file).is_file())
        assert backend is None or config.inputs()["precision"] in backend.precisions
        assert backend is not None or config.backend in config.told[0]


FIGURES = [
    # benchmark, scenario, system, config_ver: figures
    (
        ("bert", OFF, "T4x20", "high_accuracy"),
        {"gpu_batch_size": 256, "gpu_inference_streams": 1, "offline_expected_qps": 4400, "precision": "fp16"},
    ),
    (
        ("resnet50", SRV, "A100-SXM4x8", "default"),
        {
            "server_target_qps": 255000,
            "gpu_batch_size": 128,
            "deque_timeout_us": 4000,
            "gpu_copy_streams": 4,
            "gpu_inference_streams": 2,
            "use_graphs": True,
        },
    ),
    (("resnet50", SRV, "A100-SXM4x8", "triton"), {"server_target_qps": 210000, "use_graphs": False}),
    (("resnet50", OFF, "AGX_Xavier", "default"), {"offline_expected_qps": 1478.33, "dla_batch_size": 32}),
    (("resnet50", MS, "A100-PCIex1", "default"), {"multi_stream_samples_per_query": 1344, "gpu_batch_size": 224}),
    (
        ("bert", SS, "A100-SXM4x1-MIG_1x1g.5gb", "default"),
        {"single_stream_expected_latency_ns": 1700000, "precision": "int8"},
    ),
    (("dlrm", SRV, "A100-PCIex2", "high_accuracy"), {"server_target_qps": 385000, "gpu_batch_size": 262100}),
    (("dlrm", SRV, "A100-PCIex1", "high_accuracy_triton"), {"server_target_qps": 80000}),
    (("3d-unet-brats", SS, "T4x1", "default"), {"single_stream_expected_latency_ns": 160000000}),
    (
        ("gptj", OFF, "ND_H100_v5", "default"),
        {"gpu_batch_size": 32, "offline_expected_qps": 106, "enable_sort": True, "use_fp8": True},
    ),
    (("gptj", SRV, "ND_H100_v5", "high_accuracy"), {"gpu_batch_size": 32, "server_target_qps": 84, "use_fp8": True}),
    (
        ("bert", SRV, "A100_SXM4_40GBx8", "default"),
        {"gpu_batch_size": 96, "server_target_qps": 24750, "active_sms": 60, "soft_drop": 0.99},
    ),
    (("bert", SS, "A100_SXM4_40GBx8", "default"), {"single_stream_expected_latency_ns": 1700000}),
    (("3d-unet", SS, "A100_SXM4_40GBx8", "default"), {"single_stream_expected_latency_ns": 520000000}),
]


@pytest.mark.parametrize(("key", "figures"), FIGURES, ids=lambda one: "-".join(map(str, one))[:40])
def test_a_system_has_the_figures_that_were_published_for_it(key: Any, figures: dict[str, Any]) -> None:
    found = values(*key)
    assert {name: found[name] for name in figures} == figures


def test_each_value_names_the_line_that_says_it() -> None:
    config = REGISTRY.effective("bert", OFF, "T4x20", "high_accuracy")
    assert config.benchmark == "bert-99.9"
    for name, one in config.values.items():
        file, _, line = one.origin.rpartition(":")
        text = (SHIPPED.parent / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
        assert text.strip() == f"{name}: {json.dumps(one.value)}".replace('"', "")


# --- what a run is given ---


def test_the_inputs_of_a_run_on_eight_gpus() -> None:
    assert REGISTRY.effective("ResNet50", SRV, "A100-SXM4x8").inputs() == {
        "model": "resnet50",
        "scenario": "Server",
        "device": "cuda",
        "backend": "tensorrt",
        "gpus": "0,1,2,3,4,5,6,7",
        "precision": "int8",
        "batch_size": "128",
        "instances": "16",
        "server_target_qps": "255000",
        "batch_timeout_us": "4000",
    }


def test_a_run_takes_the_inputs_of_every_entry() -> None:
    known, meta = app_names(recipe_meta("app-mlperf-inference")), recipe_meta("run-mlperf-inference")
    for benchmark, scenario, system, config_ver in every_entry():
        config = REGISTRY.effective(benchmark, scenario, system, config_ver)
        if (config.backend, config.device) == ("triton", "cuda"):
            assert config.told[0].startswith("backend triton cannot run on cuda")
            continue
        keys = meta["input_mapping"]
        env = {keys[name]: text for name, text in config.inputs().items()}
        env["CM_MLPERF_LOADGEN_MODE"] = "performance"
        (run,) = matrix.matrix(matrix.parse_config(input_values("run-mlperf-inference", env), known))
        assert (run.model, run.scenario, run.backend) == (config.benchmark, scenario, config.backend)


def test_latencies_become_ms_and_a_stream_has_no_batch_size() -> None:
    inputs = REGISTRY.effective("bert-99", SS, "A100_SXM4_40GBx8").inputs()
    assert inputs["singlestream_target_latency_ms"] == "1.7"
    assert "batch_size" not in inputs


def test_dlrms_batch_of_pairs_is_no_batch_of_samples() -> None:
    config = REGISTRY.effective("dlrm", OFF, "T4x8")
    assert "batch_size" not in config.inputs()
    assert any(line.startswith("gpu_batch_size 262100: counts pairs") for line in config.told)


def test_what_has_no_effect_is_told_once_and_what_is_off_is_not() -> None:
    told = REGISTRY.effective("resnet50", SRV, "A100-SXM4x8", "triton").told
    assert told[0].startswith("backend triton cannot run on cuda: ")
    assert [line for line in told if line.startswith("gpu_copy_streams 4: ")]
    assert not [line for line in told if line.startswith(("use_graphs", "start_from_device", "gpu_batch_size"))]


def test_every_field_is_an_input_of_run_mlperf_inference_or_says_why_not() -> None:
    inputs = recipe_meta("run-mlperf-inference")["input_mapping"]
    for field in FIELDS.values():
        assert (field.input in inputs) if field.input else len(field.why) > 10


# --- levels and versions ---


@pytest.mark.parametrize(
    ("benchmark", "config_ver", "official", "version"),
    [
        ("bert", "default", "bert-99", "default"),
        ("bert-99", "default", "bert-99", "default"),
        ("BERT", "high_accuracy", "bert-99.9", "high_accuracy"),
        ("bert-99.9", "default", "bert-99.9", "high_accuracy"),
        ("bert-99.9", "triton", "bert-99.9", "high_accuracy_triton"),
    ],
)
def test_a_level_in_the_name_and_a_config_version_mean_the_same(benchmark, config_ver, official, version) -> None:
    config = REGISTRY.effective(benchmark, OFF, "T4x20", config_ver)
    assert (config.benchmark, config.config_ver) == (official, version)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (("bert-99", OFF, "T4x20", "high_accuracy"), "Leave the level out"),
        (("bert-99.9", OFF, "cpu", "openvino"), "has no level of 99.9 %"),
        (("resnet50", OFF, "T4x8", "high_accuracy"), "known: default, triton"),
        (("resnet50", OFF, "T4x8", "maxq"), "known: default, high_accuracy, triton"),
        (("dlrm", SS, "T4x8", "default"), "dlrm has no SingleStream, only Offline, Server"),
        (("3d-unet", OFF, "T4x8", "default"), "3d-unet Offline has no entry for T4x8, but 3d-unet-brats has"),
        (("bert", OFF, "T4x9", "default"), r"unknown system of bert Offline 'T4x9'.*known: cpu, A100-SXM4x1"),
        (("bert", OFF, "H200-SXM-141GBx1", "default"), "unknown: bert Offline on H200-SXM-141GBx1"),
        (("resnet50", SRV, "A100-SXM4x1-MIG_1x1g.5gb", "default"), "unknown: resnet50 Server on A100"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(key: Any, said: str) -> None:
    with pytest.raises(UnknownConfig, match=said):
        REGISTRY.effective(*key)


def test_an_unknown_benchmark_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownName, match=r"unknown benchmark 'resnet51'.*bert-99\.9"):
        REGISTRY.effective("resnet51", OFF, "cpu")


# --- another count, another layer ---


def test_rates_of_another_count_are_scaled_and_say_so() -> None:
    config = REGISTRY.effective("resnet50", SRV, "A100-SXM4x8", accelerators=4)
    rate = config.values["server_target_qps"]
    assert (config.system, rate.value, rate.origin) == ("A100-SXM4x4", 127500, "scaled 4/8 from A100-SXM4x8")
    assert config.values["gpu_batch_size"].value == 128
    assert (config.inputs()["instances"], config.inputs()["gpus"]) == ("8", "0,1,2,3")


@pytest.mark.parametrize(("count", "rate"), [(3, 95625), (7, 223125), (16, 510000), (1, 31875)])
def test_a_rate_is_in_proportion_to_the_count(count: int, rate: float) -> None:
    assert values("resnet50", SRV, "A100-SXM4x8", accelerators=count)["server_target_qps"] == rate


def test_latencies_are_not_scaled() -> None:
    assert values("bert", SS, "A100_SXM4_40GBx8", accelerators=4)["single_stream_expected_latency_ns"] == 1700000


def test_a_system_without_an_entry_has_that_of_one_with_the_same_accelerators() -> None:
    config = REGISTRY.effective("resnet50", SRV, "A100_SXM4_40GBx8")
    assert (config.system, config.values["server_target_qps"].value) == ("A100_SXM4_40GBx8", 255000)
    assert config.told[0].startswith("no entry for A100_SXM4_40GBx8: using that of A100-SXM4x8")


def test_later_layers_win_and_each_says_who_it_was(tmp_path: Path) -> None:
    write_sheet(
        tmp_path,
        """
        T4x1:
          source: s
          precision: int8
          gpu_batch_size: 1
          offline_expected_qps: 10
          gpu_copy_streams: 7
        T4x8:
          from: T4x1
          source: s
          offline_expected_qps: 80
          config_ver:
            triton:
              gpu_batch_size: 2
              gpu_inference_streams: 3
        """,
    )
    registry = read_registry(shipped=tmp_path)
    seen = {"offline_expected_qps": Value(90, "measured 2026-11-23")}

    def measured(config: EffectiveConfig) -> dict[str, Value]:
        assert (config.backend, config.values["gpu_inference_streams"].origin) == ("triton", "you")
        return seen

    user = {"gpu_inference_streams": "4"}
    config = registry.effective("bert", OFF, "T4x8", "triton", measured=measured, user=user)
    path = tmp_path / "bert" / "Offline.yaml"
    assert {name: (one.value, one.origin) for name, one in config.values.items()} == {
        "precision": ("int8", f"{path}:9"),
        "gpu_batch_size": (2, f"{path}:19"),
        "offline_expected_qps": (90, "measured 2026-11-23"),
        "gpu_copy_streams": (7, f"{path}:12"),
        "gpu_inference_streams": (4, "you"),
    }


def test_what_was_measured_is_taken_from_the_store_of_found_targets() -> None:
    content = {"bert-99": {"SingleStream": {"target_latency": 1.25, "origin": "found 2026-11-21: 1.1 times"}}}
    assert lookup.measured_values(content, "bert-99", SS) == {
        "single_stream_expected_latency_ns": Value(1250000, "measured 2026-11-21")
    }
    by_hand = {"resnet50": {"Offline": {"target_qps": 812.5, "origin": "given by the user"}}}
    assert lookup.measured_values(by_hand, "resnet50", OFF) == {
        "offline_expected_qps": Value(812.5, "recorded: given by the user")
    }
    assert lookup.measured_values(content, "bert-99.9", SS) == {}


@pytest.mark.parametrize(
    ("system", "machine", "is_looked_up"),
    [("", "", True), ("cpu", "", True), ("T4x1", "", False), ("", "t4x1", False), ("", "laptop", False)],
)
def test_only_this_machine_has_measured_values(tmp_path: Path, system: str, machine: str, is_looked_up: bool) -> None:
    asked: list[dict[str, Any]] = []

    def access(inputs: dict[str, Any]) -> dict[str, Any]:
        asked.append(inputs)
        content = {"resnet50": {"Offline": {"target_qps": 5.0, "origin": "found 2026-11-23"}}}
        return {"return": 0, "new_state": {"CM_SUT_CONFIG": {"a system": content}}}

    env = {
        "BENCHMARK": "resnet50",
        "SCENARIO": "Offline",
        "SOURCE": "tiny",
        "WANTED_SYSTEM": system,
        "MACHINE": machine,
    }
    answer, i = call(tmp_path, access=access, **env)
    assert answer == {"return": 0} and len(asked) == int(is_looked_up)
    if is_looked_up:
        assert asked[0]["run_config"] == "tiny_config"
        target = i["state"]["mlperf_benchmark_config"]["values"]["offline_expected_qps"]
        assert target == {"value": 5, "origin": "measured 2026-11-23"}


def test_what_was_measured_is_read_once_for_all_configurations_of_a_kind() -> None:
    asked: list[dict[str, Any]] = []

    def access(inputs: dict[str, Any]) -> dict[str, Any]:
        asked.append(inputs)
        return {"return": 0, "new_state": {"CM_SUT_CONFIG": {"a system": {}}}}

    measured = lookup.measured_by(access, "real")
    for key in (("resnet50", OFF), ("bert", SRV)):
        REGISTRY.effective(*key, "cpu", measured=measured)
    assert len(asked) == 1


# --- the user's own settings ---


@pytest.mark.parametrize("name", ["gpu_offline_expected_qps", "offline_expected_qps"])
def test_a_setting_of_the_user_may_have_an_older_spelling(name: str) -> None:
    config = REGISTRY.effective("bert", OFF, "T4x8", user={name: "5e2"})
    assert config.values["offline_expected_qps"] == Value(500.0, "you")


def test_all_that_is_wrong_with_the_users_settings_is_said_at_once() -> None:
    given = {
        "gpu_bach_size": "4",
        "server_target_qps": "3",
        "dla_core": "0",
        "power_limit": "300",
        "precision": "int7",
        "use_graphs": "maybe",
        "offline_expected_qps": "1",
        "gpu_offline_expected_qps": "2",
    }
    with pytest.raises(BadSetting) as raised:
        REGISTRY.effective("bert", OFF, "T4x8", user=given)
    for said in (
        "unknown field 'gpu_bach_size' (did you mean gpu_batch_size?)",
        "server_target_qps: Offline has no such field, only Server has",
        "dla_core: the DLA of a Jetson is not used here",
        "power_limit: power is not measured here",
        "precision: found 'int7'; allowed: fp32, tf32, fp16, bf16, int8",
        "use_graphs: found 'maybe'; allowed: yes, no",
        "offline_expected_qps: repeated",
    ):
        assert said in str(raised.value)


ODD = ["", " ", "-1", "+1", "1e400", "nan", "inf", "0x10", "1_000", "１２", "$(id)", "`id`", "1;2", "1\n2", "9" * 40]


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("name", ["gpu_batch_size", "offline_expected_qps", "use_graphs"])
def test_an_odd_value_is_refused_whole(name: str, text: str) -> None:
    with pytest.raises(BadSetting, match=f"{name}: found "):
        field_named(name).parse(text)


@pytest.mark.parametrize("text", ["", "$(id)", "`id`", "a;b", "a\nb", "a'b", 'a"b', "../x"])
def test_a_text_with_odd_characters_is_refused(text: str) -> None:
    with pytest.raises(BadSetting, match="backend: found "):
        field_named("backend").parse(text)


# --- broken files ---


def problems(folder: Path) -> str:
    with pytest.raises(RegistryError) as raised:
        read_registry(shipped=folder)
    return str(raised.value).replace(str(folder), "F")


BROKEN = """
T4x1:
  from: [T4x8, T4x20]
  source: s
  precision: int8
  gpu_batch_size: 1
  offline_expected_qps: 1
T4x8:
  from: T4x20
  source: s
T4x20:
  from: T4x8
  source: nowhere
  precision: int9
A100-SXM4x1:
  from: cpu
  source: s
  gpu_batch_size: 1
  gpu_batch_size: 2
A100-SXM4x8:
  from: bert/Server/A100-SXM4x8
  source: s
  server_target_qps: 3
  use_grafs: true
  offline_expected_qps: -1
  gpu_offline_expected_qps: 3
T5x1:
  from: T4x3
Xavier_NX:
  source: s
  precision: int8
  gpu_batch_size: 1
  offline_expected_qps: .nan
  config_ver:
    high_acuracy: {}
    triton:
      dla_core: 0
      power_limit: 3
A100-PCIex1:
  source: s
  precision: int8
  gpu_batch_size: 1
  offline_expected_qps: 1
  dla_core: 0
"""


def test_all_that_is_wrong_with_a_file_is_said_at_once_with_line_and_key(tmp_path: Path) -> None:
    write_sheet(tmp_path, BROKEN, base=BASE.replace("source: s\n", "source: s\n  use_graphs: true\n"))
    text = problems(tmp_path)
    for said in (
        "F/bert/Offline.yaml:5: base.use_graphs: only a system with an accelerator has it",
        "F/bert/Offline.yaml:9: systems.T4x1.from: 2 parents; allowed: one",
        "systems.T4x8.from: goes in a circle: T4x8 from T4x20 from T4x8",
        "systems.T4x20.source: unknown source 'nowhere'; known: s",
        "F/bert/Offline.yaml:20: systems.T4x20.precision: found 'int9'; allowed: fp32, tf32, fp16, bf16, int8",
        "systems.A100-SXM4x1.from: cpu has another kind of accelerator (nvidia and cpu)",
        "F/bert/Offline.yaml:25: gpu_batch_size is here twice, first in line 24",
        "systems.A100-SXM4x1: required and missing: precision, offline_expected_qps",
        "systems.A100-SXM4x8.from: bert/Server/A100-SXM4x8 is of another benchmark or scenario",
        "systems.A100-SXM4x8.server_target_qps: Offline has no such field, only Server has",
        "unknown field 'use_grafs' (did you mean use_graphs?)",
        "systems.A100-SXM4x8.offline_expected_qps: found '-1'; allowed: a number above 0 (samples/s)",
        "systems.T5x1: unknown system 'T5x1'",
        "systems.T5x1.source: missing: a name of sources",
        "systems.T5x1.from: unknown system 'T4x3'",
        "systems.Xavier_NX.offline_expected_qps: found '.nan'",
        "systems.Xavier_NX.config_ver.high_acuracy: unknown config_ver 'high_acuracy' (did you mean high_accuracy?)",
        "config_ver.triton.power_limit: power is not measured here",
        "systems.A100-PCIex1.dla_core: the DLA of a Jetson is not used here",
    ):
        assert said in text
    assert "triton.dla_core" not in text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "systems: missing, and no base"),
        ("[]", "systems: missing, and no base"),
        ("base: {source: s", "not YAML"),
        ("\tx: 1", "not YAML"),
        ("base: &a {x: *a}", "nested deeper than"),
        ("base: {source: s, precision: fp32}\nsystem: {}", "unknown key 'system' (did you mean systems?)"),
        ("sources: {s: {text: x}}\nbase: {source: s, precision: fp32}", "sources.s: allowed: text, and date"),
        ("sources: {s: {text: x, date: soon}}\nbase: {source: s, precision: fp32}", "sources.s: allowed: text, and"),
        ("base: {}\nsystems: [T4x8]", "systems: found a list; allowed: a mapping"),
        ("base: {precision: fp32, config_ver: [triton]}", "base.config_ver: found a list"),
        ("base: {precision: fp32, config_ver: {triton: 5}}", "base.config_ver.triton: found '5'; allowed: a mapping"),
        ("base: {}\nsystems: {cpu: {}}", "are base, not systems.cpu"),
        ("base: !!python/object/apply:os.system [id]", "base.source: missing"),
    ],
)
def test_a_file_that_is_none_is_said_to_be(tmp_path: Path, content: str, said: str) -> None:
    write_sheet(tmp_path, "", base=content)
    assert said in problems(tmp_path)


def test_a_benchmark_without_levels_has_no_high_accuracy(tmp_path: Path) -> None:
    base = "sources:\n  s: {text: x, date: 2026-11-23}\nbase:\n  source: s\n  precision: fp32\n"
    write_sheet(tmp_path, "", base=base + "  config_ver:\n    high_accuracy: {}\n", name="resnet50/Offline")
    assert "base.config_ver.high_accuracy: resnet50 has no level of 99.9 %" in problems(tmp_path)


def test_files_that_are_no_scenarios_and_unknown_benchmarks_are_refused(tmp_path: Path) -> None:
    write_sheet(tmp_path / "a", "", name="bert/Offlien")
    with pytest.raises(RegistryError, match=r"Offlien\.yaml: allowed: "):
        read_registry(shipped=tmp_path / "a")
    write_sheet(tmp_path / "b", "", name="brt/Offline")
    with pytest.raises(RegistryError, match=r"brt/Offline\.yaml: unknown benchmark 'brt' \(did you mean bert\?\)"):
        read_registry(shipped=tmp_path / "b")


def test_a_network_without_a_file_has_what_is_usual(tmp_path: Path) -> None:
    registry = read_registry(shipped=tmp_path / "none")
    assert tuple(registry.sheet("digits", OFF)) == ("cpu",)
    config = registry.effective("digits", OFF, "cpu")
    assert (config.backend, config.file, config.source) == ("onnxruntime", "", OURS)
    assert registry.config_versions("3d-unet", OFF, "cpu") == ("default", "high_accuracy", "openvino")  # no server
    assert registry.config_versions("bert", OFF, "cpu") == CONFIG_VERSIONS


def test_the_base_of_a_file_changes_what_is_usual(tmp_path: Path) -> None:
    base = "sources: {s: {text: x, date: 2026-11-23}}\nbase: {source: s, config_ver: {openvino: {precision: int8}}}\n"
    write_sheet(tmp_path, "", base=base, name="resnet50/Offline")
    config = read_registry(shipped=tmp_path).effective("resnet50", OFF, "cpu", "openvino")
    assert {name: one.value for name, one in config.values.items()} == {"backend": "openvino", "precision": "int8"}
    assert config.source == "x, 2026-11-23"


# --- the recipe ---

MACHINE_SYSTEMS = {
    # recorded machine: system, accelerators, the rate of resnet50 Offline
    "a100-sxm4x8": ("A100-SXM4x8", 8, 294400),
    "a100-sxm4x4": ("A100-SXM4x4", 4, 147200),
    "a100-mig-7x1g5gb": ("A100-SXM4x1-MIG_1x1g.5gb", 1, 36800),
    "azure-a100-sxm4-40gbx8": ("A100_SXM4_40GBx8", 8, 294400),
    "t4x20": ("T4x20", 20, 121500),
    "jetson-xavier-nx": ("Xavier_NX", 1, 739),
    "laptop": ("cpu", 0, None),
    "rhel9-a30": ("cpu", 0, None),
}


@pytest.mark.parametrize("name", MACHINE_SYSTEMS)
def test_a_recorded_machine_is_found_and_has_its_rate(tmp_path: Path, name: str) -> None:
    here = lookup.look(name, tmp_path, {})
    config = REGISTRY.effective("resnet50", OFF, here.system, accelerators=here.accelerators)
    rate = config.values.get("offline_expected_qps")
    assert (config.system, config.accelerators, rate and rate.value) == MACHINE_SYSTEMS[name]
    assert here.banner and here.reasons


def test_every_recorded_machine_can_be_looked_at(tmp_path: Path) -> None:
    for machine in sorted(MACHINES.iterdir()):
        here = lookup.look(machine.name, tmp_path, {})
        assert here.system and (here.facts.count > 0) == (here.facts.kind != "cpu")
        row = REGISTRY.known.get(here.system)
        if row and not row.mig_profile:
            assert (here.accelerators == row.count) == bool(here.known_as) == (machine.name != "a100-sxm4x4")


def call(
    tmp_path: Path, inputs: dict[str, Any] | None = None, *, access: Any = None, **env: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    home = SimpleNamespace(repos_path=str(tmp_path), access=access or (lambda i: {"return": 1, "error": "no store"}))
    given = {f"CM_MLPERF_CONFIG_{key}": text for key, text in env.items()}
    i = {"env": given, "state": {}, "input": inputs or {}, "automation": SimpleNamespace(cmind=home)}
    return CONFIG.preprocess(i), i


def test_the_table_says_values_origins_and_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer, i = call(tmp_path, BENCHMARK="resnet50", SCENARIO="server", MACHINE="a100-sxm4x4")
    shown = capsys.readouterr().out
    assert answer == {"return": 0}
    assert "SIMULATED" in shown and "resnet50 Server on A100-SXM4x4 with 4 accelerators, config_ver default" in shown
    assert "server_target_qps           127500 queries/s   scaled 4/8 from A100-SXM4x8" in shown
    assert "--batch_size=128 --instances=8 --server_target_qps=127500 --batch_timeout_us=4000" in shown
    env = {key.removeprefix("CM_MLPERF_CONFIG_"): text for key, text in i["env"].items()}
    assert (env["BATCH_SIZE"], env["INSTANCES"], env["TARGET_QPS"], env["TARGET_LATENCY_MS"], env["SYSTEM"]) == (
        "128", "8", "127500", "", "A100-SXM4x4",
    )  # fmt: skip
    assert json.loads(json.dumps(i["state"]["mlperf_benchmark_config"]))["inputs"]["gpus"] == "0,1,2,3"


def test_without_a_benchmark_all_are_listed_and_a_recipe_above_gets_nothing_printed(tmp_path, capsys) -> None:
    call(tmp_path)
    assert "bert: SingleStream, Offline, Server\n" in capsys.readouterr().out
    call(tmp_path, BENCHMARK="bert")
    assert "  T4x20: default, high_accuracy, triton, high_accuracy_triton\n" in capsys.readouterr().out
    call(tmp_path, BENCHMARK="bert", WANTED_SYSTEM="inf1.6xlarge")
    assert capsys.readouterr().out.splitlines()[:2] == [
        "bert Offline",
        "  inf1.6xlarge: default, triton, high_accuracy, high_accuracy_triton",
    ]
    answer, _ = call(tmp_path, BENCHMARK="dlrm", WANTED_SYSTEM="inf1.6xlarge")
    assert answer["return"] == 1 and "inf1.6xlarge" in answer["error"] and "A100-SXM4x8" in answer["error"]
    CONFIG.preprocess({"env": {}, "state": {}, "recursion_spaces": "  "})
    assert capsys.readouterr().out == ""


def test_a_real_call_without_a_benchmark_lists_them(home: TemporaryHome) -> None:
    done = home.cm("run", "script", "--tags=get,mlperf,benchmark,config", "--quiet")
    assert done.code == 0 and "bert: SingleStream, Offline, Server\n" in done.stdout, done.stderr
    done = home.cm("run", "script", "--tags=get,mlperf,benchmark,config", "--quiet", "--system=inf1.6xlarge")
    assert done.stdout.splitlines() == ["bert: Offline, Server", "resnet50: Offline, Server"]


def test_an_error_of_the_store_is_the_answer(tmp_path: Path) -> None:
    answer, _ = call(tmp_path, BENCHMARK="bert", SCENARIO="Offline", WANTED_SYSTEM="cpu")
    assert answer["return"] == 1 and answer["error"].startswith("no store\nhint: ")


def test_a_system_and_a_machine_are_not_both_given(tmp_path: Path) -> None:
    answer, _ = call(tmp_path, BENCHMARK="bert", SCENARIO="Offline", WANTED_SYSTEM="T4x8", MACHINE="t4x1")
    assert "cannot be combined" in answer["error"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("$(id)", "--set: found '$(id)'; allowed: one field, as in --set.gpu_batch_size=32"),
        ({"gpu_batch_size": "$(id)"}, "gpu_batch_size: found '$(id)'; allowed: a whole number from 1"),
        ({"$(id)": "1"}, "unknown field '$(id)'"),
    ],
)
def test_odd_settings_are_refused_whole(tmp_path: Path, given: Any, said: str) -> None:
    answer, _ = call(tmp_path, {"set": given}, BENCHMARK="bert", SCENARIO="Offline", WANTED_SYSTEM="T4x8")
    assert answer["return"] == 1 and answer["error"].startswith(said)


def test_a_real_call_answers_with_json_alone(home: TemporaryHome) -> None:
    words = ("--benchmark=bert", "--scenario=Offline", "--system=T4x20", "--config_ver=high_accuracy")
    done = home.run_cm("get,mlperf,benchmark,config", *words)
    assert done.code == 0, done.stderr
    config = done.answer["new_state"]["mlperf_benchmark_config"]
    assert config["values"]["offline_expected_qps"]["value"] == 4400
    assert config["values"]["precision"]["origin"].startswith("registry/bert/Offline.yaml:")
    assert done.answer["new_env"]["CM_MLPERF_CONFIG_BATCH_SIZE"] == "256"


# --- names ---


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
def test_a_text_that_is_no_benchmark_is_refused(text: str) -> None:
    with pytest.raises(UnknownName, match=r"known: .*bert-99, bert-99\.9"):
        parse_benchmark(text)
