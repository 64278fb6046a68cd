"""get-dataset-coco and get-dataset-openimages: what is chosen, lists of classes, checks, and the download program."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from harness_libraries import need
from local_server import LocalServer, Status
from recipe_loader import RECIPES, load_recipe, recipe_meta
from recipe_programs import program, run_python

NAMES = ("coco", "openimages")
EVERY = pytest.mark.parametrize("name", NAMES)
FULL = {"coco": "5000", "openimages": "24781"}


def call(hook_input: Any, name: str, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    stem = f"CM_DATASET_{name.upper()}"
    given = {"CM_DATASET_SIZE": FULL[name], f"{stem}_SOURCE": "real", "CM_MLPERF_DATA_GIVEN_PATH": "", **env}
    i = hook_input(given)
    return load_recipe(f"get-dataset-{name}").preprocess(i), i["env"]


@EVERY
def test_by_default_the_real_images_are_fetched(name, hook_input, inside):
    answer, env = call(hook_input, name)
    assert answer == {"return": 0}
    assert env[f"CM_DATASET_{name.upper()}_IS_FETCHED"] == "yes"
    assert env[f"CM_DATASET_{name.upper()}_WORK"] == {"coco": "check", "openimages": "fetch"}[name]


@EVERY
def test_a_copy_is_checked_where_it_lies(name, hook_input, inside, tmp_path):
    answer, env = call(hook_input, name, CM_MLPERF_DATA_GIVEN_PATH=str(tmp_path), CM_DATASET_SIZE="7")
    assert answer == {"return": 0}
    assert env[f"CM_DATASET_{name.upper()}_FOLDER"] == str(tmp_path)
    assert env[f"CM_DATASET_{name.upper()}_WORK"] == "check" and env[f"CM_DATASET_{name.upper()}_IS_FETCHED"] == "no"


@EVERY
@pytest.mark.parametrize(
    "changes, part",
    [
        ({"CM_DATASET_SIZE": "0"}, "_size.1 to"),
        ({"CM_DATASET_SIZE": "many"}, "_size.many cannot be"),
        ({"CM_DATASET_SIZE": "50"}, "cannot be downloaded"),
        ({"SOURCE": "synthetic", "CM_MLPERF_DATA_GIVEN_PATH": "/data"}, "exclude each other"),
    ],
)
def test_what_cannot_be_is_refused_with_a_way_out(name, changes, part, hook_input, inside):
    stem = f"CM_DATASET_{name.upper()}"
    answer, _ = call(
        hook_input, name, **{key.replace("SOURCE", f"{stem}_SOURCE"): value for key, value in changes.items()}
    )
    assert answer["return"] == 1
    assert part in answer["error"] and "hint" in answer["error"]


@EVERY
def test_every_key_of_the_answer_leaves_the_recipe(name, hook_input, inside):
    answer, env = call(hook_input, name, **{f"CM_DATASET_{name.upper()}_SOURCE": "synthetic", "CM_DATASET_SIZE": "3"})
    assert answer == {"return": 0}
    folder = Path(env[f"CM_DATASET_{name.upper()}_FOLDER"])
    folder.mkdir()
    facts = {"format": 1, "is_synthetic": True, "count": 3}
    (folder / "dataset.json").write_text(json.dumps(facts), encoding="utf-8")
    assert load_recipe(f"get-dataset-{name}").postprocess({"env": env})["return"] == 0
    assert env["CM_DATASET_IS_SYNTHETIC"] == "yes" and env["CM_DATASET_PATH"] == str(folder)
    keys = recipe_meta(f"get-dataset-{name}")["new_env_keys"]
    assert {"CM_DATASET_IDENTITY", "CM_DATASET_ANNOTATIONS_FILE_PATH"} <= set(keys) & set(env)


def test_the_lists_of_classes_are_the_real_ones():
    lines = {name: (RECIPES / f"get-dataset-{name}" / "classes.txt").read_text().splitlines()[1:] for name in NAMES}
    coco = [int(line.split()[0]) for line in lines["coco"]]
    assert len(coco) == 80 and coco == sorted(set(coco)) and coco[0] == 1 and coco[-1] == 90
    assert {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}.isdisjoint(coco)  # ids that COCO does not use
    assert [line.split()[0] for line in lines["openimages"]] == [str(number) for number in range(264)]


@EVERY
def test_synthetic_images_pass_the_check_and_damage_does_not(name, tmp_path):
    need("numpy", "cv2")
    common = ("--layout", name, "--classes", RECIPES / f"get-dataset-{name}" / "classes.txt", "--pictures", "small")
    made = run_python("-m", "crowdperf.standins.datasets.scenes", *common, "--count", "5", "--output_dir", tmp_path)
    assert made.returncode == 0, made.stderr
    program = "crowdperf.harness.commands.check_dataset"
    check = ("-m", program, "--dataset", name, "--folder", tmp_path, "--thorough", "--count")
    assert run_python(*check, "5").returncode == 0
    images = sorted(tmp_path.rglob("*.jpg"))
    images[1].write_bytes(images[1].read_bytes()[:-20])
    (images[0].parent / "holiday.jpg").write_bytes(b"x")
    found = run_python(*check, "6")
    assert found.returncode == 1
    for part in ("5 samples, expected 6", f"1 of 5 images damaged: {images[1].name}", "holiday.jpg", "hint"):
        assert part in found.stderr


def fetcher() -> Any:
    need("numpy", "cv2")
    return program("get-dataset-openimages", "fetch_images")


BOX_HEADER = (
    "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside\n"
)


def open_images(folder: Path, server: LocalServer) -> list[str]:
    """Two images on the server that show wanted classes, one that shows none; the words of the command line."""
    cv2, numpy = need("cv2", "numpy")
    for image, (width, height) in {"bbbb": (40, 20), "aaaa": (30, 60)}.items():
        data = cv2.imencode(".jpg", numpy.full((height, width, 3), 90, dtype=numpy.uint8))[1].tobytes()
        server.put(f"/validation/{image}.jpg", data, faults=[Status(503)] if image == "bbbb" else [])
    (folder / "names.csv").write_text("/m/1,Cat\n/m/2,Dog\n/m/3,Tree\n/m/4,Bee\n/m/5,Owl\n/m/6,Pig\n/m/7,Cow\n")
    boxes = (
        "bbbb,x,/m/2,1,0.5,1,0.25,0.75,0,1,0,0,0\n"
        "cccc,x,/m/3,1,0,1,0,1,0,0,0,0,0\n"
        "aaaa,x,/m/1,1,0,0.5,0,0.5,0,0,1,0,0\n"
    )
    (folder / "boxes.csv").write_text(BOX_HEADER + boxes)
    (folder / "classes.txt").write_text("# wanted\n0 Bee\n1 Cat\n2 Cow\n3 Dog\n4 Owl\n5 Pig\n")
    files = [word for key in ("boxes", "names") for word in (f"--{key}", str(folder / f"{key}.csv"))]
    url = server.url("/validation")
    return [*files, "--classes", str(folder / "classes.txt"), "--images_url", url, "--output_dir", str(folder / "out")]


def test_openimages_fetches_images_of_wanted_classes_and_writes_their_boxes_in_pixels(tmp_path, monkeypatch):
    module = fetcher()
    monkeypatch.setattr("crowdperf.harness.commands.listed_images.FIRST_PAUSE_S", 0.0)
    monkeypatch.chdir(tmp_path)
    with LocalServer() as server:
        words = open_images(tmp_path, server)
        assert module.main(words) == 0
        asked = len(server.requests)
        assert module.main(words) == 0
        assert len(server.requests) == asked  # what is there whole is not fetched again
    listed = (tmp_path / "images.sha256").read_bytes()
    assert [line.split()[1] for line in listed.decode().splitlines()] == ["aaaa.jpg", "bbbb.jpg"]
    images = tmp_path / "out" / module.IMAGE_FOLDER
    assert hashlib.sha256((images / "aaaa.jpg").read_bytes()).hexdigest() == listed.decode().split()[0]
    row = json.loads((tmp_path / "downloads.json").read_text())["files"]["images.sha256"]
    assert (row["sha256"], row["checked"]) == (hashlib.sha256(listed).hexdigest(), "")
    content = json.loads((tmp_path / "out" / module.ANNOTATIONS_FILE).read_text())
    assert [(image["id"], image["file_name"], image["width"], image["height"]) for image in content["images"]] == [
        (1, "aaaa.jpg", 30, 60),
        (2, "bbbb.jpg", 40, 20),
    ]
    first, second = content["annotations"]
    assert first["category_id"] == 1 and first["iscrowd"] == 1 and first["bbox"] == [0, 0, 15, 30]
    assert second["category_id"] == 3 and second["bbox"] == [20, 5, 20, 10] and second["area"] == 200
    assert [category["id"] for category in content["categories"]] == [0, 1, 2, 3, 4, 5]


def test_openimages_names_an_image_that_cannot_be_had(tmp_path, monkeypatch, capsys):
    module = fetcher()
    monkeypatch.setattr("crowdperf.harness.commands.listed_images.FIRST_PAUSE_S", 0.0)
    monkeypatch.chdir(tmp_path)
    with LocalServer() as server:
        words = open_images(tmp_path, server)
        server.put("/validation/bbbb.jpg", b"\xff\xd8 cut off")
        assert module.main(words) == 1
    error = capsys.readouterr().err
    assert "1 of 2 images could not be downloaded" in error and "bbbb.jpg" in error and "hint" in error
    assert not (tmp_path / "out" / module.ANNOTATIONS_FILE).exists()


@pytest.mark.parametrize(("name", "place"), [("coco", "train2017"), ("openimages", "calibration/data")])
def test_the_images_of_the_calibration_list_are_fetched_and_written_down(name, place, tmp_path, monkeypatch):
    cv2, numpy = need("cv2", "numpy")
    from crowdperf.harness.base import calibration_lists
    from crowdperf.harness.commands import listed_images
    from crowdperf.harness.datasets import coco, openimages

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(listed_images, "FIRST_PAUSE_S", 0.0)
    names = ["b.jpg", "a.jpg"]
    source = calibration_lists.official_list(name)[0]
    monkeypatch.setattr(listed_images, "official_list", lambda dataset: (source, tuple(names)))
    data = cv2.imencode(".jpg", numpy.full((20, 30, 3), 90, dtype=numpy.uint8))[1].tobytes()
    with LocalServer() as server:
        for file in names:
            server.put(f"/train/{file}", data)
        words = ["--dataset", name, "--url", server.url("/train"), "--output_dir", str(tmp_path / "data")]
        assert listed_images.main(words) == 0
        server.put("/train/b.jpg", b"\xff\xd8 cut off")
        assert listed_images.main(words) == 0  # what is there is not fetched again
        (tmp_path / "data" / place / "b.jpg").unlink()
        assert listed_images.main(words) == 1
        server.put("/train/b.jpg", data)
        assert listed_images.main(words) == 0
    listed = {"coco": coco, "openimages": openimages}[name].listed_samples(tmp_path / "data", names)
    assert [path.name for path in listed.dataset.files] == names
    lines = (tmp_path / "calibration_images.sha256").read_bytes()
    assert lines.decode().split()[::2] == [hashlib.sha256(data).hexdigest()] * 2
    row = json.loads((tmp_path / "downloads.json").read_text())["files"]["calibration_images.sha256"]
    assert row["sha256"] == hashlib.sha256(lines).hexdigest()


@pytest.mark.parametrize("name", ["coco", "openimages"])
def test_calibration_images_are_refused_beside_synthetic_or_given_ones(name, hook_input, inside, tmp_path):
    recipe = load_recipe(f"get-dataset-{name}")
    common = {f"CM_DATASET_{name.upper()}_IS_WITH_CALIBRATION": "yes", "CM_DATASET_SIZE": "64"}
    for more in (
        {f"CM_DATASET_{name.upper()}_SOURCE": "synthetic"},
        {f"CM_DATASET_{name.upper()}_SOURCE": "real", "CM_MLPERF_DATA_GIVEN_PATH": str(tmp_path)},
    ):
        assert "_calibration downloads images" in recipe.preprocess(hook_input({**common, **more}))["error"]


def test_the_images_of_free_licenses_are_kept_in_order_with_their_objects_alone(tmp_path):
    module = program("get-dataset-coco", "keep_free")
    addresses = {
        1: "http://creativecommons.org/licenses/by-nc-sa/2.0/", 4: "http://creativecommons.org/licenses/by/2.0/",
        5: "http://creativecommons.org/licenses/by-sa/2.0/", 6: "http://creativecommons.org/licenses/by-nd/2.0/",
        7: "http://flickr.com/commons/usage/", 8: "http://www.usa.gov/copyright.shtml",
    }  # fmt: skip
    licenses = [1, 8, 4, 1, 7, 5, 6]
    content = {
        "info": {}, "licenses": [{"id": number, "url": address} for number, address in addresses.items()],
        "images": [{"id": 50 - n, "file_name": f"{n}.jpg", "license": one} for n, one in enumerate(licenses)],
        "annotations": [{"id": n, "image_id": 50 - n} for n in range(len(licenses))], "categories": [{"id": 1}],
    }  # fmt: skip
    for folder in ("annotations", "val2017"):
        (tmp_path / folder).mkdir()
    (tmp_path / module.ANNOTATIONS).write_text(json.dumps(content))
    for number in range(len(licenses)):
        (tmp_path / "val2017" / f"{number}.jpg").write_bytes(b"picture %d" % number)
    made = tmp_path / "coco_safe"
    words = ["--from", str(tmp_path), "--output_dir", str(made)]
    assert module.main(words) == 0 and module.main(words) == 0
    kept = json.loads((made / module.ANNOTATIONS).read_text())
    assert [image["file_name"] for image in kept["images"]] == [f"{n}.jpg" for n in (1, 2, 4, 5, 6)]
    assert [row["id"] for row in kept["annotations"]] == [1, 2, 4, 5, 6] and kept["categories"] == [{"id": 1}]
    assert (made / "val2017_safe" / "4.jpg").read_bytes() == b"picture 4"
    assert len(list((made / "val2017_safe").iterdir())) == 5
    assert module.main(["--from", str(made), "--output_dir", str(tmp_path / "x")]) == 1  # its images are elsewhere


@pytest.mark.parametrize(
    ("changes", "work", "folder", "size"),
    [
        ({}, "filter", "coco_safe", "1525"),
        ({"CM_DATASET_COCO_SOURCE": "synthetic", "CM_DATASET_SIZE": "64"}, "synthetic", "coco", "64"),
        ({"CM_MLPERF_DATA_GIVEN_PATH": "/data/coco_safe"}, "check", "/data/coco_safe", "1525"),
    ],
)
def test_the_part_of_free_licenses_has_1525_images(changes, work, folder, size, hook_input, inside):
    answer, env = call(hook_input, "coco", CM_DATASET_COCO_PART="coco_safe", **changes)
    assert answer == {"return": 0}
    assert (env["CM_DATASET_COCO_WORK"], env["CM_DATASET_SIZE"]) == (work, size)
    assert Path(env["CM_DATASET_COCO_FOLDER"]) == Path.cwd() / folder
