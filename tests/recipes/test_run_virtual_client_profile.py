"""run-virtual-client-profile: reads, resolves, refuses and plans profiles, and runs them with made-up recipes."""

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import metadata_builder as made
import pytest
from helpers import TemporaryHome
from recipe_engine.planning.planned_step import WatchedEnv
from recipe_engine.rules.conditions import Unknown
from recipe_loader import RECIPES, exported, load_module, load_recipe, recipe_meta

from crowdperf.fronts.metrics.gpuload import gpu_metrics
from crowdperf.fronts.virtualclient import options
from crowdperf.machine.probe import Machine, Ran

recipe = load_recipe("run-virtual-client-profile")
running = load_module("run-virtual-client-profile", "running")
statefile = load_module("run-virtual-client-profile", "statefile")
overlays = load_module("run-virtual-client-profile", "overlays")
META = recipe_meta("run-virtual-client-profile")
SHIPPED = RECIPES / "run-virtual-client-profile" / "profiles" / "PERF-GPU-MLPERF.json"
CPU = {"device": "cpu", "source": "tiny"}


class Linux(Machine):
    """A machine with 8 CPUs, 16 GiB, Ubuntu and a GPU, or without one."""

    def __init__(self, *, has_gpu: bool = True) -> None:
        super().__init__()
        self.has_gpu = has_gpu

    def which(self, program: str) -> str:
        return "/usr/bin/nvidia-smi" if program == "nvidia-smi" and self.has_gpu else ""

    def run(self, arguments: Any, **more: Any) -> Ran:
        asked = next((word for word in arguments if word.startswith("--query-gpu=")), "")
        names = asked.partition("=")[2].split(",")
        return Ran(0, ", ".join("0" for _ in names) + "\n") if asked and self.has_gpu else Ran(127)

    def read_text(self, path: str) -> str:
        cpu = "\n\n".join(
            f"processor: {n}\nphysical id: 0\nsiblings: 8\ncpu cores: 4\ncore id: {n // 2}" for n in range(8)
        )
        texts = {"/proc/cpuinfo": cpu, "/proc/meminfo": "MemTotal: 16777216 kB\n", "/etc/os-release": "ID=ubuntu\n"}
        return texts.get(path, "")


class Cm:
    """Stands for cmind: notes the requests, and leaves results as run-mlperf-inference would."""

    def __init__(self, fail: str = "") -> None:
        self.calls: list[dict[str, Any]] = []
        self.looks: list[dict[str, Any]] = []
        self.fail = fail
        self.cmind = self

    def access(self, request: dict[str, Any]) -> dict[str, Any]:
        (self.looks if request.get("silent") else self.calls).append(request)
        if self.fail and self.fail in (request["tags"], request.get("model")):
            return {"return": 16 if request["tags"].startswith("get") else 1, "error": "it is not there\n  hint: do so"}
        if request["tags"] == "get,scratch,disk":
            return {"return": 0, "new_env": {"CM_SCRATCH_DISK_PATH": "/data/scratch"}, "new_state": {}}
        if request["tags"] == "run,mlperf,inference":
            for scenario in request["scenario"].split(","):
                self.leave(Path(request["results_dir"]) / request["run_id"] / request["model"] / scenario, scenario)
        return {"return": 0, "new_env": {}, "new_state": {}}

    def leave(self, folder: Path, scenario: str) -> None:
        label = {"label": "synthetic input, not an MLPerf result"}
        made.write(folder / "performance" / "run_1", {**made.performance(scenario), **label})
        made.write(folder / "accuracy", {**made.accuracy(scenario=scenario), **label})


@pytest.fixture
def call(inside: Path, hook_input, capsys):
    """Calls the recipe; the answer has env, state, the requests as `calls` and what was printed as `text`."""

    def make(
        variation: str = "",
        cm: Any = None,
        hook: str = "preprocess",
        machine: Any = None,
        recorded: str = "",
        **inputs: str,
    ) -> dict[str, Any]:
        env = {"CM_TMP_CURRENT_PATH": str(inside)}
        env |= {META["input_mapping"][name]: value for name, value in inputs.items()}
        env |= META["variations"][variation]["env"] if variation else {}
        cm = cm or Cm()
        env |= {"CM_RECORDED_MACHINE": recorded} if recorded else {}
        i = hook_input(env, automation=cm, machine=None if recorded else machine or Linux(), meta=META)
        answer = getattr(recipe, hook)(i)
        printed = capsys.readouterr()
        return {**answer, "env": i["env"], "state": i["state"], "calls": cm.calls, "text": printed.out,
                "said": printed.err}  # fmt: skip

    return make


def test_a_plan_reads_no_key_that_a_dependency_has_yet_to_set(hook_input) -> None:
    unknown = Unknown(rules=(("CM_MLPERF_CONFIG_*", "get-mlperf-benchmark-config"),))
    env = WatchedEnv({"CM_VIRTUAL_CLIENT_PROFILE": "nowhere.json"}, unknown)
    answer = recipe.plan(hook_input(env, machine=Linux(), meta=META))
    assert answer["return"] == 1 and "--profile: nowhere.json is not a file, shipped are: " in answer["error"]
    assert not env.read_unknown


def profile(*actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    bert = {"Type": "MLPerfExecutor", "Parameters": {"Scenario": "one", "Model": "bert"}}
    return {"Description": "a test", "Actions": list(actions) or [bert], **more}


def action(**parameters: Any) -> dict[str, Any]:
    return {"Type": "MLPerfExecutor", "Parameters": {"Model": "bert", **parameters}}


def write(inside: Path, content: Any, name: str = "p.json") -> str:
    (inside / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return name


def rows_of(folder: Path) -> list[dict[str, str]]:
    import csv

    with open(folder / "metrics.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def steps(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return answer["state"]["virtual_client_profile"]["steps"]


# --- reading ---


def test_the_shipped_profile_has_its_steps_with_everything_resolved_and_writes_nothing(inside, call):
    answer = call("plan", profile="PERF-GPU-MLPERF.json")
    assert answer["return"] == 0, answer
    assert [step["type"] for step in steps(answer)] == [
        "FormatDisks", "MountDisks", "GitRepoClone", "NvidiaCudaInstallation", "DockerInstallation",
        "NvidiaContainerToolkitInstallation", "MLPerfExecutor", "MLPerfExecutor",
    ]  # fmt: skip
    assert "$.Parameters" not in json.dumps(steps(answer))
    assert steps(answer)[3]["calls"] == [
        {"tags": "get,nvidia,driver,_fabricmanager-match", "expected": "cuda_12.4.0_550.54.14_linux.run"},
        {"tags": "install,cuda,prebuilt", "version": "12.4.0"},
    ]
    assert [step["calls"][0]["scenario"] for step in steps(answer)[6:]] == [
        "Offline,Server,SingleStream", "Offline,SingleStream",
    ]  # fmt: skip
    assert (
        steps(answer)[6]["calls"][0] | {"model": "bert-99", "execution_mode": "valid", "backend": "tensorrt"}
        == (steps(answer)[6]["calls"][0])
    )
    for step in steps(answer):
        assert step["type"] in answer["text"]
        assert step["why"] in answer["text"]
    assert answer["calls"] == []
    assert list(inside.iterdir()) == []


def test_what_a_system_needs_of_its_own_comes_from_the_registry_of_configurations(tmp_path: Path) -> None:
    known = overlays.settings("bert-99", "default", tmp_path, "azure-a100-sxm4-40gbx8")
    assert known.targets["server_target_qps"] == "24750" and "A100" in known.said
    assert set(known.targets) == {"offline_target_qps", "server_target_qps", "singlestream_target_latency_ms"}
    unknown = overlays.settings("3d-unet-99", "default", tmp_path, "t4x1")
    assert not unknown.targets and "no settings for this machine" in unknown.said
    assert "add,custom,system" in unknown.said


def test_a_run_plans_the_recipes_that_it_calls_and_with_plan_none(call):
    planned = call(hook="plan")["runs"]
    assert [row["tags"] for row in planned] == [
        "get,scratch,disk", "get,nvidia,driver,_fabricmanager-match", "install,cuda,prebuilt", "get,docker,_docker",
        "get,nvidia,container-toolkit", "run,mlperf,inference", "run,mlperf,inference",
    ]  # fmt: skip
    assert call("plan", hook="plan")["runs"] == []
    assert len(call(hook="plan", **CPU)["runs"]) == 2


YAML = """
description: the same as YAML, keys in any case
metadata:
minimum_execution_interval: 00:00:01
parameters:
  duration: 01:00:00
  model: bert
actions:
  - type: MLPerfExecutor
    parameters:
      scenario: one
      model: $.Parameters.Model
      tags: "{LogFolderName.TotalSeconds} {calculate({LogicalCoreCount} / 3)} {fn(\\"{Platform}\\" == \\"linux-x64\\")}"
      LogFolderName: "$.Parameters.Duration"
"""


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_json_with_a_byte_order_mark_and_yaml_are_read(inside, call, mark):
    assert call("plan", profile=write(inside, mark + json.dumps(profile())))["return"] == 0
    answer = call("plan", profile=write(inside, mark + YAML, "p.yml"))
    assert steps(answer)[0]["parameters"]["Tags"] == "3600 2 true"
    assert steps(answer)[0]["parameters"]["LogFolderName"] == "01:00:00"


def test_the_earlier_forms_of_the_profile_mean_the_same(inside, call):
    """Of 2023: CloneRepo, CudaVersion and its kin, the model as Scenario. Of 2024 (H100): Benchmarks."""
    address = (
        "https://developer.download.nvidia.com/compute/cuda/12.0.0/local_installers/cuda_12.0.0_525.60.13_linux.run"
    )
    clone = {"RepoUri": "https://github.com/mlcommons/inference_results_v2.0.git", "PackageName": "mlperf"}
    cuda = {"CudaVersion": "12.0", "DriverVersion": "525", "LocalRunFile": address}
    steps = [{"Type": "CloneRepo", "Parameters": clone}, {"Type": "NvidiaCudaInstallation", "Parameters": cuda}]
    first = {"Type": "MLPerfExecutor", "Parameters": {"Scenario": "ssd-mobilenet"}}
    content = profile(first, action(Scenario="two", Benchmarks="bert,rnnt"), Dependencies=steps)
    answer = call("plan", profile=write(inside, content))
    steps = answer["state"]["virtual_client_profile"]["steps"]
    assert answer["return"] == 0 and [step["calls"][0]["model"] for step in steps[2:]] == ["ssd-mobilenet", "bert-99"]
    assert steps[1]["parameters"]["LinuxDriverVersion"] == "525" and steps[2]["parameters"]["Model"] == "ssd-mobilenet"


@pytest.mark.parametrize(
    ("element", "words"),
    [
        (action(Benchmarks="bert,resnet"), "Benchmarks: unknown Model 'resnet'"),
        ({"Type": "MLPerfExecutor", "Parameters": {"Scenario": "one"}}, "Model is missing"),
        (action(CudaVersion="12.0"), "unknown parameter of MLPerfExecutor 'CudaVersion'"),
    ],
)
def test_what_the_earlier_forms_cannot_mean_is_refused(inside, call, element, words):
    answer = call("plan", profile=write(inside, profile(element)))
    assert answer["return"] == 1 and words in answer["error"]


def test_components_nest_and_loops_repeat(inside, call):
    inner = {"Type": "SequentialExecution", "Parameters": {"LoopCount": 2}, "Components": profile()["Actions"]}
    outer = {"Type": "SequentialExecution", "Components": [inner, *profile()["Actions"]]}
    answer = call("plan", profile=write(inside, profile(outer)))
    assert [step["where"] for step in steps(answer)] == [
        "Actions[1].Components[1].Components[1] (loop 1)", "Actions[1].Components[1].Components[1] (loop 2)",
        "Actions[1].Components[2]",
    ]  # fmt: skip


def test_several_profiles_become_one_and_the_first_names_it(inside, call):
    first = write(inside, profile(Parameters={"A": "bert"}), "a.json")
    second = {"Type": "MLPerfExecutor", "Parameters": {"Scenario": "two", "Model": "$.Parameters.A"}}
    docker = {"Type": "DockerInstallation"}
    other = write(inside, profile(second, Parameters={"a": "3d-unet"}, Dependencies=[docker]), "b.json")
    answer = call("plan", profile=f"{first},{other}")
    assert [step["where"] for step in steps(answer)] == ["b.json: Dependencies[1]", "Actions[1]", "b.json: Actions[1]"]
    assert steps(answer)[2]["parameters"]["Model"] == "bert"
    assert answer["state"]["virtual_client_profile"]["profile"] == "a.json"


def test_parameters_come_from_the_command_line_then_from_the_first_condition_that_holds(inside, call):
    content = profile(
        {"Type": "MLPerfExecutor", "Parameters": {"Model": "$.Parameters.Model", "Tags": "$.Parameters.Kind"}},
        Parameters={"Model": "bert", "Kind": "none"},
        ParametersOn=[
            {"Condition": '{calculate("{Platform}" == "win-x64")}', "Kind": "windows"},
            {"Condition": "{calculate({SystemMemoryGigabytes} >= 16)}", "kind": "large"},
            {"Condition": "{calculate(true)}", "Kind": "never"},
        ],
    )
    answer = call("plan", profile=write(inside, content), parameters="model=3d-unet")
    assert steps(answer)[0]["parameters"] == {"Model": "3d-unet", "Tags": "large"}


def test_a_calculation_may_use_another_parameter_that_is_calculated(inside, call):
    content = profile(
        action(Tags="{calculate(512/{LogFolderName})}", LogFolderName="{calculate({LogicalCoreCount}/2)}")
    )
    answer = call("plan", profile=write(inside, content))
    assert (steps(answer)[0]["parameters"]["Tags"], steps(answer)[0]["parameters"]["LogFolderName"]) == ("128", "4")


def test_own_parameters_and_well_known_words_are_replaced(inside, call):
    tags = "{Model}-{LogFolderName.TotalMinutes}-{PhysicalCoreCount}-{Architecture}-{OS}-{ExperimentId}"
    content = profile(action(Tags=tags, LogFolderName="01:30:00"))
    answer = call("plan", profile=write(inside, content), experiment_id="e1")
    assert steps(answer)[0]["parameters"]["Tags"] == "bert-90-4-x64-linux-e1"


LOOPS: dict[str, Any] = {"Type": "SequentialExecution", "Components": [action()]}
for _ in range(20):
    LOOPS = {"Type": "SequentialExecution", "Parameters": {"LoopCount": 100}, "Components": [LOOPS]}
CUDA = {"Type": "CudaAndNvidiaGPUDriverInstallation", "Parameters": {
    "LinuxLocalRunFile": "https://x.com/compute/cuda/12.0.0/local_installers/cuda_12.4.0_550.54.14_linux.run",
    "LinuxCudaVersion": "12.0", "LinuxDriverVersion": 535}}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "inputs", "words"),
    [
        ("{", {}, "p.json: no JSON, line 1 column 2"),
        ("[]", {}, "does not contain an object"),
        ("", {}, "does not contain an object"),
        ("a: [1", {}, "not JSON or YAML"),
        ("a: &x [1]\nb: *x", {}, "aliases"),
        ("[" * 50_000, {}, "nested more than"),
        ("a: " + "[" * 50_000, {}, "nested more than 32 deep"),
        ("{" + '"a":{' * 40 + "}" * 41, {}, "Description is missing"),
        (" " * (1024 * 1024 + 1), {}, "allowed: at most 1,048,576 bytes"),
        ('{"Description": "x", "Metadata": {"a": ' + "9" * 5000 + "}}", {}, "a number that cannot be: Exceeds the"),
        ('{"Description": "x", "Metadata": {"a": NaN}}', {}, "NaN is not a JSON number"),
        (profile(action(Tags=f"{{calculate({'9' * 900})}}")), {}, "999...999 (900 digits) overflows 32 bits"),
        ({"Actions": []}, {}, "Description is missing or empty"),
        ({"Description": " ", "Actons": []}, {}, "did you mean Actions"),
        (profile(Parameters=[]), {}, "Parameters must be an object, got '[]'"),
        (profile(Actions="x"), {}, "Actions must be a list"),
        (profile(Actions=["x"]), {}, "Actions[1] must be an object"),
        (profile({"Parameters": {}}), {}, "Actions[1] has no Type"),
        (profile(Parameters={"a": 1, "A": 2}), {}, "the key 'A' occurs twice"),
        (profile(action(Tags={"a": 1})), {}, "must be a text, a number, true or false"),
        (profile({"Type": "MLPerfExecuter"}), {}, "did you mean MLPerfExecutor"),
        (profile({"Type": "MLPerfTrainingExecutor"}), {}, "training is not run here"),
        (profile({"Type": "ParallelExecution"}), {}, "would disturb each other"),
        (profile(Dependencies=[{"Type": "DependencyPackageInstallation"}]), {}, "package store"),
        (profile({"Type": "DockerInstallation"}), {}, "belongs to dependency, not to action"),
        (profile({**action(), "Components": [action()]}), {}, "MLPerfExecutor has no Components"),
        (profile({"Type": "SequentialExecution", "Parameters": {"LoopCount": 0}}), {}, "LoopCount must be 1 to 100"),
        ('{"Description": "\\ud800"}', {}, "lone surrogate"),
        ({"Description": "x" * 5, "Actions": [{"Type": "\x1b[2J"}]}, {}, "unknown Type '\\x1b[2J'"),
        (profile(action(Tags="{calculate(\x9b)}")), {}, "{calculate(\\x9b)}: column 1"),
        (profile(LOOPS), {}, "comes to more than 1000 steps"),
        (profile(*[{"Type": "X"}] * 20_000), {}, "and 19950 more"),
        (profile(Parameters={f"p{n}": 1 for n in range(1001)}), {}, "Parameters has more than 1000 names"),
        (profile(action(**{f"p{n}": "{calculate(1+1)}" * 50 for n in range(900)})), {}, "and 850 more"),
        (profile(action(Modl="x")), {}, "did you mean Model"),
        (profile({"Type": "MLPerfExecutor"}), {}, "Actions[1]: Model is missing"),
        (profile(action(Model="bret")), {}, "unknown Model 'bret' (did you mean bert?)"),
        (profile(action(RequireCustomSystemSupport="maybe")), {}, "must be true or false, got 'maybe'"),
        (profile(action(Tags="a\nb")), {}, "must be one line of text"),
        (profile(action(Tags="$.Parameters.Nope"), Parameters={"Nape": 1}), {}, "did you mean Nape"),
        (profile(action(Tags="$.Parameters.A"), Parameters={"A": "$.Parameters.A"}), {}, "is itself a reference"),
        (profile(action(Tags="{Tags}")), {}, "refers to itself, or through more than 5 others"),
        (profile(action(Tags="{LogFolderName}", LogFolderName="{Tags}")), {}, "refers to itself"),
        (profile(action(Tags="{A}" * 9000, LogFolderName="x")), {}, "unknown reference 'A'"),
        (profile(action(Tags="{LogFolderName}" * 20, LogFolderName="{Tags}{Tags}")), {}, "grows beyond 32768"),
        (profile(action(Tags="{calculate(1 +)}")), {}, "Actions[1].Tags: {calculate(1 +)}: column 4"),
        (profile(action(Tags="{PackageDir:redis}")), {}, "unknown reference 'PackageDir:redis'"),
        (profile(ParametersOn=["x"]), {}, "ParametersOn must be a list of objects"),
        (profile({"Type": "MLPerfExecutor", "Paramters": {}}), {}, "key 'Paramters', did you mean Parameters?"),
        (profile(ParametersOn=[{"a": 1}]), {}, "ParametersOn[1] has no Condition"),
        (profile(ParametersOn=[{"Condition": "{calculate(1)}"}]), {}, "must come to true or false, got '1'"),
        (profile(Dependencies=[CUDA]), {}, "12.0 contradicts the run file's 12.4; LinuxDriverVersion 535"),
        (profile(Dependencies=[CUDA]), {}, "the folder of LinuxLocalRunFile 12.0 contradicts"),
        (profile(Dependencies=[{**CUDA, "Parameters": {"LinuxLocalRunFile": "http://["}}]), {}, "must name NVIDIA"),
        (profile(Dependencies=[{"Type": "GitRepoClone", "Parameters": {"RepoUri": "https://github.com/mlcommons/"
         "inference_results_v4.1.git", "PackageName": "../../x"}}]), {}, "PackageName must be a plain name"),
        (profile(Dependencies=[{"Type": "GitRepoClone", "Parameters": {"RepoUri": "ext::sh -c x",
                                                                      "PackageName": "x"}}]), {}, "RepoUri must be"),
        (profile(Monitors=[{"Type": "NvidiaSmiMonitor"}]), CPU, "no GPU to watch"),
        (profile(MinimumExecutionInterval="soon"), {}, "must be a time span"),
        (profile(Metadata={"SupportsIterations": False}), {"iterations": "2"}, "SupportsIterations=false"),
        (profile(Metadata={"MinimumRequiredExecutionTime": "02:00:00"}), {"timeout": "60"}, "is shorter than"),
        (profile(), {"parameters": "Usernam=x"}, "unknown parameter 'Usernam'"),
        (profile(), {"parameters": "x"}, "--parameters: 'x' has no name=value"),
        (profile(), {"scenarios": "oen"}, "did you mean one"),
        (profile(), {"scenarios": "-one"}, "no action is left to run"),
        (profile(), {"iterations": "2", "timeout": "5"}, "exclude each other"),
        (profile(), {"timeout": "soon"}, "--timeout=soon is not understood"),
        (profile(), {"timeout": "5,deterministicc"}, "is not understood"),
        (profile(), {"logger": "csv;eventhub=x"}, "unknown logger 'eventhub'"),
        (profile(), {"experiment_id": "../x"}, "--experiment-id must be"),
        (profile(action(Model="rnnt")), {"config_ver": "high_accuracy"}, "rnnt has one accuracy level"),
        (profile(), {"log_dir": "p.json"}, "p.json is a file. Give a folder"),
        (profile(), {"profile": "nowhere.json"}, "nowhere.json is not a file, shipped are: PERF-GPU-MLPERF.json"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_at_once_and_nothing_is_left(inside, call, content, inputs, words):
    write(inside, content)
    answer = call(**{"profile": "p.json", **inputs})
    assert answer["return"] == 1
    assert words in answer["error"]
    assert "hint:" in answer["error"] and "profile,_plan" in answer["error"]
    planned = call("plan", **{"profile": "p.json", **inputs})["error"]  # which needs no hint to plan
    assert "hint:" in planned and "profile,_plan" not in planned
    assert answer["calls"] == []
    assert [path.name for path in inside.iterdir()] == ["p.json"]


def test_all_reasons_are_given_together(inside, call):
    content = profile({"Type": "X"}, action(Modl=1), Dependencies=[{"Type": "FormatDisks", "Parameters": {"Force": 7}}])
    error = call(profile=write(inside, content))["error"]
    assert all(words in error for words in ("unknown Type 'X'", "'Modl'", "Force must be true or false"))


@pytest.mark.parametrize(
    ("text", "rounds", "seconds", "after"),
    [("1440", None, 86400, ""), ("01.00:30:00", None, 88200, ""), ("never", None, None, ""), ("-1", None, None, ""),
     ("5,deterministic", None, 300, "action"), ("00:00:05,deterministic*", None, 5, "round")],
)  # fmt: skip
def test_timeouts_are_read_as_upstream_reads_them(text, rounds, seconds, after):
    assert options.parse_timing(None, text) == options.Timing(rounds=rounds, duration_s=seconds, after=after)


# --- carrying out ---


def test_a_run_with_stand_ins_has_thirty_mlperf_rows_and_one_of_each_step_all_labelled(inside, call):
    answer = call(log_dir="L", system="Demo", **CPU)
    assert answer["return"] == 0, answer
    assert "goes on" not in answer["text"]
    assert [request["model"] for request in answer["calls"]] == ["bert-99", "3d-unet-99"]
    assert answer["calls"][0]["execution_mode"] == "test"
    rows = rows_of(inside / "L")
    mlperf = [row for row in rows if row["ToolName"] == "MLPerf"]
    assert len(mlperf) == 30
    others = [row for row in rows if row["ToolName"] != "MLPerf"]
    assert [row["ToolName"] for row in others] == [step["type"] for step in steps(answer)]
    assert {row["MetricName"] for row in others} == {"Succeeded"}
    assert all("label=" in row["Metadata"] and "stand_in=--device=cpu --source=tiny" in row["Metadata"] for row in rows)
    assert all(re.search(r"scenario=(Offline|Server|SingleStream)", row["Metadata"]) for row in mlperf)
    assert {row["ScenarioName"] for row in mlperf} == {"bert", "3d-unet"}
    assert {row["ExecutionSystem"] for row in rows} == {"Demo"}
    assert {row["ProfileName"] for row in rows} == {"PERF-GPU-MLPERF.json"}
    assert len({row["ExperimentId"] for row in rows}) == 1
    state = json.loads((inside / "L" / "virtual_client_state.json").read_text())
    assert (state["progress"], len(state["done"])) == ("finished", 8)
    assert sorted(exported("run-virtual-client-profile", answer["env"])) == [
        "CM_MLPERF_METRICS_CSV", "CM_MLPERF_METRICS_FILE", "CM_VIRTUAL_CLIENT_STATE",
    ]  # fmt: skip


def test_a_second_call_is_another_experiment_beside_the_first(inside, call):
    call(log_dir="L", **CPU)
    call(log_dir="L", **CPU)
    rows = rows_of(inside / "L")
    assert len(rows) == 2 * 38
    assert len({row["ExperimentId"] for row in rows}) == 2
    for _ in range(2):  # nor is a second call of the same experiment taken for the first
        call(log_dir="M", experiment_id="e", **CPU)
    rows = rows_of(inside / "M")
    assert (len(rows), {row["ExperimentId"] for row in rows}) == (2 * 38, {"e"})


def test_dependencies_come_first_and_give_the_disk_to_the_runs(inside, call):
    answer = call(log_dir="L", execution_mode="fast")
    assert [request["tags"] for request in answer["calls"]] == [
        "get,scratch,disk", "get,mlperf,scratch,space", "get,nvidia,driver,_fabricmanager-match",
        "install,cuda,prebuilt", "get,docker,_docker", "get,nvidia,container-toolkit", "run,mlperf,inference",
        "run,mlperf,inference",
    ]  # fmt: skip
    assert answer["calls"][0]["filter"] == "SizeGreaterThan:1000gb"
    assert answer["calls"][1]["benchmarks"] == "bert,3d-unet"
    assert answer["calls"][-1]["env"] == {"CM_MLPERF_SCRATCH_PATH": "/data/scratch"}


def test_a_dependency_that_is_missing_stops_everything_with_its_code_and_commands(inside, call):
    answer = call(cm=Cm(fail="get,docker,_docker"), log_dir="L")
    assert answer["return"] == 16
    assert "Dependencies[5] DockerInstallation: it is not there\n  hint: do so" in answer["error"]
    assert [row["tags"] for row in answer["calls"]][-2:] == ["get,docker,_docker", "get,nvidia,container-toolkit"]
    assert rows_of(inside / "L")[-1]["MetricName"] == "Failed"
    assert json.loads((inside / "L" / "virtual_client_state.json").read_text())["progress"] == "failed"


class Bare(Cm):
    """Stands for cmind on a machine where nothing that a recipe looks for is there."""

    def access(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = super().access(request)
        looking = request["tags"].startswith(running.LOOKING)
        return {"return": 16, "error": f"{request['tags']} found nothing"} if looking else answer


ALL_LOOKS = (
    "get,scratch,disk",
    "get,nvidia,driver,_fabricmanager-match",
    "get,docker,_docker",
    "get,nvidia,container-toolkit",
)


def test_all_that_a_machine_lacks_is_told_at_once_and_nothing_is_installed(inside, call):
    answer = call(cm=Bare(), log_dir="L")
    assert answer["return"] == 16
    assert all(f"{tags} found nothing" in answer["error"] for tags in ALL_LOOKS)
    assert "install,cuda,prebuilt" not in [row["tags"] for row in answer["calls"]]


@pytest.mark.parametrize("variation", ["plan", ""])
def test_without_a_gpu_a_plan_and_a_run_are_refused_with_the_rest_that_is_missing(inside, call, variation):
    answer = call(variation, cm=Bare(), machine=Linux(has_gpu=False))
    assert answer["return"] == 16
    assert "no GPU answers through nvidia-smi" in answer["error"]
    assert all(f"{tags} found nothing" in answer["error"] for tags in ALL_LOOKS)
    assert answer["calls"] == [] and list(inside.iterdir()) == []
    assert ("MLPerfExecutor" in answer["text"]) == (variation == "plan"), "the steps are shown"
    assert call(variation, machine=Linux(has_gpu=False), **CPU)["return"] == 0


def test_a_recorded_machine_is_planned_for_and_never_run_on(inside, call):
    cm = Cm()
    answer = call("plan", cm=cm, recorded="azure-a100-sxm4-40gbx8")
    assert answer["return"] == 0, answer
    assert "SIMULATED" in answer["text"]
    bert = steps(answer)[6]["calls"][0]
    assert (bert["server_target_qps"], bert["singlestream_target_latency_ms"]) == ("24750", "1.7")
    assert {row["machine"] for row in cm.looks} == {"azure-a100-sxm4-40gbx8"}
    assert "get,scratch,disk" not in [row["tags"] for row in cm.looks], "its file systems are not recorded"
    planned = call(hook="plan", recorded="azure-a100-sxm4-40gbx8")["runs"]
    assert {row["tags"] for row in planned if "machine" not in row} == {"install,cuda,prebuilt"}
    answer = call(recorded="azure-a100-sxm4-40gbx8")
    assert answer["return"] == 1 and "which cannot run anything" in answer["error"] and answer["calls"] == []
    answer = call("plan", recorded="nowhere", profile=write(inside, profile({"Type": "Oops"})))
    assert "nowhere is not a recorded machine" in answer["error"]


def test_the_disk_of_the_system_is_asked_for_by_the_input_that_the_refusal_names(inside, call):
    disk = next(row for row in call("plan", include_os_disk="yes")["state"]["virtual_client_profile"]["steps"]
                if row["type"] == "MountDisks")  # fmt: skip
    assert disk["calls"][0]["include_os_disk"] == "yes"


def test_a_profile_without_description_and_with_unknown_types_is_refused_for_all_of_it(inside, call):
    content = {"Actions": [{"Type": "TestAction"}], "Monitors": [{"Type": "TestMonitor"}]}
    answer = call("plan", profile=write(inside, content))
    assert answer["return"] == 1
    assert all(word in answer["error"] for word in ("Description is missing", "TestAction", "TestMonitor"))


@pytest.mark.parametrize(
    ("model", "scenarios"),
    [
        ("bert", "Offline,Server,SingleStream"),
        ("3d-unet", "Offline,SingleStream"),
        ("rnnt", "Offline,Server,SingleStream"),
        ("ssd-mobilenet", "Offline,SingleStream,MultiStream"),
        ("ssd-resnet34", "Offline,Server,SingleStream,MultiStream"),
        ("retinanet", "Offline,Server,SingleStream,MultiStream"),
        ("gptj", "Offline,Server,SingleStream"),
    ],
)
def test_a_model_has_the_scenarios_of_its_record(inside, call, model, scenarios):
    answer = call("plan", profile=write(inside, profile(action(Model=model, Benchmarks=f"bert,{model}"))))
    assert answer["return"] == 0, answer
    assert steps(answer)[0]["calls"][0]["scenario"] == scenarios


def test_monitors_of_upstream_are_known_and_minus_one_is_without_an_end(inside, call):
    given = {"MonitorFrequency": "00:00:05", "MonitorIterations": "-1"}
    monitors = [{"Type": name, "Parameters": given} for name in ("NvidiaSmiMonitor", "LspciMonitor")]
    answer = call("plan", profile=write(inside, profile(Monitors=monitors)))
    assert answer["return"] == 0, answer
    smi, lspci, _ = steps(answer)
    assert smi["parameters"]["MonitorIterations"] == "-1" and not smi["left_out"]
    assert lspci["left_out"]
    monitors[0]["Parameters"] = {"MonitorIterations": "-2"}
    assert "must be a whole number" in call("plan", profile=write(inside, profile(Monitors=monitors)))["error"]


def test_a_fork_of_the_results_is_planned_and_not_cloned(inside, call):
    given = {"RepoUri": "https://github.com/somebody/inference_results_v4.1.git", "PackageName": "mlperf"}
    name = write(inside, profile(Dependencies=[{"Type": "GitRepoClone", "Parameters": given}]))
    assert call("plan", profile=name)["return"] == 0
    assert "--clone only accepts repositories of mlcommons" in call("plan", profile=name, clone="yes")["error"]


def test_the_plan_says_what_of_upstreams_executor_is_left_out(inside, call):
    text = call("plan")["text"]
    assert all(words in text for words in ("restart of Docker", "start of the fabric manager", "docker ps"))


@pytest.mark.parametrize("sign", [",", ";"])
def test_a_timeout_takes_both_signs_of_upstream(sign):
    assert options.parse_timing(None, f"00:30:00{sign}deterministic*") == options.Timing(
        rounds=None, duration_s=1800, after="round"
    )


@pytest.mark.parametrize(("fail_fast", "models"), [("no", ["bert-99", "3d-unet-99"]), ("yes", ["bert-99"])])
def test_an_action_that_fails_lets_the_others_run_unless_fail_fast(inside, call, fail_fast, models):
    answer = call(cm=Cm(fail="bert-99"), log_dir="L", fail_fast=fail_fast, **CPU)
    assert answer["return"] == (315 if fail_fast == "no" else 1)
    assert "it is not there" in answer["error"]
    assert [request["model"] for request in answer["calls"]] == models
    outcomes = [row["MetricName"] for row in rows_of(inside / "L") if row["ToolName"] == "MLPerfExecutor"]
    assert outcomes == (["Failed", "Succeeded"] if fail_fast == "no" else ["Failed"])


def test_scenarios_dependencies_and_iterations_choose_what_runs(inside, call):
    answer = call(log_dir="L", scenarios="inferencemodels-3d-unet,-InstallDocker", iterations="2")
    assert [row["tags"] for row in answer["calls"]][-2:] == ["run,mlperf,inference"] * 2
    assert "get,docker,_docker" not in [row["tags"] for row in answer["calls"]]
    assert len({row["run_id"] for row in answer["calls"][-2:]}) == 2
    only = call(log_dir="M", dependencies="yes", **CPU)
    assert (only["return"], only["calls"]) == (0, [])
    assert len(rows_of(inside / "M")) == 6


class Killed(KeyboardInterrupt):
    """Stands for the end of the process."""


@pytest.mark.parametrize("moment", range(8))
def test_a_call_that_ends_at_any_recipe_is_gone_on_with_and_nothing_is_there_twice(inside, call, moment):
    cm = Cm()
    whole = cm.access

    def may_die(request: dict[str, Any]) -> dict[str, Any]:
        if len(cm.calls) == moment:
            raise Killed
        return whole(request)

    cm.access = may_die  # type: ignore[method-assign]
    with pytest.raises(Killed):
        call(cm=cm, log_dir="L", execution_mode="test")
    answer = call(log_dir="L", execution_mode="test")
    assert answer["return"] == 0, answer
    assert "goes on" in answer["text"]
    tags = [row["tags"] for row in cm.calls] + [row["tags"] for row in answer["calls"]]
    assert [tag for tag in tags if tag != "get,scratch,disk"] == [
        "get,mlperf,scratch,space", "get,nvidia,driver,_fabricmanager-match", *["install,cuda,prebuilt"],
        "get,docker,_docker", "get,nvidia,container-toolkit", "run,mlperf,inference", "run,mlperf,inference",
    ] or moment in (1, 3)  # fmt: skip
    rows = rows_of(inside / "L")
    assert len(rows) == 38
    assert len({row["ExperimentId"] for row in rows}) == 1


def test_finished_runs_count_when_the_time_is_over_and_the_call_succeeds(inside, call):
    cm = Cm()
    whole = cm.access

    def slow(request: dict[str, Any]) -> dict[str, Any]:
        folder = Path(request["results_dir"]) / request["run_id"] / "bert-99" / "Offline"
        cm.leave(folder, "Offline")
        time.sleep(30)
        return whole(request)

    cm.access = slow  # type: ignore[method-assign]
    answer = call(cm=cm, log_dir="L", timeout="00:00:01", **CPU)
    assert answer["return"] == 0, answer
    assert "the time is over" in answer["text"]
    assert len([row for row in rows_of(inside / "L") if row["ToolName"] == "MLPerf"]) == 6
    assert json.loads((inside / "L" / "virtual_client_state.json").read_text())["progress"] == "timed_out"
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize(("word", "look_s", "count"), [("deterministic", 25, 1), ("deterministic*", 40, 2)])
def test_a_deterministic_timeout_lets_the_action_or_the_round_finish(inside, call, monkeypatch, word, look_s, count):
    clock = iter(range(0, 100_000, look_s))  # every look at it takes so long
    monkeypatch.setattr(running.time, "monotonic", lambda: next(clock))
    answer = call(log_dir="L", timeout=f"1,{word}", **CPU)
    assert answer["return"] == 0, answer
    assert len(answer["calls"]) == count
    assert answer["state"]["virtual_client_profile"]["progress"] == "timed_out"


@pytest.mark.parametrize("words", ["logs,state", "yes"])
def test_cleaning_removes_only_what_it_names(inside, call, words):
    call(log_dir="L", **CPU)
    (inside / "L" / "mine.txt").write_text("mine")
    call(log_dir="L", clean=words, **CPU)
    assert len({row["ExperimentId"] for row in rows_of(inside / "L")}) == 1
    assert (inside / "L" / "mine.txt").is_file()


def test_two_calls_do_not_work_in_one_folder(inside, call):
    with statefile.locked(inside / "L"):
        answer = call(log_dir="L", **CPU)
    assert (answer["return"], answer["calls"]) == (1, [])
    assert "another run is using" in answer["error"]


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 1}', '{"format": 1, "progress": "running", "done": 5}'])
def test_a_damaged_state_begins_anew(inside, call, text):
    call(log_dir="L", **CPU)
    (inside / "L" / "virtual_client_state.json").write_text(text)
    assert call(log_dir="L", **CPU)["return"] == 0


def test_the_gpus_of_a_run_become_the_monitors_metrics(inside, call):
    load = {"gpus": [{"index": 0, "name": "NVIDIA A100"}], "columns": ["s", "gpu0_percent", "gpu0_bytes", "gpu0_w"],
            "rows": [[0, 50, 1048576, None], [1, 100, 2097152, None]]}  # fmt: skip
    assert [(m.name, m.value) for m in gpu_metrics(load)] == [("utilization.gpu [%]", 75.0), ("memory.used [MiB]", 2.0)]
    assert gpu_metrics({}) == ()
    assert [m.name for m in gpu_metrics({**load, "columns": load["columns"][:2]})] == ["utilization.gpu [%]"]
    cm = Cm()
    leave = cm.leave

    def with_load(folder: Path, scenario: str) -> None:
        leave(folder, scenario)
        (folder / "accuracy" / "load.json").write_text(json.dumps(load))

    cm.leave = with_load  # type: ignore[method-assign]
    name = write(inside, profile(Monitors=[{"Type": "NvidiaSmiMonitor", "Parameters": {"Scenario": "smi"}}]))
    assert call(cm=cm, profile=name, log_dir="L")["return"] == 0
    seen = [row for row in rows_of(inside / "L") if row["ToolName"] == "nvidia-smi"]
    assert len(seen) == 3 * 2
    assert {row["ScenarioName"] for row in seen} == {"Nvidia GPU Status"}


def test_a_clone_is_made_on_request_only_and_once(inside, call, fake_tool, monkeypatch):
    folder = fake_tool("git", 'printf "%s\\n" "$@" > "$OLDPWD/asked"; mkdir -p "$5/.git"').parent
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("OLDPWD", str(inside))
    assert call(log_dir="L", clone="yes", **CPU)["return"] == 0
    address = "https://github.com/mlcommons/inference_results_v4.1.git"
    target = inside / "L" / "packages" / "mlperf"
    assert (inside / "asked").read_text().splitlines() == ["clone", "--depth=1", "--", address, str(target)]
    assert "already there" in call(log_dir="L", clone="yes", **CPU)["text"]


@pytest.mark.parametrize("name", ["package_store", "event_hub", "key_vault", "proxy", "layout"])
def test_what_needs_a_network_is_refused_by_name(name):
    assert META["refused_inputs"][name]


@pytest.mark.full
def test_the_profile_runs_tiny_on_the_cpu_goes_on_after_a_kill_and_sets_nothing_up_again(home: TemporaryHome) -> None:
    """Installs onnxruntime, LoadGen and torch, and makes the ten runs twice: some minutes."""
    log = home.work / "L"
    words = ("--profile=PERF-GPU-MLPERF.json", "--device=cpu", "--source=tiny", f"--log-dir={log}")
    child = home.start_run("run,virtual-client,profile", *words)
    while child.poll() is None and len(list(log.glob("*/bert-99/*/*/metadata.json"))) < 1:
        time.sleep(1)
    child.kill()
    child.communicate()

    def run() -> None:
        again = home.start_run("run,virtual-client,profile", *words)
        _, said = again.communicate(timeout=1800)
        assert again.returncode == 0, said.decode()

    run()
    rows = rows_of(log)
    assert len([row for row in rows if row["ToolName"] == "MLPerf"]) == 30
    assert len(rows) == 38
    assert len({row["ExperimentId"] for row in rows}) == 1
    assert all("label=" in row["Metadata"] and "stand_in=" in row["Metadata"] for row in rows)
    assert len([path for path in log.rglob("metadata.json") if path.parent.name in ("run_1", "accuracy")]) == 10
    entries = sorted(home.store.iterdir())
    run()
    assert len(rows_of(log)) == 2 * 38
    assert sorted(home.store.iterdir()) == entries
