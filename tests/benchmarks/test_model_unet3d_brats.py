"""3D-UNet on BraTS 2019: reading, nnU-Net's preprocessing written down again, runtimes and batches agree, scores."""

from dataclasses import replace
from pathlib import Path

import nibabel
import numpy as np
import onnxruntime
import pytest
import scipy.ndimage
import torch
from harness_support import need
from made_sets import make_set

from crowdperf.benchmarks.unet3d_brats import model as unet3d_brats
from crowdperf.benchmarks.unet3d_brats import network as architecture
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.datasets import brats19
from crowdperf.models.make_model import ModelRequest, build_modules, write_model
from crowdperf.rules.benchmarks import record_of
from crowdperf.standins.datasets import brats19 as made_brats19

need("onnx")

VOLUME = (32, 32, 24)


torch.set_num_threads(1)  # two threads on a busy machine wait for each other


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A tiny synthetic BraTS 2019."""
    folder = tmp_path_factory.mktemp("brats19")
    make_set("brats19", folder, size="tiny", count=3, calibration_count=1, seed=5)
    return folder


@pytest.fixture(scope="module")
def dataset(folder) -> brats19.Brats19Dataset:
    return brats19.open_dataset(folder)


def open_tiny() -> unet3d_brats.UnetBrats:
    return unet3d_brats.open_model(ModelFacts(config=architecture.CONFIGS["tiny"]))


def itk(path: Path) -> np.ndarray:
    """The array as SimpleITK gives it: axes z, y, x."""
    return np.asarray(nibabel.load(path).dataobj).transpose(2, 1, 0)


def official(folder: Path, case: str) -> tuple[np.ndarray, np.ndarray, list[list[int]]]:
    """nnU-Net's data, its mask and its crop_bbox, before padding."""
    name = case.split("/")[1]
    data = np.stack([itk(folder / case / f"{name}_{kind}.nii.gz") for kind in ("t1", "t1ce", "t2", "flair")])
    data = data.astype(np.float32)
    mask = scipy.ndimage.binary_fill_holes(np.any(data != 0, axis=0))
    places = np.where(mask)
    box = [[int(axis.min()), int(axis.max()) + 1] for axis in places]
    cut = tuple(slice(*edges) for edges in box)
    data, mask = data[(slice(None), *cut)].astype(float), mask[cut]
    for channel in range(4):
        values = data[channel][mask]
        data[channel][mask] = (values - values.mean()) / (values.std() + 1e-8)
        data[channel][mask == 0] = 0
    return data.astype(np.float32), mask, box


def test_preprocessing_is_that_of_nnunet(folder, dataset):
    for index, case in enumerate(dataset.cases):
        data, mask, box = official(folder, case)
        found = open_tiny().preprocess(dataset.load([index]))["input"]
        assert found.shape == (1, 4, *VOLUME) and found.dtype == np.float32
        before = [(whole - part) // 2 for whole, part in zip(VOLUME, mask.shape, strict=True)]
        inside = tuple(slice(first, first + size) for first, size in zip(before, mask.shape, strict=True))
        np.testing.assert_array_equal(found[0][(slice(None), *inside)], data)
        found[0][(slice(None), *inside)] = 0
        assert not found.any()
        truth = unet3d_brats.truth_of(dataset, index)
        assert truth.cropped_size == mask.shape and list(truth.crop_start) == [edges[0] for edges in box]


def test_labels_are_in_nnunets_numbers_and_axes(folder, dataset):
    case = dataset.cases[1]
    raw = itk(folder / case / f"{case.split('/')[1]}_seg.nii.gz")
    labels = dataset.labels(1)
    assert set(np.unique(raw)) == {0, 1, 2, 4}
    for theirs, ours in ((0, 0), (1, 2), (2, 1), (4, 3)):
        assert np.array_equal(raw == theirs, labels == ours)


def test_perfect_responses_score_one(dataset):
    model = open_tiny()

    def responses():
        for index in range(dataset.count):
            case = unet3d_brats.truth_of(dataset, index)
            cut = tuple(slice(a, a + size) for a, size in zip(case.crop_start, case.cropped_size, strict=True))
            missing = [whole - size for whole, size in zip(VOLUME, case.cropped_size, strict=True)]
            labels = np.pad(case.segmentation[cut], [(side // 2, side - side // 2) for side in missing])
            yield index, np.stack([labels == number for number in range(4)]).astype(np.float16).tobytes()

    score = model.score(responses(), dataset)
    assert score.values["DICE"] == 1.0
    assert score.line.startswith("Accuracy: mean = 1.00000, whole tumor = 1.0000")


def test_onnxruntime_and_torch_agree_and_batches_change_nothing(dataset, tmp_path):
    order = ModelRequest(architecture="unet3d_brats", config="tiny", framework="onnx", output_dir=tmp_path, seed=2)
    modules = build_modules(order)
    facts = read_model_facts(None, write_model(modules, order))
    session = onnxruntime.InferenceSession(str(facts.files["model"].path))
    model = open_tiny()
    inputs = model.preprocess(dataset.load([2, 0]))
    calls = {"model": lambda batch: {"output": session.run(["output"], dict(batch))[0]}}
    together = model.predict(calls, inputs)
    assert together.shape == (2, 4, *VOLUME) and together.dtype == np.float16
    assert model.response.size_bytes == together[0].nbytes
    for row in range(2):
        assert np.array_equal(model.predict(calls, {"input": inputs["input"][row : row + 1]})[0], together[row])
    with torch.no_grad():
        (scores,) = modules["model"](torch.from_numpy(inputs["input"]))
    assert scores.abs().max() > 0.1
    np.testing.assert_allclose(together, scores.numpy(), rtol=2e-3, atol=2e-3)  # float16 has 11 bits


def test_real_data_are_the_67_cases_of_fold_1_and_all_missing_files_are_named(tmp_path):
    with pytest.raises(HarnessError) as caught:
        brats19.open_dataset(tmp_path)
    assert f"{tmp_path}/HGG/BraTS19_2013_13_1/BraTS19_2013_13_1_t1.nii.gz is missing" in str(caught.value)
    assert f"and {67 * 5 - 20} more" in str(caught.value)
    assert len(set(brats19.INFERENCE_CASES)) == 67
    assert sum(case.startswith("LGG/") for case in brats19.INFERENCE_CASES) == 14


def _save(path: Path, voxels: np.ndarray, spacing: float = 1.0) -> None:
    nibabel.save(nibabel.Nifti1Image(voxels, np.diag([spacing, spacing, spacing, 1.0])), path)


@pytest.mark.parametrize(
    ("kind", "voxels", "spacing", "says"),
    [
        ("seg", np.full((26, 34, 34), 3, np.uint8), 1.0, "has the label 3; allowed: 0, 1, 2, 4"),
        ("t2", np.zeros((26, 34, 34), np.int16), 2.0, "allowed: 1 mm"),
    ],
)
def test_impossible_values_are_refused_when_they_are_read(tmp_path, kind, voxels, spacing, says):
    make_set("brats19", tmp_path, size="tiny", count=1, calibration_count=0, seed=5)
    (path,) = tmp_path.rglob(f"*_{kind}.nii.gz")
    _save(path, voxels, spacing)
    dataset = brats19.open_dataset(tmp_path)
    with pytest.raises(HarnessError, match=says):
        dataset.labels(0)
        dataset.load([0])


def test_an_empty_scan_and_a_brain_that_does_not_fit_are_refused(dataset):
    empty = brats19.Scans("HGG/none", np.zeros((4, 5, 5, 5), np.float32))
    with pytest.raises(HarnessError, match="only voxels of 0"):
        unet3d_brats.prepare(empty, VOLUME)
    with pytest.raises(HarnessError, match=r"the network expects \(8, 8, 8\)"):
        unet3d_brats.prepare(dataset.load([0])[0], (8, 8, 8))


def test_full_size_scans_fit_the_real_volume():
    (_, high) = made_brats19.SHAPES["full"].radii
    largest = [
        2 * radius * (side - 1) + 1 for radius, side in zip(high, made_brats19.SHAPES["full"].sides, strict=True)
    ]
    assert all(size <= room for size, room in zip(reversed(largest), unet3d_brats.VOLUME, strict=True))


def test_the_full_network_has_nnunets_parameters():
    with torch.device("meta"):
        state = architecture.build("model", architecture.CONFIGS["full"]).state_dict()
    assert tuple(state["conv_blocks_context.5.0.blocks.0.conv.weight"].shape) == (320, 320, 3, 3, 3)
    assert tuple(state["conv_blocks_localization.4.1.blocks.0.instnorm.weight"].shape) == (30,)
    assert tuple(state["tu.0.weight"].shape) == (320, 320, 2, 2, 2)
    assert tuple(state["seg_outputs.4.weight"].shape) == (4, 30, 1, 1, 1)


def test_rules_are_those_of_v07():
    rules = record_of("3d-unet-brats-99.9")
    assert (rules.loadgen_name, rules.dataset, rules.performance_sample_count) == ("3d-unet", "brats19", 16)


@pytest.mark.parametrize("volume", [(1, 2), (0, 1, 1), ("a", 1, 1)])
def test_an_impossible_volume_is_refused(volume):
    with pytest.raises(HarnessError, match="volume"):
        unet3d_brats.open_model(ModelFacts(config={"volume": volume}))


def test_a_checkpoint_of_nnunet_is_taken_over_without_its_training_outputs(tmp_path):
    made = ModelRequest(architecture="unet3d_brats", config="tiny", framework="pytorch", output_dir=tmp_path, seed=3)
    state = build_modules(made)["model"].state_dict()
    extra = {f"seg_outputs.{number}.weight": torch.zeros(1) for number in range(1)}
    torch.save({"epoch": 1, "state_dict": {**state, **extra}}, tmp_path / "model_final_checkpoint.model")
    taken = build_modules(replace(made, weights=tmp_path / "model_final_checkpoint.model", seed=4))[
        "model"
    ].state_dict()
    assert all(torch.equal(taken[name], value) for name, value in state.items())
