"""The vllm engine: what it starts, what it says of itself, and that nothing is left. The server is a stand-in here; the
real one is asked by tests/e2e."""

import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import stub_openai
from text_engines import Told, engine_request, prompts_of, tiny_model

from crowdperf.harness.backends.vllm import engine as vllm
from crowdperf.harness.base import supervised_server
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.text.engine import Prompt, Request
from crowdperf.harness.text.request import TextRequest

FAKE = """
import os, sys, time
import stub_openai
words = sys.argv[1:]
print("called with", *words, "cache", os.environ.get("VLLM_CPU_KVCACHE_SPACE"), os.environ["HF_HUB_OFFLINE"])
print("sees", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
if {wrong!r} == "broken":
    print("ValueError: the model is of a kind that is not known\\nmore lines", flush=True)
    sys.exit(1)
if {wrong!r} == "hang":
    time.sleep(60)
stub_openai.MODEL = words[words.index("--served-model-name") + 1]
with stub_openai.running_stub(int(words[words.index("--port") + 1])):
    time.sleep(60)
"""


def fake_python(folder: Path, wrong: str = "") -> Path:
    """A program that stands for the Python of vLLM's environment."""
    program, path = folder / "fake.py", folder / "python"
    program.write_text(FAKE.format(wrong=wrong))
    path.write_text(f'#!/bin/sh\nPYTHONPATH={Path(stub_openai.__file__).parent} exec {sys.executable} {program} "$@"\n')
    path.chmod(0o755)
    return path


def request_of(folder: Path, wrong: str = "", **text: object):
    info = tiny_model(folder / "model")
    stub_openai.write_tokenizer(folder / "model")
    asked = TextRequest(server=fake_python(folder, wrong), **text)  # type: ignore[arg-type]
    return engine_request(info, text=asked, folder=folder)


def is_listening(port: int) -> bool:
    try:
        supervised_server.ask(port, "/v1/models", timeout_s=1.0)
    except OSError:
        return False
    return True


def test_a_server_is_started_asked_and_ended(tmp_path: Path) -> None:
    request = request_of(tmp_path, max_in_flight=3, kv_cache_bytes=1 << 31)
    engine = vllm.open_engine(request)
    port = engine._server.port
    try:
        told = Told()
        engine.start(told)
        prompts = prompts_of(5)
        engine.submit([Request(number=number, prompt=Prompt(tokens=one)) for number, one in enumerate(prompts)])
        told.wait(5)
        assert not told.whys and sorted(told.answers) == list(range(5))
        record = engine.record()
    finally:
        engine.close()
    assert record["max_in_flight"] == {"value": 3, "origin": "user"}
    assert record["kv_cache_gib"] == {"value": 2, "origin": "user, in whole GiB"}
    assert record["prefix_caching"] == {"value": False, "origin": "the rules"}
    assert "endpoint" not in record and str(port) not in str(record)
    log = (tmp_path / "vllm.log").read_text()
    assert f"--host 127.0.0.1 --port {port} --model {tmp_path / 'model'} --served-model-name model" in log
    assert "--dtype float32 --max-model-len 48 --max-num-seqs 3 --no-enable-prefix-caching" in log
    assert "cache 2 1" in log
    assert not is_listening(port)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("broken", "ended before it was ready: ValueError: the model is of a kind that is not known"),
        ("hang", "was not ready within 0.5 s"),
    ],
)
def test_a_server_that_does_not_get_ready_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, said: str
) -> None:
    monkeypatch.setattr(vllm, "_READY_S", 0.5 if wrong == "hang" else 20.0)
    with pytest.raises(HarnessError) as caught:
        vllm.open_engine(request_of(tmp_path, wrong))
    assert said in str(caught.value) and "vllm.log" in str(caught.value.hint)


def test_without_the_recipe_it_refuses(tmp_path: Path) -> None:
    info = tiny_model(tmp_path)
    with pytest.raises(HarnessError, match="is not installed: None") as caught:
        vllm.open_engine(engine_request(info))
    assert "--tags=get,vllm,server" in str(caught.value.hint)
    with pytest.raises(HarnessError, match="is not installed: None") as caught:
        vllm.open_engine(engine_request(info, device="cuda"))
    assert "--tags=get,vllm,server,_cuda" in str(caught.value.hint)


def test_the_server_sees_the_cores_it_may_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "open_own_server", lambda order, request, settings: order)
    request = dataclasses.replace(request_of(tmp_path), precision="bf16", threads=2, cores=(2, 3))
    order: Any = vllm.open_engine(request)
    environment = order.environment
    assert (environment["VLLM_CPU_OMP_THREADS_BIND"], environment["OMP_NUM_THREADS"]) == ("2,3", "2")
    assert environment["HF_HUB_OFFLINE"] == "1" and os.fspath(tmp_path) in environment["VLLM_CACHE_ROOT"]
    assert "bfloat16" in order.command


@pytest.mark.parametrize(
    ("text", "cache", "record"),
    [
        (
            {},
            "--gpu-memory-utilization 0.9",
            {"max_in_flight": (256, "default"), "kv_cache_bytes": (None, "free memory")},
        ),
        (
            {"max_in_flight": 64, "kv_cache_bytes": 1 << 34},
            "--kv-cache-memory-bytes 17179869184",
            {"max_in_flight": (64, "user"), "kv_cache_bytes": (1 << 34, "user")},
        ),
    ],
)
def test_on_gpus_the_model_is_split_over_those_of_the_run(tmp_path, monkeypatch, text, cache, record) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,GPU-6,7")
    request = dataclasses.replace(
        request_of(tmp_path, **text), device="cuda", precision="bf16", gpus=(1, 2)
    )  # fmt: skip
    engine = vllm.open_engine(request)
    try:
        found = engine.record()
    finally:
        engine.close()
    log = (tmp_path / "vllm.log").read_text()
    assert f"--dtype bfloat16 --max-model-len 48 --max-num-seqs {record['max_in_flight'][0]} " in log
    assert f"--tensor-parallel-size 2 {cache} --no-enable-prefix-caching --generation-config vllm" in log
    assert "--enforce-eager" not in log and "cache None 1" in log and "sees 5,GPU-6" in log
    wanted = {**record, "tensor_parallel": (2, "the run"), "compiled": (True, "default")}
    assert {name: (found[name]["value"], found[name]["origin"]) for name in wanted} == wanted


def test_a_server_sees_the_gpus_that_this_process_sees_and_no_others() -> None:
    assert vllm.visible_devices((2, 0), {}) == "2,0"
    assert vllm.visible_devices((0,), {"CUDA_VISIBLE_DEVICES": "MIG-1"}) == "MIG-1"
    with pytest.raises(HarnessError, match="GPUs 1 were requested, but CUDA_VISIBLE_DEVICES is '3'"):
        vllm.visible_devices((0, 1), {"CUDA_VISIBLE_DEVICES": "3"})
