"""Fits the tiny BERT on the synthetic training questions and writes its files and model.json with the F1 it reaches.

The reference in model.json is the score of the fitted torch module in fp32 on the validation questions, each alone.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from crowdperf.benchmarks.bert.model import INPUTS, Bert, open_model
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.datasets.squad import VOCABULARY_FILE, SquadDataset, open_dataset, read_squad
from crowdperf.harness.media.tokenization_squad import WordPieces
from crowdperf.models.make_model import ModelRequest, build_modules
from crowdperf.standins import fit_program

TRAINING_FILE = "train-v1.1.json"
MINIMUM_F1 = 90.0
EPOCHS = 5
BATCH_SIZE = 16
RATE = 3e-3
WORD_DEVIATION = 0.2
"""Of the random word vectors at the start: ten times BERT's, so that words are told apart at once."""
NO_ANSWER = 0  # the position of [CLS]: taught where the window does not show the answer


@dataclass(frozen=True)
class TrainingSample:
    """A training window: the network's inputs, and the positions of the answer's first and last token."""

    inputs: dict[str, np.ndarray]
    start: int
    end: int


def find(part: list[str], whole: list[str]) -> int | None:
    """Where `part` first is in `whole`."""
    places = range(len(whole) - len(part) + 1)
    return next((place for place in places if whole[place : place + len(part)] == part), None)


def read_training_samples(dataset_dir: Path, dataset: SquadDataset, model: Bert) -> list[TrainingSample]:
    """The training windows; an answer stands where its pieces first are among those of the paragraph.

    That is where it is meant, because a phrase occurs once in a synthetic paragraph.
    """
    training = read_squad(dataset_dir / TRAINING_FILE, dataset_dir / VOCABULARY_FILE, dataset.facts)
    pieces = WordPieces(training.vocabulary)
    samples = []
    inputs: Any = model.preprocess(training.load(range(training.count)))
    for feature, sample in zip(training.features, inputs, strict=True):
        answer = pieces.tokenize(training.questions[feature.question_index].answers[0])
        place = find(answer, list(feature.tokens))
        start = NO_ANSWER if place is None else feature.document_start + place
        samples.append(TrainingSample(dict(sample), start, NO_ANSWER if place is None else start + len(answer) - 1))
    return samples


def batches(samples: list[TrainingSample], size: int, order: np.random.Generator) -> Iterator[list[TrainingSample]]:
    """Batches of near lengths in random order."""
    near = sorted(order.permutation(len(samples)), key=lambda index: len(samples[index].inputs["input_ids"]))
    starts = range(0, len(near), size)
    for start in order.permutation(list(starts)):
        yield [samples[index] for index in near[start : start + size]]


def loss_of(module: Any, model: Bert, batch: list[TrainingSample]) -> torch.Tensor:
    """The cross-entropy of where the answers start and end."""
    inputs = model.collate([sample.inputs for sample in batch])
    starts, ends = module(*(torch.from_numpy(inputs[name]) for name in INPUTS))
    padding = torch.from_numpy(inputs["input_mask"] == 0)
    loss = torch.zeros(())
    for logits, places in ((starts, [x.start for x in batch]), (ends, [x.end for x in batch])):
        loss = loss + functional.cross_entropy(logits.masked_fill(padding, -1e4), torch.tensor(places))
    return loss


def train(module: Any, model: Bert, samples: list[TrainingSample], seed: int) -> None:
    """Fits `module` in place, in about five seconds on one core."""
    words = module.bert.embeddings.word_embeddings.weight
    with torch.no_grad():
        words.mul_(WORD_DEVIATION / words.std())
    order = np.random.default_rng(seed)
    every = (batch for _ in range(EPOCHS) for batch in batches(samples, BATCH_SIZE, order))
    steps = EPOCHS * -(-len(samples) // BATCH_SIZE)
    descent = fit_program.Descent(steps=steps, rate=RATE, weight_decay=0.01, largest_norm=1.0)
    fit_program.descend(module.train().parameters(), lambda: loss_of(module, model, next(every)), descent)


def fit(request: ModelRequest, dataset_dir: Path) -> fit_program.Fitted:
    dataset = open_dataset(dataset_dir)
    model = open_model(ModelFacts(config=request.values))
    modules = build_modules(request)
    samples = read_training_samples(dataset_dir, dataset, model)
    train(modules["model"], model, samples, request.seed)
    score = fit_program.score_of(model, modules, dataset)
    facts = {
        "source": "made by get-ml-model-bert-large-squad",
        "training": {"file": TRAINING_FILE, "windows": len(samples), "epochs": EPOCHS},
    }
    return fit_program.Fitted(modules=modules, score=score, least={"F1": MINIMUM_F1}, facts=facts)


if __name__ == "__main__":
    sys.exit(fit_program.main(__doc__, fit, "bert"))
