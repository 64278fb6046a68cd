"""Makes the tiny data set, store and models of each benchmark with the programs of its recipes, once per session.

The programs are called as the recipes' run.sh calls them, with this interpreter; nothing is downloaded.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness_support import SCRIPTS, SOURCE

PATIENCE_S = 300
FRAMEWORKS = ("onnx", "pytorch")


class CannotMake(Exception):
    """An input that a recipe's program did not make; the text is its last words."""


@dataclass(frozen=True, kw_only=True)
class Maker:
    """How the inputs of one model are made.

    dataset: program and arguments, without --output_dir. dataset_name: models with an equal one share a data set.
    model: program and arguments, without --framework, --output_dir and, where `is_fitted`, --dataset_dir.
    conversion: program that makes the data set's files of those that `dataset` made, where it needs one.
    has_store: its samples can be preprocessed before. query_count: of a SingleStream run (64 queries give a figure).
    """

    dataset_name: str
    dataset: Sequence[str]
    model: Sequence[str]
    is_fitted: bool = True
    frameworks: Sequence[str] = FRAMEWORKS
    conversion: Sequence[str] = ()
    has_store: bool = True
    query_count: int = 64


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What runs of one model read; `model_infos` by framework, `store` as `harness preprocess` writes it."""

    dataset: Path
    store: Path | None
    model_infos: Mapping[str, Path] = field(default_factory=dict)


def _made(dataset_name: str, dataset: str, model: str, **more: Any) -> Maker:
    """A model that a program of crowdperf.standins.fits fits, or that has weights of its `--architecture` alone."""
    name, *words = dataset.split()
    program, *of_model = model.split()
    programs = "models.make_model" if program == "make_model" else f"standins.fits.{program}"
    return Maker(
        dataset_name=dataset_name,
        dataset=(f"crowdperf.standins.datasets.{name}", *words),
        model=(f"crowdperf.{programs}", *of_model),
        **more,
    )


def _detection(layout: str, architecture: str) -> Maker:
    classes = str(SCRIPTS / f"get-dataset-{layout}" / "classes.txt")
    made = _made(
        layout, f"scenes --layout {layout} --count 12 --pictures small", f"detection --architecture {architecture}"
    )
    return replace(made, dataset=(*made.dataset, "--classes", classes), query_count=10)


_CNNDM = "cnndm --count 32 --lengths small --training_count 320"
_LIBRISPEECH = "librispeech --count 32 --longest_s 3.5 --training_count 400"
_ONE_HOT, _MULTI_HOT = (f"criteo --form {form} --size tiny --count 24" for form in ("one-hot", "multi-hot"))
_RESNET50 = "make_model --architecture resnet50 --config tiny"
MAKERS: Mapping[str, Maker] = {
    "bert": _made("squad", "squad --kind tiny --count 24", "bert"),
    "digits": Maker(
        dataset_name="digits",
        dataset=("get-dataset-digits/make_dataset.py",),
        model=("get-ml-model-digits/fit_model.py",),
        frameworks=("onnx",),
    ),
    "dlrm": _made(
        "criteo",
        _ONE_HOT,
        "dlrm --architecture dlrm",
        conversion=("get-dataset-criteo/convert_day.py",),
        has_store=False,
    ),
    "dlrm_v2": _made("criteo_multihot", _MULTI_HOT, "dlrm --architecture dlrm_v2", has_store=False),
    "gptj": _made("cnndm", _CNNDM, "gptj", has_store=False, query_count=5),
    "resnet50": _made("imagenet", "imagenet --count 24 --sizes small", _RESNET50, is_fitted=False),
    "retinanet": _detection("openimages", "retinanet"),
    "rgat": _made("igbh", "igbh --kind tiny --count 120", "rgat", has_store=False),
    "rnnt": _made("librispeech", _LIBRISPEECH, "rnnt"),
    "ssd_mobilenet": _detection("coco", "ssd_mobilenet"),
    "ssd_resnet34": _detection("coco", "ssd_resnet34"),
    "stable_diffusion_xl": _made(
        "coco2014", "coco2014 --count 12 --kind tiny", "stable_diffusion_xl", has_store=False, query_count=10
    ),
    "unet3d": _made("kits19", "kits19 --size tiny --count 2", "unet3d", query_count=3),
    "unet3d_brats": _made("brats19", "brats19 --size tiny --count 2", "unet3d_brats", has_store=False, query_count=3),
    "whisper": _made("whisper", "whisper --count 16 --longest_s 3.9", "whisper", has_store=False),
    "yolo": _detection("coco", "yolo"),
}


def call(words: Sequence[str], folder: Path) -> None:
    """Run a program of a recipe, or a module of crowdperf; raises CannotMake with its last words."""
    first = [str(SCRIPTS / words[0])] if words[0].endswith(".py") else ["-m", words[0]]
    done = subprocess.run(
        [sys.executable, "-B", *first, *words[1:]],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise CannotMake(f"{Path(words[0]).name} failed: {''.join(last)[:200]}")


class Workshop:
    """Makes inputs below a folder when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._datasets: dict[str, Path] = {}
        self._made: dict[str, Inputs] = {}

    def _dataset(self, maker: Maker) -> Path:
        if maker.dataset_name not in self._datasets:
            folder = self._folder / maker.dataset_name
            folder.mkdir(parents=True)
            call([*maker.dataset, "--output_dir", str(folder)], folder)
            if maker.conversion:
                call([*maker.conversion, "--input_dir", str(folder), "--output_dir", str(folder)], folder)
            self._datasets[maker.dataset_name] = folder
        return self._datasets[maker.dataset_name]

    def make(self, stem: str, benchmark: str) -> Inputs:
        """Return the inputs of the model in crowdperf/benchmarks/`stem`; raises CannotMake."""
        if stem not in self._made:
            self._made[stem] = self._make(stem, benchmark)
        return self._made[stem]

    def _make(self, stem: str, benchmark: str) -> Inputs:
        maker = MAKERS[stem]
        dataset = self._dataset(maker)
        infos = {}
        for framework in maker.frameworks:
            folder = self._folder / f"{stem}_{framework}"
            folder.mkdir(parents=True)
            fitted_on = ["--dataset_dir", str(dataset)] if maker.is_fitted else []
            asked = [] if len(maker.frameworks) == 1 else ["--framework", framework]
            call([*maker.model, *fitted_on, *asked, "--output_dir", str(folder)], folder)
            infos[framework] = folder / "model.json"
        if not maker.has_store:
            return Inputs(dataset=dataset, store=None, model_infos=infos)
        store = self._folder / f"{stem}_store"
        words = [
            "crowdperf.harness",
            "preprocess",
            "--model",
            benchmark,
            "--dataset",
            str(dataset),
            "--output",
            str(store),
        ]
        call([*words, "--model_info", str(infos["onnx"]), "--workers", "1"], self._folder)
        return Inputs(dataset=dataset, store=store, model_infos=infos)
