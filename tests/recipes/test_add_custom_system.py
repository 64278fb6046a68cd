"""add-mlperf-custom-system: what a system starts from, its file, known and existing names, several calls at once."""

import multiprocessing
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from benchmark_configs import ADD, write_sheet
from helpers import TemporaryHome, cm_command
from recipe_loader import load_module

from crowdperf.fronts.nvidia import lookup
from crowdperf.fronts.nvidia.registry import RegistryError, UnknownConfig, read_registry
from crowdperf.fronts.nvidia.sheets import MachineFacts, read_custom
from crowdperf.rules.names import Scenario

definition = load_module("add-mlperf-custom-system", "definition")

SS, OFF, SRV = Scenario.SINGLE_STREAM, Scenario.OFFLINE, Scenario.SERVER
REGISTRY = read_registry()
KNOWN = REGISTRY.known
ENTRIES = sum(len(REGISTRY.scenarios(benchmark)) for benchmark in REGISTRY.benchmarks())
Call = Callable[..., dict[str, Any]]


@pytest.fixture
def calls() -> list[dict[str, Any]]:
    """The recipes that were called."""
    return []


@pytest.fixture
def call(tmp_path: Path, calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.delenv("MLPINF_CUSTOM_DEFINITION_PATH", raising=False)

    def access(i: dict[str, Any]) -> dict[str, Any]:
        calls.append(i)
        return {"return": 0}

    def run(hook: str = "preprocess", **env: str) -> dict[str, Any]:
        given = {f"CM_CUSTOM_SYSTEM_{key}": text for key, text in env.items()}
        automation = SimpleNamespace(cmind=SimpleNamespace(repos_path=str(tmp_path), access=access))
        i = {"env": given, "state": {}, "input": {}, "automation": automation}
        answer: dict[str, Any] = getattr(ADD, hook)(i)
        return {**answer, "state": i["state"], "env": i["env"]}

    return run


def registry(tmp_path: Path) -> Any:
    return read_registry(tmp_path / lookup.FOLDER_NAME)


def facts(accelerator: str, count: int, kind: str = "nvidia") -> MachineFacts:
    return MachineFacts(kind=kind, accelerator=accelerator, count=count, cpu="a processor", threads=8)


# --- what it starts from ---

NEAREST = [
    (("A100-SXM4-40GB", 4, "8.0"), "A100-SXM4x8"),
    (("A100-SXM4-40GB", 2, "8.0"), "A100-SXM4x1"),
    (("A100-SXM4-40GB", 3, "8.0"), "A100-SXM4x8"),
    (("A100-SXM-80GB", 8, "8.0"), "A100-SXM4x8"),
    (("A30-24GB", 1, "8.0"), "A100-SXM4x1"),
    (("T4-16GB", 14, "7.5"), "T4x20"),
    (("T4-16GB", 3, "7.5"), "T4x8"),
    (("RTX-8000-48GB", 1, "7.5"), "T4x1"),
    (("V100-SXM2-16GB", 8, "7.0"), "T4x8"),
    (("A40-48GB", 2, "8.6"), "A100-PCIex2"),
    (("H100-SXM-80GB", 8, "9.0"), "A100-SXM4x8"),
    (("unheard-of", 1, ""), "A100-SXM4x1"),
]
NAMES = "A100-SXM4x1 A100-SXM4x1-MIG_1x1g.5gb A100-SXM4x8 A100-PCIex2 T4x1 T4x8 T4x20 AGX_Xavier"
ROWS = [KNOWN[name] for name in NAMES.split()]


@pytest.mark.parametrize(("machine", "expected"), NEAREST, ids=lambda one: str(one))
def test_the_same_gpu_comes_first_then_generation_memory_and_count(machine: Any, expected: str) -> None:
    accelerator, count, capability = machine
    assert definition.nearest(facts(accelerator, count), capability, ROWS) == expected


def test_a_cpu_starts_from_the_base_and_a_jetson_from_a_jetson() -> None:
    assert definition.nearest(facts("", 0, "cpu"), "", ROWS) == "cpu"
    assert definition.nearest(facts("NVIDIA Jetson Orin", 1, "jetson"), "", ROWS) == "AGX_Xavier"
    assert definition.nearest(facts("A30-24GB", 1), "8.0", [KNOWN["AGX_Xavier"]]) == ""


# --- the file ---


def test_a_machine_without_gpu_gets_an_entry_for_everything_and_is_found_again(call: Call, tmp_path: Path) -> None:
    answer = call(NAME="my_box")
    assert answer["return"] == 0, answer
    path = tmp_path / "mlperf-custom-systems" / "my_box.yaml"
    assert answer["env"]["CM_CUSTOM_SYSTEM_FILE"] == str(path)
    there = registry(tmp_path)
    assert len(there.custom["my_box"].entries) == ENTRIES
    found = lookup.look("", tmp_path, there.custom)
    kind = found.facts.kind
    assert found.system == ("my_box" if kind == "cpu" else found.system)
    config = there.effective("bert", OFF, "my_box")
    assert (config.system, config.benchmark) == ("my_box", "bert-99")


def test_rates_of_the_same_gpu_are_scaled_and_those_of_another_are_left_out(call: Call, tmp_path: Path) -> None:
    assert call(NAME="four", MACHINE="a100-sxm4x4", BENCHMARKS="ResNet50")["return"] == 0
    assert call(NAME="a30", MACHINE="rhel9-a30", BENCHMARKS="ResNet50")["return"] == 0
    four = registry(tmp_path).effective("resnet50", SRV, "four")
    rate = four.values["server_target_qps"]
    assert (four.accelerators, rate.value, rate.origin) == (4, 127500, "scaled 4/8 from A100-SXM4x8")
    a30 = registry(tmp_path).effective("resnet50", SRV, "a30")
    assert "server_target_qps" not in a30.values and a30.values["gpu_batch_size"].value == 64
    assert a30.told[0].startswith("the targets of A100-SXM4x1 are not included, because it has other accelerators")


def test_the_users_lines_come_before_the_settings_it_started_from(call: Call, tmp_path: Path) -> None:
    call(NAME="four", MACHINE="a100-sxm4x4", BENCHMARKS="resnet50", SCENARIOS="server")
    path = tmp_path / "mlperf-custom-systems" / "four.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "      gpu_server: 3\n", encoding="utf-8")
    with pytest.raises(RegistryError, match="unknown field 'gpu_server'"):
        registry(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace("gpu_server", "gpu_batch_size"), encoding="utf-8")
    value = registry(tmp_path).effective("resnet50", SRV, "four", user={"deque_timeout_us": "7"}).values
    assert (value["gpu_batch_size"].value, value["deque_timeout_us"].origin) == (3, "you")
    assert value["gpu_batch_size"].origin.startswith(f"{path}:")


def test_a_stub_lists_what_is_required_and_what_is_optional(call: Call, tmp_path: Path) -> None:
    machine = {"MACHINE": "a100-sxm4x4", "BENCHMARKS": "bert", "SCENARIOS": "Offline,Server"}
    call(NAME="four", STUB="yes", **machine)
    text = (tmp_path / "mlperf-custom-systems" / "four.yaml").read_text(encoding="utf-8")
    offline, server = text.split("    Server:\n")
    assert "      # required:\n      # precision:   # A100-SXM4x8 has int8\n" in offline
    assert "# offline_expected_qps:   # samples/s; A100-SXM4x8 has 27200" in offline
    assert "# server_target_qps:" in server and "# server_target_qps:" not in offline
    assert "# use_graphs:" not in offline and "use_graphs" in offline.split("system: four")[0]
    registry(tmp_path)


@pytest.mark.parametrize("name", ["", "my box", "4box", "_box", "a-b", "../x", "$(id)", "a\nb", "ä", "x" * 3 + "/y"])
def test_a_name_is_letters_digits_and_underscores(call: Call, tmp_path: Path, name: str) -> None:
    answer = call(NAME=name)
    assert answer["return"] == 1 and "a letter first" in answer["error"] and repr(name.strip()) in answer["error"]
    assert not (tmp_path / "mlperf-custom-systems").exists()


@pytest.mark.parametrize("name", ["cpu", "T4x8", "ND_H100_v5"])
def test_a_name_of_the_registry_is_refused(call: Call, name: str) -> None:
    assert f"{name} is a system of the registry" in call(NAME=name)["error"]


def test_a_known_machine_is_added_with_a_warning(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(NAME="mine", MACHINE="t4x8", BENCHMARKS="bert")["return"] == 0
    assert "! this is a known system: without this file it is run as T4x8" in capsys.readouterr().out


def test_a_name_that_is_there_is_kept_unless_replacing_is_asked_for(call: Call, tmp_path: Path) -> None:
    call(NAME="mine", BENCHMARKS="bert")
    path = tmp_path / "mlperf-custom-systems" / "mine.yaml"
    before = path.read_text(encoding="utf-8")
    for hook in ("plan", "preprocess"):
        error = call(hook, NAME="mine")["error"]
        assert f"mine is there already: {path}" in error
        assert "add,custom,system --id=mine --replace" in error, "the same command again would be a loop"
    assert path.read_text(encoding="utf-8") == before
    assert call(NAME="mine", BENCHMARKS="rnnt", REPLACE="yes")["return"] == 0
    assert "rnnt" in path.read_text(encoding="utf-8")
    assert [one.name for one in path.parent.iterdir()] == ["mine.yaml"]


def test_a_broken_file_can_be_replaced(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "mlperf-custom-systems" / "mine.yaml"
    path.parent.mkdir()
    path.write_text("{", encoding="utf-8")
    assert "already" in call(NAME="mine")["error"]
    assert call(NAME="mine", REPLACE="yes")["return"] == 0
    registry(tmp_path)


def put(job: tuple[Path, int]) -> str:
    path, number = job
    try:
        ADD.put(path, f"text of {number}\n" * 2000, is_replaced=False)
    except ADD.BadCall:
        return ""
    return f"text of {number}\n" * 2000


def test_of_several_calls_at_once_one_writes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "mine.yaml"
    with multiprocessing.get_context("fork").Pool(8) as pool:
        wrote = [text for text in pool.map(put, [(path, number) for number in range(8)], chunksize=1) if text]
    assert wrote == [path.read_text(encoding="utf-8")]
    assert [one.name for one in path.parent.iterdir()] == ["mine.yaml"]


def test_a_plan_writes_nothing(call: Call, tmp_path: Path) -> None:
    assert call("plan", NAME="mine")["runs"] == []
    assert not (tmp_path / "mlperf-custom-systems").exists()


def test_the_folder_of_nvidias_variable_is_used(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLPINF_CUSTOM_DEFINITION_PATH", str(tmp_path / "own"))
    call(NAME="mine", BENCHMARKS="bert")
    assert (tmp_path / "own" / "mine.yaml").is_file()


# --- measuring ---


def test_auto_searches_as_a_user_would_and_keeps_what_is_there(call: Call, calls: list[Any], tmp_path: Path) -> None:
    auto = {"AUTO": "yes", "BENCHMARKS": "resnet50,digits", "SCENARIOS": "offline,server", "SOURCE": "tiny"}
    planned = call("plan", NAME="mine", **auto)["runs"]
    if planned[0]["device"] == "cpu":
        assert planned[0] == {
            "tags": "generate-run-cmds,inference,_find-performance",
            "model": "resnet50", "scenario": "Offline,Server", "source": "tiny",
            "device": "cpu", "backend": "onnxruntime", "precision": "fp32",
        }  # fmt: skip
    assert call(NAME="mine", **auto)["return"] == 0
    asked = [{key: one[key] for key in planned[0]} for one in calls]
    assert asked == planned
    path = tmp_path / "mlperf-custom-systems" / "mine.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    assert call(NAME="mine", **auto)["return"] == 0 and len(calls) == 4
    assert path.read_text(encoding="utf-8").endswith("# mine\n")
    assert len(registry(tmp_path).custom["mine"].entries) == ENTRIES


@pytest.mark.parametrize("env", [{}, {"BENCHMARKS": "bert", "MACHINE": "t4x8"}])
def test_auto_needs_benchmarks_and_this_machine(call: Call, env: dict[str, str]) -> None:
    assert "give --benchmarks=, and no --machine=" in call(NAME="mine", AUTO="yes", **env)["error"]


def test_a_search_that_fails_is_the_answer(tmp_path: Path) -> None:
    given = {"NAME": "mine", "AUTO": "yes", "BENCHMARKS": "bert"}
    home = SimpleNamespace(repos_path=str(tmp_path), access=lambda inputs: {"return": 3, "error": "no such thing"})
    env = {f"CM_CUSTOM_SYSTEM_{key}": text for key, text in given.items()}
    answer = ADD.preprocess({"env": env, "state": {}, "input": {}, "automation": SimpleNamespace(cmind=home)})
    assert answer == {"return": 3, "error": "no such thing"}


# --- in the registry ---


def test_a_system_of_the_user_is_told_when_it_has_no_such_entry(call: Call, tmp_path: Path) -> None:
    call(NAME="mine", BENCHMARKS="bert", SCENARIOS="Offline")
    with pytest.raises(UnknownConfig, match="mine has no entry for resnet50 Offline, only for bert Offline"):
        registry(tmp_path).effective("resnet50", OFF, "mine")
    assert "mine" in registry(tmp_path).sheet("bert", OFF)


WRONG = [
    ("system: other\n", "system: found 'other'"),
    ("system: x\nmachine: {kind: tpu, count: 1}\n", "machine: allowed: kind cpu, nvidia, jetson"),
    ("system: x\nmachine: {kind: nvidia, count: 0}\n", "count from 1"),
    ("system: x\nmachine: {kind: cpu}\nconfigs: {bert: {Offlien: {from: cpu}}}\n", "unknown scenario 'Offlien'"),
    ("system: x\nmachine: {kind: cpu}\nconfigs: {bert: {Offline: {}}}\n", "from: allowed: cpu, A100-SXM4x1"),
    (
        "system: x\nmachine: {kind: cpu}\nconfigs: {bert: {Offline: {from: cpu, precision: 8}}}\n",
        "precision: found '8'",
    ),
    ("system: x\nmachine: {kind: cpu}\nconfigs: {bert: {Offline: {from: cpu, use_graphs: true}}}\n", "accelerator"),
    ("system: x\nsystem: x\nmachine: {kind: cpu}\n", "system is here twice, first in line 1"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    assert said in "\n".join(read_custom(path, REGISTRY.sheets, KNOWN)[1])
    with pytest.raises(RegistryError, match="is wrong"):
        read_registry(tmp_path)


def test_a_parent_of_another_kind_is_refused(tmp_path: Path) -> None:
    text = "system: x\nmachine: {kind: nvidia, count: 1}\nconfigs: {bert: {Offline: {from: cpu}}}\n"
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    write_sheet(tmp_path, "")
    with pytest.raises(RegistryError, match="from: cpu has another kind of accelerator than x"):
        read_registry(tmp_path, shipped=tmp_path)


def test_a_system_starts_from_an_entry_of_the_same_benchmark_and_scenario(tmp_path: Path) -> None:
    text = "system: x\nmachine: {kind: cpu}\nconfigs: {bart: {Offline: {from: cpu}}, bert: {Offline: {from: T5x1}}}\n"
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RegistryError) as raised:
        read_registry(tmp_path)
    assert "configs.bart.Offline.from: allowed: nothing, there is no such benchmark" in str(raised.value)
    assert "configs.bert.Offline.from: allowed: cpu, A100-SXM4x1" in str(raised.value)


def test_a_folder_beside_custom_systems_is_none_of_the_registry(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.yaml").write_text("a: [", encoding="utf-8")
    assert read_registry(tmp_path).custom == {}


@pytest.mark.full
def test_a_machine_is_measured_and_later_configurations_have_what_was_found(home: TemporaryHome) -> None:
    words = ["--tags=add,custom,system,_auto", "--id=my_box", "--benchmarks=digits", "--scenarios=offline"]
    subprocess.run(
        cm_command(["run", "script", *words]), cwd=home.work, env=home.process_env(), check=True, timeout=900
    )
    shown = home.run_cm("get,mlperf,benchmark,config", "--benchmark=digits", "--scenario=Offline")
    config = shown.answer["new_state"]["mlperf_benchmark_config"]
    assert config["system"] == "my_box"
    assert config["values"]["offline_expected_qps"]["origin"].startswith("measured 20")
