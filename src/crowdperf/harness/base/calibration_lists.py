"""The official calibration lists of MLPerf Inference, and what a quantised model says about the list it was made with.

The closed division allows calibration with the official list of the benchmark only (mlcommons/inference_policies,
inference_rules.adoc, "Weight definition and quantization rules"). The lists lie in `datasets/calibration_lists`; a data
set's file knows how to find the samples that an entry names (`listed_samples`).
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import CalibrationSource

_FOLDER = Path(__file__).parents[1] / "datasets" / "calibration_lists"

OFFICIAL: Mapping[str, Mapping[str, str]] = {
    "brats19": {
        "brats_cal_images_list.txt": "76acd4e14e8c133fb225bfc9c3cb7c99dbe4d674d7df441af6c7e0e27013542c",
    },
    "coco": {
        "coco_cal_images_list.txt": "ca6f97a9e49db992d18bf01dc98d7b164c5f57c0ce2553c45365ca8445bec559",
    },
    "imagenet": {
        "cal_image_list_option_1.txt": "7662247d1d9407d6cb564268f64c5a4a6cf9f1a34fd2e6cdc3b94dcf278b3dc9",
        "cal_image_list_option_2.txt": "11ce810122226ec0ca8c56e47ee356e3c1185f3c6ce8262edb50c3c1d0a9705e",
    },
    "kits19": {
        "calibration_cases.txt": "a671b8d7aec51a1242a2f58c4bb4aa9bc7887e0388060ef1fc495f61beacaeb9",
    },
    "librispeech": {
        "calibration_files.txt": "327a4b245b6de982a5b36a781a3f38a43a82b57270543771d3062acb53cce1e8",
    },
    "openimages": {
        "openimages_cal_images_list.txt": "f5c20ee508bf9449ac26e4db6c6035760e31385a3deefb1856ad47dbe5b0d7be",
    },
    "squad": {
        "bert_calibration_features.txt": "5a4ace54371313359193a661d653731115fc749c6ed92812ada1f74d4b1b708a",
        "bert_calibration_qas_ids.txt": "282d3175dc3d67b33f4883ad109a024b4ef126ef436bb0dd4b0c98bf0f004a19",
    },
}
"""SHA-256 of the lists by data set and file name; the first one is the default. Source: mlcommons/inference,
calibration/, commit b66003e1 (2026-08-20)."""


def official_list(dataset_name: str, list_name: str = "") -> tuple[CalibrationSource, tuple[str, ...]]:
    """Return an official list of a data set, by default the first, and its entries, one for each line that is not
    empty. Raises HarnessError when there is none of that name, or when its file was changed."""
    lists = OFFICIAL.get(dataset_name, {})
    name = list_name or next(iter(lists), "")
    if name not in lists:
        known = ", ".join(lists) or "none"
        wanted = f"named {list_name!r}" if list_name else "for it"
        hint = "give --count or --sample_list to calibrate with samples of your choice (open division only)"
        raise HarnessError(f"no official calibration list {wanted}. Lists of {dataset_name}: {known}", hint)
    content = (_FOLDER / name).read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != lists[name]:
        raise HarnessError(f"{_FOLDER / name} has sha256 {sha256}, the official list has {lists[name]}", "restore it")
    source = CalibrationSource(name=f"{dataset_name}/{name}", sha256=sha256, is_official=True)
    return source, tuple(line.strip() for line in content.decode("utf-8").splitlines() if line.strip())
