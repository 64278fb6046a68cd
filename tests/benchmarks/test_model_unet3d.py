"""3D-UNet and KiTS19: reading, preprocessing and windows against the official formulas, runtimes and batches agree."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import nibabel
import numpy as np
import onnxruntime
import pytest
import scipy.ndimage
import scipy.signal
import torch
from harness_support import need
from made_sets import make_set

from crowdperf.benchmarks.unet3d import model as unet3d
from crowdperf.benchmarks.unet3d import network as architecture
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.base.tensors import aligned_empty
from crowdperf.harness.datasets import kits19
from crowdperf.harness.media import nifti
from crowdperf.models.make_model import ModelRequest, build_modules, write_model
from crowdperf.rules.benchmarks import record_of
from crowdperf.standins.datasets import kits19 as made_kits19

need("onnx")

torch.set_num_threads(1)  # two threads on a busy machine wait for each other


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A tiny synthetic KiTS19."""
    folder = tmp_path_factory.mktemp("kits19")
    make_set("kits19", folder, size="tiny", count=3, calibration_count=2, seed=3)
    return folder


@pytest.fixture(scope="module")
def dataset(folder) -> kits19.Kits19Dataset:
    return kits19.open_dataset(folder)


@pytest.fixture(scope="module")
def networks(tmp_path_factory) -> dict[str, object]:
    """The same random network, tiny, in PyTorch and in onnxruntime, as calls of the harness."""
    folder = tmp_path_factory.mktemp("model")
    order = ModelRequest(architecture="unet3d", config="tiny", framework="onnx", output_dir=folder, seed=1)
    modules = build_modules(order)
    facts = read_model_facts(None, write_model(modules, order))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(facts.files["model"].path), options)

    def with_torch(inputs):
        with torch.no_grad():
            return {"output": modules["model"](torch.from_numpy(inputs["input"]))[0].numpy()}

    return {
        "torch": with_torch,
        "onnx": lambda inputs: {"output": session.run(["output"], dict(inputs))[0]},
    }


# --- the data set ---


def test_a_case_has_the_scan_labels_and_spacing_that_were_written(folder, dataset):
    case = made_kits19.make_case(np.random.default_rng([3, 2]), made_kits19.SHAPES["tiny"])
    (scan,), labels = dataset.load([2]), dataset.labels(2)
    assert scan.voxels.dtype == np.float32 and labels.voxels.dtype == np.uint8
    assert np.array_equal(scan.voxels, case.scan) and np.array_equal(labels.voxels, case.labels)
    assert scan.spacing_mm == labels.spacing_mm == pytest.approx(case.spacing_mm, rel=1e-6)
    assert set(np.unique(labels.voxels)) == {0, 1, 2}


def test_the_same_seed_gives_the_same_bytes_whatever_the_number_of_cases(folder, tmp_path):
    make_set("kits19", tmp_path, size="tiny", count=1, calibration_count=0, seed=3)
    for name in ("imaging.nii.gz", "segmentation.nii.gz"):
        path = Path("data", "case_00000", name)
        assert (tmp_path / path).read_bytes() == (folder / path).read_bytes()


def test_full_size_volumes_make_one_to_eight_windows_of_128_voxels():
    case = made_kits19.make_case(np.random.default_rng(0), made_kits19.SHAPES["full"])
    volume = nifti.Volume(voxels=case.scan.astype(np.float32), spacing_mm=case.spacing_mm)
    shape = unet3d.prepare_scan(volume).shape
    assert all(side % 64 == 0 and 128 <= side <= 192 for side in shape)
    assert 1 <= len(unet3d.window_starts(shape, 128)) <= 8


def test_real_data_are_the_43_official_cases_and_all_missing_ones_are_named(tmp_path):
    (tmp_path / "case_00000").mkdir()
    with pytest.raises(HarnessError) as caught:
        kits19.open_dataset(tmp_path)
    assert f"{tmp_path / 'case_00000' / 'imaging.nii.gz'} is missing" in str(caught.value)
    assert "and 66 more" in str(caught.value)
    assert len(kits19.INFERENCE_CASES) == 43


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def _garble(path: Path) -> None:
    path.write_bytes(b"no volume at all")


def _other_shape(path: Path) -> None:
    nibabel.save(nibabel.Nifti1Image(np.zeros((3, 4, 5), np.uint8), np.eye(4)), path)


def _two_axes(path: Path) -> None:
    nibabel.save(nibabel.Nifti1Image(np.zeros((3, 4), np.uint8), np.eye(4)), path)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (_truncate, "truncated or damaged"),
        (_garble, "cannot read"),
        (_other_shape, "segmentation.nii.gz (3, 4, 5)"),
        (_two_axes, "expected three axes"),
        (Path.unlink, "is missing"),
    ],
)
def test_a_damaged_case_is_named_when_the_data_set_is_opened(tmp_path, damage, says):
    make_set("kits19", tmp_path, size="tiny", count=2, calibration_count=0, seed=0)
    damage(tmp_path / "data" / "case_00001" / "segmentation.nii.gz")
    with pytest.raises(HarnessError) as caught:
        kits19.open_dataset(tmp_path)
    assert says in str(caught.value) and "case_00001" in str(caught.value)


def test_damage_inside_a_file_is_told_when_it_is_read(tmp_path):
    make_set("kits19", tmp_path, size="tiny", count=1, calibration_count=0, seed=0)
    path = tmp_path / "data" / "case_00000" / "imaging.nii.gz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    dataset = kits19.open_dataset(tmp_path)
    with pytest.raises(HarnessError, match="cannot read") as caught:
        dataset.load([0])
    assert str(path) in str(caught.value)


def test_dataset_json_without_cases_is_refused(tmp_path):
    make_set("kits19", tmp_path, size="tiny", count=1, calibration_count=0, seed=0)
    (tmp_path / "dataset.json").write_text(json.dumps({"is_synthetic": True}))
    with pytest.raises(HarnessError, match="cases is None"):
        kits19.open_dataset(tmp_path)


def test_calibration_cases_are_other_cases(folder, dataset):
    calibration = kits19.open_calibration(folder)
    assert calibration.count == 2
    assert not set(calibration.cases) & set(dataset.cases)


# --- preprocessing, against the steps of the official preprocess.py written down again ---


def official(path: Path, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Scan and labels as the reference makes them, with a leading channel axis as there."""
    image, label = (nibabel.load(path / f"{name}.nii.gz") for name in ("imaging", "segmentation"))
    zoom_factor = np.array(image.header["pixdim"][1:4].tolist()) / np.array([1.6, 1.2, 1.2])
    pixels, mask = image.get_fdata().astype(np.float32), label.get_fdata().astype(np.uint8)
    pixels = scipy.ndimage.zoom(pixels, zoom_factor, order=1, mode="constant", cval=pixels.min(), grid_mode=False)
    mask = scipy.ndimage.zoom(mask, zoom_factor, order=0, mode="constant", cval=mask.min(), grid_mode=False)
    pixels, mask = pixels[None], mask[None]
    pixels = (np.clip(pixels, -79.0, 304.0) - 101.0) / 76.9
    bounds = [max(0, window - side) for side in pixels.shape[1:]]
    paddings = [(0, 0)] + [(bound // 2, bound - bound // 2) for bound in bounds]
    pixels, mask = np.pad(pixels, paddings, mode="edge"), np.pad(mask, paddings, mode="edge")
    stride = window // 2
    for axis in (1, 2, 3):
        side = pixels.shape[axis]
        extra = side % stride
        if extra < stride // 2:
            keep = range(extra // 2, side - (extra - extra // 2))
            pixels, mask = pixels.take(keep, axis), mask.take(keep, axis)
        bound = (stride - pixels.shape[axis] % stride) % stride
        padding = [(0, 0)] * 4
        padding[axis] = (bound // 2, bound - bound // 2)
        pixels = np.pad(pixels, padding, constant_values=-2.2)
        mask = np.pad(mask, padding, constant_values=0)
    return pixels.astype(np.float32)[0], mask.astype(np.uint8)[0]


@pytest.mark.parametrize("window", [16, 24, 32, 64])
def test_preprocessing_is_the_official_one(folder, dataset, window):
    for index, case in enumerate(dataset.cases):
        scan, labels = official(folder / "data" / case, window)
        assert np.array_equal(unet3d.prepare_scan(dataset.load([index])[0], window), scan)
        assert np.array_equal(unet3d.prepare_labels(dataset.labels(index), window), labels)
        assert all(side >= window and side % (window // 2) == 0 for side in scan.shape)


def test_shapes_of_many_volumes_are_the_official_ones():
    random = np.random.default_rng(5)
    for _ in range(300):
        shape = tuple(int(side) for side in random.integers(1, 90, 3))
        fitted = unet3d.fit_to_windows(np.ones(shape, np.float32), 32, -2.2)
        wanted = []
        for side in (max(side, 32) for side in shape):
            cropped = side - side % 16 if side % 16 < 8 else side
            wanted.append(cropped + (16 - cropped % 16) % 16)
        assert fitted.shape == tuple(wanted)


def test_a_volume_with_the_wanted_voxels_is_not_resampled():
    voxels = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    assert unet3d.resample(nifti.Volume(voxels=voxels, spacing_mm=(1.6, 1.2, 1.2)), order=1) is voxels


def test_weights_are_the_official_gaussian():
    line = scipy.signal.windows.gaussian(128, 16.0)
    cube = np.cbrt(np.outer(np.outer(line, line), line).reshape(128, 128, 128))
    assert np.array_equal(unet3d.window_weights(128), (cube / cube.max()).astype(np.float32))


def test_starts_cover_every_voxel():
    starts = unet3d.window_starts((32, 48, 64), 32)
    assert starts == [(0, 0, 0), (0, 0, 16), (0, 0, 32), (0, 16, 0), (0, 16, 16), (0, 16, 32)]


@pytest.mark.parametrize("shape", [(3, 20, 20, 20), (2, 1, 1, 1), (3, 4, 64, 64), (4, 5, 64, 64), (3, 1, 127, 129)])
def test_classes_are_those_of_argmax_with_ties_to_the_first(monkeypatch, shape):
    """Volumes of a part of a block, of whole blocks, and of blocks and a part."""
    monkeypatch.setattr(unet3d, "_BLOCK_VOXELS", 1 << 13)
    random = np.random.default_rng(0)
    scores, norm = random.integers(0, 3, shape).astype(np.float32), random.integers(1, 3, shape[1:]).astype(np.float32)
    found = unet3d.classes_of(scores, norm)
    assert found.dtype == np.uint8 and np.array_equal(found, (scores / norm).argmax(axis=0).astype(np.uint8))


@pytest.mark.parametrize("place, wanted", [(0, 0), (1, 0), (2, 1)])
def test_no_class_behind_a_score_that_is_no_number_is_chosen(place, wanted):
    """The highest of the scores before it is the class."""
    scores = np.array([1.0, 2.0, 3.0], dtype=np.float32).reshape(3, 1, 1, 1)
    scores[place] = np.nan
    assert unet3d.classes_of(scores, np.ones((1, 1, 1), dtype=np.float32)).item() == wanted


# --- the timed part ---


@pytest.mark.parametrize("window", [1, 4, 5])
def test_windows_are_summed_with_their_weights_slice_by_slice(window):
    random = np.random.default_rng(0)
    weights = random.random((window,) * 3, dtype=np.float32)
    total, shape = unet3d._Sum((6, 7, 8), 3, weights), (3, *weights.shape)
    sums, norm = np.zeros((3, 6, 7, 8), np.float32), np.zeros((6, 7, 8), np.float32)
    for start in [(0, 0, 0), (1, 2, 3), (1, 0, 2)]:
        scores = random.standard_normal(shape, dtype=np.float32)
        total.add(start, scores)
        place = tuple(slice(first, first + window) for first in start)
        sums[(slice(None), *place)] += scores * weights
        norm[place] += weights
    assert np.array_equal(total._scores, sums) and np.array_equal(total._norm, norm)


@pytest.mark.parametrize("shape, dtype", [((3, 5), np.float32), ((7,), np.uint8), ((2, 1), np.float64)])
def test_aligned_memory_begins_with_a_cache_line(shape, dtype):
    for _ in range(8):
        array = aligned_empty(shape, dtype)
        assert (array.shape, array.dtype, array.ctypes.data % 64) == (shape, dtype, 0)
        assert array.flags.c_contiguous and array.flags.writeable


def open_tiny() -> unet3d.Unet3d:
    return unet3d.open_model(ModelFacts(config=architecture.CONFIGS["tiny"]))


def official_inference(scan: np.ndarray, infer, window: int) -> np.ndarray:
    """The loop of base_SUT.py with the arrays of inference_utils.py."""
    line = scipy.signal.windows.gaussian(window, 0.125 * window)
    patch = np.cbrt(np.outer(np.outer(line, line), line).reshape(window, window, window))
    patch = (patch / patch.max()).astype(np.float32)
    image = scan[None, None]
    result = np.zeros((1, 3, *scan.shape), np.float32)
    norm = np.zeros_like(result)
    stride = window // 2
    counts = [(side - window) // stride + 1 for side in scan.shape]
    for i in range(0, stride * counts[0], stride):
        for j in range(0, stride * counts[1], stride):
            for k in range(0, stride * counts[2], stride):
                place = (..., slice(i, i + window), slice(j, j + window), slice(k, k + window))
                result[place] += infer({"input": np.ascontiguousarray(image[place])})["output"] * patch
                norm[place] += patch
    return np.argmax(result / norm, axis=1).astype(np.uint8)[0]


@pytest.fixture(scope="module")
def samples(dataset) -> list[dict[str, np.ndarray]]:
    """Corners of the volumes, each of another shape and of a few windows: torch takes seconds for a whole one."""
    shapes = [(32, 48, 48), (32, 32, 32), (32, 32, 48)]
    made = open_tiny().preprocess(dataset.load(range(dataset.count)))
    cut = [sample["volume"][tuple(map(slice, shape))] for sample, shape in zip(made, shapes, strict=True)]
    assert [volume.shape for volume in cut] == shapes
    return [{"volume": np.ascontiguousarray(volume)} for volume in cut]


@pytest.mark.parametrize("runtime", ["torch", "onnx"])
def test_predictions_are_those_of_the_official_loop(samples, networks, runtime):
    model = open_tiny()
    for sample in samples[:1]:
        (labels,) = model.predict({"model": networks[runtime]}, model.collate([sample]))
        assert labels.dtype == np.uint8
        assert np.array_equal(labels, official_inference(sample["volume"], networks[runtime], 32))


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_batches_of_volumes_change_nothing(samples, networks, runtime):
    model = open_tiny()
    single = [model.predict({"model": networks[runtime]}, model.collate([sample]))[0] for sample in samples]
    batch = model.predict({"model": networks[runtime]}, model.collate(samples))
    assert [labels.shape for labels in batch] == [sample["volume"].shape for sample in samples]
    for one, other in zip(single, batch, strict=True):
        assert np.array_equal(one, other)


def test_onnxruntime_and_torch_agree(networks):
    windows = np.random.default_rng(0).standard_normal((2, 1, 32, 32, 32)).astype(np.float32)
    scores = [networks[runtime]({"input": windows})["output"] for runtime in ("torch", "onnx")]
    assert scores[0].shape == (2, 3, 32, 32, 32)
    assert np.abs(scores[0]).max() > 0.1
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=2e-5)


def test_a_single_volume_is_not_copied(dataset):
    model = open_tiny()
    (sample,) = model.preprocess(dataset.load([0]))
    assert np.shares_memory(model.collate([sample])["voxels"], sample["volume"])
    assert model.length(sample) == len(unet3d.window_starts(sample["volume"].shape, 32))


def test_perfect_responses_score_one_and_empty_ones_near_zero(dataset):
    model = open_tiny()
    truths = [unet3d.prepare_labels(dataset.labels(index), 32) for index in range(dataset.count)]
    perfect = model.score(((index, truth.tobytes()) for index, truth in enumerate(truths)), dataset)
    assert perfect.values["DICE"] == pytest.approx(1.0)
    nothing = model.score(((index, bytes(truth.size)) for index, truth in enumerate(truths)), dataset)
    assert nothing.values["DICE"] < 1e-6
    assert nothing.line.startswith("Accuracy: mean = 0.00000, ")


# --- model and rules ---


def test_the_full_network_has_the_parameters_of_the_published_one():
    with torch.device("meta"):
        state = architecture.build("model", architecture.CONFIGS["full"]).state_dict()
    assert sum(value.numel() for value in state.values()) == 31_190_243
    assert tuple(state["downsample.3.conv1.0.weight"].shape) == (320, 256, 3, 3, 3)
    assert tuple(state["upsample.0.upsample_conv.0.weight"].shape) == (320, 320, 2, 2, 2)
    assert tuple(state["output.conv.0.bias"].shape) == (3,)


@pytest.mark.parametrize("config", [{"window": 30}, {"window": "128"}, {"classes": 4}])
def test_a_model_of_another_kind_is_refused(config):
    with pytest.raises(HarnessError, match="has a window of"):
        unet3d.open_model(ModelFacts(config=config))


@pytest.mark.parametrize("name", ["3d-unet-99", "3d-unet-99.9"])
def test_rules_are_the_official_ones(name):
    rules = record_of(name)
    assert (rules.loadgen_name, rules.dataset, rules.performance_sample_count) == ("3d-unet", "kits19", 43)


def test_gzip_members_of_the_real_files_are_what_the_size_check_reads(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"x" * 1234))
    assert nifti.unpacked_size(path) == 1234


def test_volumes_of_a_case_are_whole_and_of_one_shape(tmp_path):
    def volume(name, *shape):
        nibabel.save(nibabel.Nifti1Image(np.zeros(shape, np.int16), np.eye(4)), tmp_path / name)
        return tmp_path / name

    scan, labels = volume("scan.nii.gz", 2, 3, 4), volume("labels.nii.gz", 2, 3, 4)
    assert nifti.find_problems([scan, labels]) == []
    assert nifti.find_problems([scan, labels, volume("other.nii.gz", 2, 3, 5)]) == [
        f"the volumes of {tmp_path} differ in shape: scan.nii.gz (2, 3, 4), labels.nii.gz (2, 3, 4), "
        "other.nii.gz (2, 3, 5)"
    ]
    four = volume("four.nii.gz", 2, 3, 4, 5)
    labels.write_bytes(gzip.compress(gzip.decompress(labels.read_bytes())[:-1]))
    assert nifti.find_problems([tmp_path / "lost.nii.gz", scan, labels, four]) == [
        f"{tmp_path / 'lost.nii.gz'} is missing",
        f"{labels} is truncated or damaged: it has 399 bytes, its header says 400",
        f"{four} has the shape (2, 3, 4, 5), expected three axes",
    ]


def test_the_published_checkpoints_form_is_taken_over(tmp_path):
    made = ModelRequest(architecture="unet3d", config="tiny", framework="pytorch", output_dir=tmp_path, seed=3)
    state = build_modules(made)["model"].state_dict()
    torch.save({"epoch": 1, "best_model_state_dict": state}, tmp_path / "checkpoint.pth")
    taken = build_modules(replace(made, weights=tmp_path / "checkpoint.pth", seed=4))["model"].state_dict()
    assert all(torch.equal(taken[name], value) for name, value in state.items())
