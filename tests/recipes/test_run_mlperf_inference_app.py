"""run-mlperf-inference-app: what its inputs and variations ask for, the recipes it calls, READMEs, refusals."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recipe_loader import RECIPES, input_values, load_module, load_recipe, recipe_meta

from crowdperf.machine.probe import Machine, Ran
from crowdperf.rules.app_names import APP_RECIPE, app_names
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.names import Mode, Scenario
from crowdperf.rules.record import ALL_SCENARIOS
from crowdperf.rules.rounds import ROUNDS

recipe = load_recipe("run-mlperf-inference-app")
calls = load_module("run-mlperf-inference-app", "calls")
known = load_module("run-mlperf-inference-app", "known")
needs = load_module("run-mlperf-inference-app", "needs")
readme = load_module("run-mlperf-inference-app", "readme")
request = load_module("run-mlperf-inference-app", "request")
steps = load_module("run-mlperf-inference-app", "steps")

META = recipe_meta("run-mlperf-inference-app")
APP_META = recipe_meta(APP_RECIPE)
KNOWN = known.Known(names=app_names(APP_META), rounds=known.loadgen_rounds(recipe_meta(known.LOADGEN_RECIPE)))
SUT = {
    "sut": "hw-crowdperf-cpu-onnxruntime-v1.23.0-default_config", "hw_name": "hw", "implementation": "crowdperf",
    "device": "cpu", "backend": "onnxruntime", "backend_version": "1.23.0", "run_config": "default_config",
}  # fmt: skip


def env_of(*variations: str, **inputs: str) -> dict[str, str]:
    """The env of a call with these variations and inputs; the default variation where no other of its group is."""
    env = {}
    blocks = {name: block for name, block in META["variations"].items() if name in variations}
    groups = {block.get("group") for block in blocks.values()}
    for block in META["variations"].values():
        if block.get("default") and block["group"] not in groups:
            env |= block["env"]
    for name in variations:
        env |= blocks[name]["env"]
    return env | {META["input_mapping"][name]: value for name, value in inputs.items() if name in META["input_mapping"]}


def read(*variations: str, **inputs: str) -> Any:
    env = env_of(*variations, **inputs)
    values = input_values("run-mlperf-inference-app", env)
    assert values.problems() == []
    return request.read(env, values, None, KNOWN, Path("/here"))


def problems(*variations: str, **inputs: str) -> str:
    with pytest.raises(request.RequestError) as caught:
        read(*variations, **inputs)
    return "\n".join(caught.value.problems)


@pytest.mark.parametrize(("name", "known_name"), [("ResNet50", "resnet50"), ("SSD-Large", "ssd-resnet34")])
def test_a_benchmark_goes_by_the_names_of_the_documents(name: str, known_name: str) -> None:
    assert read(model=name).model == known_name


def test_copies_of_ones_own_go_to_every_run() -> None:
    given = {"dataset_path": "/data", "model_path": "/m.onnx"}
    assert given.items() <= read(**given).options.items()


def test_the_settings_of_triton_go_to_every_run_and_a_stand_in_takes_its_backends_place() -> None:
    given = {
        "batching": "server", "transport": "shm", "instance_count": "2", "max_batch_size": "8",
        "max_queue_delay_us": "500", "preferred_batch_size": "4,8",
    }  # fmt: skip
    assert given.items() <= read(backend="triton", **given).options.items()
    simulated = read(backend="neuron", device="inferentia", simulate="neuron")
    assert (simulated.backend, simulated.device) == ("neuron_simulated", "cpu")
    assert "--simulate: found 'neuron' with backend triton" in problems(backend="triton", simulate="neuron")


class NoGpu(Machine):
    """A machine without any program of a GPU."""

    def run(self, command: Any, *rest: Any, **more: Any) -> Ran:
        return Ran(127)

    def which(self, name: str) -> str:
        return ""

    def is_file(self, path: str) -> bool:
        return False


class FakeCM:
    """Answers the calls of other recipes; `answers` replaces the answer of a query that holds the key."""

    def __init__(self, folder: Path) -> None:
        self.repos_path = str(folder)
        self.calls: list[dict[str, Any]] = []
        self.answers: dict[str, dict[str, Any]] = {}
        self.config = folder / "config.yaml"
        self.is_valid = True

    def access(self, call: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(call)
        tags = call["tags"]
        for part, answer in self.answers.items():
            if part in tags:
                return answer
        state: dict[str, Any] = {}
        if tags == calls.CONFIG_TAGS:
            state = {"CM_SUT_RECORD": SUT, "CM_SUT_CONFIG": {SUT["sut"]: {}}}
        if tags == calls.CONF_TAGS:
            rows = {name: self._planned(name, call) for name in call["scenario"].split(",")}
            state = {"mlperf_user_conf": {"scenarios": rows}}
        if tags == calls.RUN_TAGS:
            state = self._run(call)
        return {
            "return": 0,
            "version": "1.23.0",
            "new_env": {"CM_SUT_CONFIG_FILE": str(self.config)},
            "new_state": state,
        }

    def _planned(self, name: str, call: dict[str, Any]) -> dict[str, Any]:
        is_used = "CM_TMP_MLPERF_RECORDED_UNUSED_IN" not in call.get("env", {})
        is_there = is_used and call["sut_config_file"] == str(self.config) and self.config.is_file()
        target = {"key": "target_qps", "value": 8.5} if is_there else None
        return {"target": target, "origin": "found then" if is_there else "", "is_recorded": is_there, "expected_s": {}}

    def _run(self, call: dict[str, Any]) -> dict[str, Any]:
        names = call["scenario"].split(",")
        if call.get("find"):
            key = "target_latency_ms" if "Stream" in names[0] else "target_qps"
            setting = {key: {"value": 8.25, "origin": "1.1 times 7.5; probed"}}
            return {"mlperf_found": {name: {"settings": setting, "measured": 7.5} for name in names}}
        part = {"valid": self.is_valid, "invalid_reasons": ["too slow"], "folder": "f"}
        rows = [{"scenario": n, "performance": part, "accuracy": {**part, "passed": False}} for n in names]
        return {"mlperf_results": {"scenarios": rows}}


@pytest.fixture
def cm(tmp_path) -> FakeCM:
    return FakeCM(tmp_path)


@pytest.fixture
def call(tmp_path, hook_input, cm):
    """Calls the hook with a fake CM; gives its answer and what it set."""

    def run(*variations: str, hook: str = "preprocess", **inputs: Any) -> tuple[dict, dict]:
        env = env_of(*variations, **{"results_dir": str(tmp_path / "r"), **inputs})
        env |= {"CM_TMP_CURRENT_SCRIPT_PATH": str(RECIPES / "run-mlperf-inference-app"), "CM_TMP_CURRENT_PATH": "/x"}
        i = hook_input(env, input=inputs, meta=META, automation=SimpleNamespace(cmind=cm), machine=NoGpu())
        answer = getattr(recipe, hook)(i)
        return answer, i["state"]

    return run


# --- what is asked for ---


@pytest.mark.parametrize(
    ("variations", "modes"),
    [
        ((), ["performance", "accuracy"]),
        (("find-performance",), ["performance"]),
        (("accuracy-only",), ["accuracy"]),
        (("performance-only",), ["performance"]),
        (("performance-only", "all-modes"), ["performance", "accuracy"]),
        (("populate-readme",), ["performance", "accuracy"]),
        (("submission",), ["performance", "accuracy"]),
    ],
)
def test_each_variation_makes_the_runs_that_its_name_says(variations, modes):
    assert [mode.value for mode in read(*variations).modes] == modes


def test_the_scenarios_are_those_of_the_round_and_the_category():
    assert read(model="bert-99").scenarios == (Scenario.OFFLINE,)
    edge = read("all-scenarios", model="bert-99")
    assert "Valid Scenarios for bert-99 in edge category are :['SingleStream', 'Offline']" in edge.remarks
    old = read("all-scenarios", "r3.0", model="bert-99", category="datacenter")
    assert (old.scenarios, old.round_name) == ((Scenario.OFFLINE, Scenario.SERVER), "v3.0")
    assert read("all-scenarios", "r4.1-dev").round_name == "v4.1"
    only = read("all-scenarios", model="dlrm-99")
    assert (only.category, only.round_name) == ("datacenter", "v3.0")
    assert read("all-scenarios", model="digits").scenarios == ALL_SCENARIOS


def test_a_closed_submission_makes_all_scenarios_whatever_is_given():
    closed = read("submission", scenario="Offline", division="closed")
    assert closed.scenarios == (Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM, Scenario.OFFLINE)
    assert closed.has_compliance
    assert any("--scenario=Offline has no effect" in line for line in closed.remarks)
    assert read("submission", scenario="Offline").scenarios == (Scenario.OFFLINE,)


def test_results_lie_by_length_and_searches_apart():
    assert read(execution_mode="valid", results_dir="r").style_folder == Path("/here/r/valid_results")
    assert read("find-performance").style_folder == Path("/here/find_results")


def test_made_data_and_other_number_formats_are_kept_apart():
    assert read().run_config == "default_config"
    assert read(source="tiny", precision="int8").run_config == "tiny_int8_config"
    assert read(source="tiny", run_config="mine").run_config == "mine"


def test_every_round_of_the_rules_can_be_named() -> None:
    named = {
        name.removeprefix("r") for name, one in META["variations"].items() if one.get("group") == "benchmark-version"
    }
    assert {f"v{name}" for name in named if not name.endswith("-dev")} == set(ROUNDS)
    assert read("r0.7", model="resnet50").round_name == "v0.7"
    assert "gptj-99 is not in round v0.7, only in v3.1" in problems("r0.7", model="gptj-99")


def test_a_round_has_its_loadgen_where_there_is_one():
    assert read("r5.1").loadgen_variation == "_v5.1"
    assert read("r6.1").loadgen_variation == read().loadgen_variation == ""
    assert any("no LoadGen package has the seeds of v3.0" in line for line in read("r3.0").remarks)


def test_names_of_the_community_are_understood_and_told():
    told = read(implementation="nvidia", device="gpu", precision="float32", model="bert").remarks
    assert "--implementation=nvidia: the runs use crowdperf's own harness, and results record crowdperf" in told


@pytest.mark.parametrize(
    ("variations", "inputs", "words"),
    [
        ((), {"mode": "FindPeakPerformance"}, "--mode: FindPeakPerformance is a search"),
        ((), {"scenario": "Server", "model": "bert-99"}, "bert-99 has no Server in category edge in round v6.1"),
        (("r6.1",), {"model": "dlrm-99"}, "_r6.1: dlrm-99 is not in round v6.1"),
        (("short",), {"division": "closed"}, "_short is for the open division"),
        (("find-performance", "all-modes"), {}, "find-performance makes performance runs only"),
        ((), {"category": "edge", "model": "dlrm-99"}, "dlrm-99 has no scenario in category edge"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_can(variations, inputs, words):
    assert words in problems(*variations, **inputs)


def test_no_refused_input_is_one_that_the_recipe_takes():
    own = set(META["input_mapping"]) | set(META["input_description"])
    assert not own & META["refused_inputs"].keys()
    assert not own & META["unused_inputs"].keys()
    assert set(META["input_mapping"]) | {"system"} == set(META["input_description"])


# --- what is called ---


def test_a_missing_gpu_is_told_before_anything_is_called(call, cm):
    answer, _ = call("find-performance", "all-scenarios", model="bert-99", device="cuda")
    assert "no GPU answers through nvidia-smi" in answer["error"]
    assert call(hook="plan", device="cuda")[0]["return"] == 1
    assert not cm.calls


def test_a_recorded_machine_is_planned_for_and_never_run_on(call, cm):
    answer, _ = call(hook="plan", device="cuda", machine="nd-h100-v5", model="bert-99", scenario="Offline")
    runs = [row for row in answer["runs"] if "scenario" in row]
    assert [row["machine"] for row in runs] == ["nd-h100-v5"]
    answer, _ = call(device="cuda", machine="nd-h100-v5", model="bert-99")
    assert "can be planned for, with cm plan script" in answer["error"] and not cm.calls
    answer, _ = call(hook="plan", device="cuda", machine="nowhere", model="bert-99")
    assert "nowhere is not a recorded machine" in answer["error"]


def test_a_search_goes_scenario_by_scenario_and_each_is_recorded_at_once(call, cm, tmp_path):
    answer, state = call("find-performance", "all-scenarios", model="bert-99", adr={"python": {"name": "mine"}})
    assert answer == {"return": 0}
    tags = [row["tags"] for row in cm.calls]
    find = [calls.RUN_TAGS, calls.CONFIG_TAGS]
    library = "get,generic-python-lib,_package.onnxruntime"
    assert tags == ["install,python-venv", library, calls.CONFIG_TAGS, *find, *find]
    assert (cm.calls[0]["name"], cm.calls[1]["adr"]["python"]) == ("mine", {"name": "mine"})
    assert all(row["adr"] == {"python": {"name": "mine"}} for row in cm.calls)
    run, recorded = cm.calls[3:5]
    assert (run["scenario"], run["find"], run["run_id"]) == ("SingleStream", "yes", SUT["sut"])
    assert run["results_dir"] == str(tmp_path / "r" / "find_results")
    assert (recorded["target_latency_ms"], recorded["measured"]) == ("8.25", "7.5")
    assert recorded["origin"].startswith("found 20")
    assert ";" not in recorded["origin"]
    assert cm.calls[6]["target_qps"] == "8.25"
    written = json.loads((tmp_path / "r" / "find_results" / SUT["sut"] / "sut.json").read_text())
    assert written == {"format": 1, **SUT}
    assert state["mlperf_sut"] == SUT


def test_a_search_ends_with_a_table_of_what_was_measured_and_the_next_command(call, cm, capsys):
    call("find-performance", "all-scenarios", model="bert-99")
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("Search ")] == [
        "Search 1 of 2: SingleStream", "Search 2 of 2: Offline"]  # fmt: skip
    start = next(number for number, line in enumerate(lines) if line.startswith("Scenario"))
    assert [line.split() for line in lines[start : start + 3]] == [
        ["Scenario", "Measured", "Target", "of", "later", "runs"],
        ["SingleStream", "7.5", "ms", "8.25", "target_latency_ms"],
        ["Offline", "7.5", "samples/s", "8.25", "target_qps"],
    ]
    assert f"Kept in: {cm.config} (--execution-mode=fast and valid use it)" in lines
    following = " ".join(lines[lines.index("Next:") :])
    assert "_accuracy-only,_all-scenarios " in following and "--model=bert-99" in following


@pytest.mark.parametrize(
    ("variations", "given", "tags", "scenario"),
    [
        (("all-scenarios",), {"scenario": "Offline"}, "_accuracy-only,_all-scenarios", ""),
        ((), {}, "_accuracy-only", "--scenario=Offline"),
        ((), {"scenario": "Offline,SingleStream"}, "_accuracy-only,_all-scenarios", ""),
        (("r5.1",), {"scenario": "Offline"}, "_accuracy-only,_r5.1", "--scenario=Offline"),
    ],
)
def test_the_next_command_is_for_the_scenarios_and_the_round_of_the_search(
    call, capsys, variations: tuple[str, ...], given: dict[str, str], tags: str, scenario: str
) -> None:
    call("find-performance", *variations, model="bert-99", **given)
    following = capsys.readouterr().out.split("Next:")[1].replace("\\\n", " ").split()
    assert f"--tags=generate-run-cmds,inference,{tags}" in following
    assert [word for word in following if word.startswith("--scenario")] == ([scenario] if scenario else [])


def test_full_runs_take_over_what_was_found_but_not_instead_of_your_values(call, cm):
    cm.config.write_text("resnet50: {Offline: {target_qps: 8.5}}\n")
    call("performance-only", execution_mode="valid", scenario="SingleStream,Offline", target_latency_ms="3")
    (run,) = [row for row in cm.calls if row["tags"] == calls.RUN_TAGS]
    assert (run["singlestream_target_latency_ms"], run["offline_target_qps"]) == ("3", "8.5")
    assert run["target_origin"] == "Offline: found then"
    assert (run["mode"], run["check"], run["execution_mode"]) == ("performance", "no", "valid")


def test_a_server_rate_that_nobody_knows_is_searched_first(call, cm, capsys):
    answer, _ = call("performance-only", "r3.0", execution_mode="valid", scenario="Server", category="datacenter")
    assert answer == {"return": 0}
    find, run = [row for row in cm.calls if row["tags"] == calls.RUN_TAGS]
    assert (find["find"], find["execution_mode"], find["scenario"]) == ("yes", "test", "Server")
    assert "find" not in run
    assert "_find-performance" in capsys.readouterr().out


def test_a_test_run_measures_for_itself(call, cm):
    cm.config.write_text("x")
    call("performance-only", scenario="Offline")
    (run,) = [row for row in cm.calls if row["tags"] == calls.RUN_TAGS]
    assert "offline_target_qps" not in run
    (conf,) = [row for row in cm.calls if row["tags"] == calls.CONF_TAGS]
    assert conf["env"] == {"CM_TMP_MLPERF_RECORDED_UNUSED_IN": "test runs"}  # so that it is not called missing


def test_a_closed_submission_is_told_run_tested_and_built(call, cm, capsys):
    cm.answers["run-mlperf-inference"] = {"return": 0, "new_state": {"mlperf_results": {"scenarios": []}}}
    answer, _ = call("submission", division="closed", submitter="me", submission_dir="/t", system={"cooling": "air"})
    assert answer == {"return": 0}
    compliance, submission = cm.calls[-2:]
    assert (compliance["tags"], compliance["division"], compliance["version"]) == (
        "run,mlperf,compliance", "closed", "v6.1",
    )  # fmt: skip
    assert (submission["tags"], submission["submitter"], submission["run_checker"]) == (
        "generate,inference,submission", "me", "yes",
    )  # fmt: skip
    assert (submission["submission_version"], submission["system"]) == ("v6.1", {"cooling": "air"})
    told = capsys.readouterr().out
    assert "A closed edge submission of resnet50 to v6.1 needs these runs:" in told
    assert "Offline TEST04: made by this run" in told


def test_an_open_submission_has_no_compliance_tests(call, cm):
    cm.answers["run-mlperf-inference"] = {"return": 0, "new_state": {"mlperf_results": {"scenarios": []}}}
    call("submission", "compliance", submitter="me")
    assert not [row for row in cm.calls if row["tags"] == calls.COMPLIANCE_TAGS]


def test_an_invalid_run_fails_the_call_and_a_missed_accuracy_in_divisions_that_ask_for_it(call, cm):
    assert call(scenario="Offline")[0] == {"return": 0}
    missed, _ = call(scenario="Offline", division="closed")
    assert "misses the accuracy" in missed["error"]
    cm.is_valid = False
    assert "Offline is INVALID: too slow" in call(scenario="Offline")[0]["error"]


def test_the_error_of_a_recipe_below_goes_on_as_it_is(call, cm):
    cm.answers["run-mlperf-inference"] = {"return": 7, "error": "no memory"}
    assert call()[0] == {"return": 7, "error": "no memory"}


def test_the_loadgen_of_a_round_goes_to_every_recipe_unless_you_say_which(call, cm):
    call("r5.1")
    assert cm.calls[0]["adr"] == {"loadgen": {"tags": "_v5.1"}}
    cm.calls.clear()
    call("r5.1", adr={"loadgen": {"version": "5.1.2"}})
    assert cm.calls[0]["adr"] == {"loadgen": {"version": "5.1.2"}}


def test_a_plan_has_the_calls_and_makes_none(call, cm, tmp_path):
    answer, _ = call("find-performance", "all-scenarios", hook="plan", model="bert-99")
    tags = [row["tags"] for row in answer["runs"]]
    assert tags[2:] == [calls.CONFIG_TAGS, calls.RUN_TAGS, calls.RUN_TAGS]
    assert not cm.calls
    assert list(tmp_path.iterdir()) == []


def test_every_backend_with_a_library_has_a_version():
    for name, record in BACKENDS.items():
        found = known.backend_library(APP_META, name, record.devices[-1])
        assert (found is not None) == bool(record.library), name


def test_what_is_there_is_not_called_missing():
    asked = read("accuracy-only", "all-scenarios", "r5.1", model="retinanet", execution_mode="valid", division="closed")
    lines = needs.lines(asked, lambda need: need == needs.Need(Scenario.OFFLINE, "TEST01"))
    assert "  Offline TEST01: there" in lines
    assert "  Offline performance: missing" in lines
    assert "  Offline accuracy: made by this run" in lines
    assert needs.Need(Scenario.OFFLINE, "TEST01").place == Path("TEST01/performance/run_1")
    assert needs.Need(Scenario.OFFLINE, Mode.ACCURACY.value).place == Path("accuracy")
    assert lines[0].startswith("A closed edge submission of retinanet ")
    in_open = read("accuracy-only", "all-scenarios", "r5.1", model="retinanet", execution_mode="valid", division="open")
    assert needs.lines(in_open, lambda need: True)[0].startswith("An open edge submission of retinanet ")


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"model": "bert-99", "source": "tiny"}, "--source=tiny uses synthetic data or weights"),
        ({"model": "digits"}, "digits is not a benchmark of v6.1"),
        ({"model": "bert-99"}, ""),
    ],
)
def test_what_no_submission_can_hold_is_said_before_the_runs(values, why) -> None:
    lines = needs.lines(read(**values), lambda need: False)
    assert (lines[0] == f"! these runs cannot be submitted: {why}") is bool(why)
    assert any("--rehearsal" in line for line in lines) is bool(why)


# --- READMEs ---


def facts() -> Any:
    result = {
        "label": "test run", "metric": {"name": "throughput", "value": 7.5, "unit": "samples/s"}, "valid": True,
        "versions": {"python": "3"}, "started_utc": "t", "seeds": {"qsl": 1}, "loadgen_version": "6.0.17",
        "model_sha256": {"model": "ab"},
    }  # fmt: skip
    inputs = {"user_conf": "/home/me/a b/user.conf", "threads": "2", "output_dir": "/home/me/r"}
    row = {"recipe_query": "app,_x", "recipe_inputs": inputs, "dependencies": ["get,a", "get,b"]}
    return readme.RunFacts(title="t", row=row, result=result, conf=["m.Offline.target_qps = 1"], score="acc=1")


def test_a_readme_has_command_machine_dependencies_settings_and_result_and_no_home():
    host = {"CM_HOST_CPU_MODEL_NAME": "A CPU", "CM_HOST_SYSTEM_NAME": "secret-host", "CM_HOST_OS_FLAVOR": "debian"}
    passed_on = {"adr": {"python": {"name": "mine"}}}
    text = readme.render(facts(), host, "cm run script --tags=x", passed_on, "/home/me")
    assert '--user_conf="$HOME/a b/user.conf"' in text
    assert "--adr.python.name=mine" in text
    assert "1. `cm run script --tags=get,a --adr.python.name=mine`" in text
    assert "- processor: A CPU" in text
    assert "- throughput: 7.5 samples/s" in text
    assert "/home/me" not in text
    assert "secret-host" not in text
    assert "output_dir" not in text


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("plain", "plain"),
        ("two words", "'two words'"),
        ('/h/a"$(x)', '"$HOME/a\\"\\$(x)"'),
        ("a;b", "'a;b'"),
        ("/h", '"$HOME"'),
        ("/home2/x", "/home2/x"),
        ("/h2:/h/x", '"/h2:$HOME/x"'),
    ],
)
def test_values_are_quoted_for_a_shell(value, word):
    assert readme.command("t", {"x": value}, "/h") == f"cm run script --tags=t \\\n    --x={word}"


def test_a_readme_is_written_once_and_again_when_its_run_changed(tmp_path, capsys):
    pages = load_module("run-mlperf-inference-app", "pages")
    paths = steps.ResultsPaths(tmp_path, "sut")
    run = paths.run("resnet50", Scenario.OFFLINE, Mode.PERFORMANCE)
    run.folder.mkdir(parents=True)
    result = {**facts().result, "run": {"scenario": {"value": "Offline"}, "mode": {"value": "performance"}}}
    run.result_json.write_text(json.dumps(result))
    row = {**facts().row, "folder": run.folder.relative_to(paths.folder).as_posix()}
    paths.environment_json.write_text(json.dumps({"runs": [row], "host": {}}))
    asked = read()
    assert pages.write_all(paths, asked, {}, {"model": "resnet50"}) == (run.folder / "README.md",)
    assert pages.write_all(paths, asked, {}, {"model": "resnet50"}) == ()
    assert f"Measure files exist at {run.folder}. Skipping regeneration..." in capsys.readouterr().out
    run.result_json.write_text(json.dumps({**result, "started_utc": "later"}))
    assert len(pages.write_all(paths, asked, {}, {"model": "resnet50"})) == 1
    assert "_performance-only,_r6.1" in (run.folder / "README.md").read_text()
