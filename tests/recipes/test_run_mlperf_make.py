"""run-mlperf-make: what targets, variables and RUN_ARGS become; the Makefile under GNU make; a stand-in for CM."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recipe_loader import input_values, load_module, load_recipe, recipe_meta

from crowdperf.fronts.nvidia.sheets import CONFIG_VERSIONS
from crowdperf.rules.benchmarks import RECORDS, record_of
from crowdperf.rules.names import ExecutionMode, Scenario
from crowdperf.rules.rounds import ROUNDS

RECIPE = "run-mlperf-make"
execution, pages, plans, request, run_args, views, workspace = (
    load_module(RECIPE, name) for name in ("execution", "pages", "plans", "request", "run_args", "views", "workspace")
)
Around = load_module(RECIPE, "context").Around
hooks = load_recipe(RECIPE)
SS = "SingleStream"


def planned(folder: Path, target: str, *, stamp: str = "2026.11.23-04.05.06", **values: str) -> Any:
    """The plan of a target in a workspace, on this machine's processor unless MACHINE says otherwise."""
    env = {f"CM_MAKE_{name}": text for name, text in values.items()} | {"CM_MAKE_GOAL": target}
    return plans.plan_of(Around(request.read(input_values(RECIPE, env), {}, folder), stamp))


def lines(plan: Any) -> list[str]:
    return [call.line for call in plan.calls]


# --- RUN_ARGS ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--benchmarks=ResNet50,Unet --scenarios=single_stream,OFFLINE", (["resnet50", "3d-unet"], [SS, "Offline"])),
        ('--benchmarks="bert resnet50" --scenarios Server', (["bert", "resnet50"], ["Server"])),
        ('"--benchmarks=gptj --scenarios=offline,server"', (["gptj"], ["Offline", "Server"])),
        ('"--benchmarks=gptj --scenarios=offline,server', (["gptj"], ["Offline", "Server"])),
        ("--benchmarks=all --scenarios=all", ([], [])),
        ("", ([], [])),
    ],
)  # fmt: skip
def test_benchmarks_and_scenarios_are_read_in_any_spelling(text: str, expected: tuple[list[str], list[str]]) -> None:
    args = run_args.read(text)
    assert (list(args.benchmarks), [one.value for one in args.scenarios]) == (
        expected[0], [Scenario(name).value for name in expected[1]],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("--benchmark=resnet50", "unknown flag 'benchmark' (did you mean --benchmarks?)"),
        ("--test_mode=Foo", "AccuracyOnly, PerformanceOnly, SubmissionRun, FindPeakPerformance"),
        ("--no_gpu", "USE_CPU=1"),
        ("--power_limit=300", "power is not measured here"),
        ("--config_ver=maxq", "power is not measured here"),
        ("--config_ver=default,high_acuracy", "found 'default,high_acuracy'; allowed: default, high_accuracy"),
        ("--benchmarks=resnet51", "unknown benchmark 'resnet51'"),
        ("--scenarios=foo --min_duration=x", "--min_duration: found 'x'; allowed: a whole number >= 1"),
        ("--scenarios", "--scenarios needs a value"),
        ("--fast=maybe", "--fast accepts no value"),
        ("resnet50", "'resnet50' is not a flag"),
        ("--benchmarks='resnet50", "cannot be split into words"),
        ("--benchmarks=$(touch x)", "unknown benchmark '$(touch'"),
    ],
)
def test_what_is_not_known_is_refused_with_what_is(text: str, words: str) -> None:
    with pytest.raises(request.MakeError) as caught:
        run_args.read(text)
    assert words in str(caught.value)


def test_the_config_versions_that_are_allowed_are_those_of_the_registry() -> None:
    words = request.table("flags")["config_ver"][-1]
    assert words.partition(";")[0].split(", ") == [*CONFIG_VERSIONS, "all"]
    assert run_args.read(f"--config_ver={','.join(CONFIG_VERSIONS)}").config_versions == CONFIG_VERSIONS


def test_of_several_names_that_are_unknown_those_there_are_are_listed_once() -> None:
    with pytest.raises(request.MakeError) as caught:
        run_args.members("resnet51 bart", run_args.benchmark_in)
    assert "'resnet51'" in str(caught.value) and "'bart'" in str(caught.value)
    assert str(caught.value).count("known: ") == 1


def test_all_problems_of_run_args_show_at_once() -> None:
    with pytest.raises(request.MakeError) as caught:
        run_args.read("--foo --test_mode=Bar --scenarios=x")
    assert len(str(caught.value).splitlines()) == 3


def test_flags_without_meaning_are_said_once_and_settings_go_on_to_the_registry() -> None:
    args = run_args.read("--verbose --log_copy_detail_to_stdout --fast --gpu_batch_size=64")
    assert [line.split()[0] for line in args.remarks] == ["--verbose", "--log_copy_detail_to_stdout", "--fast:"]
    assert "later rounds ignore it" in args.remarks[2]
    assert (args.length, args.user) == (ExecutionMode.FAST, {"gpu_batch_size": "64"})


# --- targets ---


def test_every_target_has_a_plan_or_says_why_not(tmp_path: Path) -> None:
    for target in request.table("targets"):
        try:
            plan = planned(
                tmp_path, target, RUN_ARGS="--benchmarks=resnet50 --scenarios=Offline", SOURCE="tiny", USE_CPU="1"
            )
        except request.MakeError as error:
            assert error.hint and str(error)
        else:
            assert plan.calls or target in (*pages.LOCAL, "plan", "update_compliance")
    assert not list(tmp_path.iterdir())


def test_inferentia_is_planned_for_its_machine_by_its_documented_name(tmp_path: Path) -> None:
    values = {"TARGET": "run_inferentia_harness", "MACHINE": "inf1-6xlarge", "USE_NIGHTLY": "0"}
    plan = planned(tmp_path, "plan", RUN_ARGS="--benchmarks=bert --scenarios=Server --config_ver=triton", **values)
    run = plan.calls[0]
    assert run.views[0].place.endswith("/Triton_Inferentia_INF1_6XLARGEx1/bert-99/Server")
    assert (run.inputs["server_target_qps"], run.inputs["backend"], run.inputs["batch_size"]) == ("130", "neuron", "1")
    assert any("USE_NIGHTLY=0 has no effect" in remark for remark in plan.remarks)


def test_inferentia_runs_both_benchmarks_through_triton_without_a_step_for_engines(tmp_path: Path) -> None:
    args = "--benchmarks=resnet50 --scenarios=offline --config_ver=triton --test_mode=AccuracyOnly"
    with pytest.raises(request.MakeError, match=r"has no AWS Neuron device.*2026-03-11") as caught:
        planned(tmp_path, "run_inferentia_harness", RUN_ARGS=args, SOURCE="tiny")
    assert caught.value.code == 16 and "SIMULATE=neuron" in caught.value.hint
    plan = planned(tmp_path, "run_inferentia_harness", RUN_ARGS=args, SOURCE="tiny", SIMULATE="neuron", USE_NIGHTLY="0")
    assert [call.tags for call in plan.calls] == ["run-mlperf-inference", "print,mlperf,results"]
    inputs = plan.calls[0].inputs
    assert (inputs["backend"], inputs["device"], inputs["mode"]) == ("neuron_simulated", "cpu", "accuracy")
    assert "batch_size" not in inputs and "instance_count" not in inputs
    own = " --instance_group_count=2 --inferentia_request_batch_size=4 --num_concurrent_batchers=3"
    tuned = planned(tmp_path, "run_inferentia_harness", RUN_ARGS=args + own, SOURCE="tiny", SIMULATE="neuron")
    assert (tuned.calls[0].inputs["instance_count"], tuned.calls[0].inputs["batch_size"]) == ("2", "4")
    assert any("num_concurrent_batchers 3: a setting of NVIDIA's C++ harness" in line for line in tuned.remarks)
    assert not any("inferentia_request_batch_size" in line for line in tuned.remarks)
    both = planned(tmp_path, "run_inferentia_harness", SOURCE="tiny", SIMULATE="neuron")
    assert {call.inputs.get("model") for call in both.calls} == {"resnet50", "bert-99", None}
    assert {call.inputs.get("scenario") for call in both.calls} >= {"Offline", "Server"}
    with pytest.raises(request.MakeError, match="it runs bert, resnet50"):
        planned(tmp_path, "run_inferentia_harness", RUN_ARGS="--benchmarks=retinanet", SIMULATE="neuron")
    (build,) = planned(tmp_path, "build_inferentia", SIMULATE="neuron").calls
    assert build.tags == "get,triton,server,_neuron-simulated"
    with pytest.raises(request.MakeError, match=r"no AWS Neuron device"):
        planned(tmp_path, "build_inferentia")
    with pytest.raises(request.MakeError, match="no AWS Neuron device"):
        planned(tmp_path, "prebuild", USE_INFERENTIA="1")
    text = planned(tmp_path, "plan", TARGET="run_inferentia_harness", RUN_ARGS=args, MACHINE="inf1-2xlarge")
    assert text.calls[0].inputs["backend"] == "neuron"


def test_engines_come_first_default_before_the_others_and_equal_ones_are_made_once(tmp_path: Path) -> None:
    args = "--benchmarks=resnet50,bert --scenarios=Offline,Server --config_ver=high_accuracy,default"
    plan = planned(tmp_path, "run", RUN_ARGS=args, SOURCE="tiny", USE_CPU="1")
    tags = [call.tags for call in plan.calls]
    assert tags[:2] == ["get,ml-model,resnet50,_onnx,_tiny", "get,ml-model,bert-large,_onnx,_tiny"]
    assert tags[2:] == ["run-mlperf-inference"] * 6 + ["print,mlperf,results"]
    places = [view.place for view in plan.calls[1].views]
    assert places[0] == "build/engines/cpu/bert/Offline/bert-Offline-cpu-b1-fp32.default.onnx"
    assert [place.split(".")[-2] for place in places] == ["default", "default", "high_accuracy", "high_accuracy"]
    assert any("left out" in line and "resnet50" in line and "high_accuracy" in line for line in plan.remarks)


def test_runs_get_the_settings_of_the_registry_and_what_run_args_say(tmp_path: Path) -> None:
    args = "--benchmarks=bert --scenarios=Offline --test_mode=AccuracyOnly --min_query_count=3 --min_duration=7"
    plan = planned(tmp_path, "run", RUN_ARGS=args, SOURCE="tiny", USE_CPU="1")
    run = plan.calls[-2]
    wanted = {"model": "bert-99", "scenario": "Offline", "mode": "accuracy", "execution_mode": "test"}
    assert wanted.items() <= run.inputs.items()
    assert {"min_query_count": "3", "min_duration_ms": "7", "check": "no"}.items() <= run.inputs.items()
    assert run.views[0].place == "build/logs/2026.11.23-04.05.06/cpu_onnxruntime/bert-99/Offline"
    assert plan.calls[-1].is_answer and not run.is_answer


def test_measurements_results_and_logs_have_one_name_for_a_system(tmp_path: Path) -> None:
    values = {"RUN_ARGS": "--benchmarks=bert --scenarios=Offline", "SOURCE": "tiny", "USE_CPU": "1"}
    (call,) = planned(tmp_path, "generate_conf_files", **values).calls
    (*_, run, _) = planned(tmp_path, "run", **values).calls
    assert call.inputs["output_dir"] == "measurements/cpu_onnxruntime/bert-99/Offline"
    assert run.views[0].place.endswith(call.inputs["output_dir"].removeprefix("measurements"))


def test_real_runs_have_the_length_of_the_rules_and_a_search_shows_no_logs(tmp_path: Path) -> None:
    plan = planned(
        tmp_path, "run", RUN_ARGS="--benchmarks=bert --test_mode=FindPeakPerformance --scenarios=Offline", USE_CPU="1"
    )
    assert plan.calls[-1].tags == "generate-run-cmds,inference,_find-performance"
    assert not plan.calls[-1].views
    plan = planned(tmp_path, "run", RUN_ARGS="--benchmarks=bert --scenarios=Offline", USE_CPU="1")
    assert plan.calls[-2].inputs["execution_mode"] == "valid"


def test_logs_that_are_there_are_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine/cpu_onnxruntime/bert-99/Offline").mkdir(parents=True)
    args = "--benchmarks=bert --scenarios=Offline --log_dir=mine"
    with pytest.raises(request.MakeError, match="logs are there already: mine/cpu_onnxruntime/bert-99/Offline"):
        planned(tmp_path, "run", RUN_ARGS=args, USE_CPU="1")


def test_azures_run_is_planned_for_its_machine_with_the_published_figures(tmp_path: Path) -> None:
    values = {"RUN_ARGS": "--benchmarks=gptj --scenarios=offline,server", "MACHINE": "nd-h100-v5", "SUBMITTER": "Azure"}
    plan = planned(tmp_path, "plan", TARGET="run", **values)
    assert plan.calls[0].tags == "generate,engine,_tensorrt"
    assert plan.calls[0].inputs["largest_batch"] == "32"
    assert [
        call.inputs.get(f"{name}_target_qps") for name, call in zip(("offline", "server"), plan.calls[1:3], strict=True)
    ] == ["106", "84"]
    env = {f"CM_MAKE_{name}": text for name, text in {**values, "GOAL": "plan", "TARGET": "run"}.items()}
    text = pages.plan_text(Around(request.read(input_values(RECIPE, env), {}, tmp_path), "s"), plan)
    assert "SIMULATED" in text and "registry/gptj/Offline.yaml:" in text
    assert "space of gptj-99: at least 95 GB, 61 GB of memory to make the model" in text
    assert "runs: at least 0.41 h, after their requirements" in text, "and with all samples of both accuracy runs"
    assert "gptj-Server-gpu-b32-fp16.default.plan" in text
    assert not list(tmp_path.iterdir())
    with pytest.raises(request.MakeError, match="which cannot run anything"):
        planned(tmp_path, "run", **values)


def test_accuracy_runs_have_no_least_time(tmp_path: Path) -> None:
    plan = planned(tmp_path, "run", RUN_ARGS="--benchmarks=bert --test_mode=AccuracyOnly", SOURCE="tiny", USE_CPU="1")
    assert pages.cost_lines(plan)[0] == "runs: as long as all samples take, after their requirements are prepared"


def test_a_choice_counts_in_any_spelling_that_the_engine_accepts(tmp_path: Path) -> None:
    (_, call) = planned(tmp_path, "preprocessed_data", BENCHMARKS="bert", SOURCE="Tiny").calls
    assert call.tags.endswith(",_tiny") and call.views[0].place == "build/preprocessed_data/squad_tokenized.tiny"
    env = {"CM_MAKE_INIT": "yes", "CM_MAKE_DIVISION": "Closed", "CM_TMP_CURRENT_PATH": str(tmp_path)}
    inputs = {"submitter": "ACME", "path": str(tmp_path)}
    assert hooks.preprocess({"env": {**env, "CM_TMP_CURRENT_SCRIPT_PATH": "/x"}, "input": inputs})["return"] == 0
    assert (tmp_path / "closed/ACME/Makefile").is_file()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"RUN_ARGS": "--benchmarks=dlrm --scenarios=SingleStream"}, "dlrm has no SingleStream"),
        ({"RUN_ARGS": "--benchmarks=bert --gpu_batch_size=none"}, "gpu_batch_size: found 'none'"),
        ({"SUBMITTER": "a/b"}, "SUBMITTER: found 'a/b'"),
        ({"MACHINE": "nowhere"}, "MACHINE=nowhere"),
    ],
)
def test_what_cannot_be_done_is_refused(tmp_path: Path, values: Mapping[str, str], words: str) -> None:
    with pytest.raises(request.MakeError) as caught:
        planned(tmp_path, "run", USE_CPU="1", **values)
    assert words in str(caught.value)


def test_a_plan_for_a_recorded_machine_or_of_test_runs_has_no_values_that_were_measured_here(tmp_path: Path) -> None:
    def access(i: dict[str, Any]) -> dict[str, Any]:
        row = {"target_qps": 5.0, "origin": "found 2026-11-23"}
        return {"return": 0, "new_state": {"CM_SUT_CONFIG": {"a": {"bert-99": {"Offline": row}}}}}

    values = {"RUN_ARGS": "--benchmarks=bert --scenarios=Offline", "USE_CPU": "1", "TARGET": "run"}
    for machine, source, expected in (("", "real", "5"), ("t4x8", "real", None), ("", "tiny", None)):
        given = {**values, "GOAL": "plan", "MACHINE": machine, "SOURCE": source}
        env = {f"CM_MAKE_{name}": text for name, text in given.items()}
        cmind = SimpleNamespace(access=access, repos_path=str(tmp_path))
        plan = plans.plan_of(Around(request.read(input_values(RECIPE, env), {}, tmp_path), "s", cmind))
        assert plan.calls[-2].inputs.get("offline_target_qps") == expected


def test_a_backend_that_is_not_there_is_refused_in_a_plan_for_a_recorded_machine(tmp_path: Path) -> None:
    values = {"TARGET": "run", "RUN_ARGS": "--benchmarks=bert --backend=tensorfow", "MACHINE": "t4x8"}
    with pytest.raises(request.MakeError, match="needs the backend tensorfow, allowed: endpoint, llama_cpp"):
        planned(tmp_path, "plan", **values)


def test_a_run_without_its_engine_names_the_call_that_makes_it(tmp_path: Path) -> None:
    values = {"RUN_ARGS": "--benchmarks=bert --scenarios=Offline", "SOURCE": "tiny", "USE_CPU": "1"}
    with pytest.raises(request.MakeError) as caught:
        planned(tmp_path, "run_harness", **values)
    assert "bert-Offline-cpu-b1-fp32.default.onnx" in str(caught.value)
    flags = "--benchmarks=bert --scenarios=Offline --config_ver=default"
    assert caught.value.hint == f"make generate_engines RUN_ARGS='{flags}' SOURCE=tiny USE_CPU=1"
    (engine,) = planned(tmp_path, "generate_engines", **values).calls
    model = tmp_path / "model.onnx"
    model.write_text("x", encoding="utf-8")
    views.link(tmp_path, engine.views[0].place, model, engine.line)
    assert planned(tmp_path, "run_harness", **values).calls
    with pytest.raises(request.MakeError, match="other settings"):
        planned(tmp_path, "run_harness", **{**values, "SOURCE": "synthetic"})
    model.unlink()
    with pytest.raises(request.MakeError, match="not there"):
        planned(tmp_path, "run_harness", **values)


def test_the_call_that_makes_missing_engines_has_the_settings_of_the_run(tmp_path: Path) -> None:
    given = "--benchmarks=bert --scenarios=Offline --gpu_batch_size=4 --test_mode=AccuracyOnly"
    with pytest.raises(request.MakeError) as caught:
        planned(tmp_path, "run_cpu_harness", RUN_ARGS=given, SOURCE="tiny")
    (place,) = str(caught.value).splitlines()[1:]
    args = shlex.split(caught.value.hint)[2].removeprefix("RUN_ARGS=")
    assert args == f"{given} --config_ver=openvino"
    (engine,) = planned(tmp_path, "generate_engines", RUN_ARGS=args, SOURCE="tiny", USE_CPU="1").calls
    assert engine.views[0].place == place.strip() and "-b4-" in place


def test_data_is_linked_by_nvidias_names_and_made_data_beside_them(tmp_path: Path) -> None:
    (_, call) = planned(tmp_path, "download_data", BENCHMARKS="ssd-large, ssd-small", SOURCE="real").calls
    assert (call.tags, call.views[0].place) == ("get,dataset,coco,original", "build/data/coco")
    (_, call) = planned(tmp_path, "preprocessed_data", BENCHMARKS="bert", SOURCE="tiny").calls
    assert call.views[0].place == "build/preprocessed_data/squad_tokenized.tiny"
    networks = [one for one in RECORDS.values() if one.generation is None and not one.recipes.is_own]
    known = [one for one in networks if not one.is_default]
    recipes = {one.recipes.dataset for one in known}
    tags = [call.tags for call in planned(tmp_path, "download_dataset").calls]
    assert sorted(tags[1:]) == sorted(recipes) and tags[1:].count("get,dataset,coco,original") == 1
    assert planned(tmp_path, "preprocess_data", BENCHMARKS="gptj").remarks == ("gptj: nothing to do for this target",)


def test_a_container_gets_the_variables_as_they_are(tmp_path: Path) -> None:
    hostile = "-v /a:/b; $(touch x) `touch y`\n$HOME"
    (call,) = planned(tmp_path, "prebuild", DOCKER_ARGS=hostile, DOCKER_TAG="t", DOCKER_DETACH="1", NO_BUILD="1").calls
    assert (call.tags, call.inputs["docker_args"], call.inputs["detach"]) == (
        "run,container,mlperf,_attach",
        hostile,
        "yes",
    )
    tags = [call.tags for call in planned(tmp_path, "prebuild", MIG_CONF="1g.5gb").calls]
    assert tags == ["manage,nvidia,mig,_configure", "run,container,mlperf,_prebuild", "manage,nvidia,mig,_teardown"]


def test_a_container_gets_the_scratch_space_of_the_links_and_a_recorded_machine(tmp_path: Path) -> None:
    (call,) = planned(tmp_path, "prebuild").calls
    assert "scratch" not in call.inputs
    (tmp_path / "build").mkdir()
    (tmp_path / "build/data").symlink_to("/data/S/data")
    (call,) = planned(tmp_path, "prebuild").calls
    assert call.inputs["scratch"] == "/data/S"
    (call,) = planned(tmp_path, "plan", TARGET="prebuild", MACHINE="inf1-6xlarge", MLPERF_SCRATCH_PATH="/x").calls
    assert (call.inputs["scratch"], call.inputs["machine"]) == ("/x", "inf1-6xlarge")


# --- doing ---


class StandIn:
    """CM's access: keeps the requests; answers from a table by tags, with an engine's file for models."""

    def __init__(self, folder: Path, **answers: Mapping[str, Any]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.folder, self.answers = folder, answers

    def __call__(self, i: dict[str, Any]) -> dict[str, Any]:
        if i["action"] == "plan":
            print("a plan")
            return dict(self.answers.get("plan_" + i["tags"].replace(",", "_").replace("-", "_"), {"return": 0}))
        self.requests.append(i)
        os.write(1, f"printed by {i['tags']}\n".encode())
        if i["tags"] == "run-mlperf-inference":
            for inner in ("performance/run_1", "accuracy"):
                place = self.folder / i["results_dir"] / i["run_id"] / i["model"] / i["scenario"] / inner
                place.mkdir(parents=True)
                (place / "mlperf_log_summary.txt").write_text("x", encoding="utf-8")
        file = self.folder / "model.onnx"
        file.write_text("x", encoding="utf-8")
        usual = {"return": 0, "new_env": {"CM_ML_MODEL_FILE_WITH_PATH": str(file)}, "new_state": {}}
        return dict(self.answers.get(i["tags"].replace(",", "_").replace("-", "_"), usual))


RUN = {"RUN_ARGS": "--benchmarks=resnet50,bert --scenarios=Offline", "SOURCE": "tiny", "USE_CPU": "1"}


def test_the_plan_shows_exactly_the_calls_that_are_made(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plan = planned(tmp_path, "plan", TARGET="run", **RUN)
    made = planned(tmp_path, "run", **RUN)
    assert list(plan.calls) == list(made.calls)
    access = StandIn(tmp_path)
    assert execution.perform(made, access, {"adr": {}}, tmp_path) == []
    own = {"action", "automation", "tags", "quiet", "adr"}
    seen = [plans.RecipeCall(i["tags"], {k: v for k, v in i.items() if k not in own}).line for i in access.requests]
    assert seen == lines(plan)
    out, err = capfd.readouterr()
    assert out == "printed by print,mlperf,results\n", "all else is the story"
    assert all(line in err for line in seen)
    assert (tmp_path / "build/logs/2026.11.23-04.05.06/cpu/bert-99/Offline/accuracy/mlperf_log_summary.txt").is_file()


def test_no_run_is_made_when_an_engine_fails(tmp_path: Path) -> None:
    access = StandIn(tmp_path, get_ml_model_bert_large__onnx__tiny={"return": 1, "error": "broken"})
    with pytest.raises(execution.RecipeFailed, match="broken"):
        execution.perform(planned(tmp_path, "run", **RUN), access, {}, tmp_path)
    assert [i["tags"] for i in access.requests] == [
        "get,ml-model,resnet50,_onnx,_tiny",
        "get,ml-model,bert-large,_onnx,_tiny",
    ]


def test_the_hint_of_a_missing_run_keeps_the_source(tmp_path: Path) -> None:
    with pytest.raises(request.MakeError) as caught:
        planned(tmp_path, "run_audit_test01", RUN_ARGS="--benchmarks=bert", SOURCE="tiny", USE_CPU="1")
    assert caught.value.hint == "make run RUN_ARGS=--benchmarks=bert SOURCE=tiny USE_CPU=1"
    with pytest.raises(request.MakeError) as caught:
        planned(tmp_path, "run_audit_harness")
    assert caught.value.hint == "make run"


def test_an_engine_that_cannot_be_made_is_refused_before_anything_is_installed(tmp_path: Path) -> None:
    whole = "it needs 95 GB of disk\n  in /a\n  chain: b -> c\n  hint: none"
    refused = {"return": 16, "error": "the run would fail: it needs 95 GB of disk", "plan": {"errors": [whole]}}
    access = StandIn(tmp_path, plan_get_ml_model_bert_large__onnx__tiny=refused)
    with pytest.raises(request.MakeError, match=r"^it needs 95 GB of disk\n  in /a$") as caught:
        execution.perform(planned(tmp_path, "run", **RUN), access, {}, tmp_path)
    assert caught.value.code == 16 and access.requests == []


def test_a_download_that_cannot_succeed_installs_nothing_and_the_others_go_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = "bert_large.onnx could not be downloaded\n  without a network: download the file elsewhere"
    refused = {"return": 1, "error": f"the run would fail: {said.splitlines()[0]}", "plan": {"errors": [said]}}
    access = StandIn(tmp_path, plan_get_ml_model_bert_large__onnx=refused)
    problems = execution.perform(planned(tmp_path, "download_model", BENCHMARKS="bert,resnet50"), access, {}, tmp_path)
    assert problems == ["cm run script --tags=get,ml-model,bert-large,_onnx: bert_large.onnx could not be downloaded"]
    assert [i["tags"] for i in access.requests] == [
        "get,mlperf,scratch,space,_link-dirs", "get,ml-model,resnet50,_onnx",
    ]  # fmt: skip
    assert said in capfd.readouterr().err, "the whole reason"


@pytest.mark.parametrize(("source", "benchmarks"), [("real", "bert,resnet50"), ("tiny", None), ("synthetic", None)])
def test_the_space_of_published_files_is_computed_for_the_benchmarks_of_the_call(
    tmp_path: Path, source: str, benchmarks: str | None
) -> None:
    call = planned(tmp_path, "download_model", BENCHMARKS="bert resnet50", SOURCE=source).calls[0]
    assert (call.tags, call.inputs.get("benchmarks")) == ("get,mlperf,scratch,space,_link-dirs", benchmarks)


@pytest.mark.parametrize(("benchmark", "alias"), [("gptj", "gptj"), ("dlrm", "dlrm"), ("dlrm-v2", "dlrm-v2")])
def test_the_record_of_a_large_benchmark_says_what_its_model_recipe_needs(benchmark: str, alias: str) -> None:
    full = load_recipe(f"get-ml-model-{alias}").MODEL.full_size
    env = {"CM_ML_MODEL_FRAMEWORK": "onnx", "CM_PUBLISHED_MODEL_IS_FETCHED": "yes"}
    needed = full.needed(env)
    sizes = record_of(benchmark).sizes
    assert sizes.memory.size_bytes == needed.memory_bytes
    assert sizes.needed_bytes >= needed.disk_bytes
    assert sizes.making is None or sizes.making.size_bytes == needed.disk_bytes


def test_what_a_run_lacks_is_an_error_at_the_end() -> None:
    row = {"scenario": "Offline", "problems": ["Offline accuracy F1 1.000 misses the target 2.000"]}
    results = {"model": "bert-99", "scenarios": [row], "missing": ["Server accuracy: no samples"]}
    assert execution.not_passed({"return": 0, "new_env": {}, "new_state": {"mlperf_results": results}}) == [
        "bert-99 Offline accuracy F1 1.000 misses the target 2.000",
        "bert-99 Server accuracy: no samples",
    ]
    assert execution.not_passed({"return": 0, "new_state": {}}) == []


def test_what_the_checker_prints_is_kept_and_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "closed" / "ACME"
    for name in ("results/a/mlperf_log_summary.txt", "build/runs/x", "Makefile", "my_scratch/x.txt", "notes.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x", encoding="utf-8")
    plan = planned(folder, "check_submission", SUBMITTER="ACME")
    for _ in range(2):
        execution.perform(plan, StandIn(tmp_path), {}, folder)
    assert (folder / "results/submission_checker.log").read_text(
        encoding="utf-8"
    ) == "printed by check,mlperf,submission\n"
    assert "printed by check,mlperf,submission" in capfd.readouterr().out
    staged = folder / "build/staged/closed/ACME"
    assert [path.relative_to(staged).as_posix() for path in staged.rglob("*") if path.is_file()] == [
        "results/a/mlperf_log_summary.txt"
    ]


def test_the_tree_for_the_checker_is_made_of_the_runs_where_there_are_any(tmp_path: Path) -> None:
    folder = tmp_path / "closed" / "ACME"
    shown_run(folder, "1", "performance", "accuracy")
    plan = planned(folder, "check_submission", CATEGORY="datacenter")
    made, checked = plan.calls
    assert made.tags == "generate,inference,submission"
    assert (made.inputs["submitter"], made.inputs["division"], made.inputs["category"]) == (
        "ACME",
        "closed",
        "datacenter",
    )
    assert made.inputs["submission_dir"] == checked.inputs["submission_dir"] == "build/submission"
    assert "system_facts.yaml" in plan.remarks[0] and not plan.copies
    assert made.inputs["system_facts"] == "system_facts.yaml"
    (folder / "system_facts.yaml").write_text("status: rdi\n", encoding="utf-8")
    plan = planned(folder, "check_submission")
    assert plan.calls[0].inputs["system_facts"] == "system_facts.yaml" and not plan.remarks


@pytest.mark.parametrize("target", ["check_submission", "truncate_results"])
def test_a_workspace_in_a_container_has_no_tree_around_it(tmp_path: Path, target: str) -> None:
    with pytest.raises(request.MakeError, match="is in <division>/<submitter>"):
        planned(tmp_path / "work", target)


# --- views ---


def test_a_link_never_takes_the_place_of_a_folder_and_is_turned_atomically(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir(), other.mkdir()
    views.link(tmp_path, "build/engines/x", one, "first")
    views.link(tmp_path, "build/engines/x", other, "second")
    assert os.readlink(tmp_path / "build/engines/x") == str(other)
    assert views.made_by(tmp_path, views.notes(tmp_path), "build/engines/x") == "second"
    real = tmp_path / "build/engines/real"
    real.mkdir()
    with pytest.raises(request.MakeError, match="is a folder instead of a link"):
        views.link(tmp_path, "build/engines/real", one, "third")
    assert real.is_dir() and not real.is_symlink()
    assert sorted(path.name for path in real.parent.iterdir()) == ["real", "x"]


@pytest.mark.parametrize(
    ("values", "model", "said"),
    [
        ({"ROUND": "v0.7", "USE_CPU": "1"}, "3d-unet-brats-99", "3d-unet is 3d-unet-brats here"),
        ({"TARGET": "run", "MACHINE": "t4x8"}, "3d-unet-brats-99", "3d-unet is 3d-unet-brats here"),
        ({"ROUND": "v2.0", "USE_CPU": "1"}, "3d-unet-99", ""),
        ({"USE_CPU": "1"}, "3d-unet-99", "ROUND=v1.1 means 3d-unet-brats"),
    ],
)
def test_3d_unet_is_that_of_the_round_or_of_the_machine(tmp_path: Path, values: Any, model: str, said: str) -> None:
    target = "plan" if "TARGET" in values else "run"
    plan = planned(tmp_path, target, RUN_ARGS="--benchmarks=3d-unet --scenarios=Offline", SOURCE="synthetic", **values)
    assert [call.inputs["model"] for call in plan.calls if "scenario" in call.inputs] == [model]
    assert said in " ".join(plan.remarks)
    if "ROUND" in values:
        calls = planned(tmp_path, "download_data", BENCHMARKS="3d-unet", ROUND=values["ROUND"]).calls
        assert ("brats" in calls[1].tags) == (values["ROUND"] == "v0.7")


def test_a_workspace_has_the_round_of_its_document(tmp_path: Path) -> None:
    made = workspace.make_workspace(tmp_path, "NVIDIA", "closed", "cm", "v0.7")
    assert "\nROUND ?= v0.7\n" in (made / "Makefile").read_text(encoding="utf-8")
    with pytest.raises(request.MakeError, match=r"unknown round 'v9\.9'"):
        workspace.make_workspace(tmp_path, "NVIDIA", "closed", "cm", "v9.9")


def test_a_makefile_that_is_older_than_a_variable_is_named(tmp_path: Path) -> None:
    env = {"CM_MAKE_GOAL": "info", "CM_MAKE_OTHERS": "ROUND", "CM_MAKE_ROUND": ""}
    with pytest.raises(request.MakeError, match=r"older than the variable ROUND: cm run script .*_init"):
        request.read(input_values(RECIPE, env), {}, tmp_path)


@pytest.mark.parametrize(("source", "given"), [("real", None), ("tiny", "yes")])
def test_only_a_trial_keeps_runs_of_synthetic_input(tmp_path: Path, source: str, given: str | None) -> None:
    (call,) = planned(tmp_path, "update_results", SOURCE=source).calls
    assert call.inputs.get("include_synthetic") == given


@pytest.mark.parametrize(("source", "label"), [("tiny", "synthetic input, not an MLPerf result"), ("real", "")])
def test_measurements_say_what_a_run_is_made_of_and_nothing_that_is_not_known(
    tmp_path: Path, source: str, label: str
) -> None:
    args = "--benchmarks=resnet50 --scenarios=Offline --config_ver=default"
    plan = planned(tmp_path, "generate_conf_files", RUN_ARGS=args, USE_CPU="1", SOURCE=source)
    execution.perform(plan, StandIn(tmp_path), {}, tmp_path)
    folder = tmp_path / "measurements/cpu_onnxruntime/resnet50/Offline"
    assert {path.name for path in folder.iterdir()} == {"cpu_onnxruntime_Offline.json", "README.md", "calibration.md"}
    content = json.loads((folder / "cpu_onnxruntime_Offline.json").read_text(encoding="utf-8"))
    official = (
        "input_data_types",
        "retraining",
        "starting_weights_filename",
        "weight_data_types",
        "weight_transformations",
    )
    assert set(official) <= content.keys()
    assert content["starting_weights_filename"] == "not known before make generate_engines"
    assert content.get("crowdperf", {}).get("label", "") == label
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert args in readme and (label in readme if label else "SOURCE" not in readme)
    execution.perform(
        planned(tmp_path, "generate_engines", RUN_ARGS=args, USE_CPU="1", SOURCE=source),
        StandIn(tmp_path),
        {},
        tmp_path,
    )
    execution.perform(plan, StandIn(tmp_path), {}, tmp_path)
    content = json.loads((folder / "cpu_onnxruntime_Offline.json").read_text(encoding="utf-8"))
    assert content["starting_weights_filename"] == "model.onnx"


@pytest.mark.parametrize(
    ("precision", "weights", "changes"),
    [
        ("fp32", "fp32", "none"),
        ("tf32", "fp32", "fp32 weights, multiplied in TF32"),
        ("bf16", "bf16", "cast to bf16"),
        ("int8", "int8", "int8 by crowdperf's quantize-ml-model"),
    ],
)
def test_measurements_name_the_type_of_the_weights_which_is_not_how_they_are_multiplied(
    tmp_path: Path, precision: str, weights: str, changes: str
) -> None:
    run = views.conffiles.Described("box", "resnet50", "Offline", "pytorch", precision, "engine", "real", "")
    views.conffiles.write(tmp_path, ".", run)
    content = json.loads((tmp_path / "box_Offline.json").read_text(encoding="utf-8"))
    assert (content["weight_data_types"], content["weight_transformations"]) == (weights, changes)
    assert "tf32" not in (tmp_path / "calibration.md").read_text(encoding="utf-8")


def test_each_pair_of_a_run_keeps_its_results_in_a_folder_of_its_own(tmp_path: Path) -> None:
    text = "--benchmarks=resnet50,bert --scenarios=Offline,SingleStream --config_ver=default,high_accuracy"
    calls = [
        call
        for call in planned(tmp_path, "run", RUN_ARGS=text, SOURCE="tiny", USE_CPU="1").calls
        if call.inputs.get("run_id")
    ]
    assert len(calls) == 6  # resnet50 has one level
    assert len({call.inputs["run_id"] for call in calls}) == 6
    for call in calls:
        (view,) = call.views
        assert view.source[0] == f"build/runs/{call.inputs['run_id']}/{call.inputs['model']}/{call.inputs['scenario']}"


def test_clean_removes_noted_links_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    views.link(tmp_path, "build/engines/cpu/a.onnx", target, "line")
    (tmp_path / "build/engines/own").symlink_to(target)
    (tmp_path / "build/models").mkdir()
    (tmp_path / "build/data").symlink_to(target)
    with open(tmp_path / views.NOTES, "a", encoding="utf-8") as file:
        file.write('{"place": "build/engines/cut')  # a call that was killed
    assert views.clean(tmp_path, is_shallow=True) == ["build/engines/cpu/a.onnx"]
    assert views.clean(tmp_path, is_shallow=False) == ["build/data"]
    assert (tmp_path / "build/models").is_dir() and (tmp_path / "build/engines/own").is_symlink()
    assert not (tmp_path / "build/engines/cpu").exists() and target.is_dir()


def shown_run(folder: Path, stamp: str, *modes: str, system: str = "cpu_onnxruntime", log_dir: str = "") -> str:
    """Shows a run of resnet50 Offline in a workspace and gives its folder there."""
    source = f"build/runs/{stamp}/resnet50/Offline"
    for mode in modes:
        inner = folder / source / views.INNER[mode]
        inner.mkdir(parents=True)
        (inner / "mlperf_log_summary.txt").write_text("x", encoding="utf-8")
    place = f"{log_dir or f'build/logs/{stamp}'}/{system}/resnet50/Offline"
    views.show(views.View("run", place, (source, ",".join(modes))), {}, "line", folder)
    return source


def with_verdict(folder: Path, run: str, test: str, *, passed: bool) -> None:
    """A compliance test of a run."""
    (folder / run / test).mkdir()
    (folder / run / test / "compliance.json").write_text(json.dumps({"passed": passed}), encoding="utf-8")
    (folder / run / test / "verify_performance.txt").write_text("TEST PASS", encoding="utf-8")
    logs = folder / run / test / "performance/run_1"
    logs.mkdir(parents=True)
    for name in ("detail.txt", "summary.txt", "accuracy.json", "trace.json"):
        (logs / f"mlperf_log_{name}").write_text("x", encoding="utf-8")


def audited(folder: Path, target: str, **values: str) -> list[str]:
    return [call.inputs["results_dir"] for call in planned(folder, target, **values).calls]


def test_audits_are_of_the_newest_run_and_tests_that_passed_are_copied(tmp_path: Path) -> None:
    for stamp in ("1", "2"):
        run = shown_run(tmp_path, stamp, "performance", "accuracy")
    (call,) = planned(tmp_path, "run_audit_test01", RUN_ARGS="--benchmarks=resnet50").calls
    assert (call.inputs["results_dir"], call.inputs["test"]) == (run, "TEST01")
    with pytest.raises(request.MakeError, match="none of these benchmarks"):
        planned(tmp_path, "run_audit_test01", RUN_ARGS="--benchmarks=bert")
    for test, passed in (("TEST01", True), ("TEST04", False)):
        with_verdict(tmp_path, run, test, passed=passed)
    problems = execution.perform(planned(tmp_path, "update_compliance"), StandIn(tmp_path), {}, tmp_path)
    assert problems == ["build/runs/2/resnet50/Offline/TEST04 has not passed, so it was not copied"]
    copy = tmp_path / "compliance/cpu_onnxruntime/resnet50/Offline/TEST01"
    assert sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*.*")) == [
        "performance/run_1/mlperf_log_detail.txt",
        "performance/run_1/mlperf_log_summary.txt",
        "verify_performance.txt",
    ]


def test_audits_are_those_of_the_round_where_they_are_made_here(tmp_path: Path) -> None:
    shown_run(tmp_path, "1", "performance", "accuracy")
    for asked, used in (("v3.1", "v3.1"), ("v0.7", ROUNDS[-1]), ("", ROUNDS[-1])):
        (call,) = planned(tmp_path, "run_audit_harness", ROUND=asked).calls
        assert call.inputs["version"] == used, "v0.7 needs TEST04-A, which nobody makes here"


def test_a_test_is_copied_also_when_a_later_run_has_none(tmp_path: Path) -> None:
    assert "make run_audit_harness" in planned(tmp_path, "update_compliance").remarks[0]
    with_verdict(tmp_path, shown_run(tmp_path, "1", "performance", "accuracy"), "TEST01", passed=True)
    later = shown_run(tmp_path, "2", "performance")
    assert audited(tmp_path, "run_audit_test01") == ["build/runs/1/resnet50/Offline"]
    assert audited(tmp_path, "run_audit_test04") == [later]
    (copy,) = planned(tmp_path, "update_compliance").copies
    assert copy.place == "compliance/cpu_onnxruntime/resnet50/Offline/TEST01"


def test_each_system_is_audited_by_its_newest_run(tmp_path: Path) -> None:
    runs = [shown_run(tmp_path, name, "performance", system=f"cpu_{name}") for name in ("onnxruntime", "openvino")]
    assert audited(tmp_path, "run_audit_test04") == runs


def test_the_newest_run_is_the_one_that_was_shown_last_whatever_its_folder(tmp_path: Path) -> None:
    shown_run(tmp_path, "1", "performance", log_dir="mine")
    shown_run(tmp_path, "2", "performance")
    shutil.rmtree(tmp_path / "mine")
    assert audited(tmp_path, "run_audit_test04") == ["build/runs/2/resnet50/Offline"]
    last = shown_run(tmp_path, "3", "performance", log_dir="mine")
    assert audited(tmp_path, "run_audit_test04") == [last]


def test_the_call_that_an_audit_asks_for_can_be_given_to_a_shell_as_it_is(tmp_path: Path) -> None:
    given = '--benchmarks=resnet50 --log_dir="it\'s $(touch x)"'
    with pytest.raises(request.MakeError) as caught:
        planned(tmp_path, "run_audit_test01", RUN_ARGS=given)
    assert shlex.split(caught.value.hint) == ["make", "run", f"RUN_ARGS={given}"]


@pytest.mark.parametrize(("target", "place"), [("info", "build"), ("run", "build"), ("run", "build/runs")])
def test_a_file_where_a_folder_belongs_is_named(tmp_path: Path, target: str, place: str) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("mine", encoding="utf-8")
    env = {"CM_MAKE_GOAL": target, **{f"CM_MAKE_{name}": text for name, text in RUN.items()}}
    answer = hooks.preprocess({"env": {**env, "CM_TMP_CURRENT_PATH": str(tmp_path)}, "input": {}})
    assert answer["return"] == 1 and str(tmp_path / place) in answer["error"]
    assert (tmp_path / place).read_text(encoding="utf-8") == "mine"


# --- the workspace, with GNU make ---

STAND_IN_CM = """#!/usr/bin/env python3
import json, os, sys
print(json.dumps([sys.argv[1:], os.environ.get("MAKEFLAGS")]))
"""
Make = Callable[..., tuple[dict[str, str], str]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Calls make in a workspace whose path and cm have blanks, quotes and a dollar; what cm got, and stderr."""
    if shutil.which("make") is None:
        pytest.skip("GNU make is not installed")
    root = tmp_path / "a 'work' \"space\" $x"
    cm = tmp_path / "my $cm's"
    cm.write_text(STAND_IN_CM, encoding="utf-8")
    cm.chmod(0o755)
    folder = workspace.make_workspace(root, "NVIDIA", "closed", str(cm))

    def call(*words: str, **env: str) -> tuple[dict[str, str], str]:
        outer = {"PATH": os.environ["PATH"], **env}
        done = subprocess.run(
            ["make", *words], cwd=folder, env=outer, capture_output=True, text=True, timeout=60, check=False
        )
        argv, flags = json.loads(done.stdout)
        assert argv[:3] == ["run", "script", "--tags=run,mlperf,make"] and flags is None
        pairs = (word.removeprefix("--").split("=", 1) for word in argv[3:])
        return dict(pairs), done.stderr

    return call


HOSTILE = [
    "$(touch x)",
    "$(shell touch x)",
    "`touch x`",
    "; touch x",
    "a\ntouch x\nb",
    "$HOME $$ \\$x # c",
    "'\"",
    "${x:-1}",
]


@pytest.mark.parametrize("value", HOSTILE)
def test_make_hands_values_on_as_they_are_and_runs_nothing(make: Make, tmp_path: Path, value: str) -> None:
    names = ("RUN_ARGS", "BENCHMARKS", "DOCKER_ARGS", "SUBMITTER", "TARGET")
    expected = {request.table("variables")[name][0]: value for name in names}
    given, _ = make("run", *(f"{name}={value}" for name in names))
    inherited, _ = make("run", **dict.fromkeys(names, value))
    for found in (given, inherited):
        assert {name: found[name] for name in expected} == expected
    assert not list(tmp_path.rglob("x"))


@pytest.mark.parametrize("target", ["run", "build", "a;touch x", "`touch x`"])
def test_make_hands_on_every_target_also_one_that_is_the_name_of_a_folder(
    make: Make, tmp_path: Path, target: str
) -> None:
    (tmp_path / "a 'work' \"space\" $x/closed/NVIDIA/build").mkdir()
    assert make(target)[0] == {"target": target, "submitter": "NVIDIA"}
    assert not list(tmp_path.rglob("x"))


def test_a_misspelt_variable_is_named_and_help_is_the_first_target(make: Make, tmp_path: Path) -> None:
    found, _ = make("RUN_ARG=x", "RUN_ARGS=y", "names=z")
    assert (found["target"], sorted(found["others"].split())) == ("help", ["RUN_ARG", "names"])
    with pytest.raises(request.MakeError, match="unknown variable 'RUN_ARG' \\(did you mean RUN_ARGS"):
        request.read(input_values(RECIPE, {"CM_MAKE_OTHERS": found["others"]}), {}, tmp_path)
    env = {"CM_MAKE_GOAL": "info", "CM_MAKE_OTHERS": "VERBOSE", "CM_MAKE_RUN_ARGS": "--fast"}
    said = request.read(input_values(RECIPE, env), {}, tmp_path).remarks
    assert [line.split()[0] for line in said] == ["VERBOSE", "RUN_ARGS"]


def test_a_workspace_of_the_installed_package_calls_crowdperf(tmp_path: Path) -> None:
    assert workspace.own_cm(tmp_path / "script" / "x", {"CROWDPERF_CM": "crowdperf cm"}) == "crowdperf"
    assert workspace.own_cm(tmp_path / "script" / "x", {}) == "cm"
    if shutil.which("make") is None:
        pytest.skip("GNU make is not installed")
    program = tmp_path / "crowdperf"
    program.write_text(STAND_IN_CM, encoding="utf-8")
    program.chmod(0o755)
    folder = workspace.make_workspace(tmp_path, "NVIDIA", "closed", "crowdperf")
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["make", "help"], cwd=folder, env=path, capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout)[0][:4] == ["cm", "run", "script", "--tags=run,mlperf,make"]


@pytest.mark.parametrize("submitter", ["a b", "$(x)", "../x", ""])
def test_a_workspace_has_a_submitter(tmp_path: Path, submitter: str) -> None:
    with pytest.raises(request.MakeError, match=f"--submitter: found {re.escape(repr(submitter))}"):
        workspace.make_workspace(tmp_path, submitter, "closed", "cm")


def test_a_makefile_of_somebody_else_stays(tmp_path: Path) -> None:
    folder = workspace.make_workspace(tmp_path, "ACME", "open", "cm")
    assert workspace.make_workspace(tmp_path, "ACME", "open", "cm") == folder, "ours is written again"
    (folder / "Makefile").write_text("all: ;\n", encoding="utf-8")
    with pytest.raises(request.MakeError, match="was made by something else"):
        workspace.make_workspace(tmp_path, "ACME", "open", "cm")
    assert (folder / "Makefile").read_text(encoding="utf-8") == "all: ;\n"


def test_the_variables_of_the_makefile_are_inputs_of_the_recipe() -> None:
    mapping = recipe_meta(RECIPE)["input_mapping"]
    assert {mapping[row[0]] for row in request.table("variables").values()} == {
        f"CM_MAKE_{name}" for name in request.table("variables")
    }


def test_one_of_a_few_values_is_a_choice_of_the_input_which_the_engine_checks() -> None:
    described = recipe_meta(RECIPE)["input_description"]
    assert {name: row["choices"] for name, row in described.items() if "choices" in row} == {
        "category": ["edge", "datacenter", "datacenter-edge"],
        "division": ["closed", "open", "network"],
        "simulate": ["neuron"],
        "source": ["real", "synthetic", "tiny"],
        "use_nightly": ["0"],
    }
