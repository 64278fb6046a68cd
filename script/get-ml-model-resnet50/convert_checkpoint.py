"""Writes torchvision's published ResNet-50 checkpoint as safetensors with a model.json.

Run by run.sh in the benchmark's virtual environment, with the harness on PYTHONPATH:

    python3 convert_checkpoint.py --weights resnet50-19c8e357.pth --config JSON --facts JSON --output_dir FOLDER
"""

import argparse
import json
import sys
from pathlib import Path

from harness.benchmarks.resnet50.network import CONFIGS
from harness.errors import HarnessError
from harness.making.makemodel import ModelClaims, ModelRequest, make_model


def convert(weights: Path, config: dict, facts: dict, output_dir: Path) -> Path:
    """Writes the model; gives the path of its model.json. Raises HarnessError."""
    request = ModelRequest(
        architecture="resnet50",
        config={**CONFIGS["full"], **config},
        framework="pytorch",
        output_dir=output_dir,
        weights=weights,
    )
    kept = {key: value for key, value in facts.items() if key != "reference"}
    return make_model(request, ModelClaims(reference=facts["reference"], is_synthetic=False, facts=kept))


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--config", type=json.loads, required=True, help="JSON object added to the full configuration")
    parser.add_argument("--facts", type=json.loads, required=True, help="JSON object with reference, source, licence")
    parser.add_argument("--output_dir", type=Path, required=True)
    given = parser.parse_args()
    try:
        path = convert(given.weights, given.config, given.facts, given.output_dir)
    except HarnessError as error:
        print(f"convert_checkpoint.py: {error}\nhint: {error.hint}", file=sys.stderr)
        return 1
    print(f"resnet50: {given.weights} -> {path.parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
