"""Fits the small Whisper on the clips of a synthetic data set, and writes the model with a tokenizer.

It learns the very clips that are measured: a small network that reads new ones would take minutes to fit. So its score
says whether the way from sound to transcript is right, and nothing about what it understands. Seeded, one thread: the
same library versions on the same kind of processor give the same weights.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from harness.benchmarks.whisper import model as whisper
from harness.datasets import whisper as data
from harness.making.makemodel import FRAMEWORKS, ModelClaims, ModelRequest, build_modules, write_model
from harness.modelfacts import ModelFacts
from torch.nn import functional
from write_tokenizer import write_tokenizer

STEPS = 180
BATCH = 12
LEARNING_RATE = 4e-3
LEAST_PERCENT = 60.0
"""A fit below is not written: 90 and more were seen."""


def fit(modules: dict[str, torch.nn.Module], features: torch.Tensor, rows: list[list[int]], prompt: int) -> None:
    """Fit both networks in place. rows: prompt, transcript and end token of each clip."""
    random = np.random.default_rng(0)
    parameters = [one for module in modules.values() for one in module.requires_grad_(True).train().parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LEARNING_RATE, total_steps=STEPS, pct_start=0.1)
    longest = max(len(row) for row in rows)
    padded = torch.tensor([row + [-1] * (longest - len(row)) for row in rows])
    for _ in range(STEPS):
        chosen = torch.from_numpy(random.choice(len(rows), size=min(BATCH, len(rows)), replace=False))
        clip = modules["encoder"](features[chosen])
        tokens = padded[chosen]
        empty = torch.zeros((len(chosen), *clip[0].shape[1:3], 1, clip[0].shape[4]))
        position = torch.arange(longest - 1).expand(len(chosen), -1)
        logits, _, _ = modules["decoder"].logits(tokens[:, :-1].clamp_min(0), position, *clip, empty, empty)
        wanted = tokens[:, prompt:]
        loss = functional.cross_entropy(logits[:, prompt - 1 :].flatten(0, 1), wanted.flatten(), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
    for module in modules.values():
        module.eval().requires_grad_(False)


def main(words: Sequence[str] | None = None) -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(prog="fit_model.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--framework", default="onnx", choices=FRAMEWORKS)
    parser.add_argument("--dataset_dir", required=True, type=Path, help="what get,dataset,whisper,_tiny made")
    parser.add_argument("--output_dir", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    request = ModelRequest(
        architecture="whisper", config="tiny", framework=given.framework, output_dir=given.output_dir, seed=given.seed
    )
    torch.set_num_threads(1)
    dataset = data.open_dataset(given.dataset_dir)
    tokenizer = write_tokenizer(given.output_dir / "tokenizer.json")
    prompt = [tokenizer.token_to_id(name) for name in whisper.PROMPT]
    end = tokenizer.token_to_id(whisper.END)
    model = whisper.open_model(ModelFacts(folder=given.output_dir, config=request.values, is_synthetic=True))
    inputs = model.collate(model.preprocess(dataset.load(range(dataset.count))))
    modules = build_modules(request)
    rows = [[*prompt, *tokenizer.encode(" " + text, add_special_tokens=False).ids, end] for text in dataset.transcripts]
    fit(modules, torch.from_numpy(inputs["features"]), rows, len(prompt))

    def infer(network: str):
        names = [spec.name for one in model.networks if one.name == network for spec in one.outputs]

        def call(tensors):
            with torch.inference_mode():
                answers = modules[network](*(torch.as_tensor(value) for value in tensors.values()))
            return dict(zip(names, answers, strict=True))

        return call

    answers = model.predict({name: infer(name) for name in modules}, inputs)
    score = model.score([(index, row.tobytes()) for index, row in enumerate(answers)], dataset)
    if score.values["ACCURACY"] < LEAST_PERCENT:
        raise SystemExit(f"the fitted network has {score.line}; its accuracy should reach {LEAST_PERCENT} %")
    facts = {"source": "fitted on the clips it is measured with by get-ml-model-whisper", "licence": "Apache-2.0"}
    write_model(modules, request, ModelClaims(reference=score.values, is_synthetic=True, facts=facts))
    print(f"whisper: {score.line}, {dataset.count} clips")


if __name__ == "__main__":
    main()
