"""Whole runs with LoadGen against a server behind a URL: good ones, and ones that are no result."""

import contextlib
import itertools
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness_support import need, run_harness
from odd_servers import write_model
from stub_openai import MODEL, answer_tokens, running_stub
from text_toys import COUNT, add_parrot, parrot_request

from crowdperf.logs.text_metrics import measured_text
from crowdperf.rules.names import Scenario

need("mlperf_loadgen")

SHORT = {"min_duration_ms": 100, "min_query_count": 20}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("endpoint")
    add_parrot(folder)
    model = write_model(folder / "model")
    facts = {"format": 1, "name": "parrot", "framework": "huggingface", "precision": "fp32", "files": {}}
    (model / "model.json").write_text(json.dumps(facts))
    return folder


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_stub() as (_, found):
        yield found


def run(root: Path, url: str, **changes: object):
    endpoint = {"url": url, "model": None, "api": None, "key_variable": None}
    text = {"endpoint": endpoint, **changes.pop("text", {})}  # type: ignore[dict-item]
    name = url.rpartition("//")[2].replace("/", "-") + f"-{changes.get('scenario')}-{changes.get('mode')}"
    content = parrot_request(
        root, backend="endpoint", text=text, output_dir=str(root / name),
        model_info_path=str(root / "model" / "model.json"), **changes,
    )  # fmt: skip
    return content, run_harness(root / f"call-{name}", content, source=root / "source")


def check(result: dict) -> None:
    """What holds for every good run."""
    tally, engine = result["text"]["tally"], result["text"]["engine"]
    assert tally["issued"] == tally["completed"] > 0
    assert (tally["failed"], tally["skipped_pieces"], tally["late_first_tokens"], result["errors"]) == (0, 0, 0, 0)
    assert tally["tokens_in"] == 5 * tally["issued"] and tally["tokens_out"] == 8 * tally["issued"]
    client = result["text"]["client"]
    assert client["input_tokens_per_s"] / 5 == pytest.approx(client["requests_per_s"])
    assert client["output_tokens_per_s"] / 8 == pytest.approx(client["requests_per_s"])
    assert (client["ttft_ms"] is None) == (not engine["streamed"]["value"]) and client["end_to_end_ms"]["p50"] > 0
    counts = engine["counts"]
    assert (counts["requests"], counts["answered"], counts["failed"]) == (tally["issued"], tally["issued"], 0)
    assert engine["model"] == {"value": MODEL, "origin": "probe"} and engine["sampling"]["temperature"]["accepted"]


@pytest.mark.full
def test_a_server_run_against_an_endpoint_is_a_result(root: Path, url: str) -> None:
    values = {"min_duration_ms": 600, "min_query_count": 460, "target_qps": 300}
    _, ended = run(root, f"{url}/ttft_ms=5,tpot_ms=1/v1", scenario="Server", **values)
    assert ended.code == 0, ended.stderr
    result = ended.result
    check(result)
    assert result["valid"], result["invalid_reasons"]
    assert (result["metric"]["name"], result["metric"]["unit"]) == ("tokens per second", "tokens/s")
    assert result["text"]["ttft_ms"]["p50"] >= 5 and result["text"]["tpot_ms"]["p50"] >= 1
    assert result["versions"]["server"] == "stub" and "tokenizers" in result["versions"]


def test_offline_is_measured_without_streaming_and_server_is_not(root: Path, url: str) -> None:
    # Each answer takes longer than the minimum duration, however busy the machine is.
    _, ended = run(root, f"{url}/whole,ttft_ms=150/v1", scenario="Offline", **SHORT, target_qps=50)
    assert ended.code == 0, ended.stderr
    result = ended.result
    check(result)
    assert result["valid"], result["invalid_reasons"]
    assert result["text"]["engine"]["streamed"] == {"value": False, "origin": "probe"}
    assert (result["text"]["ttft_ms"], result["text"]["tpot_ms"]) == (None, None)
    assert "without streaming" in measured_text(result["text"])
    _, refused = run(root, f"{url}/whole/v1", scenario="Server", **SHORT, target_qps=10)
    assert refused.code != 0 and "--scenario=Offline does not need them" in refused.stderr


LONG = {"min_duration_ms": 100, "min_query_count": 300, "target_qps": 400}
"""Beyond request 150, which the warm-up does not reach."""


def test_a_server_that_fails_some_requests_makes_the_run_invalid_and_says_why(root: Path, url: str) -> None:
    _, ended = run(root, f"{url}/die,after=250,times=20/v1", scenario="Server", **LONG)
    assert ended.code == 0 and "Traceback" not in ended.stderr, ended.stderr
    reasons = " ".join(ended.result["invalid_reasons"])
    assert not ended.result["valid"] and ended.result["text"]["tally"]["failed"] == 20
    assert "20 of 300 requests got no answer: the server ended the connection in the middle of its answer" in reasons


def test_padding_and_another_tokenizer_do_not_raise_the_rate_of_a_run(root: Path, url: str) -> None:
    """Of 8 tokens that come 6 count: the other two are behind the end token."""
    _, ended = run(root, f"{url}/odd=padded/v1", scenario="Server", **LONG)
    assert ended.code == 0, ended.stderr
    tally = ended.result["text"]["tally"]
    assert tally["tokens_out"] == 6 * tally["completed"] and tally["tokens_behind_end"] == 2 * tally["completed"]
    assert ended.result["text"]["end_tokens"] == [500]
    rate = ended.result["metric"]["value"] / ended.result["text"]["samples_per_second"]
    assert rate == pytest.approx(6.0, rel=0.02)
    _, ended = run(root, f"{url}/ids=0,odd=wide/v1", scenario="Server", **LONG)
    assert ended.code == 1 and "the server uses another tokenizer" in ended.stderr and "Traceback" not in ended.stderr


def test_a_wrong_endpoint_ends_the_run_before_loadgen(root: Path, url: str) -> None:
    for wrong, code, words in [
        (f"{url}/v1?key=1", 2, "a query with 'key', which may be a secret"),
        (f"{url}/status=401/v1", 1, "the server requires authentication (401)"),
    ]:
        _, ended = run(root, wrong, scenario="Offline")
        assert ended.code == code and words in ended.stderr and "Traceback" not in ended.stderr, ended.stderr
        assert not (ended.folder / "mlperf_log_summary.txt").exists()


@pytest.mark.full
@pytest.mark.parametrize("mode", ["performance", "accuracy"])
@pytest.mark.parametrize("scenario", [one.value for one in Scenario])
def test_every_scenario_runs_against_an_endpoint(root: Path, url: str, scenario: str, mode: str) -> None:
    limits = {} if mode == "accuracy" else SHORT
    _, ended = run(root, f"{url}/ttft_ms=2/v1", scenario=scenario, mode=mode, **limits)
    assert ended.code == 0, ended.stderr
    check(ended.result)
    if mode == "accuracy":
        entries = json.loads((ended.folder / "mlperf_log_accuracy.json").read_text())
        expected = {number: answer_tokens(list(range(number, number + 5)), 8) for number in range(COUNT)}
        for entry in entries:
            data = bytes.fromhex(entry["data"])
            found = [int.from_bytes(data[place : place + 4], "little") for place in range(0, len(data), 4)]
            assert found == expected[entry["qsl_idx"]] and entry["token_count"] == 8


@pytest.mark.full
@pytest.mark.parametrize("behaviour", ["garbage", "few=3", "other", "nodone", "stall", "empty", "status=500"])
def test_a_server_that_turns_hostile_makes_the_run_invalid(root: Path, url: str, behaviour: str) -> None:
    text = {"timeout_s": 1.0 if behaviour == "stall" else 5.0}
    _, ended = run(root, f"{url}/{behaviour},after=150,times=20/v1", scenario="Server", text=text, **LONG)
    assert ended.code == 0 and "Traceback" not in ended.stderr, ended.stderr
    tally = ended.result["text"]["tally"]
    assert not ended.result["valid"] and ended.result["invalid_reasons"]
    assert (tally["failed"], tally["skipped_pieces"]) == ((0, 80) if behaviour == "garbage" else (20, 0))


@pytest.mark.full
def test_a_server_that_dies_for_good_ends_the_run(root: Path, url: str) -> None:
    _, ended = run(root, f"{url}/die,after=150/v1", scenario="Server", **LONG)
    assert ended.code == 1 and "the endpoint answered none of the last 100 requests" in ended.stderr, ended.stderr
    assert "harness: hint: check the server's log" in ended.stderr, "no hint of this machine"
    assert not (ended.folder / "result.json").exists()


def own_prompts(folder: Path, url: str, **changes: object):
    """Run two prompts of a user against the stub, without a tokenizer."""
    data = folder / "data"
    data.mkdir(parents=True)
    rows = changes.pop("rows", ({"text": "w1 w2 w3"}, {"text": "w4 w5"}))
    (data / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))  # type: ignore[attr-defined]
    facts = {"is_synthetic": False, "max_tokens": 8, "has_fixed_length": False, "limits": None}
    facts |= changes.pop("facts", {})  # type: ignore[call-overload]
    (data / "dataset.json").write_text(json.dumps(facts))
    endpoint = {"url": url, "model": None, "api": None, "key_variable": None}
    text = {"endpoint": endpoint, **changes.pop("text", {})}  # type: ignore[dict-item]
    content = parrot_request(
        folder, model="own-prompts", backend="endpoint", text=text, dataset_path=str(data), model_info_path=None,
        output_dir=str(folder / "run"), **{**SHORT, **changes},
    )  # fmt: skip
    return run_harness(folder / "call", content)


def test_a_number_in_flight_of_own_prompts_is_streamed_and_timed_by_the_client(tmp_path: Path, url: str) -> None:
    ended = own_prompts(tmp_path, f"{url}/ttft_ms=20,tpot_ms=4/v1", text={"max_in_flight": 2}, target_qps=200)
    assert ended.code == 0, ended.stderr
    text = ended.result["text"]
    assert text["engine"]["streamed"]["value"] is True and text["engine"]["counts"]["peak_in_flight"] == 2
    client, tally = text["client"], text["tally"]
    assert client["times_from"] == "send" and (text["ttft_ms"], client["goodput"]) == (None, None)
    assert client["ttft_ms"]["p50"] >= 20 and client["tpot_ms"]["p50"] >= 4
    assert client["end_to_end_ms"]["p50"] >= 20 + 7 * 4 and client["itl_ms"]["p50"] > 0
    lasted_s = tally["tokens_out"] / text["tokens_per_second"]
    assert client["requests_per_s"] == pytest.approx(tally["completed"] / lasted_s, rel=0.1)
    mean_prompt = client["input_tokens_per_s"] / client["requests_per_s"]
    assert 2 <= mean_prompt <= 3  # as the server counted them: 3 and 2 tokens


def test_own_prompts_without_a_number_in_flight_are_whole_answers_without_times(tmp_path: Path, url: str) -> None:
    ended = own_prompts(tmp_path, f"{url}/v1", target_qps=200)
    assert ended.code == 0, ended.stderr
    text = ended.result["text"]
    assert text["engine"]["streamed"]["value"] is False
    assert (text["ttft_ms"], text["client"]["ttft_ms"]) == (None, None)
    assert text["client"]["requests_per_s"] > 0


def client_processes() -> list[int]:
    """The client processes of the runs on this machine that this test started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_one = b"crowdperf.harness.backends.endpoint.client_process" in (folder / "cmdline").read_bytes()
            if is_one and f"CROWDPERF_TEST={os.getpid()}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def test_a_killed_client_process_makes_the_run_invalid_and_its_requests_failed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROWDPERF_TEST", str(os.getpid()))
    killed: list[int] = []

    def kill() -> None:
        end_s = time.monotonic() + 60
        while stub.asked.total() < 900 and time.monotonic() < end_s:
            time.sleep(0.005)
        for pid in client_processes()[:1]:
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)

    with running_stub() as (stub, url):
        killer = threading.Thread(target=kill)
        killer.start()
        _, ended = run(
            root, f"{url}/tpot_ms=1,killed/v1", scenario="Offline", min_duration_ms=1000, min_query_count=20,
            target_qps=3000, text={"max_in_flight": 40, "client_processes": 2},
        )  # fmt: skip
        killer.join()
    assert killed and ended.code == 0, ended.stderr
    result = ended.result
    tally = result["text"]["tally"]
    assert not result["valid"]
    assert any("client process" in one and "of 2 ended by signal SIGKILL" in one for one in result["invalid_reasons"])
    assert tally["issued"] == tally["completed"] + tally["failed"] and tally["unasked"] == 0
    assert tally["failure_kinds"].keys() == {"client process"} and 1 <= tally["failed"] <= 40


TRACE = {"form": "mooncake", "requests": 3, "duration_s": 0.9, "longest_gap_s": 0.8, "has_prefixes": False}
ROWS = [{"text": f"w{place} w7", "at_s": at_s, "max_tokens": most}
        for place, at_s, most in ((1, 0.0, 2), (2, 0.1, 8), (3, 0.9, 5))]  # fmt: skip
LEFT_TO_THE_TRACE = {"min_duration_ms": None, "min_query_count": None, "target_qps": None}


@pytest.mark.parametrize("processes", [1, 2])
def test_each_request_of_a_trace_is_sent_once_at_its_time(tmp_path: Path, processes: int) -> None:
    with running_stub() as (stub, url):
        facts = {"trace": TRACE, "has_fixed_length": True, "limits": {"ttft_ms": 1e6, "tpot_ms": 1e6}}
        text = {"client_processes": processes}
        ended = own_prompts(tmp_path, f"{url}/v1", rows=ROWS, facts=facts, text=text, **LEFT_TO_THE_TRACE)
        seen = [(one["prompt"], one["max_tokens"], one["min_tokens"]) for one in stub.seen][-3:]
    assert ended.code == 0, ended.stderr
    assert seen == [("w1 w7", 2, 2), ("w2 w7", 8, 8), ("w3 w7", 5, 5)]
    result = ended.result
    found, client = result["text"], result["text"]["client"]
    assert result["valid"], result["invalid_reasons"]
    assert (found["arrivals"], found["trace"], client["times_from"]) == ("trace", TRACE, "trace")
    assert (found["tally"]["issued"], found["tally"]["tokens_out"]) == (3, 15)
    assert client["duration_s"] >= 0.9 and client["goodput"]["good"] == 3 and client["ttft_ms"]["p50"] > 0


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"scenario": "Server", "target_qps": 5.0}, "scenario"), ({"min_query_count": 5}, "min_query_count"),
     ({"target_qps": 5.0}, "target_qps")],
)  # fmt: skip
def test_what_a_trace_decides_cannot_be_given(tmp_path: Path, url: str, changes: dict[str, object], why: str) -> None:
    facts = {"trace": TRACE, "has_fixed_length": True}
    ended = own_prompts(tmp_path, f"{url}/v1", rows=ROWS, facts=facts, **{**LEFT_TO_THE_TRACE, **changes})
    assert ended.code != 0 and why in ended.stderr and "trace" in ended.stderr


TALKS = {"conversations": 2, "requests": 5}
TURNS = [{"messages": [{"role": "user", "content": f"w{10 * talk + turn}"}], "conversation": talk, "turn": turn}
         for talk, turns in ((1, 3), (2, 2)) for turn in range(turns)]  # fmt: skip


def test_the_turns_of_conversations_are_sent_one_after_the_other_with_the_history(tmp_path: Path) -> None:
    with running_stub() as (stub, url):
        text = {"max_in_flight": 1}
        ended = own_prompts(
            tmp_path, f"{url}/v1", rows=TURNS, facts={"conversations": TALKS}, text=text, **LEFT_TO_THE_TRACE
        )
        seen = [[(one["role"], one["content"]) for one in body["messages"]] for body in stub.seen][-5:]
    assert ended.code == 0, ended.stderr
    assert sorted(map(len, seen)) == [1, 1, 3, 3, 5] and seen[0][0] in (("user", "w10"), ("user", "w20"))
    for before, now in itertools.pairwise(seen):
        if len(now) > 1:
            assert now[: len(before)] == before and [role for role, _ in now[-2:]] == ["assistant", "user"]
            assert now[-2][1] and now[-1][1] == f"w{int(before[-1][1][1:]) + 1}"
    result = ended.result
    assert result["valid"], result["invalid_reasons"]
    found = result["text"]
    assert (found["arrivals"], found["conversations"], found["client"]["times_from"]) == (
        "after answers",
        TALKS,
        "send",
    )
    assert found["tally"]["issued"] == found["tally"]["completed"] == 5
    assert found["engine"]["counts"]["peak_in_flight"] == 1
    assert found["engine"]["sampling"]["cache_prompt"]["value"] is True


def test_turns_after_one_without_an_answer_fail_and_the_run_ends(tmp_path: Path, url: str) -> None:
    many = [{**one, "conversation": talk, "turn": turn} for talk in range(60) for turn, one in enumerate(TURNS[:3])]
    facts = {"conversations": {"conversations": 60, "requests": 180}}
    ended = own_prompts(
        tmp_path, f"{url}/error,after=150,times=1/v1", rows=many, facts=facts, text={"max_in_flight": 4},
        **LEFT_TO_THE_TRACE,
    )  # fmt: skip
    assert ended.code == 0, ended.stderr
    tally = ended.result["text"]["tally"]
    assert not ended.result["valid"] and tally["issued"] == tally["completed"] + tally["failed"] == 180
    assert 1 <= tally["failed"] <= 3 and "error in the stream" in tally["failure_kinds"]
