"""RNN-T, speech to characters (MLPerf v0.7 to v4.0, retired since): features, encoder and greedy decoding, all timed.

Only reading the waveform may happen before (rules of v4.0: the QSL holds decoded audio). Response of a sample: its
character numbers as int64, in a row, without blanks; silence has none. Labels and the greedy search are those of
speech_recognition/rnnt/pytorch/decoders.py (mlcommons/inference, tag v4.0).

The search walks all utterances of a batch together: each has its own place in time, the joint network looks at the
next LOOK_AHEAD steps at once (until a label comes up, the prediction network's state is the same for all of them), and
what goes to and fro are small integers: encoded steps and LSTM states stay where the backend has them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, required_config
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Samples, Tensors, TensorSpec
from crowdperf.harness.datasets.librispeech import LibriSpeechDataset
from crowdperf.harness.media import audio_features
from crowdperf.harness.metrics import wer

IntArray = npt.NDArray[np.int64]

BLANK = len(wer.CHARACTERS)
START = -1
MAX_LABELS_PER_STEP = 30  # ScriptGreedyDecoder: max_symbols_per_step
LOOK_AHEAD = 4  # our choice: English has about one character in an encoder step of 60 ms

_OFFICIAL_SIZES = {  # configs/rnnt.toml; taken where there is no model.json (preprocessing needs none)
    "encoder_n_hidden": 1024,
    "encoder_stack_time_factor": 2,
    "pred_n_hidden": 320,
    "pred_rnn_layers": 2,
}


def _networks(config: Mapping[str, Any]) -> tuple[NetworkSpec, ...]:
    """The three networks. `frames` is a multiple of the stack factor, `steps` = frames / factor."""
    state_shape = (int(config["pred_rnn_layers"]), int(config["pred_n_hidden"]))
    encoded = TensorSpec(
        name="encoded", dtype="float32", shape=("steps", int(config["encoder_n_hidden"])), is_state=True
    )
    states = {
        name: TensorSpec(name=name, dtype="float32", shape=state_shape, is_state=True)
        for name in ("hidden", "cell", "next_hidden", "next_cell")
    }
    features = TensorSpec(name="features", dtype="float32", shape=("frames", audio_features.FEATURE_COUNT))
    return (
        NetworkSpec(
            name="encoder",
            inputs=(features, TensorSpec(name="length", dtype="int64", shape=())),
            outputs=(encoded,),
        ),
        NetworkSpec(
            name="prediction",
            inputs=(
                TensorSpec(name="label", dtype="int64", shape=()),
                TensorSpec(name="is_new", dtype="bool", shape=()),
                states["hidden"],
                states["cell"],
            ),
            outputs=(states["next_hidden"], states["next_cell"]),
        ),
        NetworkSpec(
            name="joint",
            inputs=(encoded, TensorSpec(name="step", dtype="int64", shape=("window",)), states["hidden"]),
            outputs=(TensorSpec(name="symbol", dtype="int64", shape=("window",)),),
        ),
    )


class _Transcripts:
    """The labels of a batch as they come up; grows when an utterance has more than fit."""

    def __init__(self, count: int) -> None:
        self._labels: IntArray = np.empty((count, 256), dtype=np.int64)
        self._lengths: IntArray = np.zeros(count, dtype=np.int64)

    def append(self, rows: IntArray, labels: IntArray) -> None:
        lengths = self._lengths[rows]
        if lengths.max() >= self._labels.shape[1]:
            self._labels = np.concatenate((self._labels, np.empty_like(self._labels)), axis=1)
        self._labels[rows, lengths] = labels
        self._lengths[rows] = lengths + 1

    def rows(self) -> list[IntArray]:
        return [row[:length].copy() for row, length in zip(self._labels, self._lengths, strict=True)]


class Rnnt:
    """A sample is `waveform` float32[samples], 16 kHz, -1..1."""

    response = None
    is_ragged = True

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.networks = _networks(config)
        self._stack_factor = int(config["encoder_stack_time_factor"])
        self._state_shape = (int(config["pred_rnn_layers"]), int(config["pred_n_hidden"]))

    def preprocess(self, raw: Sequence[npt.NDArray[np.float32]]) -> Samples:
        """Return the waveforms as they are; the features are timed work."""
        for number, waveform in enumerate(raw):
            if len(waveform) < audio_features.MIN_SAMPLES:
                message = f"utterance {number} of {len(raw)} has {len(waveform)} samples of sound"
                raise HarnessError(f"{message}, fewer than {audio_features.MIN_SAMPLES}", "look at its file")
        return [{"waveform": waveform} for waveform in raw]

    def length(self, sample: Tensors) -> int:
        """Return the number of spliced frames, 30 ms each."""
        return audio_features.frame_count(len(sample["waveform"]))

    def collate(self, samples: Sequence[Tensors]) -> Tensors:
        """Return `waveform` float32[batch, longest], zeros behind each end, and `sample_count` int64[batch]."""
        counts = np.array([len(sample["waveform"]) for sample in samples], dtype=np.int64)
        waveforms = np.zeros((len(samples), int(counts.max())), dtype=np.float32)
        for row, sample in zip(waveforms, samples, strict=True):
            row[: len(sample["waveform"])] = sample["waveform"]
        return {"waveform": waveforms, "sample_count": counts}

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Sequence[Array]:
        """Return the labels of each utterance, int64[labels]."""
        features, lengths = self._features(inputs)
        encoded = networks["encoder"]({"features": features, "length": lengths})["encoded"]
        return self._decode(networks, encoded, -(-lengths // self._stack_factor))

    def _features(self, inputs: Tensors) -> tuple[npt.NDArray[np.float32], IntArray]:
        """Return float32[batch, frames, 240], zeros behind each end, and the frames of each utterance."""
        waveforms = np.asarray(inputs["waveform"], dtype=np.float32)
        counts = [int(count) for count in inputs["sample_count"]]
        lengths = np.array([audio_features.frame_count(count) for count in counts], dtype=np.int64)
        longest = -(-int(lengths.max()) // self._stack_factor) * self._stack_factor
        padded = np.zeros((len(counts), longest, audio_features.FEATURE_COUNT), dtype=np.float32)
        for row, waveform, count, length in zip(padded, waveforms, counts, lengths, strict=True):
            row[:length] = audio_features.features(waveform[:count])
        return padded, lengths

    def _decode(self, networks: Mapping[str, Infer], encoded: Any, steps: IntArray) -> list[IntArray]:
        """Return the labels of the greedy search over `steps`[batch] encoded steps of each utterance."""
        count = len(steps)
        transcripts = _Transcripts(count)
        place: IntArray = np.zeros(count, dtype=np.int64)  # of each utterance in its steps
        labels_here: IntArray = np.zeros(count, dtype=np.int64)  # that came up at this step
        label: IntArray = np.full(count, START, dtype=np.int64)
        window = np.arange(LOOK_AHEAD, dtype=np.int64)
        hidden: Any = np.zeros((count, *self._state_shape), dtype=np.float32)
        cell: Any = np.zeros((count, *self._state_shape), dtype=np.float32)
        is_new: npt.NDArray[np.bool_] = np.ones(count, dtype=np.bool_)
        while (place < steps).any():
            if is_new.any():
                states = {"label": label, "is_new": is_new, "hidden": hidden, "cell": cell}
                answer = networks["prediction"](states)
                hidden, cell = answer["next_hidden"], answer["next_cell"]
            step = place[:, None] + window
            looked_at = {"encoded": encoded, "step": np.minimum(step, steps[:, None] - 1), "hidden": hidden}
            symbol = np.asarray(networks["joint"](looked_at)["symbol"])
            is_label = (symbol != BLANK) & (step < steps[:, None])
            is_new = is_label.any(axis=1)
            blanks = np.where(is_new, is_label.argmax(axis=1), LOOK_AHEAD)
            place = np.minimum(place + blanks, steps)
            labels_here[blanks > 0] = 0
            rows = np.flatnonzero(is_new)
            if len(rows):
                label[rows] = symbol[rows, blanks[rows]]
                transcripts.append(rows, label[rows])
                labels_here[rows] += 1
                is_full = labels_here >= MAX_LABELS_PER_STEP
                place[is_full] += 1
                labels_here[is_full] = 0
        return transcripts.rows()

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: LibriSpeechDataset) -> Score:
        """Return the word error rate against the data set's transcripts."""
        return wer.score(responses, dataset.transcripts)


def open_model(facts: ModelFacts) -> Rnnt:
    return Rnnt(required_config(facts, _OFFICIAL_SIZES, "rnnt", _OFFICIAL_SIZES))
