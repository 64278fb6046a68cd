"""Writes the small Stable Diffusion XL with random weights, and the score of its pictures as torch makes them.

The pictures mean nothing. The score says whether a run gives the pictures that the networks give: the Frechet distance
of others is another one.
"""

import sys
from pathlib import Path
from typing import Any

from crowdperf.benchmarks.stable_diffusion_xl import model as sdxl
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.datasets.coco2014 import open_dataset
from crowdperf.models.make_model import ModelRequest, build_modules
from crowdperf.standins import fit_program, tokenizers
from crowdperf.standins.responses import responses_of


def make(request: ModelRequest, dataset_dir: Path) -> fit_program.Fitted:
    """Return the model with its score, its tokenizer written. Raises HarnessError."""
    tokenizers.write_clip(request.output_dir)
    dataset = open_dataset(dataset_dir)
    model: Any = sdxl.open_model(ModelFacts(folder=request.output_dir, config=request.values, is_synthetic=True))
    modules = build_modules(request)
    pictures = list(responses_of(model, fit_program.calls_of(model, modules), dataset, dataset.count))
    if len({picture for _, picture in pictures}) < len(set(dataset.captions)):
        raise HarnessError("different captions have one and the same picture", "use another seed")
    facts = {"source": "random weights of get-ml-model-stable-diffusion-xl"}
    return fit_program.Fitted(modules=modules, score=model.score(pictures, dataset), facts=facts)


if __name__ == "__main__":
    sys.exit(fit_program.main(__doc__, make, "stable_diffusion_xl"))
