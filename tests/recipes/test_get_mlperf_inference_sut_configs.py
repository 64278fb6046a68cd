"""get-mlperf-inference-sut-configs: names of systems, their files, values recorded by several calls at once."""

import multiprocessing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from recipe_loader import load_module, load_recipe, recipe_meta

from crowdperf.logs import recorded_targets
from crowdperf.machine.probe import Machine, Ran
from crowdperf.rules.names import Scenario

recipe = load_recipe("get-mlperf-inference-sut-configs")
sutname = load_module("get-mlperf-inference-sut-configs", "sutname")

META = recipe_meta("get-mlperf-inference-sut-configs")
GPUS = "0, GPU-1, NVIDIA H100 80GB HBM3, 81559, 550.54.15, 9.0, Disabled, 00000000:00:05.0\n"


class NoGpu(Machine):
    """A machine without any program of a GPU."""

    def run(self, command: Any, *rest: Any, **more: Any) -> Ran:
        return Ran(127)

    def which(self, name: str) -> str:
        return ""


class OneGpu(NoGpu):
    """A machine whose nvidia-smi knows one GPU."""

    def run(self, command: Any, *rest: Any, **more: Any) -> Ran:
        return Ran(0, GPUS if any("query-gpu" in word for word in command) else "")

    def which(self, name: str) -> str:
        return f"/usr/bin/{name}"


@pytest.fixture
def call(tmp_path, hook_input):
    def run(machine: Machine | None = None, **env: str) -> tuple[dict, dict, dict]:
        facts = {"CM_HOST_CPU_MODEL_NAME": "Intel(R) Xeon(R) Gold 6348 CPU @ 2.60GHz", "CM_HOST_CPU_SOCKETS": "2"}
        i = hook_input(
            {**META["default_env"], **facts, "CM_MLPERF_BACKEND_VERSION": "1.23.0", **env},
            automation=SimpleNamespace(cmind=SimpleNamespace(repos_path=str(tmp_path / "home"))),
            machine=machine or NoGpu(), meta=META,
        )  # fmt: skip
        return recipe.preprocess(i), i["env"], i["state"]

    return run


@pytest.mark.parametrize(
    ("processor", "sockets", "cores", "gpus", "name"),
    [
        ("Intel(R) Xeon(R) Gold 6348 CPU @ 2.60GHz", 1, 28, [], "intel_xeon_gold_6348"),
        ("AMD EPYC 7B13 64-Core Processor", 2, 128, [], "2x_amd_epyc_7b13_64_core"),
        ("Intel(R) Xeon(R) Processor", 1, 2, [], "intel_xeon_2_cores"),
        ("", 1, 4, [], "unknown_processor_4_cores"),
        ("any", 2, 4, ["NVIDIA H100 80GB HBM3"] * 8, "8x_nvidia_h100_80gb_hbm3"),
        ("any", 1, 4, ["Tesla K80"], "tesla_k80"),
    ],
)
def test_hardware_is_named_after_its_gpus_or_its_processor(processor, sockets, cores, gpus, name):
    assert sutname.hardware_name(processor, sockets, cores, gpus) == name


def test_the_system_and_its_file_are_named_as_the_tutorial_names_them(call, tmp_path):
    answer, env, state = call()
    assert answer == {"return": 0}
    assert env["CM_SUT_NAME"] == "2x_intel_xeon_gold_6348-crowdperf-cpu-onnxruntime-v1.23.0-default_config"
    assert Path(env["CM_SUT_CONFIG_FILE"]) == Path(
        tmp_path, "home", "mlperf-inference-sut-configs", "2x_intel_xeon_gold_6348", "crowdperf-implementation",
        "cpu-device", "onnxruntime-framework", "framework-version-v1.23.0", "default_config-config.yaml",
    )  # fmt: skip
    assert state["CM_SUT_CONFIG"] == {env["CM_SUT_NAME"]: {}}
    assert not (tmp_path / "home").exists()


def test_a_gpu_gives_its_name_and_hw_name_gives_another(call):
    assert call(OneGpu(), CM_MLPERF_DEVICE="cuda")[1]["CM_HW_NAME"] == "nvidia_h100_80gb_hbm3"
    assert call(CM_HW_NAME="my-laptop")[1]["CM_HW_NAME"] == "my_laptop"
    assert "allowed: letters" in call(CM_HW_NAME="../x")[0]["error"]


def test_a_value_is_recorded_and_told_and_read_again(call, capsys):
    given = {"CM_SUT_CONFIG_MODEL": "resnet50", "CM_SUT_CONFIG_SCENARIO": "offline"}
    given |= {"CM_SUT_CONFIG_TARGET_QPS": "893.5", "CM_SUT_CONFIG_MEASURED": "812.3", "CM_SUT_CONFIG_ORIGIN": "o"}
    _, env, state = call(**given)
    row = {"target_qps": 893.5, "measured": 812.3, "origin": "o"}
    assert state["CM_SUT_CONFIG"][env["CM_SUT_NAME"]] == {"resnet50": {"Offline": row}}
    told = capsys.readouterr().out
    assert f"SUT: {env['CM_SUT_NAME']}, model: resnet50, scenario: Offline, target_qps updated as 893.5" in told
    assert f"New config stored in {env['CM_SUT_CONFIG_FILE']}" in told
    assert yaml.safe_load(Path(env["CM_SUT_CONFIG_FILE"]).read_text()) == {"resnet50": {"Offline": row}}
    again = call(CM_MLPERF_BACKEND_VERSION="")
    assert again[1]["CM_SUT_CONFIG_FILE"] == env["CM_SUT_CONFIG_FILE"]  # the newest version with a file


def test_what_a_run_is_asked_for_is_not_recorded(call):
    """generate-mlperf-inference-user-conf needs this recipe, which then sees the inputs of that one."""
    asked = {
        "CM_MLPERF_MODEL": "resnet50",
        "CM_MLPERF_LOADGEN_SCENARIO": "Offline",
        "CM_MLPERF_LOADGEN_TARGET_QPS": "9",
    }
    answer, env, state = call(**asked)
    assert answer == {"return": 0} and state["CM_SUT_CONFIG"] == {env["CM_SUT_NAME"]: {}}


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"CM_SUT_CONFIG_TARGET_QPS": "1"}, "--scenario"),
        ({"CM_SUT_CONFIG_TARGET_QPS": "1", "CM_SUT_CONFIG_SCENARIO": "Offline"}, "give --model"),
        ({"CM_SUT_CONFIG_MODEL": "resnet5"}, "--model: unknown benchmark 'resnet5'; known: "),
        (
            {
                "CM_SUT_CONFIG_TARGET_QPS": "1",
                "CM_SUT_CONFIG_SCENARIO": "SingleStream",
                "CM_SUT_CONFIG_MODEL": "resnet50",
            },
            "--target_latency_ms",
        ),
        (
            {
                "CM_SUT_CONFIG_TARGET_QPS": "-1",
                "CM_SUT_CONFIG_SCENARIO": "Server",
                "CM_SUT_CONFIG_MODEL": "resnet50",
            },
            "a number above 0",
        ),
    ],
)
def test_a_value_that_cannot_be_recorded_is_refused(call, env, words):
    answer, _, _ = call(**env)
    assert answer["return"] == 1
    assert words in answer["error"]


@pytest.mark.parametrize("text", ["- 1", "m: 3", "m: {Offlin: {}}", "m: {Offline: {target_qps: -1}}", "m: [\n"])
def test_a_file_that_holds_something_else_is_refused_and_left(call, text):
    path = Path(call()[1]["CM_SUT_CONFIG_FILE"])
    path.parent.mkdir(parents=True)
    path.write_text(text)
    answer, _, _ = call()
    assert answer["return"] == 1
    assert str(path) in answer["error"]
    assert path.read_text() == text


def _record(path: str, number: int) -> None:
    entry = recorded_targets.Entry(model=f"m{number}", scenario=Scenario.OFFLINE, value=1.0 + number, origin="o")
    recorded_targets.record(Path(path), entry)


@pytest.mark.parametrize(
    "place", ["none.yaml", "file/none.yaml"], ids=["no file", "below a file, as with HOME=/dev/null"]
)
def test_where_there_is_no_file_nothing_is_recorded(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    assert recorded_targets.read(tmp_path / place) == {}


def test_calls_that_record_at_the_same_time_all_find_their_value(tmp_path):
    path = tmp_path / "a" / "config.yaml"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_record, args=(str(path), number)) for number in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert sorted(recorded_targets.read(path)) == [f"m{number}" for number in range(8)]
    assert [item.name for item in path.parent.iterdir()] == ["config.yaml"]
