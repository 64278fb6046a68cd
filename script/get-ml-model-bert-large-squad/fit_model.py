"""Fits the tiny BERT on the synthetic training questions and writes its files and model.json with the F1 it reaches.

Run by run.sh in the benchmark's virtual environment, with the harness on PYTHONPATH; needs numpy and torch, and onnx
for --framework=onnx:

    python3 fit_model.py --dataset_dir FOLDER_OF_GET_DATASET_SQUAD_TINY --framework onnx --output_dir FOLDER

Seeded, on one thread: the same libraries on the same kind of processor give the same weights. The reference in
model.json is the score of the fitted torch module in fp32 on the validation questions, by the harness's own model file
and scorer. A model below MINIMUM_F1 is not written.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from harness.benchmarks.bert.model import INPUTS, OUTPUTS, Bert, open_model
from harness.datasets.squad import VOCABULARY_FILE, SquadDataset, open_dataset, read_squad
from harness.errors import HarnessError
from harness.making.makemodel import ModelClaims, ModelRequest, build_modules, write_model
from harness.media.tokenization_squad import WordPieces
from harness.modelfacts import ModelFacts
from torch.nn import functional

TRAINING_FILE = "train-v1.1.json"
MINIMUM_F1 = 90.0
NO_ANSWER = 0  # the position of [CLS]: taught where the window does not show the answer


@dataclass(frozen=True)
class FitSettings:
    """Our choice: what reaches its end in about five seconds on one core.

    word_deviation: of the random word vectors at the start; ten times BERT's, so that words are told apart at once.
    """

    epochs: int = 5
    word_deviation: float = 0.2
    batch_size: int = 16
    learning_rate: float = 3e-3
    seed: int = 0


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
    inputs = model.preprocess(training.load(range(training.count)))
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


def fit(module: torch.nn.Module, model: Bert, samples: list[TrainingSample], settings: FitSettings) -> None:
    """Trains `module` in place where the answers start and end."""
    words = module.bert.embeddings.word_embeddings.weight
    with torch.no_grad():
        words.mul_(settings.word_deviation / words.std())
    order = np.random.default_rng(settings.seed)
    steps = settings.epochs * -(-len(samples) // settings.batch_size)
    optimizer = torch.optim.AdamW(module.parameters(), lr=settings.learning_rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=settings.learning_rate, total_steps=steps)
    for _ in range(settings.epochs):
        for batch in batches(samples, settings.batch_size, order):
            inputs = model.collate([sample.inputs for sample in batch])
            starts, ends = module(*(torch.from_numpy(inputs[name]) for name in INPUTS))
            padding = torch.from_numpy(inputs["input_mask"] == 0)
            loss = torch.zeros(())
            for logits, places in ((starts, [x.start for x in batch]), (ends, [x.end for x in batch])):
                loss = loss + functional.cross_entropy(logits.masked_fill(padding, -1e4), torch.tensor(places))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
            schedule.step()


def score(module: torch.nn.Module, model: Bert, dataset: SquadDataset) -> dict[str, float]:
    """F1 and exact match of `module` on `dataset`, each sample alone."""

    def infer(inputs):
        outputs = module(*(torch.from_numpy(inputs[name]) for name in INPUTS))
        return {name: output.numpy() for name, output in zip(OUTPUTS, outputs, strict=True)}

    samples = model.preprocess(dataset.load(range(dataset.count)))
    with torch.inference_mode():
        rows = [model.predict({"model": infer}, model.collate([sample])) for sample in samples]
    values = model.score(((index, row.tobytes()) for index, row in enumerate(rows)), dataset).values
    return {name: float(value) for name, value in values.items()}


def make_model(dataset_dir: Path, request: ModelRequest, settings: FitSettings) -> dict[str, float]:
    """Fits, measures, checks and writes the model; gives its score. Raises HarnessError."""
    dataset = open_dataset(dataset_dir)
    model = open_model(ModelFacts(config=request.values))
    modules = build_modules(request)
    module = modules["model"]
    torch.set_num_threads(1)
    samples = read_training_samples(dataset_dir, dataset, model)
    fit(module.train(), model, samples, settings)
    reached = score(module.eval(), model, dataset)
    if reached["F1"] < MINIMUM_F1:
        message = f"the fitted model reaches F1 {reached['F1']:.2f}, below {MINIMUM_F1}: it is not written"
        raise HarnessError(message, f"report this with the version of torch: {torch.__version__}")
    facts = {
        "licence": "Apache-2.0",
        "source": "made by get-ml-model-bert-large-squad/fit_model.py",
        "reference_count": len(dataset.questions),
        "training": {"file": TRAINING_FILE, "windows": len(samples), "epochs": settings.epochs},
    }
    write_model(modules, request, ModelClaims(reference=reached, facts=facts))
    return reached


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset_dir", type=Path, required=True)
    parser.add_argument("--framework", choices=("onnx", "pytorch"), default="onnx")
    parser.add_argument("--output_dir", type=Path, required=True)
    given = parser.parse_args()
    start_s = time.perf_counter()
    request = ModelRequest(architecture="bert", config="tiny", framework=given.framework, output_dir=given.output_dir)
    try:
        reached = make_model(given.dataset_dir, request, FitSettings())
    except HarnessError as error:
        print(f"fit_model.py: {error}" + (f"\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return error.exit_code
    seconds = time.perf_counter() - start_s
    print(f"bert (tiny): F1 {reached['F1']:.2f}, exact match {reached['exact_match']:.2f}, fitted in {seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
