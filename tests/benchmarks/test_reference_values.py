"""Both SSDs and BraTS's preparation give the numbers of the reference's own functions, on made inputs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_cases as cases
from harness_support import need

from crowdperf.benchmarks.ssd_mobilenet import model as ssd_mobilenet
from crowdperf.benchmarks.ssd_resnet34 import model as ssd_resnet34
from crowdperf.benchmarks.unet3d_brats import model as brats
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.datasets.brats19 import Scans
from crowdperf.harness.datasets.images import ImageFile
from crowdperf.harness.media import image_files

need("cv2", "scipy")

FACTS = {
    "ssd_resnet34": {
        "image_size": 1200, "class_count": 81, "head_stride": 3,
        "extra_strides": [2, 2, 2, 2, 1], "extra_paddings": [1, 1, 1, 0, 0],
    },
    "ssd_mobilenet": {"image_size": 300, "class_count": 91},
}  # fmt: skip
MODULES = {"ssd_resnet34": ssd_resnet34, "ssd_mobilenet": ssd_mobilenet}
SSDS = pytest.mark.parametrize("name", sorted(MODULES))


@pytest.fixture(scope="module")
def recorded() -> Mapping[str, Any]:
    with np.load(Path(__file__).with_name("reference_values.npz")) as file:
        return dict(file)


def in_one_order(rows: np.ndarray) -> np.ndarray:
    """The rows score, label, corners, best first; equal scores by label and place, as no order is asked of them."""
    return rows[np.lexsort((rows[:, 5], rows[:, 4], rows[:, 3], rows[:, 2], rows[:, 1], -rows[:, 0]))]


@SSDS
def test_anchors_are_the_references(name: str, recorded: Mapping[str, Any]) -> None:
    anchors = MODULES[name].anchors_of(ModelFacts(config=FACTS[name]))
    assert len(anchors) == recorded[f"{name} count"]
    assert np.abs(anchors.sum(axis=0, dtype=np.float64) - recorded[f"{name} sums"]).max() < 1e-3
    assert np.abs(anchors[::25] - recorded[f"{name} anchors"]).max() < 1e-6


@SSDS
@pytest.mark.parametrize("kind", cases.KINDS)
def test_detections_are_the_references(name: str, kind: str, recorded: Mapping[str, Any]) -> None:
    model = MODULES[name].open_model(ModelFacts(config=FACTS[name]))
    for seed in (0, 1, 2):
        said, deltas = cases.network_says(name, kind, seed)
        scores = cases.softmax(said) if name == "ssd_resnet34" else said
        found = model.find({"scores": scores, "deltas": deltas})
        rows = in_one_order(np.column_stack((found.scores, found.labels, found.boxes)))
        expected = recorded[f"{name} {kind} {seed}"]
        assert rows.shape == expected.shape
        assert (np.abs(rows - expected) / np.maximum(1, np.abs(expected))).max() < 1e-5


@pytest.mark.parametrize("number", range(len(cases.IMAGE_SIDES)))
def test_prepared_pictures_are_the_references(
    number: int, recorded: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_files, "read_image", lambda path: cases.image(number))
    networks = {
        "ssd_resnet34": ssd_resnet34.open_model(ModelFacts(config=FACTS["ssd_resnet34"])),
        "ssd_mobilenet": ssd_mobilenet.open_model(ModelFacts(config=FACTS["ssd_mobilenet"])),
        "ssd_mobilenet file": ssd_mobilenet.open_model(ModelFacts()),
    }
    for name, model in networks.items():
        prepared = model.preprocess([ImageFile(path=Path("a.jpg"), index=0)])[model.network.inputs[0].name].ravel()
        kept = prepared[cases.places(prepared.size)].astype(np.float64)
        assert np.abs(kept - recorded[f"{name} image {number}"]).max() < 1e-5, name


@pytest.mark.parametrize("kind", cases.BRATS_KINDS)
def test_prepared_scans_are_the_references(kind: str, recorded: Mapping[str, Any]) -> None:
    for seed in (0, 1):
        scans = cases.brats_scans(kind, seed)
        box = brats.bounding_box(brats.brain_mask(scans))
        assert [[side.start, side.stop] for side in box] == recorded[f"brats {kind} {seed} box"].tolist()
        prepared = brats.prepare(Scans(kind, scans), cases.BRATS_VOLUME).ravel()
        values = recorded[f"brats {kind} {seed}"]
        assert np.abs(prepared[cases.places(prepared.size)] - values).max() < 1e-5
        assert np.isfinite(prepared).all()
