"""whisper: features, decoding with caches, labels and token counts, words that are spelt together, Offline alone."""

import json
import wave
from types import SimpleNamespace

import harness_support
import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from crowdperf.benchmarks.whisper import model as whisper
from crowdperf.benchmarks.whisper import network
from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.responses import ResponseSink
from crowdperf.harness.base.tensors import TokenResponses
from crowdperf.harness.datasets import whisper as data
from crowdperf.harness.metrics import wer_whisper
from crowdperf.harness.runner.components import require_fit
from crowdperf.harness.runner.sut import batch_answer
from crowdperf.rules.names import Scenario

harness_support.need("mlperf_loadgen")

pytestmark = pytest.mark.usefixtures("one_thread")
TINY = {**network.CONFIGS["tiny"], "frame_count": 40, "mel_count": 8, "d_model": 16, "heads": 2, "ffn_dim": 24}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("whisper")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([*whisper.PROMPT, whisper.END])
    tokenizer.save(str(place / "tokenizer.json"))
    return place


def opened(folder, **changes):
    return whisper.open_model(ModelFacts(folder=folder, config={**TINY, **changes}))


def letters_of(folder, text):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return [tokenizer.token_to_id("Ġ" if one == " " else one) for one in text]


def test_features_are_those_of_torchs_transform():
    sound = np.random.default_rng(0).standard_normal(3000).astype(np.float32) * 0.1
    found = whisper.log_mel(sound, 16, 30)
    padded = torch.nn.functional.pad(torch.from_numpy(sound), (0, 30 * 160 - len(sound)))
    spectrum = torch.stft(padded, 400, 160, window=torch.hann_window(400), return_complex=True)[..., :-1].abs() ** 2
    energies = torch.from_numpy(whisper.mel_filters(16, 400)).T @ spectrum
    logarithms = energies.clamp(min=1e-10).log10()
    wanted = (torch.maximum(logarithms, logarithms.max() - 8) + 4) / 4
    assert found.shape == (16, 30) and found.dtype == np.float32
    assert np.allclose(found, wanted.numpy(), atol=1e-4)
    longer = whisper.log_mel(np.tile(sound, 5), 16, 30)
    assert longer.shape == (16, 30)  # cut at its end


@pytest.mark.parametrize("frame_count", [127, 128, 300])
def test_features_of_blocks_are_those_of_all_frames_at_once(monkeypatch, frame_count):
    """The rounding of a matrix product may depend on its rows; the rest is equal."""
    sound = np.random.default_rng(0).standard_normal(40_000).astype(np.float32) * 0.1
    blocks = whisper.log_mel(sound, 16, frame_count)
    monkeypatch.setattr(whisper, "_BLOCK_FRAMES", 300)
    assert np.allclose(blocks, whisper.log_mel(sound, 16, frame_count), rtol=0, atol=1e-6)


@pytest.mark.full  # torch takes seconds for its first tensor without memory
def test_the_full_network_has_as_many_parameters_as_the_published_one():
    with torch.device("meta"):
        parts = [network.build(name, network.CONFIGS["full"]) for name in ("encoder", "decoder")]
    assert sum(one.numel() for part in parts for one in part.parameters()) == 1_543_490_560
    names = {name for part in parts for name in part.state_dict()}
    assert {"encoder.layers.31.self_attn.k_proj.weight", "decoder.layers.0.encoder_attn.v_proj.bias"} <= names
    assert "encoder.layers.31.self_attn.k_proj.bias" not in names
    assert network.convert_checkpoint("decoder", {"model.decoder.a": torch.ones(1)}).keys() == {"decoder.a"}


def torch_calls(model, modules):
    def call(name):
        outputs = [spec.name for one in model.networks if one.name == name for spec in one.outputs]

        def infer(inputs):
            with torch.inference_mode():
                answers = modules[name](*(torch.as_tensor(value) for value in inputs.values()))
            return dict(zip(outputs, answers, strict=True))

        return infer

    return {name: call(name) for name in modules}


def test_decoding_with_caches_gives_what_the_whole_text_gives_and_does_not_depend_on_the_batch(folder):
    model = opened(folder, decoder_layers=2, position_count=14)
    generator = torch.Generator().manual_seed(5)
    modules = {name: network.build(name, model_config(model)) for name in ("encoder", "decoder")}
    with torch.no_grad():
        for module in modules.values():
            for parameter in module.parameters():
                parameter.normal_(0.0, 0.4, generator=generator)
    random = np.random.default_rng(3)
    samples = [{"waveform": random.standard_normal(4000 + 700 * n).astype(np.float32)} for n in range(3)]
    calls = torch_calls(model, modules)
    together = model.transcribe(calls, model.collate(samples))
    assert together == [model.transcribe(calls, model.collate([one]))[0] for one in samples]
    assert max(map(len, together)) <= 10  # of 14 positions the prompt has 4
    _, prompt, _ = model._tokenizer
    clip = modules["encoder"](torch.from_numpy(model.collate(samples)["features"]))
    for row, tokens in enumerate(together):
        text = torch.tensor([[*prompt.tolist(), *tokens[:-1]]])
        kept = tuple(one[row : row + 1] for one in clip)
        empty = torch.zeros(1, 2, TINY["heads"], 1, TINY["d_model"] // TINY["heads"])
        logits, _, _ = modules["decoder"].logits(text, torch.arange(text.shape[1])[None], *kept, empty, empty)
        assert logits[0, len(prompt) - 1 :].argmax(-1).tolist() == tokens


def model_config(model):
    return {**TINY, "decoder_layers": model._cache_shape[0], "position_count": 14}


def scripted(folder, texts):
    """Networks that spell out the texts, each with an end token after it."""
    end = Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id(whisper.END)
    rows = [[*letters_of(folder, text), end] for text in texts]
    step = iter(range(10**6))

    def decoder(inputs):
        number = next(step)
        symbol = [row[number] if number < len(row) else 7 for row in rows]
        return {"symbol": np.array(symbol), "next_key": inputs["key"], "next_value": inputs["value"]}

    return {"encoder": lambda inputs: {"clip_key": 1, "clip_value": 2}, "decoder": decoder}


def test_responses_are_labels_and_the_token_counts_include_the_end(folder):
    model = opened(folder)
    inputs = {"features": np.zeros((3, 8, 40), np.float32)}
    found = model.predict(scripted(folder, [" Ab c.", " it's 5%", ""]), inputs)
    assert isinstance(found, TokenResponses) and found.token_counts == [7, 9, 1]
    texts = [wer_whisper.transcript_of(0, row.tobytes()) for row in found]
    assert texts == ["ab c", "it's 5%", ""] and all(row.dtype == np.int64 for row in found)
    assert wer_whisper.labels_of(" z 9").tolist() == [26, 0, 37]


def test_loadgen_gets_the_number_of_tokens_beside_the_bytes():
    made = []
    rows = TokenResponses([np.arange(3, dtype=np.int64), np.zeros(0, np.int64)], [7, 2])
    work = SimpleNamespace(
        response=None,
        predict=lambda networks, inputs: rows,
        networks=[{}],
        library=SimpleNamespace(fixed_gather=lambda count: lambda indices: {}),
        sink=ResponseSink(lambda *values: values, made.extend),
        failures=SimpleNamespace(is_set=False, record=pytest.fail),
        counts=SimpleNamespace(slots=[0]),
    )
    batch_answer(work, 0, 2)([11, 12], [0, 1])
    assert [(one[0], one[2], one[3]) for one in made] == [(11, 24, 7), (12, 0, 2)]


@pytest.mark.parametrize("scenario", list(Scenario))
def test_only_offline_can_be_run(scenario):
    config = SimpleNamespace(backend="onnxruntime", model="whisper", device="cpu", scenario=scenario)
    if scenario is Scenario.OFFLINE:
        require_fit(config)
        return
    with pytest.raises(ConfigError, match="allowed: Offline"):
        require_fit(config)


@pytest.mark.parametrize(
    ("found", "wanted", "errors"),
    [
        ("a b c", "a b c", 0),
        ("every one is here", "everyone is here", 0),
        ("everyone is here", "every one is here", 0),
        ("a whoso ever b", "a who so ever b", 0),
        ("nonetheless", "none the less", 0),
        ("a x c", "a b c", 1),
        ("", "a b c", 3),
        ("a b c", "", 3),
        ("a b c d", "a b", 2),
        ("ab c", "a bc", 2),  # neither word is the other's joined
    ],
)
def test_words_that_differ_by_a_blank_are_equal(found, wanted, errors):
    assert wer_whisper.error_count(found.split(), wanted.split()) == errors


def responses(*texts):
    return [(index, wer_whisper.labels_of(text).tobytes()) for index, text in enumerate(texts)]


def test_the_score_is_that_of_normalised_words():
    harness_support.need("whisper_normalizer")
    score = wer_whisper.score(
        responses("Mr. Smith has twenty one dogs", "the colour is gray"),
        ["mister smith has twenty one dogs", "the color is blue"],
    )
    # "mister smith has 21 dogs" is equal; of "the color is gray" one word of four is wrong: 1 of 9.
    assert score.line == f"Word Error Rate: {1 / 9 * 100}%, accuracy={(1 - 1 / 9) * 100}%"
    assert score.values["ACCURACY"] == pytest.approx(100 - 100 / 9)
    with pytest.raises(HarnessError, match="no word"):
        wer_whisper.score(responses("a"), [""])


def test_responses_of_another_form_are_refused():
    with pytest.raises(HarnessError, match="5 bytes, which is not a whole number of int64"):
        wer_whisper.transcript_of(3, b"12345")
    with pytest.raises(HarnessError, match="the labels 1 to 42; allowed: 0 to 41"):
        wer_whisper.transcript_of(3, np.array([1, 42]).tobytes())


def clip(folder, name, count):
    path = folder / "dev-all-repack" / name
    path.parent.mkdir(exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(np.full(count, 1000, "<i2").tobytes())
    seconds = count / 16_000
    return {"files": [{"fname": f"dev-all-repack/{name}", "speed": 1}], "original_duration": seconds,
            "original_num_samples": count, "transcript": "so it is"}  # fmt: skip


def test_clips_of_up_to_30_s_are_read_in_the_lists_order(tmp_path):
    rows = [clip(tmp_path, "b.wav", 16_000), clip(tmp_path, "a.wav", 480_000)]
    rows.append({**clip(tmp_path, "c.wav", 1000), "original_duration": 30.01})
    (tmp_path / data.MANIFEST_FILE).write_text(json.dumps(rows))
    dataset = data.open_dataset(tmp_path)
    assert dataset.count == 2 and dataset.transcripts == ("so it is",) * 2
    assert [len(one) for one in dataset.load([1, 0])] == [480_000, 16_000]
    (tmp_path / "dev-all-repack" / "a.wav").unlink()
    with pytest.raises(HarnessError, match=r"1 of 2 files cannot be used"):
        data.open_dataset(tmp_path)


def test_a_folder_without_whispers_tokenizer_is_refused_before_the_run(folder, tmp_path):
    with pytest.raises(HarnessError, match="contains neither tokenizer") as raised:
        opened(tmp_path).preprocess([np.zeros(10, np.float32)])
    assert "gptj" not in raised.value.hint, "the model is another one"
    Tokenizer(models.BPE({"a": 0}, [])).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(HarnessError, match=r"has no <\|startoftranscript\|>"):
        opened(tmp_path).preprocess([np.zeros(10, np.float32)])
    with pytest.raises(HarnessError, match="is missing d_model"):
        whisper.open_model(ModelFacts(config={key: value for key, value in TINY.items() if key != "d_model"}))
    assert whisper.memory_bytes(ModelFacts()) == pytest.approx(6.17e9, rel=0.01)
