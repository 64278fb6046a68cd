"""run-mlperf-inference: `--concurrency` and `--rate` of the user's prompts, one value and several."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recipe_loader import RECIPES, input_values, load_recipe, recipe_meta

from crowdperf.call import connections
from crowdperf.logs.layout import ResultsPaths
from crowdperf.rules.app_names import app_names
from crowdperf.rules.names import Mode, Scenario

recipe = load_recipe("run-mlperf-inference")
META = recipe_meta("run-mlperf-inference")
MAPPING = META["input_mapping"]
KNOWN = app_names(recipe_meta("app-mlperf-inference"))
SERVER = {"endpoint": "http://127.0.0.1:9/v1", "input_tokens": "20"}

SLO = "ttft:500ms,tpot:50ms"


def env_of(inputs: dict[str, str]) -> dict[str, str]:
    return {MAPPING[name]: value for name, value in inputs.items()}


def config_of(**inputs: str) -> Any:
    values = input_values("run-mlperf-inference", {"CM_TMP_CURRENT_PATH": "/user", **env_of(SERVER | inputs)})
    assert values.problems() == []
    return recipe.matrix.parse_config(values, KNOWN)


def test_one_value_is_a_run_of_a_loadgen_scenario() -> None:
    (run,) = recipe.matrix.matrix(config_of(concurrency="4"))
    assert (run.model, run.scenario, run.options["max_in_flight"]) == ("own-prompts", Scenario.OFFLINE, "4")
    (run,) = recipe.matrix.matrix(config_of(rate="2.5"))
    assert (run.scenario, run.target_qps, run.inputs["target_qps"]) == (Scenario.SERVER, 2.5, "2.5")


@pytest.mark.parametrize("inputs", [{"concurrency": "4,897"}, {"max_in_flight": "897"}])
def test_more_requests_at_once_than_files_may_be_open_are_refused_before_anything_is_installed(
    inputs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections.resource, "getrlimit", lambda which: (100, 1024))
    with pytest.raises(recipe.RequestError) as caught:
        config_of(**inputs)
    words = "found 897; allowed: at most 896 connections at once, as the limit of open files is 1024 here. Raise it: "
    assert caught.value.problems == (f"--{next(iter(inputs))}: {words}ulimit -n 1025",)
    assert connections.too_many_connections(896) == ""
    monkeypatch.setattr(connections.resource, "getrlimit", lambda which: (100, connections.resource.RLIM_INFINITY))
    assert connections.too_many_connections(1_000_000) == ""


@pytest.mark.parametrize("inputs", [{"trace": "t.jsonl"}, {"prompts": "p.jsonl", "conversations": "yes"}])
def test_a_run_whose_length_the_data_decide_is_announced_without_one(inputs: dict[str, str]) -> None:
    values = input_values("run-mlperf-inference", env_of({"endpoint": SERVER["endpoint"], **inputs}))
    specs = recipe.matrix.matrix(recipe.matrix.parse_config(values, KNOWN))
    assert recipe.matrix.describe(specs).splitlines() == [
        "1 LoadGen run:", "  1. own-prompts endpoint cpu Offline performance: every request once"
    ]  # fmt: skip


class Sweeps:
    """Answers the call of the sweep."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def access(self, request: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(request)
        return {"return": 0, "new_state": {"mlperf_sweep": {"points": []}}}


@pytest.fixture
def call(tmp_path: Path, hook_input):
    def run(cm: Any, hook: str, **inputs: str) -> Any:
        given = SERVER | {"results_dir": str(tmp_path)} | inputs
        env = {"CM_TMP_CURRENT_PATH": str(tmp_path), "CM_HOST_OS_TYPE": "linux",
               "CM_TMP_CURRENT_SCRIPT_PATH": str(RECIPES / "run-mlperf-inference"), **env_of(given)}  # fmt: skip
        i = hook_input(env, input=given, meta=META, automation=SimpleNamespace(cmind=cm))
        return getattr(recipe, hook)(i), i

    return run


def test_several_values_are_a_sweep_of_runs_with_one_value_each(call, tmp_path: Path) -> None:
    cm = Sweeps()
    answer, i = call(cm, "preprocess", concurrency="1,4", run_id="nightly", repeats="3", slo="ttft:1s,tpot:{50}ms")
    assert answer == {"return": 0} and i["state"]["mlperf_sweep"] == {"points": []}
    (request,) = cm.calls
    assert request["tags"] == "run,mlperf,sweep" and request["results_dir"] == str(tmp_path)
    assert request["file"] == str(tmp_path / "nightly.yaml")
    content = json.loads((tmp_path / "nightly.yaml").read_text())
    assert content == {
        "format": 1, "name": "nightly", "sweep": {"concurrency": ["1", "4"]}, "n_repeats": 3,
        "base": {**SERVER, "slo": "ttft:1s,tpot:{{50}}ms"},
    }  # fmt: skip


def test_the_plan_of_several_values_has_a_run_for_each(call, tmp_path: Path) -> None:
    answer, _ = call(Sweeps(), "plan", rate="1,2.5")
    assert [row["rate"] for row in answer["runs"]] == ["1", "2.5"]
    assert all(row["tags"] == "run,mlperf,inference" and "results_dir" not in row for row in answer["runs"])
    assert list(tmp_path.iterdir()) == []


class Tries:
    """A server that is fast enough up to 10 requests/s, or in flight."""

    def __init__(self, highest: float = 10.0) -> None:
        self.highest = highest
        self.calls: list[dict[str, Any]] = []

    def access(self, request: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(request)
        rate = float(request.get("rate") or 4.0)
        paths = ResultsPaths(Path(request["results_dir"]), request["run_id"])
        if concurrency := request.get("concurrency"):
            path = paths.run("own-prompts", Scenario.OFFLINE, Mode.PERFORMANCE).result_json
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(self.of(concurrency)))
            return {"return": 0}
        path = paths.run("own-prompts", Scenario.SERVER, Mode.PERFORMANCE).result_json
        path.parent.mkdir(parents=True)
        is_valid = rate <= self.highest
        reasons = [] if is_valid else ["TTFT constrain not met"]
        result = {"valid": is_valid, "invalid_reasons": reasons, "run": {"target_qps": {"value": rate}},
                  "text": {"ttft_ms": {"p90": 40.0 * rate}, "tpot_ms": {"p90": 20.0}}}  # fmt: skip
        path.write_text(json.dumps(result))
        return {"return": 0}

    def of(self, concurrency: str) -> dict[str, Any]:
        """The result of an Offline run, which is VALID however late its answers are."""
        times = {"ttft_ms": {"p90": 500.0 * int(concurrency) / self.highest}, "tpot_ms": {"p90": 20.0}}
        counts = {"peak_in_flight": int(concurrency)}
        return {"valid": True, "text": {"client": times, "engine": {"counts": counts}}}


def test_find_tries_concurrencies_up_to_the_highest_one_within_the_limits(call, tmp_path: Path, capsys) -> None:
    cm = Tries()
    answer, i = call(cm, "preprocess", find="concurrency", slo=SLO, run_id="search")
    assert answer == {"return": 0}
    assert [one["concurrency"] for one in cm.calls] == ["1", "2", "3", "6", "12", "8", "10", "11", "11", "10"]
    assert all("scenario" not in one and "find" not in one and one["check"] == "no" for one in cm.calls)
    assert {(one["concurrency"], one["min_query_count"]) for one in cm.calls} >= {("1", "100"), ("10", "300")}
    found = json.loads((tmp_path / "search" / "find.json").read_text())
    assert (found["concurrency"], found["is_confirmed"], found["run_id"]) == (10, True, "try-10")
    assert found["ended_because"] == "the next higher number failed" and found["tries"][0]["concurrency"] == 1
    assert i["state"]["mlperf_found"]["Offline"]["concurrency"] == 10
    printed = capsys.readouterr().out
    assert f"Highest concurrency within --slo={SLO}: 10 requests in flight, confirmed by" in printed
    assert "try-05: TTFT p90 600 ms is beyond the limit of 500 ms" in printed
    assert "--concurrency=10" in printed.rpartition("Next:")[2] and "--find" not in printed.rpartition("Next:")[2]


def test_a_search_for_the_concurrency_begins_at_max_in_flight(call, tmp_path: Path) -> None:
    cm = Tries()
    asked = {"find": "concurrency", "slo": SLO, "max_in_flight": "64", "min_query_count": "8"}
    answer, _ = call(cm, "preprocess", **asked)
    assert answer == {"return": 0} and "max_in_flight" not in cm.calls[0]
    first = cm.calls[0]
    assert (first["concurrency"], first["min_query_count"]) == ("64", "256")  # 4 for each in flight
    planned, _ = call(cm, "plan", **asked)
    assert [(one["concurrency"], one["tags"]) for one in planned["runs"]] == [("64", "run,mlperf,inference")]


def test_a_server_beyond_the_limits_with_one_request_has_no_concurrency(call) -> None:
    answer, _ = call(Tries(highest=0.5), "preprocess", find="concurrency", slo=SLO)
    assert answer["return"] == 1
    assert f"no concurrency was found within --slo={SLO}: a single request in flight failed" in answer["error"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ({"client": {"end_to_end_ms": {"p90": 1.0}}}, "try-01 measured no TTFT p90 and no TPOT p90: the server has to"),
        (
            {"client": {"ttft_ms": {"p90": 1.0}, "tpot_ms": {"p90": 1.0}}, "engine": {"counts": {"peak_in_flight": 3}}},
            "try-01 had at most 3 of 4 requests in flight",
        ),
    ],
)
def test_a_try_that_does_not_answer_the_question_ends_the_search(call, text: dict, words: str) -> None:
    cm = Tries()
    cm.of = lambda _: {"valid": True, "text": text}
    answer, _ = call(cm, "preprocess", find="concurrency", slo=SLO, max_in_flight="4")
    assert answer["return"] == 1 and words in answer["error"]


def test_find_tries_rates_up_to_the_highest_one_within_the_limits(call, tmp_path: Path, capsys) -> None:
    cm = Tries()
    answer, i = call(cm, "preprocess", find="yes", slo=SLO, run_id="search")
    assert answer == {"return": 0}
    first, *others = cm.calls
    assert (first["scenario"], first["run_id"]) == ("Server", "try-01") and "rate" not in first
    assert all("scenario" not in one and "find" not in one and one["check"] == "no" for one in others)
    found = json.loads((tmp_path / "search" / "find.json").read_text())
    assert 9.5 <= found["rate"] <= 10 and found["is_confirmed"] is True and found["slo"] == SLO
    assert float(cm.calls[int(found["run_id"].rpartition("-")[2]) - 1]["rate"]) == found["rate"]
    assert i["state"]["mlperf_found"]["Server"]["rate"] == found["rate"]
    printed = capsys.readouterr().out
    assert f"Highest rate within --slo={SLO}: {found['rate']:g} requests/s, confirmed by" in printed
    assert "TTFT p90, ms" in printed and f"--rate={found['rate']:g}" in printed.rpartition("Next:")[2]


def test_find_begins_at_a_given_rate_and_reports_that_no_rate_is_within_the_limits(call, capsys) -> None:
    cm = Tries(highest=0.0)
    answer, _ = call(cm, "preprocess", find="yes", slo=SLO, server_target_qps="8")
    assert cm.calls[0]["rate"] == "8"
    assert (
        answer["return"] == 1
        and f"no rate was found within --slo={SLO}: the budget of 600 s was used up" in answer["error"]
    )
    assert "try-01: TTFT constrain not met" in capsys.readouterr().out


def test_a_try_that_fails_ends_the_search_and_a_plan_has_the_first_try(call, tmp_path: Path) -> None:
    failing = SimpleNamespace(access=lambda request: {"return": 1, "error": "no connection"})
    answer, _ = call(failing, "preprocess", find="yes", slo=SLO)
    assert answer == {"return": 1, "error": "try-01: no connection"}
    planned, _ = call(failing, "plan", find="yes", slo=SLO)
    assert [(one["scenario"], one["tags"]) for one in planned["runs"]] == [("Server", "run,mlperf,inference")]
