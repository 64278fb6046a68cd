"""get-dataset-imagenet-val: the refusal, the check of a given copy, and the synthetic images."""

from pathlib import Path
from typing import Any

import pytest
from harness_libraries import need
from made_sets import make_set
from recipe_loader import RECIPES, load_recipe, recipe_meta
from recipe_programs import program

FOLDER = RECIPES / "get-dataset-imagenet-val"
recipe = load_recipe("get-dataset-imagenet-val")


def write_copy(folder: Path, count: int) -> Path:
    folder.mkdir()
    names = [recipe.FILE_NAME.format(number=number) for number in range(1, count + 1)]
    for name in names:
        (folder / name).write_bytes(b"x")
    (folder / "val.txt").write_text("".join(f"{name} 0\n" for name in names), encoding="utf-8")
    return folder


def call(hook_input: Any, path: Path | None, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    given = {"CM_MLPERF_DATA_GIVEN_PATH": str(path or ""), "CM_DATASET_IMAGENET_VAL_WAY": "given", **env}
    i = hook_input(given)
    return recipe.preprocess(i), i["env"]


def test_without_a_copy_it_says_where_to_get_one_under_which_license_and_what_then(hook_input, inside):
    answer, _ = call(hook_input, None)
    assert answer["return"] == 1
    for part in ("image-net.org", "29b22e2961454d5413ddabcf34fc5622", "research", "val.txt", "--path=FOLDER"):
        assert part in answer["error"]


def test_a_copy_that_is_whole_is_taken_where_it_lies(hook_input, inside, tmp_path):
    copy = write_copy(tmp_path / "copy", 3)
    (copy / "README").touch()
    answer, env = call(hook_input, copy, CM_DATASET_SIZE="3")
    assert answer == {"return": 0}
    i = {"env": env}
    assert recipe.postprocess(i) == {"return": 0, "files": []}
    assert env["CM_DATASET_PATH"] == env["CM_DATASET_IMAGENET_PATH"] == env["CM_DATASET_IMAGENET_VAL_PATH"] == str(copy)
    assert env["CM_DATASET_IS_SYNTHETIC"] == "no"
    assert set(recipe_meta("get-dataset-imagenet-val")["new_env_keys"]) >= {"CM_DATASET_IDENTITY", "CM_DATASET_SIZE"}


def test_what_a_copy_lacks_or_has_too_much_is_listed_with_the_way_to_get_it(hook_input, inside, tmp_path):
    copy = write_copy(tmp_path / "copy", 5)
    (copy / recipe.FILE_NAME.format(number=2)).unlink()
    (copy / recipe.FILE_NAME.format(number=3)).write_bytes(b"")
    (copy / "val.txt").unlink()
    error = call(hook_input, copy, CM_DATASET_SIZE="4")[0]["error"]
    assert "2 files missing: val_map.txt, ILSVRC2012_val_00000002.JPEG" in error
    assert "1 file extra (not part of the data set): ILSVRC2012_val_00000005.JPEG" in error
    assert "1 file empty: ILSVRC2012_val_00000003.JPEG" in error
    assert "image-net.org" in error
    assert "49,995 files missing" in call(hook_input, write_copy(tmp_path / "few", 5))[0]["error"]


NAMED = {"CM_MLPERF_DATA_REGISTERED_AS": "imagenet 50000"}


def test_a_few_pictures_of_ones_own_are_taken_and_not_registered_as_imagenet(hook_input, inside, tmp_path, capsys):
    photos = tmp_path / "photos"
    photos.mkdir()
    for name in ("b.jpg", "a.JPEG", "notes.txt"):
        (photos / name).write_bytes(b"x")
    answer, env = call(hook_input, photos, **NAMED)
    assert answer == {"return": 0}
    assert (env["CM_DATASET_SIZE"], env["CM_MLPERF_DATA_REGISTERED_AS"]) == ("2", "")
    assert "2 other pictures, not the 50,000 of ImageNet" in capsys.readouterr().out
    listed = write_copy(tmp_path / "listed", 3)
    assert call(hook_input, listed, **NAMED)[1]["CM_DATASET_SIZE"] == "3"


def test_a_damaged_copy_of_imagenet_never_counts_as_pictures_of_ones_own(hook_input, inside, tmp_path):
    copy = write_copy(tmp_path / "copy", 3)
    (copy / recipe.FILE_NAME.format(number=2)).unlink()  # its list names it
    nothing_listed = write_copy(tmp_path / "unlisted", 3)
    (nothing_listed / "val.txt").unlink()
    for folder in (copy, nothing_listed):
        error = call(hook_input, folder, **NAMED)[0]["error"]
        assert "files missing" in error and "val_map.txt that lists the existing ones" in error
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "a.jpg").write_bytes(b"x")  # in the scratch space or registered: nobody named it in this call
    assert call(hook_input, photos)[0]["return"] == 1


@pytest.mark.parametrize("size", ["0", "50001", "all", "-1", "³"])
def test_a_count_that_cannot_be_is_refused(hook_input, inside, size):
    assert "_size.1 to _size.50000" in call(hook_input, None, CM_DATASET_SIZE=size)[0]["error"]


def test_a_copy_and_a_synthetic_set_exclude_each_other(hook_input, inside, tmp_path):
    answer, _ = call(hook_input, tmp_path, CM_DATASET_IMAGENET_VAL_WAY="synthetic")
    assert "exclude each other" in answer["error"]
    answer, _ = call(hook_input, tmp_path, CM_DATASET_IMAGENET_VAL_WAY="community")
    assert "downloaded exclude each other" in answer["error"]
    answer, env = call(hook_input, None, CM_DATASET_IMAGENET_VAL_WAY="synthetic", CM_DATASET_SIZE="8")
    assert answer == {"return": 0}
    assert Path(env["CM_DATASET_IMAGENET_VAL_FOLDER"]).parent == inside


def made(folder: Path, **options: object) -> dict[str, Any]:
    need("numpy", "cv2")
    return make_set("imagenet", folder, **{"count": 20, "sizes": "small", **options})


def test_synthetic_images_lie_in_the_real_layout_and_are_called_synthetic(tmp_path):
    need("numpy", "cv2")
    from crowdperf.harness.datasets.imagenet import open_dataset

    made(tmp_path)
    dataset = open_dataset(tmp_path)
    images = dataset.load(range(20))
    assert (dataset.count, dataset.facts.is_synthetic) == (20, True)
    assert dataset.sample_name(19) == "ILSVRC2012_val_00000020.JPEG"
    assert sorted(set(dataset.labels.tolist())) == list(range(0, 1000, 100))
    assert len({image.shape for image in images}) > 3
    assert (images[15][:, :, 0] == images[15][:, :, 2]).all(), "every sixteenth is grey"
    assert recipe.wrong_in(tmp_path, 20) == ""
    assert dataset.problems() == []


def test_a_seed_decides_every_byte(tmp_path):
    files = [
        made(tmp_path / name, count=5, seed=seed)["sha256_of_images"] for name, seed in (("a", 0), ("b", 0), ("c", 1))
    ]
    assert files[0] == files[1] != files[2]


def test_real_sizes_are_imagenets(tmp_path):
    made(tmp_path, count=2, sizes="real")
    from crowdperf.harness.media.image_files import read_image

    assert min(min(read_image(path).shape[:2]) for path in tmp_path.glob("*.JPEG")) >= 259


def test_the_check_names_the_truncated_images(tmp_path):
    need("cv2")
    from crowdperf.harness.datasets.imagenet import open_dataset

    made(tmp_path)
    for number in range(1, 14):
        path = tmp_path / recipe.FILE_NAME.format(number=number)
        path.write_bytes(path.read_bytes()[:-100])
    (problem,) = open_dataset(tmp_path).problems()
    assert problem.startswith(
        "13 of 20 images damaged: ILSVRC2012_val_00000001.JPEG ends early, ILSVRC2012_val_00000002"
    )
    assert problem.endswith("ILSVRC2012_val_00000005.JPEG ends early and 8 more")


# --- the 500 images ---


def archives(folder: Path, count: int) -> Path:
    """What the two archives hold, unpacked; made up, in a layout like theirs."""
    (folder / "images" / "ILSVRC2012_img_val_500").mkdir(parents=True)
    (folder / "labels").mkdir()
    names = [recipe.FILE_NAME.format(number=number) for number in range(1, 50_001)]
    for name in names[:count]:
        (folder / "images" / "ILSVRC2012_img_val_500" / name).write_bytes(name.encode())
    lines = "".join(f"{name} {number % 1000}\n" for number, name in enumerate(names))
    (folder / "labels" / "val.txt").write_text(lines, encoding="utf-8")
    return folder


def test_downloaded_images_and_their_labels_come_into_one_folder(tmp_path):
    unpacked, folder = archives(tmp_path / "unpacked", 7), tmp_path / "imagenet"
    program("get-dataset-imagenet-val", "assemble_dataset").assemble(unpacked, folder, 7)
    assert len(list(folder.iterdir())) == 8
    assert (folder / "val_map.txt").read_text(encoding="utf-8").splitlines()[6] == "ILSVRC2012_val_00000007.JPEG 6"
    assert recipe.wrong_in(folder, 7) == ""
    assert not unpacked.exists()


def test_archives_with_other_contents_are_refused(tmp_path):
    assemble = program("get-dataset-imagenet-val", "assemble_dataset")
    unpacked = archives(tmp_path / "unpacked", 7)
    with pytest.raises(assemble.AssemblyError, match=r"contain 7 images and 1 val\.txt; wanted: 8 and 1"):
        assemble.assemble(unpacked, tmp_path / "imagenet", 8)
    (unpacked / "images" / "val.txt").touch()
    with pytest.raises(assemble.AssemblyError, match=r"contain 7 images and 2 val\.txt; wanted: 7 and 1"):
        assemble.assemble(unpacked, tmp_path / "imagenet", 7)
    (unpacked / "images" / "val.txt").unlink()
    (unpacked / "labels" / "val.txt").write_text("ILSVRC2012_val_00000001.JPEG 1\n", encoding="utf-8")
    with pytest.raises(assemble.AssemblyError, match="no label for 6 of the images"):
        assemble.assemble(unpacked, tmp_path / "imagenet", 7)
    assert not (tmp_path / "imagenet").exists()


def test_the_500_images_are_fetched_with_the_communitys_checksums():
    env = recipe_meta("get-dataset-imagenet-val")["variations"]["2012-500"]["env"]
    assert env["CM_IMAGENET_500_MD5"] == "8627befdd8c2bcf305729020e9db354e"
    assert env["CM_IMAGENET_AUX_MD5"] == "f963098ea0e785a968ca1eb634003a90"
    assert env["CM_IMAGENET_AUX_SHA256"].startswith("e35c0c1994a21f7d")
    assert env["CM_DATASET_IMAGENET_VAL_WAY"] == "community"


def test_the_description_says_what_the_data_follows_from(tmp_path):
    facts = made(tmp_path, count=1, seed=5)
    assert (facts["format"], facts["name"], facts["is_synthetic"]) == (1, "imagenet", True)
    assert (facts["seed"], facts["count"], facts["license"][:10]) == (5, 1, "Apache-2.0")
