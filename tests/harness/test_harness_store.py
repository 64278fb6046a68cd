"""crowdperf.harness.base.store and crowdperf.harness.commands.preprocess: what is written comes back sample by
sample, and half-written is not taken."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness_support import SOURCE

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.store import INDEX_FILE, Store, open_store, read_chunk_index, write_chunk
from crowdperf.harness.commands import preprocess
from crowdperf.harness.datasets import digits


def digits_folder(folder: Path, count: int = 10, seed: int = 1) -> Path:
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "validation_images.npy", rng.integers(0, 17, (count, 8, 8), dtype=np.uint8))
    np.save(folder / "validation_labels.npy", rng.integers(0, 10, count, dtype=np.uint8))
    return folder


def fill(tmp_path: Path, *more: str) -> str:
    dataset = tmp_path / "data"
    if not dataset.is_dir():
        digits_folder(dataset)
    given = ["--model", "digits", "--dataset", str(dataset), "--output", str(tmp_path / "store"), "--workers", "1"]
    return preprocess.run(preprocess.parse([*given, *more]))


def opened(tmp_path: Path, *, data: str = "data", model: str = "digits") -> Store:
    """Open the store that `fill` made, for the data set in `data`."""
    return open_store(tmp_path / "store", model, tmp_path / data, digits.open_dataset(tmp_path / data))


def test_dense_samples_come_back_in_the_order_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preprocess, "_CHUNK_BYTES", 3 * 64 * 4)
    assert "10 samples in 4 chunks (0 kept)" in fill(tmp_path)
    store = opened(tmp_path)
    images = np.load(tmp_path / "data" / "validation_images.npy") / np.float32(16)
    loaded = store.load([9, 0, 4, 3])["image"]
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded[:, 0], images[[9, 0, 4, 3]])


def test_ragged_samples_keep_their_shapes_even_empty_ones(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    shapes = [(2, 3), (0, 3), (1, 1), (4, 2), (5, 7)]
    samples = [{"a": rng.random(shape, np.float32), "b": np.arange(shape[0])} for shape in shapes]
    write_chunk(tmp_path, 0, samples[:3])
    write_chunk(tmp_path, 1, samples[3:])
    loaded = Store(tmp_path, 5, 3, True, ("a", "b")).load([4, 1, 3, 0, 2])
    for found, index in zip(loaded, [4, 1, 3, 0, 2], strict=True):
        np.testing.assert_array_equal(found["a"], samples[index]["a"])
        np.testing.assert_array_equal(found["b"], samples[index]["b"])
        assert found["a"].shape == shapes[index]


def test_a_stopped_call_goes_on_with_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preprocess, "_CHUNK_BYTES", 3 * 64 * 4)
    fill(tmp_path)
    before = json.loads((tmp_path / "store" / INDEX_FILE).read_text())
    (tmp_path / "store" / INDEX_FILE).unlink()
    (tmp_path / "store" / "image.00001.npy").write_bytes(b"cut off")
    (tmp_path / "store" / "chunk.00003.json").unlink()
    assert "(2 kept)" in fill(tmp_path)
    assert json.loads((tmp_path / "store" / INDEX_FILE).read_text()) == before


def test_chunks_of_another_data_set_are_not_kept(tmp_path: Path) -> None:
    fill(tmp_path)
    assert "(1 kept)" in fill(tmp_path, "--dataset", str(shutil.copytree(tmp_path / "data", tmp_path / "copy")))
    other = digits_folder(tmp_path / "other", seed=2)
    assert "(0 kept)" in fill(tmp_path, "--dataset", str(other))


def test_chunks_of_changed_files_are_not_kept(tmp_path: Path) -> None:
    fill(tmp_path)
    digits_folder(tmp_path / "data", seed=2)
    assert "(0 kept)" in fill(tmp_path)


def test_a_store_of_another_model_is_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(HarnessError, match="was built for model digits, but the run's model is resnet50"):
        opened(tmp_path, model="resnet50")


def test_a_store_of_an_earlier_format_is_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    index = tmp_path / "store" / INDEX_FILE
    index.write_text(json.dumps({**json.loads(index.read_text()), "format": 1}))
    with pytest.raises(HarnessError, match="format 1, but this harness reads format 2"):
        opened(tmp_path)


@pytest.mark.parametrize(("count", "seed"), [(10, 2), (11, 1)])
def test_a_store_of_another_data_set_is_refused_with_the_command_that_makes_it_again(
    tmp_path: Path, count: int, seed: int
) -> None:
    fill(tmp_path)
    other = digits_folder(tmp_path / "other", count, seed)
    with pytest.raises(HarnessError, match=r"was made from 10 samples in .*data") as raised:
        opened(tmp_path, data="other")
    assert f"{count} samples in {other}" in str(raised.value)
    command = f"python3 -m crowdperf.harness preprocess --model=digits --dataset={other} --output={tmp_path / 'store'}"
    assert command in str(raised.value.hint)


def test_a_store_goes_with_a_copy_of_its_data_set_but_not_with_changed_files(tmp_path: Path) -> None:
    fill(tmp_path)
    shutil.copytree(tmp_path / "data", tmp_path / "copy")  # other times, the same contents
    assert opened(tmp_path, data="copy").count == 10
    digits_folder(tmp_path / "data", seed=2)
    with pytest.raises(HarnessError, match="other contents"):
        opened(tmp_path)


def test_a_changed_file_is_noticed_even_when_size_and_modification_time_are_put_back(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "data" / "validation_images.npy"
    before = path.stat()
    digits_folder(tmp_path / "data", seed=2)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    with pytest.raises(HarnessError, match="other contents"):
        opened(tmp_path)


def test_a_synthetic_store_is_refused_for_data_that_count_as_real(tmp_path: Path) -> None:
    facts = digits_folder(tmp_path / "data") / "dataset.json"
    facts.write_text('{"is_synthetic": true}')
    fill(tmp_path)
    assert opened(tmp_path).count == 10
    facts.unlink()
    with pytest.raises(HarnessError, match=r"was made from synthetic data.*, but .*data is not marked as synthetic"):
        opened(tmp_path)


def test_a_data_set_that_changes_while_it_is_preprocessed_makes_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_all = preprocess._make_all

    def make_and_change(*arguments: object) -> None:
        make_all(*arguments)  # type: ignore[arg-type]
        digits_folder(tmp_path / "data", seed=2)

    monkeypatch.setattr(preprocess, "_make_all", make_and_change)
    with pytest.raises(HarnessError, match="changed while"):
        fill(tmp_path)
    assert not (tmp_path / "store" / INDEX_FILE).exists()


def test_a_store_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    digits_folder(tmp_path / "data")
    (tmp_path / "store").mkdir()
    with pytest.raises(HarnessError, match="not a complete store"):
        opened(tmp_path)
    fill(tmp_path)
    (tmp_path / "store" / "image.00000.npy").write_bytes(b"x")
    assert read_chunk_index(tmp_path / "store", 0) is None
    with pytest.raises(HarnessError, match=r"chunk\.00000\.json"):
        opened(tmp_path)


def test_the_command_works_in_several_processes_and_tells_what_it_did(tmp_path: Path) -> None:
    digits_folder(tmp_path / "data", 3000)
    command = ["preprocess", "--model", "digits", "--dataset", "data", "--output", "store", "--workers", "2"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-m", "crowdperf.harness", *command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "3,000 samples in 3 chunks (0 kept)" in done.stderr
    store = opened(tmp_path)
    images = np.load(tmp_path / "data" / "validation_images.npy") / np.float32(16)
    np.testing.assert_array_equal(store.load(range(3000))["image"][:, 0], images)


def test_an_unknown_model_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="digits"):
        fill(tmp_path, "--model", "no-such-model")
