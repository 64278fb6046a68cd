"""Fits a small DLRM on the second half of a synthetic Criteo day, and writes the model; for dlrm and dlrm_v2.

The measured half is not seen by the fit; it gives the reference score.
"""

import importlib
import sys
from pathlib import Path

import torch
from torch.nn import functional

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.datasets import criteo
from crowdperf.models.make_model import ModelRequest, build_modules
from crowdperf.standins import fit_program

EPOCHS = 3
RATE = 0.005
MIN_AUC = 72.0  # 76 and more were seen


def fit(request: ModelRequest, dataset_dir: Path) -> fit_program.Fitted:
    """Return the fitted model; each step takes one sample, 100 to 700 rows."""
    module = importlib.import_module(f"crowdperf.benchmarks.{request.architecture}.model")
    model = module.open_model(ModelFacts(config=request.values))
    network = build_modules(request)["model"].train()
    training = criteo.open_calibration(dataset_dir)
    samples = model.preprocess(training.load(range(training.count)))
    generator = torch.Generator().manual_seed(request.seed)
    order = (number for _ in range(EPOCHS) for number in torch.randperm(len(samples), generator=generator).tolist())

    def loss() -> torch.Tensor:
        batch = model.collate([samples[next(order)]])
        (prediction,) = network(torch.from_numpy(batch["dense"]), torch.from_numpy(batch["sparse"]))
        return functional.binary_cross_entropy(prediction, torch.from_numpy(batch["labels"]))

    steps = fit_program.Descent(steps=EPOCHS * len(samples), rate=RATE, rising_share=None)
    fit_program.descend(network.parameters(), loss, steps)
    score = fit_program.score_of(model, {"model": network}, criteo.open_dataset(dataset_dir))
    facts = {"fitted_on": "second half of a synthetic Criteo day"}
    return fit_program.Fitted(
        modules={"model": network}, score=score, metrics=("AUC",), least={"AUC": MIN_AUC}, facts=facts
    )


if __name__ == "__main__":
    sys.exit(fit_program.main(__doc__, fit, "dlrm", "dlrm_v2"))
