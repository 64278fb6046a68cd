"""get-dataset-digits: the split rule, the refusal of unknown data, the files and what the hook exports."""

import gzip
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from harness_libraries import need
from recipe_programs import program

RECIPE = Path(__file__).resolve().parents[2] / "script" / "get-dataset-digits"


@pytest.fixture
def make_dataset() -> ModuleType:
    need("numpy")
    return program(RECIPE.name, "make_dataset")


def test_the_folder_is_handed_on_and_every_file_declared(make_dataset, inside, hook_input):
    make_dataset.make_dataset(inside)
    i = hook_input()
    answer = program(RECIPE.name, "customize").postprocess(i)
    assert sorted(answer["files"]) == sorted(map(str, inside.iterdir()))
    assert (i["env"]["CM_DATASET_PATH"], i["env"]["CM_DATASET_DIGITS_PATH"]) == (str(inside), str(inside))


def test_the_written_dataset_is_the_documented_split_of_the_source(make_dataset, tmp_path):
    numpy, datasets = need("numpy", "sklearn.datasets")
    description = make_dataset.make_dataset(tmp_path)
    source = datasets.load_digits()
    assert (description["train_count"], description["validation_count"]) == (1198, 599)
    for part, indices in {
        "validation": [index for index in range(1797) if index % 3 == 2],
        "train": [index for index in range(1797) if index % 3 != 2],
    }.items():
        images = numpy.load(tmp_path / f"{part}_images.npy")
        labels = numpy.load(tmp_path / f"{part}_labels.npy")
        assert (images.dtype, labels.dtype) == (numpy.uint8, numpy.uint8)
        assert numpy.array_equal(images, source.images[indices])
        assert numpy.array_equal(labels, source.target[indices])
        assert set(labels.tolist()) == set(range(10))


def test_no_validation_image_is_a_training_image(make_dataset, tmp_path):
    (numpy,) = need("numpy")
    make_dataset.make_dataset(tmp_path)
    training = {image.tobytes() for image in numpy.load(tmp_path / "train_images.npy")}
    validation = {image.tobytes() for image in numpy.load(tmp_path / "validation_images.npy")}
    assert len(training) == 1198
    assert len(validation) == 599
    assert not training & validation


def test_dataset_json_holds_the_sha256_of_each_file(make_dataset, tmp_path):
    make_dataset.make_dataset(tmp_path)
    recorded = json.loads((tmp_path / "dataset.json").read_text())["sha256"]
    assert recorded == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.glob("*.npy")}
    assert len(recorded) == 4


def changed(content: bytes) -> bytes:
    """The source with one pixel that is one step darker."""
    values = bytearray(gzip.decompress(content))
    values[330] = (values[330] + 1) % 17
    return gzip.compress(bytes(values))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed, "116805 bytes with sha256"),
        (lambda content: content[:2000], "cannot be read"),
        (lambda content: content[:2000] + b"x" + content[2001:], "cannot be read"),
        (lambda content: b"no gzip", "cannot be read"),
    ],
)
def test_a_damaged_source_is_refused_with_a_command_that_restores_it(make_dataset, tmp_path, change, said):
    path = tmp_path / "optdigits.bin.gz"
    path.write_bytes(change(make_dataset.SOURCE_FILE.read_bytes()))
    with pytest.raises(make_dataset.DatasetError, match=said) as caught:
        make_dataset.read_source(path)
    assert f"git -C {tmp_path} checkout -- optdigits.bin.gz" in str(caught.value)


def test_run_sh_writes_into_the_current_folder_even_with_blanks_in_its_path(tmp_path):
    need("numpy")
    folder = tmp_path / "an entry"
    folder.mkdir()
    env = {
        "PATH": "/usr/bin:/bin",
        "CM_PYTHON_BIN_WITH_PATH": sys.executable,
        "CM_TMP_CURRENT_SCRIPT_PATH": str(RECIPE),
    }
    done = subprocess.run(["bash", "-c", f". '{RECIPE}/run.sh'"], cwd=folder, env=env, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    assert {path.name for path in folder.iterdir()} == set(program(RECIPE.name, "customize").FILES)
