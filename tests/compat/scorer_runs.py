"""How compare_scorers.py runs each official accuracy script: its files on disk, its command, its line."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from recipe_programs import importable
from scores import rouge_cases
from scores.case import Case

SHIMS = {
    # tokenization.py imports TensorFlow for the vocabulary reader, which accuracy-squad.py does not call.
    "tensorflow.py": "",
    # evaluation.py fetches GPT-J's tokenizer, the rouge metric and punkt from the network. The tokenizer is the one of
    # rouge_cases.py; the metric and punkt are read from local folders.
    "run_gptj.py": """
import os, runpy, sys
import evaluate, nltk, torch, transformers
class Tokenizer:
    eos_token = "<|endoftext|>"
    def __call__(self, text, **options):
        ids = torch.tensor([list(text.encode())])
        return transformers.BatchEncoding({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    def batch_decode(self, batch, skip_special_tokens):
        return [bytes(int(t) for t in ids if t < 256).decode("utf-8", "replace") for ids in batch]
transformers.AutoTokenizer.from_pretrained = lambda *words, **options: Tokenizer()
load = evaluate.load
evaluate.load = lambda name: load(os.environ["ROUGE_FOLDER"])
nltk.download = lambda name: None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
""",
}


@dataclass(frozen=True)
class Place:
    """One case's folder, and the checkouts and interpreters."""

    folder: Path
    inference: Path
    python: str
    old_python: str
    environment: dict[str, str]

    @classmethod
    def of(cls, arguments: argparse.Namespace, folder: Path) -> Place:
        """Return the place of a case below `folder`."""
        shims = folder / "shims"
        shims.mkdir(parents=True)
        for name, text in SHIMS.items():
            (shims / name).write_text(text)
        if arguments.whisper is not None:  # without whisper/__init__.py, which imports the model
            (shims / "whisper").mkdir()
            (shims / "whisper" / "normalizers").symlink_to(arguments.whisper.absolute() / "whisper" / "normalizers")
        bert, rouge = str(arguments.bert or ""), str(arguments.rouge or "")
        gptj = str(arguments.inference.absolute() / "language/gpt-j")
        nltk_data = arguments.nltk_data or folder / "nltk_data"
        if arguments.nltk_data is None:
            rouge_cases.write_punkt(nltk_data)
        changed = {
            "PYTHONPATH": os.pathsep.join([str(shims), bert, gptj, os.environ.get("PYTHONPATH", "")]),
            "NLTK_DATA": str(nltk_data),
            "ROUGE_FOLDER": rouge,
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(folder / "hf"),
        }
        return cls(
            folder=folder,
            inference=arguments.inference.absolute(),
            python=arguments.python,
            old_python=arguments.old_python or arguments.python,
            environment={**os.environ, **changed},
        )


def _nothing(case: Case, place: Place) -> None:
    return None


@dataclass(frozen=True)
class Run:
    """prefix: how the official line starts. check: compares more than the line. is_numpy_printed: the line holds
    np.int64(...) with numpy 2. needs: the options without which it cannot run."""

    prefix: str
    write: Callable[[str, Case, Place], None]
    command: Callable[[str, Place], list[str]]
    check: Callable[[Case, Place], None] = _nothing
    is_numpy_printed: bool = False
    needs: tuple[str, ...] = ()

    def missing(self, arguments: argparse.Namespace) -> str:
        """Return the options that are not given."""
        return ", ".join(f"--{name}" for name in self.needs if getattr(arguments, name.replace("-", "_")) is None)


def _write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def _write_squad(name: str, case: Case, place: Place) -> None:
    _write_json(place.folder / "dev.json", case.truth.dataset)
    (place.folder / "vocab.txt").write_text("\n".join(case.truth.vocabulary) + "\n", encoding="utf-8")


def _squad_command(name: str, place: Place) -> list[str]:
    return [
        place.python, str(place.inference / "language/bert/accuracy-squad.py"), "--vocab_file=vocab.txt",
        "--val_data=dev.json", "--log_file=mlperf_log_accuracy.json", "--out_file=predictions.json",
        "--features_cache_file=features.pickle",
    ]  # fmt: skip


def _check_features(case: Case, place: Place) -> None:
    """Raise AssertionError unless the official windows are the case's: else the lines would compare two inputs."""
    bert = place.environment["PYTHONPATH"].split(os.pathsep)[1]
    with importable(place.folder / "shims", Path(bert), place.inference / "language/bert"):
        official = pickle.loads((place.folder / "features.pickle").read_bytes())
    assert len(official) == len(case.truth.features), (len(official), len(case.truth.features))
    for theirs, own in zip(official, case.truth.features, strict=True):
        first, last = own.document_start, own.document_start + len(own.tokens)
        assert theirs.tokens[first:last] == list(own.tokens), (theirs.tokens[first:last], own.tokens)
        assert theirs.token_to_orig_map == dict(enumerate(own.word_indices, first))
        assert theirs.token_is_max_context == dict(enumerate(own.is_max_context, first))


def _write_top1(name: str, case: Case, place: Place) -> None:
    lines = "".join(f"image{number}.JPEG {label}\n" for number, label in enumerate(case.truth))
    (place.folder / "val_map.txt").write_text(lines)


def _top1_command(name: str, place: Place) -> list[str]:
    script = place.inference / "vision/classification_and_detection/tools/accuracy-imagenet.py"
    log = "--mlperf-accuracy-file=mlperf_log_accuracy.json"
    return [place.python, str(script), log, "--imagenet-val-file=val_map.txt", "--dtype=float32"]


_COCO_FOLDERS = {"openimages": "annotations/openimages-mlperf.json"}
_COCO_OPTIONS = {"label map": ["--use-inv-map"], "label beyond the map": ["--use-inv-map"]}


def _write_coco(name: str, case: Case, place: Place) -> None:
    _write_json(place.folder / _COCO_FOLDERS.get(name, "annotations/instances_val2017.json"), case.truth)


def _coco_command(name: str, place: Place) -> list[str]:
    stem = "openimages" if name == "openimages" else "coco"
    script = place.inference / f"vision/classification_and_detection/tools/accuracy-{stem}.py"
    log = "--mlperf-accuracy-file=mlperf_log_accuracy.json"
    return [place.python, str(script), log, f"--{stem}-dir=.", *_COCO_OPTIONS.get(name, [])]


def _write_kits(name: str, case: Case, place: Place) -> None:
    import nibabel

    names = [f"case_{number:05d}" for number in range(len(case.truth))]
    cases = {}
    for case_name, volume in zip(names, case.truth, strict=True):
        path = place.folder / "nifti" / case_name / "segmentation.nii.gz"
        path.parent.mkdir(parents=True)
        nibabel.save(nibabel.Nifti1Image(volume, affine=np.eye(4)), path)
        cases[case_name] = {"image_shape": list(volume.shape), "reshaped_affine": np.eye(4).tolist()}
    content = {"file_list": names, "cases": cases}
    (place.folder / "preprocessed_files.pkl").write_bytes(pickle.dumps(content))


def _kits_command(name: str, place: Place) -> list[str]:
    script = place.inference / "vision/medical_imaging/3d-unet-kits19/accuracy_kits.py"
    return [
        place.old_python, str(script), "--log_file=mlperf_log_accuracy.json", "--preprocessed_data_dir=.",
        "--postprocessed_data_dir=post", "--num_proc=2",
    ]  # fmt: skip


def _write_brats(name: str, case: Case, place: Place) -> None:
    import nibabel

    names = [f"BraTS19_{number:03d}" for number in range(len(case.truth))]
    (place.folder / "labels").mkdir()
    (place.folder / "post").mkdir()
    for case_name, truth in zip(names, case.truth, strict=True):
        volume = np.ascontiguousarray(truth.segmentation.transpose())  # NIfTI is x, y, z; nnU-Net works in z, y, x
        nibabel.save(nibabel.Nifti1Image(volume, affine=np.eye(4)), place.folder / "labels" / f"{case_name}.nii.gz")
        box = [[s, s + n] for s, n in zip(truth.crop_start, truth.cropped_size, strict=True)]
        properties = {
            "size_after_cropping": truth.cropped_size, "original_size_of_raw_data": truth.segmentation.shape,
            "crop_bbox": box, "original_spacing": [1.0] * 3, "spacing_after_resampling": [1.0] * 3,
            "itk_spacing": (1.0,) * 3, "itk_origin": (0.0,) * 3, "itk_direction": tuple(np.eye(3).ravel().tolist()),
        }  # fmt: skip
        (place.folder / f"{case_name}.pkl").write_bytes(pickle.dumps([None, properties]))
    (place.folder / "preprocessed_files.pkl").write_bytes(pickle.dumps(names))


def _brats_command(name: str, place: Place) -> list[str]:
    script = place.inference / "retired_benchmarks/vision/medical_imaging/3d-unet-brats19/accuracy-brats.py"
    return [
        place.python, str(script), "--log_file=mlperf_log_accuracy.json", "--output_dtype=float16",
        "--preprocessed_data_dir=.", "--postprocessed_data_dir=post", "--label_data_dir=labels",
        "--num_threads_nifti_save=2",
    ]  # fmt: skip


def _write_wer(name: str, case: Case, place: Place) -> None:
    entry = {"files": [{"fname": "a.wav", "speed": 1.0, "duration": 2.0}], "original_duration": 2.0}
    _write_json(place.folder / "manifest.json", [{**entry, "transcript": text} for text in case.truth])


def _wer_command(name: str, place: Place) -> list[str]:
    script = place.inference / "retired_benchmarks/speech_recognition/rnnt/accuracy_eval.py"
    options = ["--log_dir=.", "--dataset_dir=.", "--manifest=manifest.json", "--output_dtype=int64"]
    return [place.python, str(script), *options]


def _whisper_command(name: str, place: Place) -> list[str]:
    script = place.inference / "speech2text/accuracy_eval.py"
    return [place.python, str(script), "--log_dir=.", "--dataset_dir=.", "--manifest=manifest.json"]


def _write_auc(name: str, case: Case, place: Place) -> None:
    if case.truth is None:
        return
    starts = np.cumsum([0, *(len(labels) for labels in case.truth)])
    trace = [f"{first}, {last}, {last - first}\n" for first, last in itertools.pairwise(starts)]
    (place.folder / "trace.txt").write_text("".join(trace))
    (place.folder / "day_23").write_text("".join(f"{label}\t1\t2\n" for labels in case.truth for label in labels))


def _auc_command(name: str, place: Place) -> list[str]:
    script = place.inference / "recommendation/dlrm_v2/pytorch/tools/accuracy-dlrm.py"
    labels = (
        ["--day-23-file=day_23", "--aggregation-trace-file=trace.txt"] if (place.folder / "day_23").exists() else []
    )
    return [place.python, str(script), "--mlperf-accuracy-file=mlperf_log_accuracy.json", *labels]


def _write_rouge(name: str, case: Case, place: Place) -> None:
    _write_json(place.folder / "cnn_eval.json", [{"instruction": "i", "input": "x", "output": t} for t in case.truth])


def _rouge_command(name: str, place: Place) -> list[str]:
    script = place.inference / "language/gpt-j/evaluation.py"
    dtype = "int32" if name == "int32 tokens" else "int64"
    options = ["--mlperf-accuracy-file=mlperf_log_accuracy.json", "--dataset-file=cnn_eval.json", f"--dtype={dtype}"]
    return [place.python, str(place.folder / "shims" / "run_gptj.py"), str(script), *options]


RUNS = {
    "top1": Run("accuracy=", _write_top1, _top1_command),
    "squad": Run('{"exact_match"', _write_squad, _squad_command, check=_check_features, needs=("bert",)),
    "coco": Run("mAP=", _write_coco, _coco_command),
    "kits": Run("Accuracy: mean", _write_kits, _kits_command, needs=("old-python",)),
    "brats": Run("Accuracy: mean", _write_brats, _brats_command),
    "wer": Run("Word Error Rate", _write_wer, _wer_command),
    "whisper": Run("Word Error Rate", _write_wer, _whisper_command, needs=("whisper",)),
    "auc": Run("AUC=", _write_auc, _auc_command),
    "rouge": Run("{'rouge1'", _write_rouge, _rouge_command, is_numpy_printed=True, needs=("rouge",)),
}
"""The official script of each metric."""
