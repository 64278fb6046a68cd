"""app-mlperf-inference: from env to run.json, every problem named, run.sh's exit code, result.json to state."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers import recipe_metas
from recipe_engine.planning.planned_step import WatchedEnv
from recipe_engine.rules.conditions import Unknown
from recipe_engine.rules.configure import resolve_variations
from recipe_engine.rules.errors import VariationError
from recipe_engine.rules.schema import parse_recipe
from recipe_loader import RECIPES, input_values, load_module, load_recipe, recipe_meta
from stub_openai import write_tokenizer

from crowdperf.call import model_server
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_requests import read_request
from crowdperf.rules.app_names import app_names
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import RECORDS
from crowdperf.rules.prompt_settings import AccessSettings
from crowdperf.rules.run_settings import BY_INPUT, NUMBERS

recipe = load_recipe("app-mlperf-inference")
run_request = load_module("app-mlperf-inference", "run_request")
several = load_module("app-mlperf-inference", "several")

META = recipe_meta("app-mlperf-inference")
HARNESS = RECIPES.parent / "src" / "crowdperf" / "harness"
GOOD = {
    "CM_MLPERF_MODEL": "digits",
    "CM_MLPERF_BACKEND": "onnxruntime",
    "CM_MLPERF_DEVICE": "cpu",
    "CM_MLPERF_MODEL_PRECISION": "fp32",
    "CM_MLPERF_SOURCE": "real",
    "CM_MLPERF_LOADGEN_SCENARIO": "Offline",
    "CM_MLPERF_LOADGEN_MODE": "performance",
    "CM_MLPERF_RUN_STYLE": "test",
    "CM_ML_MODEL_FILE_WITH_PATH": "/m/digits.onnx",
    "CM_ML_MODEL_INFO_FILE": "/m/model.json",
    "CM_DATASET_PATH": "/d",
}
KNOWN = app_names(META)


def build(folder: Path = Path("/user"), **changes: object) -> dict:
    env = {"CM_TMP_CURRENT_PATH": str(folder), **GOOD, **changes}
    values = input_values("app-mlperf-inference", env)
    assert values.problems() == []
    return run_request.build_request(run_request.Asked.of(env, values, folder), env, KNOWN)


def test_plain_env_gives_every_key_with_none_where_the_harness_decides():
    assert build() == {
        "format": 3, "model": "digits", "backend": "onnxruntime", "device": "cpu", "scenario": "Offline",
        "precision": "fp32", "gpus": None, "instances": None, "batch_timeout_us": None, "preprocessed_path": None,
        "mode": "performance", "execution_mode": "test", "compliance_test": None, "find": False,
        "model_path": "/m/digits.onnx",
        "model_info_path": "/m/model.json", "dataset_path": "/d", "output_dir": None, "user_conf": None,
        "batch_size": None, "threads": None, "min_duration_ms": None, "min_query_count": None,
        "performance_sample_count": None, "target_qps": None, "target_latency_ms": None,
    }  # fmt: skip


def test_a_tokenizer_takes_the_place_of_the_weights_that_the_server_has(tmp_path):
    write_tokenizer(tmp_path)
    server = {"CM_MLPERF_MODEL": "own-prompts", "CM_MLPERF_BACKEND": "endpoint", "CM_ML_MODEL_FILE_WITH_PATH": "",
              "CM_ML_MODEL_INFO_FILE": "", "CM_MLPERF_ENDPOINT_URL": "http://h/v1"}  # fmt: skip
    assert build(**server)["model_path"] is None
    file = str(tmp_path / "tokenizer.json")
    assert build(**server, CM_MLPERF_OWN_TOKENIZER=str(tmp_path))["model_path"] == file
    with pytest.raises(run_request.RequestError, match="digits has its own tokenizer"):
        build(CM_MLPERF_OWN_TOKENIZER=file)


def test_given_values_arrive_as_numbers_and_absolute_paths():
    request = build(
        CM_MLPERF_LOADGEN_MAX_BATCHSIZE="32", CM_NUM_THREADS=2, CM_MLPERF_LOADGEN_TARGET_QPS="1e4",
        CM_MLPERF_LOADGEN_TARGET_LATENCY="0.5", CM_MLPERF_OUTPUT_DIR="out", CM_MLPERF_USER_CONF="/x/user.conf",
        CM_MLPERF_LOADGEN_MIN_DURATION_MS="500",
    )  # fmt: skip
    assert (request["batch_size"], request["threads"], request["min_duration_ms"]) == (32, 2, 500)
    assert (request["target_qps"], request["target_latency_ms"]) == (10000.0, 0.5)
    assert (request["output_dir"], request["user_conf"]) == ("/user/out", "/x/user.conf")


def test_an_output_folder_that_is_not_utf_8_is_refused():
    with pytest.raises(run_request.RequestError, match=r"--output_dir .*: found '/user/lat\\udce9', allowed: .* UTF-8"):
        build(CM_MLPERF_OUTPUT_DIR="lat\udce9")


@pytest.mark.parametrize(("instances", "threads", "right"), [(2, 1, 2), (2, 5, 4), (3, 8, 6), (2, 4, 0), (1, 3, 0)])
def test_threads_that_the_instances_cannot_share_are_refused_before_anything_is_prepared(
    hook_input, instances, threads, right
):
    inputs = {"threads": str(threads), "instances": str(instances)}
    env = {**GOOD, "CM_NUM_THREADS": str(threads), "CM_MLPERF_INSTANCES": str(instances)}
    answer = recipe.plan(hook_input(env, meta=META, input=inputs))
    assert answer["return"] == (1 if right else 0)
    if right:
        words = (
            f"--threads: found '{threads}'; allowed: a multiple of {instances}, as they are those of all {instances}"
        )
        assert words in answer["error"] and f"({right} are {right // instances} for each)" in answer["error"]


def planned(hook_input: Any, **env: str) -> dict:
    asked = {key: value for key, value in GOOD.items() if "PATH" not in key and "FILE" not in key}
    return recipe.plan(hook_input({**asked, **env}, meta=META))


def test_a_plan_and_a_run_refuse_the_gpu_where_none_is_and_a_recorded_one_can_be_planned_for(hook_input, monkeypatch):
    monkeypatch.setattr(recipe.nvidia, "missing_gpu", lambda machine: "" if machine.is_recorded else "no GPU answers")
    refused = planned(hook_input, CM_MLPERF_DEVICE="cuda")
    assert refused["return"] == 1 and "--device=cuda: no GPU answers. --device=cpu" in refused["error"]
    assert planned(hook_input, CM_MLPERF_DEVICE="cuda", CM_RECORDED_MACHINE="a100-sxm4x8")["return"] == 0
    assert "is not a recorded machine" in planned(hook_input, CM_MLPERF_DEVICE="cuda", CM_RECORDED_MACHINE="x")["error"]
    assert planned(hook_input, CM_MLPERF_DEVICE="cuda", CM_MLPERF_BACKEND="null")["return"] == 0
    for env in ({"CM_MLPERF_DEVICE": "cuda"}, {"CM_RECORDED_MACHINE": "a100-sxm4x8"}):
        assert recipe.preprocess(hook_input({**GOOD, **env}, meta=META))["return"] == 1


def test_a_plan_reads_nothing_that_a_dependency_has_yet_to_say(hook_input, monkeypatch):
    """Where it does, the engine takes its refusal for a guess, and begins to install."""
    monkeypatch.setattr(recipe.nvidia, "missing_gpu", lambda machine: "no GPU answers")
    unknown = Unknown((("CM_DATASET_*", "a dependency"), ("CM_ML_MODEL_*", "a dependency")))
    asked = {key: value for key, value in GOOD.items() if "PATH" not in key and "FILE" not in key}
    for more in ({"CM_MLPERF_DEVICE": "cuda"}, {"CM_MLPERF_SIMULATE": "neuron"}):
        env = WatchedEnv({**asked, **more}, unknown)
        assert recipe.plan(hook_input(env, meta=META))["return"] == 1
        assert env.read_unknown == {}


def test_a_plan_refuses_a_value_that_a_run_would_refuse(hook_input):
    answer = planned(hook_input, CM_MLPERF_INSTANCES="2", CM_NUM_THREADS="3")
    assert answer["return"] == 1 and "--threads (CM_NUM_THREADS): found '3'" in answer["error"]


def test_a_run_asks_the_server_first_and_a_plan_does_not(hook_input, monkeypatch):
    asked = []
    monkeypatch.setattr(model_server, "look", lambda *words: asked.append(words))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    env = {
        **GOOD,
        "CM_MLPERF_BACKEND": "endpoint",
        "CM_MLPERF_ENDPOINT_URL": "http://h/v1",
        "CM_MLPERF_MODEL": "smollm2",
        "CM_MLPERF_OUTPUT_DIR": "out",
    }
    given = {key: value for key, value in env.items() if "PATH" not in key and "FILE" not in key}
    assert recipe.plan(hook_input(dict(given), meta=META)) == {"return": 0, "runs": []}
    assert asked == []
    before = {**hook_input(dict(given), meta=META), "is_before_run": True}
    assert recipe.plan(before) == {"return": 0, "runs": []}
    assert asked == [("http://h/v1", None, AccessSettings(), ("completions", "chat"), model_server.KIND_HINT)]

    def nobody(*_):
        raise model_server.ServerProblem("for the models", "nobody there", "start it")

    monkeypatch.setattr(model_server, "look", nobody)
    answer = recipe.plan(before)
    assert answer["return"] == 1
    assert answer["error"].endswith("nobody there\nhint: start it")
    chat = {**given, "CM_MLPERF_MODEL": "llama3.1-8b", "CM_MLPERF_ENDPOINT_API": "chat"}
    refused = recipe.plan(hook_input(chat, meta=META))
    assert "found 'chat', but the prompts of llama3.1-8b are tokens" in refused["error"]
    assert "benchmarks with chat messages: own-prompts, smollm2" in refused["error"]


@pytest.mark.parametrize("name", run_request.OWN_PATHS)
def test_a_copy_of_ones_own_is_refused_where_data_and_model_are_made_here(name):
    key = META["input_mapping"][name]
    with pytest.raises(run_request.RequestError, match="digits generates its own data and model"):
        build(**{key: "/mine"})
    assert build(**{key: "/mine", "CM_MLPERF_MODEL": "resnet50"})["model"] == "resnet50"


def test_devices_instances_and_formats_are_given_as_the_harness_reads_them():
    request = build(
        CM_MLPERF_DEVICE="cuda", CM_MLPERF_GPUS="0, 2", CM_MLPERF_INSTANCES="4", CM_MLPERF_MODEL_PRECISION="float16",
        CM_MLPERF_LOADGEN_BATCH_TIMEOUT_US="200", CM_DATASET_PREPROCESSED_PATH="/p",
    )  # fmt: skip
    assert (request["gpus"], request["instances"], request["batch_timeout_us"]) == ([0, 2], 4, 200)
    assert (request["precision"], request["preprocessed_path"]) == ("fp16", "/p")


@pytest.mark.parametrize(
    ("scenario", "target", "value", "name"),
    [
        ("Offline", "offline_target_qps", 90.0, "target_qps"),
        ("Server", "server_target_qps", 90.0, "target_qps"),
        ("SingleStream", "singlestream_target_latency_ms", 5.0, "target_latency_ms"),
        ("MultiStream", "multistream_target_latency_ms", 5.0, "target_latency_ms"),
    ],
)
def test_the_target_of_one_scenario_is_given_as_in_the_recipes_above(scenario, target, value, name):
    keys = META["input_mapping"]
    shared = {keys[name]: "1", "CM_MLPERF_LOADGEN_SCENARIO": scenario}
    assert build(**shared)[name] == 1.0
    assert build(**shared, **{keys[target]: str(value)})[name] == value
    with pytest.raises(run_request.RequestError, match=f"which is for {scenario}, but this is a run of "):
        build(CM_MLPERF_LOADGEN_SCENARIO="Server" if scenario == "Offline" else "Offline", **{keys[target]: "5"})


def test_the_time_of_an_answer_is_that_of_a_request_or_of_silence():
    key = "CM_MLPERF_REQUEST_TIMEOUT_S"
    assert "silence_s" not in build()
    assert build(**{key: "20"})["silence_s"] == 20.0
    texts = build(**{key: "20", "CM_MLPERF_MODEL": "smollm2", "CM_MLPERF_BACKEND": "scripted"})
    assert ("silence_s" in texts, texts["text"]["timeout_s"]) == (False, 20.0)


def test_a_compliance_test_is_asked_for_as_the_run_that_it_is_for():
    request = build(CM_MLPERF_COMPLIANCE_TEST="TEST01")
    run_request.require_common(request, build(), lambda text: True)
    moved = {**build(), "dataset_path": "/gone"}
    run_request.require_common(request, moved, lambda text: text != "/gone")
    with pytest.raises(run_request.RequestError) as caught:
        run_request.require_common(request, {**moved, "precision": "int8"}, lambda text: True)
    assert [problem.partition(":")[0] for problem in caught.value.problems[:-1]] == ["precision", "dataset_path"]


def test_the_run_that_a_test_is_for_is_compared_before_anything_is_run(inside, hook_input):
    env = {**GOOD, "CM_MLPERF_COMPLIANCE_TEST": "TEST01", "CM_TMP_CURRENT_PATH": str(inside)}
    (inside / "run.json").write_text(json.dumps({**build(), "scenario": "Server"}))
    for reference, expected in (
        (".", "in the run that the test is for 'Server'"),
        ("nowhere", "is not a run to compare"),
    ):
        answer = recipe.preprocess(hook_input({**env, "CM_MLPERF_COMPLIANCE_REFERENCE": reference}, meta=META))
        assert answer["return"] == 1 and expected in answer["error"]


def test_a_compliance_test_and_the_search_for_targets_are_asked_for_by_name():
    assert build(CM_MLPERF_COMPLIANCE_TEST="test04")["compliance_test"] == "TEST04"
    assert build(CM_MLPERF_FIND=True)["find"] is True
    assert build(CM_MLPERF_FIND="no", CM_MLPERF_LOADGEN_MODE="accuracy")["find"] is False


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"CM_MLPERF_COMPLIANCE_TEST": "TEST01", "CM_MLPERF_LOADGEN_MODE": "accuracy"}, "it needs performance mode"),
        ({"CM_MLPERF_FIND": "yes", "CM_MLPERF_LOADGEN_MODE": "accuracy"}, "it needs performance mode"),
        ({"CM_MLPERF_FIND": "yes", "CM_MLPERF_COMPLIANCE_TEST": "TEST01"}, "the targets of the run that it is for"),
        ({"CM_MLPERF_GPUS": "0"}, "device cpu has none"),
        ({"CM_MLPERF_DEVICE": "cuda", "CM_MLPERF_GPUS": "0,0"}, "none twice"),
        ({"CM_MLPERF_DEVICE": "cuda", "CM_MLPERF_GPUS": "0,00"}, "none twice"),
        (
            {"CM_MLPERF_DEVICE": "tpu"},
            "CM_MLPERF_DEVICE: unknown device 'tpu' (did you mean cpu?); known: cpu, cuda",
        ),
        (
            {"CM_MLPERF_MODEL": "bert-99", "CM_MLPERF_LOADGEN_SCENARIO": "MultiStream"},
            "bert-99 has no MultiStream, only SingleStream, Offline, Server",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(changes, expected):
    with pytest.raises(run_request.RequestError) as caught:
        build(**changes)
    (problem,) = caught.value.problems
    assert expected in problem


@pytest.mark.parametrize("text", ["single-stream", "SINGLESTREAM", "Single_Stream"])
def test_a_scenario_may_be_spelt_in_any_case(text):
    assert build(CM_MLPERF_LOADGEN_SCENARIO=text)["scenario"] == "SingleStream"


def test_all_wrong_values_are_named_at_once_with_the_known_ones():
    with pytest.raises(run_request.RequestError) as caught:
        build(CM_MLPERF_MODEL="x", CM_MLPERF_BACKEND="y", CM_MLPERF_DEVICE="z", CM_MLPERF_GPUS="0",
              CM_MLPERF_COMPLIANCE_TEST="TEST01", CM_MLPERF_LOADGEN_MODE="accuracy")  # fmt: skip
    starts = ["CM_MLPERF_MODEL", "CM_MLPERF_BACKEND", "CM_MLPERF_DEVICE", "--gpus (CM_MLPERF_GPUS)"]
    assert [problem.partition(":")[0] for problem in caught.value.problems][:4] == starts
    assert len(caught.value.problems) == 5 and "null, onnxruntime" in str(caught.value)


def test_variations_and_files_of_the_harness_name_the_same_models_and_backends():
    assert {name for record in RECORDS.values() for name in record.names} == set(KNOWN.models)
    assert set(BACKENDS) == set(KNOWN.backends)


@pytest.mark.parametrize("name", KNOWN.models)
def test_a_model_has_a_data_set_and_a_model_recipe_and_says_its_name(name):
    block = META["variations"][name]
    assert block["env"]["CM_MLPERF_MODEL"] == name
    bases = [META["variations"][base] for base in block.get("base", [])]
    tags = [dep["tags"] for part in (block, *bases) for dep in part.get("deps", [])]
    assert any(tag.startswith("get,dataset,") for tag in tags)
    is_servers = name == "own-prompts"  # its model is that of the user's server
    assert any(tag.startswith("get,ml-model,") for tag in tags) is not is_servers
    every_base = [*block.get("base", []), *(base for part in bases for base in part.get("base", []))]
    record = next(record for record in RECORDS.values() if name in record.names)
    assert ("quantized_" in every_base) == (record.generation is None and not record.recipes.is_own)
    assert ("engines_" in every_base) == (record.generation is None)


@pytest.mark.parametrize("name", KNOWN.models)
def test_each_dependency_of_a_model_is_one_recipe_with_the_variations_that_the_app_asks_for(name):
    block = META["variations"][name]
    parts = [block, *(META["variations"][base] for base in block.get("base", []) if base != "quantized_")]
    handles = META["variations"]["tiny"]["adr"]
    for dep in [dep for part in parts for dep in part.get("deps", [])]:
        words = dep["tags"].split(",")
        tags, named = {word for word in words if word[0] != "_"}, {word[1:] for word in words if word[0] == "_"}
        (found,) = [meta for meta in recipe_metas() if tags <= set(meta["tags"])]
        asked = {"synthetic", "tiny"} if handles.keys() & set(dep["names"]) else set()
        asked |= {"onnx", "pytorch"} if {"benchmark-model", "detection-preprocessed"} & set(dep["names"]) else set()
        assert asked | named <= set(found["variations"] if asked | named else ()), found["alias"]


def test_names_without_a_level_and_other_spellings_stand_for_the_first_level():
    aliases = {name: block["alias"] for name, block in META["variations"].items() if "alias" in block}
    stems = {record.name: record.names[0] for record in RECORDS.values() if record.levels}
    spellings = {text: record.names[0] for record in RECORDS.values() for text in record.spellings}
    assert aliases == {**stems, **spellings} and aliases["resnet"] == "resnet50"


@pytest.mark.parametrize(
    ("asked", "backend"),
    [
        ("triton", "triton"), ("neuron", "neuron"), ("triton,neuron", "neuron"), ("neuron,triton", "neuron"),
        ("triton,neuron_simulated", "neuron_simulated"), ("null", "null"), ("", "onnxruntime"),
    ],
)  # fmt: skip
def test_triton_may_be_named_beside_what_runs_behind_it(asked, backend):
    parsed = parse_recipe(META, RECIPES / "app-mlperf-inference", RECIPES.parent)
    applied = resolve_variations(parsed, ["bert-99", *filter(None, asked.split(","))], ())
    envs = [META["variations"][row.name].get("env", {}) for row in applied]
    assert [env["CM_MLPERF_BACKEND"] for env in envs if "CM_MLPERF_BACKEND" in env] == [backend]


@pytest.mark.parametrize("other", sorted(set(KNOWN.backends) - {"triton", "neuron", "neuron_simulated"}))
def test_triton_is_not_named_beside_what_does_not_run_behind_it(other):
    recipe_of_app = parse_recipe(META, RECIPES / "app-mlperf-inference", RECIPES.parent)
    with pytest.raises(VariationError, match=f"the variations _triton, _{other} cannot be combined"):
        resolve_variations(recipe_of_app, ["bert-99", "triton", other], ())


def test_every_group_has_one_default_but_those_that_mean_all_where_nothing_is_given():
    groups: dict[str, list[str]] = {}
    for name, block in META["variations"].items():
        if "group" in block:
            groups.setdefault(block["group"], []).extend([name] if "default" in block else [])
    assert groups == {
        "mode": [], "device": ["cpu"], "model": ["digits"], "scenario": [], "backend": ["onnxruntime"],
        "precision": ["fp32"], "source": ["real"],
    }  # fmt: skip


# --- several runs ---


@pytest.mark.parametrize(
    ("scenario", "mode", "expected"),
    [
        (None, None, True), ("Offline", None, True), (None, "accuracy", True), ("offline", "performance", False),
        ("offline,server", "performance", True), ("offline", "performance,accuracy", True),
    ],
)  # fmt: skip
def test_a_call_without_one_scenario_and_one_mode_means_several_runs(scenario, mode, expected):
    env = {"CM_MLPERF_LOADGEN_SCENARIO": scenario, "CM_MLPERF_LOADGEN_MODE": mode}
    assert several.is_several(input_values("app-mlperf-inference", env)) is expected


def test_several_runs_are_handed_on_with_everything_that_was_asked_for():
    env = {
        **GOOD, "CM_MLPERF_MODEL": "bert-99", "CM_MLPERF_SOURCE": "tiny", "CM_NUM_THREADS": "2",
        "CM_MLPERF_LOADGEN_MODE": "", "CM_MLPERF_GPUS": "0", "CM_MLPERF_DEVICE": "cuda",
    }  # fmt: skip
    env["CM_MLPERF_LOADGEN_SCENARIO"] = "Offline,Server"
    inputs = {"adr": {"python": {"name": "other"}}, "tags": "app,mlperf,inference", "threads": 2, "out": "con"}
    values = input_values("app-mlperf-inference", env)
    assert several.inputs_for_all(env, values, inputs, META["input_mapping"]) == {
        "tags": "run,mlperf,inference", "model": "bert-99", "backend": "onnxruntime", "device": "cuda", "gpus": "0",
        "precision": "fp32", "source": "tiny", "scenario": "Offline,Server", "mode": "all", "execution_mode": "test",
        "threads": "2", "adr": {"python": {"name": "other"}},
    }  # fmt: skip


def test_every_input_but_the_folder_of_one_run_is_one_of_the_recipe_that_makes_several():
    known = recipe_meta("run-mlperf-inference")["input_mapping"]
    keys = {**several.NAMED_BY_VARIATIONS, **META["input_mapping"]}
    assert set(several.ONE_RUN_ONLY) == set(keys) - set(known)
    differing = {name for name in keys.keys() & known.keys() if keys[name] != known[name]}
    assert differing <= {"find"}  # the other recipe looks for a target and then runs with it


def test_the_hooks_hand_several_runs_on_and_plan_them(inside, hook_input):
    env = {**GOOD, "CM_MLPERF_LOADGEN_MODE": "", "CM_TMP_CURRENT_PATH": str(inside)}
    answer = recipe.preprocess(hook_input(dict(env), meta=META, input={}))
    assert (answer["return"], answer["skip"], answer["script"]["tags"]) == (0, True, "run,mlperf,inference")
    assert recipe.plan(hook_input(dict(env), meta=META, input={})) == {"return": 0, "runs": [answer["script"]]}
    in_a_folder = {**GOOD, "CM_MLPERF_OUTPUT_DIR": "out"}
    assert recipe.plan(hook_input(in_a_folder, meta=META, input={})) == {"return": 0, "runs": []}
    assert list(inside.iterdir()) == []


def test_a_folder_for_one_run_is_refused_for_several(inside, hook_input):
    env = {**GOOD, "CM_MLPERF_LOADGEN_MODE": "", "CM_MLPERF_OUTPUT_DIR": "out", "CM_TMP_CURRENT_PATH": str(inside)}
    for hook in (recipe.preprocess, recipe.plan):
        answer = hook(hook_input(dict(env), meta=META, input={}))
        assert answer["return"] == 1
        assert "--results_dir" in answer["error"]


def test_every_input_is_described():
    assert set(META["input_mapping"]) == set(META["input_description"])


def test_preprocess_writes_run_json_and_removes_an_old_result(inside, hook_input):
    out = inside / "run 1"
    out.mkdir()
    (out / "result.json").write_text("{}")
    i = hook_input({**GOOD, "CM_TMP_CURRENT_PATH": str(inside), "CM_MLPERF_OUTPUT_DIR": "run 1"}, meta=META, input={})
    assert recipe.preprocess(i) == {"return": 0}
    assert read_request(RunPaths(out)) == build(inside, CM_MLPERF_OUTPUT_DIR="run 1")
    assert str(inside) not in (out / "run.json").read_text()
    assert i["env"]["CM_MLPERF_RUN_JSON"] == str(out / "run.json")
    assert not (out / "result.json").exists()


def test_a_single_run_without_a_folder_is_made_like_several_so_that_it_is_listed_and_compared(inside, hook_input):
    i = hook_input({**GOOD, "CM_TMP_CURRENT_PATH": str(inside)}, meta=META, input={})
    answer = recipe.preprocess(i)
    assert (answer["skip"], answer["script"]["scenario"], answer["script"]["mode"]) == (True, "Offline", "performance")
    assert list(inside.iterdir()) == []


@pytest.mark.parametrize("key", ["CM_MLPERF_FIND", "CM_MLPERF_COMPLIANCE_TEST"])
def test_a_search_and_a_compliance_test_without_a_folder_go_below_results(inside, hook_input, key):
    value = {"CM_MLPERF_FIND": "yes", "CM_MLPERF_COMPLIANCE_TEST": "TEST01"}[key]
    env = {**GOOD, "CM_MLPERF_MODEL": "resnet50", "CM_TMP_CURRENT_PATH": str(inside), key: value}
    i = hook_input(env, meta=META, input={})
    assert recipe.preprocess(i) == {"return": 0}
    folder = Path(i["env"]["CM_MLPERF_OUTPUT_DIR"])
    run_id, *rest = folder.relative_to(inside / "results").parts
    assert run_id.endswith("Z-resnet50-onnxruntime-cpu")
    assert rest == ["resnet50", "Offline", "performance", "run_1"]
    assert (folder / "run.json").is_file()


def test_preprocess_answers_a_wrong_value_with_code_1_and_writes_nothing(inside, hook_input):
    wrong = {"CM_NUM_THREADS": "3", "CM_MLPERF_INSTANCES": "2", "CM_MLPERF_GPUS": "0", "CM_MLPERF_OUTPUT_DIR": "out"}
    given = {"threads": "3"}
    i = hook_input({**GOOD, "CM_TMP_CURRENT_PATH": str(inside), **wrong}, meta=META, input=given)
    answer = recipe.preprocess(i)
    assert answer["return"] == 1
    assert "--threads: found '3'; allowed: a multiple of 2" in answer["error"]
    assert "--gpus (CM_MLPERF_GPUS): found '0'" in answer["error"]
    assert "hint: cm help script app-mlperf-inference" in answer["error"]
    assert list(inside.iterdir()) == []


def test_postprocess_reads_the_result_into_env_and_state(inside, hook_input):
    result = {"valid": False, "label": "test run", "metric": {"value": 5.0, "unit": "ms"}, "errors": 0}
    (inside / "result.json").write_text(json.dumps(result))
    i = hook_input({"CM_MLPERF_OUTPUT_DIR": str(inside)})
    assert recipe.postprocess(i) == {"return": 0}
    assert i["state"]["mlperf_run"] == {"output_dir": str(inside), **result}
    assert i["env"]["CM_MLPERF_RUN_VALID"] == "no"
    assert i["env"]["CM_MLPERF_RUN_METRIC"] == "5.0 ms"


def test_postprocess_without_a_result_is_an_error(inside, hook_input):
    answer = recipe.postprocess(hook_input({"CM_MLPERF_OUTPUT_DIR": str(inside)}))
    assert answer["return"] == 1
    assert str(inside / "result.json") in answer["error"]


@pytest.mark.parametrize("exit_code", [0, 1, 2])
def test_run_sh_hands_on_the_exit_code_and_keeps_the_output(tmp_path, fake_tool, exit_code):
    out = tmp_path / "the run"
    out.mkdir()
    text = f'echo "$@"; echo "path=$PYTHONPATH"; pwd; echo story >&2; exit {exit_code}'
    folder = RECIPES / "app-mlperf-inference"
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": "/lib of results",
        "CM_PYTHON_BIN_WITH_PATH": str(fake_tool("python3", text)),
        "CM_TMP_CURRENT_SCRIPT_PATH": str(folder),
        "CM_MLPERF_OUTPUT_DIR": str(out),
        "CM_MLPERF_RUN_JSON": str(out / "run.json"),
        "CM_MLPERF_RUN_CONSOLE_FILE": str(out / "console.txt"),
    }
    done = subprocess.run(["bash", "-c", f". '{folder}/run.sh'"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == exit_code
    expected = [f"-m crowdperf.harness {out}/run.json", "path=/lib of results", str(out), "story"]
    assert done.stdout.splitlines() == expected
    assert (out / "console.txt").read_text().splitlines() == expected


def test_run_sh_keeps_the_line_that_is_rewritten_out_of_the_file(tmp_path, fake_tool):
    folder = RECIPES / "app-mlperf-inference"
    env = {
        "PATH": "/usr/bin:/bin",
        "CM_PYTHON_BIN_WITH_PATH": str(fake_tool("python3", 'echo told; echo now >&"$HARNESS_PROGRESS_FD"')),
        "CM_TMP_CURRENT_SCRIPT_PATH": str(folder),
        "CM_MLPERF_OUTPUT_DIR": str(tmp_path),
        "CM_MLPERF_RUN_JSON": "run.json",
        "CM_MLPERF_RUN_CONSOLE_FILE": str(tmp_path / "console.txt"),
        "CM_MLPERF_RUN_ON_TERMINAL": "yes",
    }
    done = subprocess.run(["bash", "-c", f". '{folder}/run.sh'"], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "told\n", "now\n")
    assert (tmp_path / "console.txt").read_text() == "told\n"


@pytest.mark.parametrize(
    ("signal_name", "code", "words"),
    [("KILL", 137, "by the system because memory ran out"), ("ABRT", 134, "no memory left"), ("HUP", 129, "signal 1")],
)
def test_run_sh_tells_what_a_killed_process_could_not(tmp_path, fake_tool, signal_name, code, words):
    folder = RECIPES / "app-mlperf-inference"
    env = {
        "PATH": "/usr/bin:/bin",
        "CM_PYTHON_BIN_WITH_PATH": str(fake_tool("python3", f"ulimit -c 0; kill -{signal_name} $$")),
        "CM_TMP_CURRENT_SCRIPT_PATH": str(folder),
        "CM_MLPERF_OUTPUT_DIR": str(tmp_path),
        "CM_MLPERF_RUN_JSON": "run.json",
        "CM_MLPERF_RUN_CONSOLE_FILE": str(tmp_path / "console.txt"),
    }
    done = subprocess.run(["bash", "-c", f". '{folder}/run.sh'"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert words in done.stdout
    assert words in (tmp_path / "console.txt").read_text()


def test_inputs_for_engines_that_answer_prompts_become_the_key_text() -> None:
    request = build(CM_MLPERF_BACKEND="scripted", CM_MLPERF_MAX_IN_FLIGHT="4", CM_MLPERF_KV_CACHE_GB="0.5")
    left = dict.fromkeys(("endpoint", "client_processes", "timeout_s", "server"))
    text = {**left, "max_in_flight": 4, "kv_cache_bytes": 500_000_000}
    assert request["text"] == text
    server = {"CM_MLPERF_BACKEND": "endpoint", "CM_MLPERF_ENDPOINT_URL": "http://h/v1"}
    assert build(**server, CM_MLPERF_CLIENT_PROCESSES="4")["text"]["client_processes"] == 4
    with pytest.raises(run_request.RequestError) as caught:
        build(CM_MLPERF_MAX_IN_FLIGHT="4", CM_MLPERF_ENDPOINT_URL="http://h/v1")
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "--endpoint (CM_MLPERF_ENDPOINT_URL)", "--max_in_flight (CM_MLPERF_MAX_IN_FLIGHT)"
    ]  # fmt: skip


@pytest.mark.parametrize(("is_set", "expected"), [(True, "OPENAI_API_KEY"), (False, None)])
def test_the_usual_variable_holds_the_key_of_a_server_where_it_is_set(
    hook_input, tmp_path, monkeypatch, is_set, expected
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if is_set:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden")
    seen = {}
    monkeypatch.setattr(recipe.run_request, "build_request", lambda asked, *_: seen.update(prompts=asked.prompts) or {})
    env = {**GOOD, "CM_MLPERF_ENDPOINT_URL": "http://h/v1", "CM_TMP_CURRENT_PATH": str(tmp_path),
           "CM_MLPERF_OUTPUT_DIR": "out"}  # fmt: skip
    with pytest.raises(KeyError):
        recipe.preprocess(hook_input(env, meta=META))
    assert seen["prompts"].endpoint_key_variable == expected
    assert "sk-hidden" not in str(seen)


def test_each_run_setting_is_an_input_of_its_kind():
    kinds = {name: META["input_description"][name]["type"] for name in BY_INPUT}
    assert {kinds[one.name] for one in NUMBERS} == {"whole"}
    assert set(kinds.values()) == {"whole", "choice", "list of whole"}


@pytest.mark.parametrize("backend", ["endpoint", "vllm"])
def test_a_run_goes_on_without_the_fast_packages_of_the_client_and_compiles_none(backend: str) -> None:
    needed, *optional = META["variations"][backend]["deps"][-3:]
    assert needed["names"] == ["tokenizers"] and not needed.get("continue_on_error")
    assert [one["names"] for one in optional] == [["uvloop"], ["orjson"]]
    for one in optional:
        assert one["continue_on_error"] and "--only-binary=:all:" in one["env"]["CM_GENERIC_PYTHON_PIP_EXTRA"]
