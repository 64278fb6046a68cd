"""The onnxruntime_genai engine against a stand-in for the package that batches and answers as it does; with `--full`
against the package itself, where it and what its builder needs are installed."""

from __future__ import annotations

import contextlib
import enum
import importlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import harness_support
import numpy as np
import pytest
from text_engines import Told, answers_of, engine_request, prompts_of

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.text.engine import Finish, Prompt, Request
from crowdperf.harness.text.request import TextRequest
from crowdperf.rules.record import Sampling

ENGINE = "crowdperf.harness.backends.onnxruntime_genai.engine"
END, VOCABULARY = 2, 300


class Flags(enum.IntFlag):
    TOKEN = 1
    FAILED = 4


class FakeRequest:
    """Says its prompt backwards, up to the end token; of a prompt that begins with 13 it cannot say anything."""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine, self.left, self.said, self.most, self.is_open = engine, [], 0, 0, True

    def begin_turn(self, tokens: Any, turn: Any) -> int:
        assert tokens.dtype == np.int32 and turn.do_sample is False
        self.left, self.most, self.is_bad = tokens.tolist()[::-1], turn.most, tokens[0] == 13
        self.engine.waiting.append(self)
        return 1

    def cancel_turn(self, turn: int) -> None:
        self.left, self.is_open = [], False

    def close(self) -> None:
        self.is_open = False


class FakeEngine:
    """Batches statically, and obeys only the thread that made it."""

    made: ClassVar[list[FakeEngine]] = []

    def __init__(self, model: Any) -> None:
        self.waiting: list[FakeRequest] = []
        self.batch: list[FakeRequest] = []
        self.thread, self.largest = threading.get_ident(), 0
        FakeEngine.made.append(self)

    def create_event_buffer(self, capacity: int) -> int:
        return capacity

    def create_request(self, options: Any) -> FakeRequest:
        assert threading.get_ident() == self.thread
        return FakeRequest(self)

    def has_pending_requests(self) -> bool:
        return bool(self.waiting or self.batch)

    def run(self, buffer: int) -> list[Any]:
        assert threading.get_ident() == self.thread
        self.batch = [one for one in self.batch if one.is_open]
        if not self.batch:
            self.batch, self.waiting = self.waiting[:4], self.waiting[4:]
        self.largest = max(self.largest, len(self.batch))
        events = [self.event_of(one) for one in self.batch]
        self.batch = [one for one, event in zip(self.batch, events, strict=True) if event.finish_reason.name == "NONE"]
        return events

    @staticmethod
    def event_of(request: FakeRequest) -> Any:
        flags, reason, token = Flags.TOKEN, "NONE", 0
        if request.is_bad:
            flags, reason = Flags.FAILED, "FAILED"
        elif not request.left or request.left[0] == END:
            flags, reason = Flags(0), "EOS"
        else:
            token, request.said = request.left.pop(0), request.said + 1
            reason = "MAX_GENERATED_TOKENS" if request.said == request.most else "NONE"
        named = SimpleNamespace(name=reason)
        error = SimpleNamespace(name="ENGINE_EXECUTION_FAILURE")
        return SimpleNamespace(request=request, flags=flags, token=token, finish_reason=named, error_code=error)


class FakeConfig:
    overlays: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, folder: str) -> None:
        if not (Path(folder) / "model.onnx").is_file():
            raise RuntimeError("Load model failed: no file\nmore")

    def overlay(self, text: str) -> None:
        FakeConfig.overlays.append(json.loads(text))


class FakeTurn:
    def __init__(self, request: FakeRequest) -> None:
        self.do_sample, self.most, self.fewest = True, 0, 0

    def set_do_sample(self, value: bool) -> None:
        self.do_sample = value

    def set_max_generated_tokens(self, count: int) -> None:
        self.most = count

    def set_min_generated_tokens(self, count: int) -> None:
        self.fewest = count


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The engine's module, over the stand-in."""
    library = ModuleType("onnxruntime_genai")
    library.__dict__.update(
        Config=FakeConfig, Model=lambda config: config, Engine=FakeEngine, EngineEventFlags=Flags, TurnOptions=FakeTurn,
        RequestOptions=lambda: SimpleNamespace(set_max_session_tokens=lambda count: None),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "onnxruntime_genai", library)
    monkeypatch.delitem(sys.modules, ENGINE, raising=False)
    module = importlib.import_module(ENGINE)
    monkeypatch.setattr(module.metadata, "version", lambda package: "0.18")
    FakeEngine.made.clear()
    FakeConfig.overlays.clear()
    yield module
    sys.modules.pop(ENGINE, None)


@pytest.fixture
def info(tmp_path: Path) -> Path:
    decoder = {"num_hidden_layers": 2, "num_key_value_heads": 2, "head_size": 8}
    config = {"model": {"vocab_size": VOCABULARY, "decoder": decoder}}
    (tmp_path / "genai_config.json").write_text(json.dumps(config))
    (tmp_path / "model.onnx").write_bytes(b"")
    values = {"format": 1, "framework": "onnxruntime-genai", "files": {"model": {"file": "model.onnx"}}}
    (tmp_path / "model.json").write_text(json.dumps(values))
    return tmp_path / "model.json"


def test_answers_come_in_batches_of_four_with_every_setting_said(backend: Any, info: Path) -> None:
    prompts = [one for one in prompts_of(12) if one[0] != 13 and len(one) > 1]
    request = engine_request(info, text=TextRequest(max_in_flight=6, kv_cache_bytes=1 << 30))
    with contextlib.closing(backend.open_engine(request)) as engine:
        answers, record, versions = answers_of(engine, prompts), engine.record(), engine.versions()
    for prompt, answer in zip(prompts, answers, strict=True):
        said = prompt.tolist()[::-1]
        assert answer == said[: said.index(END) if END in said else None][:8]
    assert FakeEngine.made[-1].largest == 4 and len(FakeEngine.made) == 2  # one for the probe, one for the thread
    assert record["max_in_flight"] == {"value": 4, "origin": "onnxruntime-genai's batch on a CPU"}
    assert record["kv_cache_bytes"] == {"value": 4 * 48 * 2 * 2 * 2 * 8 * 4, "origin": "48 tokens a request"}
    assert record["prefix_caching"]["value"] is False and record["batching"]["value"] == "static"
    assert versions["onnxruntime-genai"] == "0.18"
    (overlay,) = FakeConfig.overlays
    assert overlay["search"]["max_length"] == 48
    assert overlay["model"]["decoder"]["session_options"]["intra_op_num_threads"] == 1


def test_what_cannot_be_answered_fails_alone(backend: Any, info: Path) -> None:
    told = Told()
    with contextlib.closing(backend.open_engine(engine_request(info))) as engine:
        engine.start(told)
        bad = (np.full(41, 5), np.array([]), np.array([300]), np.array([-1]), np.array([13, 5]), np.array([7, 9, 2, 5]))
        engine.submit([Request(number=n, prompt=Prompt(tokens=one.astype(np.int32))) for n, one in enumerate(bad)])
        told.wait(6)
    assert "41 tokens" in told.whys[0] and "0 tokens" in told.whys[1] and "not one of" in told.whys[2]
    assert "could not answer: ENGINE_EXECUTION_FAILURE" in told.whys[4]
    assert (told.answers[5].tokens.tolist(), told.answers[5].finish) == ([5], Finish.STOP)


def test_a_request_that_takes_too_long_is_dropped(backend: Any, info: Path) -> None:
    sampling, text = Sampling(max_tokens=10**6), TextRequest(timeout_s=0.05, max_in_flight=1)
    told = Told()
    request = engine_request(info, sampling, text=text, longest_prompt=200_000)
    with contextlib.closing(backend.open_engine(request)) as engine:
        engine.start(told)
        engine.submit([Request(number=0, prompt=Prompt(tokens=np.full(200_000, 5, dtype=np.int32)))])
        told.wait(1)
    assert "no complete answer within 0.05 s" in told.whys[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"sampling": Sampling(max_tokens=8, temperature=1.0)},
            "does not support a setting of the benchmark: to draw tokens",
        ),
        ({"sampling": Sampling(max_tokens=8, stop=(7,))}, "end tokens in addition to the model's own"),
        ({"longest_prompt": 10**8}, "one prompt needs 23.8 GiB of keys and values"),
    ],
)
def test_what_it_cannot_do_is_refused(backend: Any, info: Path, changes: dict[str, Any], said: str) -> None:
    asked = {"text": TextRequest(kv_cache_bytes=1 << 30), **changes}
    with pytest.raises(HarnessError, match=said):
        backend.open_engine(engine_request(info, **asked))


def test_a_folder_that_cannot_be_opened_is_refused_in_a_line(backend: Any, info: Path) -> None:
    (info.parent / "model.onnx").unlink()
    with pytest.raises(
        HarnessError, match=r"onnxruntime-genai 0\.18 cannot open the model: Load model failed: no file$"
    ):
        backend.open_engine(engine_request(info))
    (info.parent / "genai_config.json").write_text("{}")
    with pytest.raises(HarnessError, match=r"genai_config\.json cannot be used: KeyError"):
        backend.open_engine(engine_request(info))
    (info.parent / "genai_config.json").unlink()
    with pytest.raises(HarnessError, match=r"reads a folder with genai_config\.json"):
        backend.open_engine(engine_request(info))


@pytest.mark.full
def test_the_package_itself_gives_the_reference_answers(tmp_path: Path) -> None:
    harness_support.need("onnxruntime_genai", "transformers", "onnx_ir", "safetensors", "tokenizers", "torch")
    from crowdperf.harness.backends.torch_llm import engine as torch_llm
    from crowdperf.standins import tiny_llama

    backend = importlib.import_module(ENGINE)
    # Its attention takes heads of 16, 32, ... numbers only.
    source = tiny_llama.make(tmp_path / "llama", vocab=VOCABULARY, hidden=32, layers=2, heads=2, kv_heads=1, seed=3)
    target, prompts = tmp_path / "genai", prompts_of(10)
    options = ["--precision", "fp32", "--execution_provider", "cpu", "--cache_dir", str(tmp_path / "cache")]
    places = ["--input", str(source.parent), "--output", str(target)]
    subprocess.run(
        [sys.executable, "-I", "-m", "onnxruntime_genai.models.builder", *places, *options],
        env={**os.environ, "HF_HUB_OFFLINE": "1"}, check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    info = target / "model.json"
    info.write_text('{"format": 1, "framework": "onnxruntime-genai", "files": {"model": {"file": "model.onnx"}}}')
    with contextlib.closing(torch_llm.open_engine(engine_request(source))) as reference:
        expected = answers_of(reference, prompts)
    with contextlib.closing(backend.open_engine(engine_request(info))) as engine:
        answers = answers_of(engine, prompts)
    ends = (2,)  # the package leaves the end token out
    wanted = [[token for token in answer if token not in ends] for answer in expected]
    assert sum(one == other for one, other in zip(answers, wanted, strict=True)) >= 9  # a tie may fall the other way
