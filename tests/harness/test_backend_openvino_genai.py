"""openvino_genai: the answers of the reference engine, ended as the benchmark says, from a GGUF file as it lies."""

import contextlib

import gguf_files
import harness_support
import numpy as np
import pytest
from text_engines import Told, answers_of, engine_request, prompts_of, tiny_model

from crowdperf.harness.backends.openvino_genai import engine as openvino_genai
from crowdperf.harness.backends.torch_llm import engine as torch_llm
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.text.engine import Finish, Prompt, Request
from crowdperf.harness.text.request import TextRequest
from crowdperf.rules.record import Sampling

harness_support.need("tokenizers")


@pytest.fixture(scope="module")
def folder_info(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def model_info(folder_info):
    (folder_info.parent / "gguf").mkdir()
    return gguf_files.write_gguf(folder_info.parent, folder_info.parent / "gguf" / "tiny.gguf")


@contextlib.contextmanager
def opened(info, sampling=None, **changes):
    changes = {"precision": "fp16", **changes}
    with contextlib.closing(openvino_genai.open_engine(engine_request(info, sampling, **changes))) as engine:
        yield engine


def test_answers_are_those_of_the_reference_engine_and_every_setting_is_said(folder_info, model_info):
    prompts = prompts_of(12)
    with opened(model_info) as engine:
        answers, record = answers_of(engine, prompts), engine.record()
        told = Told()
        engine.start(told)
        bad = (np.full(41, 5), np.array([]), np.array([300]), np.array([-1]))
        requests = [
            Request(number=50 + number, prompt=Prompt(tokens=one.astype(np.int32))) for number, one in enumerate(bad)
        ]
        engine.submit([*requests, Request(number=60, prompt=Prompt(tokens=prompts[0]))])
        told.wait(5)
    with contextlib.closing(torch_llm.open_engine(engine_request(folder_info))) as reference:
        expected = answers_of(reference, prompts)
    assert sum(one == other for one, other in zip(answers, expected, strict=True)) >= 10  # 16 bits: near ties differ
    assert record["max_in_flight"] == {"value": 4, "origin": "user"}
    assert record["kv_cache_bytes"]["value"] >= 1 << 29 and record["prefix_caching"]["value"] is False
    assert record["inference_num_threads"]["value"] == 1
    assert told.answers[60].tokens.tolist() == answers[0]
    assert "41 tokens" in told.whys[50] and "0 tokens" in told.whys[51] and "not one of" in told.whys[52]
    assert [word for word, number in told.events if number == 60] == ["first", "done"]


def test_an_answer_ends_with_a_stop_token_or_at_its_greatest_length(model_info):
    prompt = prompts_of(1)[0]
    with opened(model_info, Sampling(max_tokens=8, is_end_ignored=True)) as engine:
        (whole,) = answers_of(engine, [prompt])
    stop = next(token for token in whole[2:] if token not in whole[:2])
    told = Told()
    with opened(model_info, Sampling(max_tokens=8, stop=(stop,))) as engine:
        engine.start(told)
        engine.submit([Request(number=0, prompt=Prompt(tokens=prompt))])
        told.wait(1)
    assert len(whole) == 8
    assert (told.answers[0].tokens.tolist(), told.answers[0].finish) == (whole[: whole.index(stop) + 1], Finish.STOP)


def test_min_tokens_seeds_and_timeouts(model_info):
    prompt = prompts_of(1)[0]
    with opened(model_info, Sampling(max_tokens=8, is_end_ignored=True)) as engine:
        (whole,) = answers_of(engine, [prompt])
    with opened(model_info, Sampling(max_tokens=8, min_tokens=8, stop=(whole[0],))) as engine:
        (answer,) = answers_of(engine, [prompt])
    assert len(answer) == 8
    drawn = Sampling(max_tokens=8, temperature=1.0, top_k=50, seed=1)
    with opened(model_info, drawn) as together, opened(model_info, drawn, text=TextRequest(max_in_flight=1)) as alone:
        answers = answers_of(together, [prompt] * 4)
        assert answers_of(alone, [prompt] * 4) == answers
    assert len({tuple(answer) for answer in answers}) > 1
    told = Told()
    with opened(model_info, Sampling(max_tokens=4000, is_end_ignored=True), text=TextRequest(timeout_s=0.3)) as engine:
        engine.start(told)
        engine.submit([Request(number=0, prompt=Prompt(tokens=prompt))])
        told.wait(1)
    assert "no complete answer within 0.3 s" in told.whys[0]


def test_closing_with_requests_in_flight_returns(model_info):
    with opened(model_info, Sampling(max_tokens=4000, is_end_ignored=True)) as engine:
        engine.start(Told())
        engine.submit([Request(number=number, prompt=Prompt(tokens=one)) for number, one in enumerate(prompts_of(9))])
    assert not engine._thread.is_alive()


def test_what_openvino_cannot_open_is_refused_in_a_line(folder_info, tmp_path):
    with pytest.raises(HarnessError, match=r"reads one GGUF file, but the model has config.json, "):
        openvino_genai.open_engine(engine_request(folder_info, precision="fp16"))
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + bytes(60))
    (tmp_path / "model.json").write_text('{"format": 1, "files": {"model": {"file": "bad.gguf"}}}')
    with pytest.raises(HarnessError, match=r"cannot open bad.gguf") as caught:
        openvino_genai.open_engine(engine_request(tmp_path / "model.json", precision="fp16"))
    assert "\n" not in str(caught.value)
