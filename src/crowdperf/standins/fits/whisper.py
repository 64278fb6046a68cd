"""Fits the small Whisper on the clips of a synthetic data set, and writes the model with a tokenizer.

It learns the very clips that are measured: a small network that reads new ones would take minutes to fit. So its score
says whether the way from sound to transcript is right, and nothing about what it understands.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from crowdperf.benchmarks.whisper import model as whisper
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.datasets import whisper as data
from crowdperf.models.make_model import ModelRequest, build_modules
from crowdperf.standins import fit_program, tokenizers

BATCH = 12
DESCENT = fit_program.Descent(steps=180, rate=4e-3, rising_share=0.1, largest_norm=1.0)
MIN_PERCENT = 60.0  # 90 and more were seen


def train(modules: Mapping[str, Any], features: torch.Tensor, rows: list[list[int]], prompt: int) -> None:
    """Fit both networks in place. rows: prompt, transcript and end token of each clip."""
    random = np.random.default_rng(0)
    parameters = [one for module in modules.values() for one in module.requires_grad_(True).train().parameters()]
    longest = max(len(row) for row in rows)
    padded = torch.tensor([row + [-1] * (longest - len(row)) for row in rows])

    def loss() -> torch.Tensor:
        chosen = torch.from_numpy(random.choice(len(rows), size=min(BATCH, len(rows)), replace=False))
        clip = modules["encoder"](features[chosen])
        tokens = padded[chosen]
        empty = torch.zeros((len(chosen), *clip[0].shape[1:3], 1, clip[0].shape[4]))
        position = torch.arange(longest - 1).expand(len(chosen), -1)
        logits, _, _ = modules["decoder"].logits(tokens[:, :-1].clamp_min(0), position, *clip, empty, empty)
        wanted = tokens[:, prompt:]
        return functional.cross_entropy(logits[:, prompt - 1 :].flatten(0, 1), wanted.flatten(), ignore_index=-1)

    fit_program.descend(parameters, loss, DESCENT)
    for module in modules.values():
        module.eval().requires_grad_(False)


def fit(request: ModelRequest, dataset_dir: Path) -> fit_program.Fitted:
    dataset = data.open_dataset(dataset_dir)
    tokenizer = tokenizers.write_whisper(request.output_dir)
    prompt = [tokenizer.token_to_id(name) for name in whisper.PROMPT]
    end = tokenizer.token_to_id(whisper.END)
    model = whisper.open_model(ModelFacts(folder=request.output_dir, config=request.values, is_synthetic=True))
    samples: Any = model.preprocess(dataset.load(range(dataset.count)))
    inputs = model.collate(samples)
    modules = build_modules(request)
    rows = [[*prompt, *tokenizer.encode(" " + text, add_special_tokens=False).ids, end] for text in dataset.transcripts]
    train(modules, torch.from_numpy(inputs["features"]), rows, len(prompt))
    score = fit_program.score_of(model, modules, dataset, dataset.count)
    facts = {"source": "fitted on the clips it is measured with by get-ml-model-whisper"}
    return fit_program.Fitted(modules=modules, score=score, least={"ACCURACY": MIN_PERCENT}, facts=facts)


if __name__ == "__main__":
    sys.exit(fit_program.main(__doc__, fit, "whisper"))
