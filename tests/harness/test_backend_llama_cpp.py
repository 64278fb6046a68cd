"""The llama_cpp engine: what it starts, what it says of itself, what it refuses, and with `--full` the answers of
llama.cpp itself beside the reference engine's."""

import contextlib
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import harness_support
import pytest
import stub_openai
from recipe_programs import loaded
from text_engines import Told, answers_of, engine_request, prompts_of, tiny_model

from crowdperf.harness.backends.llama_cpp import engine as llama_cpp
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.text.engine import Prompt, Request
from crowdperf.harness.text.request import TextRequest
from crowdperf.rules.record import Sampling

FAKE = """
import json, site, sys, time
site.addsitedir({support!r})  # a server gets no PYTHONPATH
import stub_openai
order = json.loads(sys.argv[1])
print("called with", sys.argv[1], flush=True)
if {wrong!r}:
    print("Traceback\\nRuntimeError: failed to load the model", flush=True)
    sys.exit(1)
stub_openai.MODEL = order["name"]
with stub_openai.running_stub(order["port"]):
    time.sleep(60)
"""
TOKEN_BYTES = 2 * 2 * 2 * 8 * 2
"""Of the tiny model: keys and values, 2 layers, 2 heads of 8 numbers, 2 bytes each."""


@pytest.fixture
def gguf_info(tmp_path: Path) -> Path:
    """The model.json of a tiny model whose GGUF file is none that anything could read."""
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32}
    (tmp_path / "config.json").write_text(json.dumps(sizes))
    stub_openai.write_tokenizer(tmp_path)
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    (tmp_path / "model.json").write_text('{"format": 1, "files": {"model": {"file": "tiny.gguf"}}}')
    return tmp_path / "model.json"


def request_of(info: Path, **changes: object):
    return engine_request(info, **{"precision": "int4", **changes})


def use_fake(monkeypatch: pytest.MonkeyPatch, folder: Path, wrong: str = "") -> None:
    program = folder / "fake.py"
    program.write_text(FAKE.format(wrong=wrong, support=str(Path(stub_openai.__file__).parent)))
    monkeypatch.setattr(llama_cpp, "_PROGRAM", program)
    monkeypatch.setattr(llama_cpp.metadata, "version", lambda name: "1.2")


def test_a_server_with_slots_is_started_asked_and_ended(
    tmp_path: Path, gguf_info: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fake(monkeypatch, tmp_path)
    text = TextRequest(max_in_flight=3, kv_cache_bytes=1 << 30)
    with contextlib.closing(llama_cpp.open_engine(request_of(gguf_info, text=text))) as engine:
        told = Told()
        engine.start(told)
        engine.submit([Request(number=number, prompt=Prompt(tokens=one)) for number, one in enumerate(prompts_of(5))])
        told.wait(5)
        record, versions = engine.record(), engine.versions()
    assert not told.whys and sorted(told.answers) == list(range(5))
    assert record["max_in_flight"] == {"value": 3, "origin": "user"}
    assert record["kv_cache_bytes"] == {"value": 3 * 256 * TOKEN_BYTES, "origin": "256 tokens a request"}
    assert record["kv_cache_limit_gib"] == {"value": 1, "origin": "user, in whole GiB"}
    assert record["prefix_caching"] == {"value": False, "origin": "the rules"}
    assert versions["xllamacpp"] == "1.2" and "endpoint" not in record
    order = json.loads((tmp_path / "llama_cpp.log").read_text().splitlines()[0].removeprefix("called with "))
    assert {name: order[name] for name in ("slots", "slot_tokens", "threads", "cores")} == {
        "slots": 3, "slot_tokens": 256, "threads": 1, "cores": [],
    }  # fmt: skip
    assert order["model"] == str(tmp_path / "tiny.gguf")


def test_a_server_that_cannot_open_the_file_says_why(
    tmp_path: Path, gguf_info: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fake(monkeypatch, tmp_path, wrong="file")
    with pytest.raises(
        HarnessError, match=r"llama.cpp's server ended before .*: RuntimeError: failed to load"
    ) as caught:
        llama_cpp.open_engine(request_of(gguf_info))
    assert "llama_cpp.log" in str(caught.value.hint)


def test_the_memory_bounds_the_slots(gguf_info: Path) -> None:
    request = request_of(gguf_info, text=TextRequest(max_in_flight=4))
    assert llama_cpp.slots_of(request, 1 << 20, 1) == llama_cpp.Slots(4, "user", 256, 256 << 20)
    assert llama_cpp.slots_of(request, 3 << 19, 1) == llama_cpp.Slots(2, "memory for the KV cache", 256, 384 << 20)
    with pytest.raises(HarnessError, match=r"one prompt needs 2.0 GiB of keys and values for 256 tokens"):
        llama_cpp.slots_of(request, 1 << 23, 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"sampling": Sampling(max_tokens=8, min_tokens=2)},
            "does not support a setting of the benchmark: min_tokens 2",
        ),
        ({"sampling": Sampling(max_tokens=8, stop=(7,))}, r"stop tokens \[7\]"),
    ],
)
def test_what_it_cannot_do_is_refused(gguf_info: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(HarnessError, match=said):
        llama_cpp.open_engine(request_of(gguf_info, **changes))


def test_a_model_without_a_gguf_file_or_config_is_refused(tmp_path: Path, gguf_info: Path) -> None:
    (tmp_path / "config.json").unlink()
    with pytest.raises(HarnessError, match=r"llama_cpp needs config\.json next to the model's model\.json"):
        llama_cpp.open_engine(request_of(gguf_info))
    other = tiny_model(tmp_path / "other")
    with pytest.raises(HarnessError, match=r"reads one GGUF file, but the model has config.json, "):
        llama_cpp.open_engine(request_of(other))


def test_nothing_of_a_prompt_is_kept_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("xllamacpp")
    library.CommonParams = lambda: SimpleNamespace(  # type: ignore[attr-defined]
        model=SimpleNamespace(),
        cpuparams=SimpleNamespace(),
        cpuparams_batch=SimpleNamespace(),
        sampling=SimpleNamespace(),
    )
    monkeypatch.setitem(sys.modules, "xllamacpp", library)
    serve = loaded(Path(llama_cpp.__file__).with_name("serve.py"))
    order = {"model": "m.gguf", "name": "model", "port": 1, "slots": 4, "slot_tokens": 512, "threads": 2, "cores": []}
    params = serve.parameters(order)
    assert (params.n_parallel, params.n_ctx, params.cpuparams.n_threads) == (4, 2048, 2)
    assert not (params.cache_prompt or params.cache_ram_mib or params.cache_idle_slots or params.n_ctx_checkpoints)
    assert (params.sampling.top_k, params.sampling.min_p, params.model_alias) == (0, 0.0, {"model"})


def test_llama_cpp_answers_many_at_once_as_it_does_alone(tmp_path: Path) -> None:
    harness_support.need("numpy", "tokenizers", "xllamacpp", "gguf")
    import gguf_files

    info, prompts = tiny_model(tmp_path / "llama"), prompts_of(8)
    (tmp_path / "gguf").mkdir()
    model_info = gguf_files.write_gguf(info.parent, tmp_path / "gguf" / "tiny.gguf")
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / "gguf" / name).write_bytes((info.parent / name).read_bytes())
    answers = {}
    for count in (1, 8):
        request = request_of(model_info, precision="fp16", text=TextRequest(max_in_flight=count))
        with contextlib.closing(llama_cpp.open_engine(request)) as engine:
            answers[count] = answers_of(engine, prompts)
            assert engine.record()["counts"]["answered"] == 8 and engine.record()["counts"]["cached_tokens"] == 0
    # Of random weights come bytes that are no text: what can be compared is what the server made text of.
    assert (
        sum(one == other for one, other in zip(answers[1], answers[8], strict=True)) >= 6
    )  # 16 bits: near ties differ
