"""RNN-T: its features agree with torch and librosa, its search with one utterance after the other, ONNX with torch."""

import json
import wave
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from harness_support import need
from rnnt_waveforms import COUNT, waveform

from crowdperf.benchmarks.rnnt import model as rnnt
from crowdperf.benchmarks.rnnt import network as networks
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.base.tensors import Infer
from crowdperf.harness.datasets import librispeech
from crowdperf.harness.media import audio_features
from crowdperf.models.make_model import ModelRequest, build_modules, write_model

need("onnx")

torch.set_num_threads(1)
RECORDED = Path(__file__).with_name("rnnt_features.npz")
TINY = dict(networks.CONFIGS["tiny"])


# --- features: recorded from torch 2.13.0 (stft in float64) and librosa 0.11.0 (mel filters) ---


@pytest.fixture(scope="module")
def recorded() -> Mapping[str, Any]:
    with np.load(RECORDED) as file:
        return dict(file)


def test_mel_filters_are_librosas(recorded: Mapping[str, Any]) -> None:
    assert np.abs(audio_features.mel_filters() - recorded["mel"]).max() < 1e-8


def test_features_agree_with_torch_on_thousands_of_frames(recorded: Mapping[str, Any]) -> None:
    weights = np.random.RandomState(7).standard_normal((240, 4)) / np.sqrt(240)
    found = [audio_features.features(waveform(number)) for number in range(COUNT)]
    assert [len(rows) for rows in found] == recorded["lengths"].tolist()
    assert [audio_features.frame_count(len(waveform(number))) for number in range(COUNT)] == [len(f) for f in found]
    difference = np.abs(np.concatenate(found) @ weights - recorded["projected"])
    assert len(difference) > 2000
    # The reference itself, in float32, is up to 0.03 (0.005 for all but one value in 1,000) away from these.
    assert difference.max() < 0.01
    assert np.quantile(difference, 0.999) < 0.003


@pytest.mark.parametrize("number", [0, 1])
def test_every_feature_of_an_utterance_agrees(recorded: Mapping[str, Any], number: int) -> None:
    assert np.abs(audio_features.features(waveform(number)) - recorded[f"features_{number}"]).max() < 0.02


@pytest.mark.parametrize("sample_count", [257, 479, 480, 481, 640, 960])
def test_short_utterances_have_finite_features(sample_count: int) -> None:
    sound = waveform(1)[:sample_count]
    rows = audio_features.features(sound)
    assert rows.shape == (audio_features.frame_count(sample_count), 240)
    assert np.isfinite(rows).all()


# --- search ---


def torch_calls(modules: Mapping[str, torch.nn.Module], model: rnnt.Rnnt) -> dict[str, Infer]:
    def as_call(spec: Any) -> Infer:
        def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            assert set(inputs) == {tensor.name for tensor in spec.inputs}
            for tensor in spec.inputs:
                assert str(inputs[tensor.name].dtype) == tensor.dtype, tensor.name
            with torch.inference_mode():
                outputs = modules[spec.name](*(torch.as_tensor(inputs[tensor.name]) for tensor in spec.inputs))
            return {tensor.name: value.numpy() for tensor, value in zip(spec.outputs, outputs, strict=True)}

        return call

    return {spec.name: as_call(spec) for spec in model.networks}


def search_alone(modules: Mapping[str, Any], sound: np.ndarray) -> list[int]:
    """The search as the reference has it: one utterance, one step, one label after the other, nothing remembered."""
    rows = torch.from_numpy(audio_features.features(sound))
    if len(rows) % 2:
        encoder = modules["encoder"]
        pre, _ = encoder.pre_rnn.lstm(rows[None])
        pre = torch.cat((pre, torch.zeros(1, 1, pre.shape[2])), dim=1)
        encoded, _ = encoder.post_rnn.lstm(pre.reshape(1, -1, 2 * pre.shape[2]))
    else:
        (encoded,) = modules["encoder"](rows[None], torch.tensor([len(rows)]))
    lstm, embed = modules["prediction"].dec_rnn.lstm, modules["prediction"].embed
    labels: list[int] = []
    state = None
    for step in encoded[0]:
        for _ in range(30):
            before = embed(torch.tensor([[labels[-1]]])) if labels else torch.zeros(1, 1, embed.embedding_dim)
            predicted, new_state = lstm(before, state)
            logits = modules["joint"].net(torch.cat((step, predicted[0, 0])))
            label = int(logits.argmax())
            if label == 28:
                break
            labels.append(label)
            state = new_state
    return labels


@pytest.fixture(scope="module", params=[0, 4])
def random_modules(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Random weights whose joint network says blanks, single labels and bursts of labels."""
    folder = tmp_path_factory.mktemp("rnnt")
    order = ModelRequest(architecture="rnnt", config="tiny", framework="onnx", output_dir=folder, seed=request.param)
    modules = build_modules(order)
    with torch.no_grad():
        modules["joint"].net[3].bias[-1] -= 0.1 * request.param
    return modules


def test_a_batch_says_what_each_utterance_says_alone(random_modules: Mapping[str, Any]) -> None:
    model = rnnt.open_model(ModelFacts(config=TINY))
    sounds = [waveform(number)[: 3000 + 2400 * number] for number in range(6)]
    samples = model.preprocess(sounds)
    responses = model.predict(torch_calls(random_modules, model), model.collate(samples))
    with torch.inference_mode():
        wanted = [search_alone(random_modules, sound) for sound in sounds]
    assert [response.tolist() for response in responses] == wanted
    assert all(response.dtype == np.int64 for response in responses)
    alone = [model.predict(torch_calls(random_modules, model), model.collate([sample]))[0] for sample in samples]
    assert all(np.array_equal(one, other) for one, other in zip(alone, responses, strict=True))


class _Scripted:
    """Networks whose joint network follows a table: symbol by (utterance, step, labels said so far)."""

    def __init__(self, table: Mapping[tuple[int, int, int], int]) -> None:
        self.table = table

    def calls(self, steps: int) -> dict[str, Infer]:
        def encoder(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            return {"encoded": np.zeros((len(inputs["length"]), steps, 64), np.float32)}

        def prediction(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            said = inputs["hidden"] + np.where(inputs["is_new"] & (inputs["label"] >= 0), 1, 0)[:, None, None]
            return {"next_hidden": said.astype(np.float32), "next_cell": inputs["cell"]}

        def joint(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            said = inputs["hidden"][:, 0, 0].astype(int)
            rows = [
                [self.table.get((u, int(t), int(said[u])), 28) for t in row] for u, row in enumerate(inputs["step"])
            ]
            return {"symbol": np.array(rows)}

        return {"encoder": encoder, "prediction": prediction, "joint": joint}


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ({}, [[], []]),
        ({(0, 0, 0): 5}, [[5], []]),
        ({(0, 9, 0): 5, (1, 0, 0): 1, (1, 0, 1): 2, (1, 3, 2): 3}, [[5], [1, 2, 3]]),
        # a label at a step behind the end (utterance 1 has 6 steps) is not said
        ({(1, 5, 0): 7, (1, 6, 1): 8}, [[], [7]]),
        # no more than 30 labels at one step, then the next step goes on
        ({**{(0, 2, said): 4 for said in range(99)}, (0, 3, 30): 9}, [[4] * 30 + [9], []]),
        # 300 labels do not fit the first buffer
        ({(0, step, said): 1 for step in range(10) for said in range(300)}, [[1] * 300, []]),
    ],
)
def test_search_follows_the_rules_of_the_reference(table: dict, wanted: list[list[int]]) -> None:
    model = rnnt.open_model(ModelFacts(config=TINY))
    samples = model.preprocess([np.ones(20 * 480, np.float32), np.ones(11 * 480, np.float32)])
    responses = model.predict(_Scripted(table).calls(10), model.collate(samples))
    assert [response.tolist() for response in responses] == wanted


# --- files ---


def test_onnx_says_what_torch_says(random_modules: Mapping[str, Any], tmp_path: Path) -> None:
    order = ModelRequest(architecture="rnnt", config="tiny", framework="onnx", output_dir=tmp_path)
    facts = read_model_facts(None, write_model(random_modules, order))
    model = rnnt.open_model(facts)
    sessions = {name: onnxruntime.InferenceSession(str(file.path)) for name, file in facts.files.items()}
    names = {spec.name: [tensor.name for tensor in spec.outputs] for spec in model.networks}
    calls = {
        name: lambda inputs, name=name: dict(
            zip(names[name], sessions[name].run(names[name], dict(inputs)), strict=True)
        )
        for name in sessions
    }
    for numbers in ([1, 2, 3], [5]):
        batch = model.collate(model.preprocess([waveform(number)[:20_000] for number in numbers]))
        features, lengths = model._features(batch)
        inputs = {"features": features, "length": lengths}
        expected = torch_calls(random_modules, model)
        difference = calls["encoder"](inputs)["encoded"] - expected["encoder"](inputs)["encoded"]
        assert np.abs(difference).max() < 2e-5
        for one, other in zip(model.predict(calls, batch), model.predict(expected, batch), strict=True):
            assert one.tolist() == other.tolist()


def test_the_published_checkpoint_has_a_place_for_each_tensor() -> None:
    shapes = {"pre_rnn": (240, 1024, 2), "post_rnn": (2048, 1024, 3), "dec_rnn": (320, 320, 2)}
    published: dict[str, torch.Tensor] = {"audio_preprocessor.featurizer.fb": torch.empty(1, 80, 257, device="meta")}
    for stack, (width, hidden, layers) in shapes.items():
        owner = "prediction" if stack == "dec_rnn" else "encoder"
        for layer in range(layers):
            prefix, columns = f"{owner}.{stack}.lstm.", width if layer == 0 else hidden
            published[f"{prefix}weight_ih_l{layer}"] = torch.empty(4 * hidden, columns, device="meta")
            published[f"{prefix}weight_hh_l{layer}"] = torch.empty(4 * hidden, hidden, device="meta")
            published |= {
                f"{prefix}bias_{kind}_l{layer}": torch.empty(4 * hidden, device="meta") for kind in ("ih", "hh")
            }
    published["prediction.embed.weight"] = torch.empty(28, 320, device="meta")
    for number, (rows, columns) in {0: (512, 1344), 3: (29, 512)}.items():
        published[f"joint_net.{number}.weight"] = torch.empty(rows, columns, device="meta")
        published[f"joint_net.{number}.bias"] = torch.empty(rows, device="meta")
    count = 0
    for network in ("encoder", "prediction", "joint"):
        with torch.device("meta"):
            module = networks.build(network, networks.CONFIGS["full"])
        module.load_state_dict(networks.convert_checkpoint(network, published))
        count += sum(parameter.numel() for parameter in module.parameters())
    assert 45.2e6 < count < 45.4e6  # "45.3 million parameters", README of the reference


def test_a_config_without_sizes_is_refused() -> None:
    with pytest.raises(HarnessError, match="is missing encoder_n_hidden"):
        rnnt.open_model(ModelFacts(config={"pred_n_hidden": 3, "pred_rnn_layers": 2, "encoder_stack_time_factor": 2}))


def test_a_bare_model_has_the_official_sizes() -> None:
    full = networks.CONFIGS["full"]
    assert rnnt.open_model(ModelFacts()).networks == rnnt.open_model(ModelFacts(config=full)).networks


# --- data set ---


def write_dataset(folder: Path, entries: list[dict]) -> None:
    (folder / "dev-clean-wav.json").write_text(json.dumps(entries))


def entry(name: str, sample_count: int, transcript: str = "a word", **changes: Any) -> dict:
    described = {
        "files": [{"fname": name, "speed": 1}],
        "original_duration": sample_count / 16_000,
        "original_num_samples": sample_count,
        "transcript": transcript,
    }
    return {**described, **changes}


def write_wav(path: Path, samples: np.ndarray, channels: int = 1, rate: int = 16_000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())


def test_dataset_leaves_out_what_is_longer_than_15_seconds(tmp_path: Path) -> None:
    sounds = [np.arange(1000) - 500, np.arange(240_001) % 7, np.full(240_000, -32768)]
    for number, sound in enumerate(sounds):
        write_wav(tmp_path / f"dev-clean-wav/{number}.wav", sound)
    fast = {"fname": "dev-clean-wav/fast.wav", "speed": 1.1}
    entries = [
        entry(f"dev-clean-wav/{number}.wav", len(sound), f"said {'abc'[number]}") for number, sound in enumerate(sounds)
    ]
    entries[0]["files"].append(fast)
    write_dataset(tmp_path, entries)
    dataset = librispeech.open_dataset(tmp_path)
    assert (dataset.count, dataset.transcripts) == (2, ("said a", "said c"))
    assert not dataset.facts.is_synthetic
    loud, first = dataset.load([1, 0])
    assert (loud.dtype, len(loud), loud.min(), loud.max()) == (np.float32, 240_000, -1.0, -1.0)
    assert first[0] == np.float32(-500 / 32768)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"transcript": "Déjà vu 2"}, "characters outside"),
        ({"files": []}, "0 files of speed 1"),
        ({"original_num_samples": 200}, "fewer than 257"),
        ({"original_duration": None}, "entry 0 cannot be used"),
        ({"files": [{"fname": "gone.wav", "speed": 1}]}, "gone.wav: No such file"),
        ({"original_num_samples": 999_999}, "its audio alone needs 1999998"),
    ],
)
def test_an_entry_that_cannot_be_right_is_named(tmp_path: Path, changes: dict, said: str) -> None:
    write_wav(tmp_path / "one.wav", np.zeros(1000))
    write_dataset(tmp_path, [entry("one.wav", 1000, **changes)])
    with pytest.raises(HarnessError, match=said):
        librispeech.open_dataset(tmp_path)


@pytest.mark.parametrize(
    ("channels", "rate", "samples", "said"),
    [(2, 16_000, 2000, "2 channels"), (1, 8000, 1000, "8000 Hz"), (1, 16_000, 1200, "has 1200 samples")],
)
def test_a_wav_file_of_another_kind_is_refused(
    tmp_path: Path, channels: int, rate: int, samples: int, said: str
) -> None:
    write_wav(tmp_path / "one.wav", np.zeros(samples), channels, rate)
    write_dataset(tmp_path, [entry("one.wav", 1000)])
    with pytest.raises(HarnessError, match=said):
        librispeech.open_dataset(tmp_path).load([0])


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "cannot read "), ("{}", "contains no list of"), ("[]", "contains no list of"), ("[3]", "")],
)
def test_a_list_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "dev-clean-wav.json").write_text(text)
    with pytest.raises(HarnessError, match=rf"(?=.*{said}).*dev-clean-wav\.json"):
        librispeech.open_dataset(tmp_path)


def test_a_waveform_too_short_for_its_features_is_refused_before_the_run() -> None:
    with pytest.raises(HarnessError, match="fewer than 257"):
        rnnt.open_model(ModelFacts(config=TINY)).preprocess([np.zeros(200, np.float32)])
