"""Writes an engine for each network of a model, and model.json last."""

import importlib
import json
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.harness.runner import registry
from crowdperf.kit.whole_file import write_bytes_whole
from crowdperf.models.engines.task import Maker, Task
from crowdperf.models.model_json import OF_THE_FILES, copy_beside, describe_files, versions, write_model_info

MAKERS = {
    "tensorrt": "with_tensorrt", "tensorrt_rtx": "with_tensorrt", "openvino": "with_openvino",
    "neuron": "with_neuron", "neuron_simulated": "with_neuron_simulated",
}  # fmt: skip
"""The module that builds for each library; it is imported only when its library is asked for."""


def maker_of(library: str) -> Maker:
    """Return the maker for a library; raises HarnessError with the command that gets the library."""
    try:
        maker: Maker = importlib.import_module(f"crowdperf.models.engines.{MAKERS[library]}")
    except ImportError as error:
        raise HarnessError(
            f"{library} cannot be loaded: {error}",
            f"cm run script --tags=get,generic-python-lib,_package.{library} --adr.python.name=mlperf-inference",
        ) from error
    return maker


def build(task: Task) -> Path:
    """Write the engines and model.json; return its path. Raises HarnessError."""
    facts = read_model_facts(None, task.model_info)
    maker, precision = maker_of(task.library), task.precision or facts.precision
    if facts.framework != maker.READS:
        raise HarnessError(
            f"{task.model_info} describes a {facts.framework} model", f"use the variation _{maker.READS}"
        )
    maker.require_precision(facts.precision, precision)
    info = json.loads(task.model_info.read_text(encoding="utf-8"))
    task.output_dir.mkdir(parents=True, exist_ok=True)
    files = {}
    for spec in registry.load_model(task.model).open_model(facts).networks:
        source = facts.files[spec.name].path
        path = task.output_dir / f"{source.stem}{maker.suffix(task)}"
        write_bytes_whole(path, maker.build_network(task, spec, source, precision))
        files[spec.name] = [path]
    return write_model_info(
        task.output_dir,
        {
            **{key: value for key, value in info.items() if key not in OF_THE_FILES},
            "framework": maker.FRAMEWORK,
            "precision": precision,
            "origin": facts.origin,
            "files": describe_files(files),
            "beside": copy_beside(task.model_info.parent, task.output_dir),
            "engine": {
                "library": task.library,
                **maker.facts(task),
                "from_sha256": {network: file.sha256 for network, file in facts.files.items()},
                "versions": versions(task.library),
            },
        },
    )
