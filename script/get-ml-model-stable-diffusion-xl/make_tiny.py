"""Writes the small Stable Diffusion XL with random weights, and the score of its pictures as torch makes them.

The pictures mean nothing. The score says whether a run gives the pictures that the networks give: the Frechet distance
of others is another one. Seeded, one thread: the same library versions on the same kind of processor give the same
weights.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from harness.benchmarks.stable_diffusion_xl import model as sdxl
from harness.datasets.coco2014 import open_dataset
from harness.making.makemodel import FRAMEWORKS, ModelClaims, ModelRequest, build_modules, write_model
from harness.modelfacts import ModelFacts
from write_tokenizer import write_tokenizer


def main(words: Sequence[str] | None = None) -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(prog="make_tiny.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--framework", default="onnx", choices=FRAMEWORKS)
    parser.add_argument("--dataset_dir", required=True, type=Path, help="what get,dataset,coco2014,_tiny made")
    parser.add_argument("--output_dir", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    request = ModelRequest(
        architecture="stable_diffusion_xl", config="tiny", framework=given.framework, output_dir=given.output_dir,
        seed=given.seed,
    )  # fmt: skip
    torch.set_num_threads(1)
    write_tokenizer(given.output_dir)
    dataset = open_dataset(given.dataset_dir)
    model = sdxl.open_model(ModelFacts(folder=given.output_dir, config=request.values, is_synthetic=True))
    modules = build_modules(request)
    outputs = {network.name: [spec.name for spec in network.outputs] for network in model.networks}

    def infer(name: str):
        def call(tensors):
            given = [torch.as_tensor(tensors[spec.name]) for one in model.networks if one.name == name
                     for spec in one.inputs]  # fmt: skip
            with torch.inference_mode():
                answers = modules[name](*given)
            return dict(zip(outputs[name], answers if isinstance(answers, tuple) else (answers,), strict=True))

        return call

    inputs = model.collate(model.preprocess(dataset.load(range(dataset.count))))
    pictures = model.predict({name: infer(name) for name in modules}, inputs)
    if len({picture.tobytes() for picture in pictures}) < len(set(dataset.captions)):
        raise SystemExit("different captions have one and the same picture: take another seed")
    score = model.score([(index, picture.tobytes()) for index, picture in enumerate(pictures)], dataset)
    facts = {"source": "random weights of get-ml-model-stable-diffusion-xl", "licence": "Apache-2.0"}
    write_model(modules, request, ModelClaims(reference=score.values, is_synthetic=True, facts=facts))
    print(f"stable-diffusion-xl: {score.line}, {dataset.count} captions")


if __name__ == "__main__":
    main()
