"""Fits a small RNN-T on made sound and writes its three networks and model.json.

The training utterances tell where each character ends, so the network learns one path through the lattice of steps and
labels: blank at every step, after the characters that have ended there. That is one cross-entropy over all nodes of the
path, and takes seconds; the loss over all paths, which a real training needs, is not wanted here.
"""

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crowdperf.benchmarks.rnnt.model import open_model
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.datasets.librispeech import Utterance, open_dataset, read_wav
from crowdperf.harness.media.audio_features import HOP_SAMPLES, SPLICED_FRAMES, features
from crowdperf.harness.metrics.wer import CHARACTERS
from crowdperf.models.make_model import ModelRequest, build_modules
from crowdperf.standins import fit_program

BATCH_SIZE = 10
PASSES = 14
RATE = 6e-3
MIN_WORD_ACCURACY_PERCENT = 70.0
NO_TARGET = -100  # what torch's cross_entropy leaves out


@dataclass(frozen=True)
class Example:
    """float32[frames, 240]; labels int64[labels]; the step, label count and target of each node of the path."""

    features: np.ndarray
    labels: np.ndarray
    path: np.ndarray


def make_path(labels: np.ndarray, ends: np.ndarray, steps: int) -> np.ndarray:
    """int64[nodes, 3]: (step, labels before, target) of the path that says each label one step after its sound ended.

    `ends`[labels] are the steps in which the labels' sounds end.
    """
    nodes = []
    said = 0
    for step in range(steps):
        while said < len(labels) and (ends[said] < step or step == steps - 1):
            nodes.append((step, said, labels[said]))
            said += 1
        nodes.append((step, said, len(CHARACTERS)))
    return np.array(nodes, dtype=np.int64)


def read_examples(folder: Path, stack_factor: int) -> list[Example]:
    """The training utterances, shortest first."""
    entries = json.loads((folder / "training-wav.json").read_text(encoding="utf-8"))
    step_samples = HOP_SAMPLES * SPLICED_FRAMES * stack_factor
    examples = []
    for entry in entries:
        path = folder / entry["files"][0]["fname"]
        rows = features(read_wav(Utterance(path, entry["original_num_samples"], entry["transcript"])))
        labels = np.array([CHARACTERS.index(character) for character in entry["transcript"]], dtype=np.int64)
        ends = np.array(entry["character_ends"], dtype=np.int64) // step_samples
        examples.append(Example(rows, labels, make_path(labels, ends, math.ceil(len(rows) / stack_factor))))
    return sorted(examples, key=lambda example: len(example.features))


@dataclass(frozen=True)
class Batch:
    """Padded examples: features[batch, frames, 240], lengths[batch], labels[batch, labels] (-1 behind the end), nodes
    of the paths[batch, nodes, 3], and what each step's sound was, [batch, steps] (blank where no sound ended)."""

    features: torch.Tensor
    lengths: torch.Tensor
    labels: torch.Tensor
    nodes: torch.Tensor
    sounds: torch.Tensor


def make_batch(examples: list[Example], stack_factor: int) -> Batch:
    """The examples, padded; targets behind an end count nothing."""
    count = len(examples)
    frames = max(len(example.features) for example in examples)
    frames += -frames % stack_factor
    padded = np.zeros((count, frames, examples[0].features.shape[1]), np.float32)
    labels = np.full((count, max(len(example.labels) for example in examples)), -1, np.int64)
    nodes = np.zeros((count, max(len(example.path) for example in examples), 3), np.int64)
    nodes[:, :, 2] = NO_TARGET
    sounds = np.full((count, frames // stack_factor), NO_TARGET, np.int64)
    for row, example in enumerate(examples):
        padded[row, : len(example.features)] = example.features
        labels[row, : len(example.labels)] = example.labels
        nodes[row, : len(example.path)] = example.path
        sounds[row, : example.path[-1, 0] + 1] = len(CHARACTERS)
        said = example.path[example.path[:, 2] < len(CHARACTERS)]
        sounds[row, said[:, 0]] = said[:, 2]
    lengths = np.array([len(example.features) for example in examples])
    return Batch(*map(torch.from_numpy, (padded, lengths, labels, nodes, sounds)))


def batch_loss(networks: Mapping[str, Any], sound_head: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """The mean cross-entropy over the nodes of all paths, and that of naming the sounds from the encoder alone.

    Without the second one the prediction network learns the made words first and the encoder never starts.
    """
    (encoded,) = networks["encoder"](batch.features, batch.lengths)
    prediction = networks["prediction"].sequence(batch.labels)
    rows = torch.arange(len(batch.lengths))[:, None]
    logits = networks["joint"].logits(encoded[rows, batch.nodes[:, :, 0]], prediction[rows, batch.nodes[:, :, 1]])
    return cross_entropy(logits, batch.nodes[:, :, 2]) + cross_entropy(sound_head(encoded), batch.sounds)


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean over [batch, positions], those without target left out."""
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=NO_TARGET)


def set_start(networks: Mapping[str, Any]) -> None:
    """Gives the encoder weights from which it learns quickly: Glorot's and orthogonal ones, forget gates open."""
    for lstm in (networks["encoder"].pre_rnn.lstm, networks["encoder"].post_rnn.lstm):
        for name, parameter in lstm.named_parameters():
            if name.startswith("weight_ih"):
                torch.nn.init.xavier_normal_(parameter)
            elif name.startswith("weight_hh"):
                for gate in parameter.chunk(4):
                    torch.nn.init.orthogonal_(gate)
            else:
                torch.nn.init.zeros_(parameter)
                if name.startswith("bias_ih"):
                    torch.nn.init.ones_(parameter.chunk(4)[1])


def train(networks: Mapping[str, Any], examples: list[Example], seed: int) -> None:
    torch.manual_seed(seed)
    for network in networks.values():
        for part in network.children():
            part.apply(lambda layer: layer.reset_parameters() if hasattr(layer, "reset_parameters") else None)
    set_start(networks)
    sound_head = torch.nn.Linear(networks["encoder"].post_rnn.lstm.hidden_size, len(CHARACTERS) + 1)
    parameters = [parameter for part in (*networks.values(), sound_head) for parameter in part.parameters()]
    batches = [
        make_batch(examples[start : start + BATCH_SIZE], networks["encoder"].factor)
        for start in range(0, len(examples), BATCH_SIZE)
    ]
    random = np.random.RandomState(seed)
    order = (index for _ in range(PASSES) for index in random.permutation(len(batches)))
    descent = fit_program.Descent(steps=PASSES * len(batches), rate=RATE, rising_share=0.2, largest_norm=1.0)
    fit_program.descend(parameters, lambda: batch_loss(networks, sound_head, batches[next(order)]), descent)


def fit(request: ModelRequest, dataset_dir: Path) -> fit_program.Fitted:
    """Gives the fitted model. Raises HarnessError."""
    if not (dataset_dir / "training-wav.json").is_file():
        hint = "cm run script --tags=get,dataset,librispeech,original,_tiny --renew"
        raise HarnessError(f"{dataset_dir} has no training-wav.json", hint)
    networks = build_modules(request)
    train(networks, read_examples(dataset_dir, request.values["encoder_stack_time_factor"]), request.seed)
    dataset = open_dataset(dataset_dir)
    score = fit_program.score_of(open_model(ModelFacts(config=request.values)), networks, dataset, dataset.count)
    facts = {"note": "fitted on synthetic sound: knows no speech"}
    return fit_program.Fitted(modules=networks, score=score, least={"WER": MIN_WORD_ACCURACY_PERCENT}, facts=facts)


if __name__ == "__main__":
    sys.exit(fit_program.main(__doc__, fit, "rnnt"))
