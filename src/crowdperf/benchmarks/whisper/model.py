"""Whisper large-v3, speech to text: features, encoder and greedy decoding, all timed.

Only reading the waveform may happen before. Clips are filled up with silence to 30 s, as the rules ask. Greedy, at most
200 tokens after the prompt for English without time stamps. Response of a sample: the numbers of its characters among
42 labels, as int64; LoadGen also gets the number of tokens that the network made, the end token included. Source:
reference_SUT.py, QSL.py and accuracy_eval.py in speech2text of mlcommons/inference (b66003e1 of 2026-08-20).

Features of speech for Whisper: logarithms of mel energies every 10 ms, of clips that silence fills up. Numpy only.

Constants and steps: whisper/audio.py of openai/whisper, 06dc24a5 (log_mel_spectrogram, pad_or_trim); large-v3 has 128
mel bands instead of 80.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, required_config
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Samples, Tensors, TensorSpec, TokenResponses
from crowdperf.harness.datasets.librispeech import LibriSpeechDataset
from crowdperf.harness.media.audio_features import HOP_SAMPLES, mel_filters
from crowdperf.harness.metrics import wer_whisper
from crowdperf.harness.text.tokenizer import Tokenizer, open_tokenizer

FloatArray = npt.NDArray[np.float32]

FFT_SIZE = 400
_WINDOW = (0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(FFT_SIZE) / FFT_SIZE)).astype(np.float32)
"""The periodic Hann window of torch.hann_window."""
_FLOOR = np.float32(1e-10)
_RANGE = np.float32(8.0)  # in powers of ten below the loudest
_BLOCK_FRAMES = 128
"""Frames that are transformed at once: their arrays, 200 KB each, stay in the cache of a core."""


def log_mel(waveform: FloatArray, mel_count: int, frame_count: int) -> FloatArray:
    """Return float32[mel_count, frame_count] of a waveform of 16 kHz, -1..1, cut or filled with zeros to the frames."""
    half = FFT_SIZE // 2
    mirrored = np.zeros(frame_count * HOP_SAMPLES + FFT_SIZE, dtype=np.float32)
    signal = mirrored[half:-half]
    count = min(len(signal), len(waveform))
    signal[:count] = waveform[:count]
    mirrored[:half], mirrored[-half:] = signal[half:0:-1], signal[-2 : -half - 2 : -1]
    frames = np.lib.stride_tricks.sliding_window_view(mirrored, FFT_SIZE)[::HOP_SAMPLES][:frame_count]
    filters = mel_filters(mel_count, FFT_SIZE)
    features = np.empty((frame_count, mel_count), dtype=np.float32)
    windowed = np.empty((_BLOCK_FRAMES, FFT_SIZE), dtype=np.float32)
    powers = np.empty((2, _BLOCK_FRAMES, len(filters)), dtype=np.float32)
    for start in range(0, frame_count, _BLOCK_FRAMES):
        block = slice(start, start + _BLOCK_FRAMES)
        some = frames[block]
        spectrum = np.fft.rfft(np.multiply(some, _WINDOW, out=windowed[: len(some)]), axis=1)
        power, imaginary = powers[:, : len(some)]
        np.square(spectrum.real, out=power, casting="same_kind")
        power += np.square(spectrum.imag, out=imaginary, casting="same_kind")
        np.matmul(power, filters, out=features[block])
    np.log10(np.maximum(features, _FLOOR, out=features), out=features)
    np.maximum(features, features.max() - _RANGE, out=features)
    features += np.float32(4.0)
    features /= np.float32(4.0)
    return features.T


IntArray = npt.NDArray[np.int64]

PROMPT = ("<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>")
END = "<|endoftext|>"
MAX_TOKENS = 200
_SIZES = ("d_model", "decoder_layers", "heads", "mel_count", "frame_count", "position_count")
_FULL = {"d_model": 1280, "decoder_layers": 32, "heads": 20, "mel_count": 128, "frame_count": 3000,
         "position_count": 448}  # fmt: skip


def _networks(config: Mapping[str, Any]) -> tuple[NetworkSpec, ...]:
    layers, heads = int(config["decoder_layers"]), int(config["heads"])
    head = int(config["d_model"]) // heads

    def state(name: str, slots: int | str) -> TensorSpec:
        return TensorSpec(name=name, dtype="float32", shape=(layers, heads, slots, head), is_state=True)

    clip = tuple(state(name, int(config["frame_count"]) // 2) for name in ("clip_key", "clip_value"))
    features = TensorSpec(
        name="features", dtype="float32", shape=(int(config["mel_count"]), int(config["frame_count"]))
    )
    new = tuple(TensorSpec(name=name, dtype="int64", shape=("new",)) for name in ("token", "position"))
    return (
        NetworkSpec(name="encoder", inputs=(features,), outputs=clip),
        NetworkSpec(
            name="decoder",
            inputs=(*new, *clip, state("key", "past"), state("value", "past")),
            outputs=(
                TensorSpec(name="symbol", dtype="int64", shape=()),
                state("next_key", "total"),
                state("next_value", "total"),
            ),
        ),
    )


class Whisper:
    """A sample is `waveform` float32[samples], 16 kHz, -1..1."""

    response = None
    is_ragged = True
    is_storable = False

    def __init__(self, config: Mapping[str, Any], facts: ModelFacts) -> None:
        self.networks = _networks(config)
        self._facts = facts
        self._mel_count, self._frame_count = int(config["mel_count"]), int(config["frame_count"])
        heads = int(config["heads"])
        self._cache_shape = (int(config["decoder_layers"]), heads, 1, int(config["d_model"]) // heads)
        self._most = min(MAX_TOKENS, int(config["position_count"]) - len(PROMPT))

    @cached_property
    def _tokenizer(self) -> tuple[Tokenizer, IntArray, int]:
        """The tokenizer, the prompt's tokens and the end token; raises HarnessError."""
        tokenizer = open_tokenizer(self._facts.folder)
        found = [tokenizer.library_tokenizer.token_to_id(name) for name in (*PROMPT, END)]
        if None in found:
            raise HarnessError(
                f"the tokenizer in {self._facts.folder} has no {(*PROMPT, END)[found.index(None)]}",
                "give the folder with model.json that get,ml-model,whisper made",
            )
        return tokenizer, np.array(found[:-1], dtype=np.int64), int(found[-1])

    def preprocess(self, raw: Sequence[npt.NDArray[np.float32]]) -> Samples:
        """Return the waveforms as they are; the features are timed work."""
        _ = self._tokenizer  # so that a missing file is reported before the run
        return [{"waveform": waveform} for waveform in raw]

    def length(self, sample: Tensors) -> int:
        """Return the number of hundredths of a second: transcripts of near lengths end together."""
        return len(sample["waveform"]) // 160

    def collate(self, samples: Sequence[Tensors]) -> Tensors:
        """Return `features` float32[batch, mels, frames]."""
        rows = [log_mel(np.asarray(one["waveform"], np.float32), self._mel_count, self._frame_count) for one in samples]
        return {"features": np.stack(rows)}

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Sequence[Array]:
        """Return the labels of each transcript, int64[characters], with the number of its tokens."""
        tokenizer, _, end = self._tokenizer
        tokens = self.transcribe(networks, inputs)
        texts = [tokenizer.library_tokenizer.decode([one for one in row if one != end]) for row in tokens]
        return TokenResponses([wer_whisper.labels_of(text) for text in texts], [len(row) for row in tokens])

    def transcribe(self, networks: Mapping[str, Infer], inputs: Tensors) -> list[list[int]]:
        """Return the new tokens of each sample, with the end token where it came."""
        _, prompt, end = self._tokenizer
        clip = networks["encoder"]({"features": inputs["features"]})
        count = len(inputs["features"])
        token: IntArray = np.tile(prompt, (count, 1))
        position: IntArray = np.tile(np.arange(len(prompt), dtype=np.int64), (count, 1))
        states: dict[str, Any] = {name: np.zeros((count, *self._cache_shape), np.float32) for name in ("key", "value")}
        found: list[list[int]] = [[] for _ in range(count)]
        is_open = np.ones(count, dtype=np.bool_)
        for _ in range(self._most):
            answer = networks["decoder"]({"token": token, "position": position, **clip, **states})
            symbol = np.asarray(answer["symbol"]).reshape(count).astype(np.int64)  # a copy: the next call overwrites it
            for row in np.flatnonzero(is_open):
                found[row].append(int(symbol[row]))
            is_open &= symbol != end
            if not is_open.any():
                break
            states = {"key": answer["next_key"], "value": answer["next_value"]}
            token, position = symbol[:, None], position[:, -1:] + 1
        return found

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: LibriSpeechDataset) -> Score:
        """Return the word accuracy against the data set's transcripts."""
        return wer_whisper.score(responses, dataset.transcripts)


def memory_bytes(facts: ModelFacts) -> int:
    """Return how much memory the weights take: 6.2 GB at full size."""
    config = {**_FULL, **facts.config}
    width, wide = int(config["d_model"]), int(config.get("ffn_dim", 4 * int(config["d_model"])))
    layer = 4 * width * width + 2 * width * wide
    layers = int(config.get("encoder_layers", 32)) * layer + int(config["decoder_layers"]) * (layer + 4 * width * width)
    return 4 * (layers + width * int(config.get("vocab_size", 51866)))


def open_model(facts: ModelFacts) -> Whisper:
    return Whisper(required_config(facts, _SIZES, "whisper", _FULL), facts)
