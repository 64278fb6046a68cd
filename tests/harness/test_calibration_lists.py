"""Calibration samples: the official lists as published, the samples that they name, and how all others are marked."""

import json
import shutil
import wave
from pathlib import Path

import numpy as np
import pytest
from harness_support import need

from crowdperf.harness.base import calibration_lists
from crowdperf.harness.base.calibration_lists import OFFICIAL, official_list
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import CalibrationSource, parse_model_facts
from crowdperf.harness.datasets import brats19, coco, digits, imagenet, kits19, librispeech, openimages, squad
from crowdperf.harness.runner import registry
from crowdperf.models.calibration_samples import Choice, choose

need("nibabel")

COUNTS = {
    "brats_cal_images_list.txt": 40, "coco_cal_images_list.txt": 500, "cal_image_list_option_1.txt": 500,
    "cal_image_list_option_2.txt": 500, "calibration_cases.txt": 20, "calibration_files.txt": 500,
    "openimages_cal_images_list.txt": 500, "bert_calibration_features.txt": 100, "bert_calibration_qas_ids.txt": 100,
}  # fmt: skip
"""Entries of each list, as the READMEs in calibration/ of mlcommons/inference say."""


# --- the lists ---


@pytest.mark.parametrize(("dataset", "name"), [(key, name) for key, lists in OFFICIAL.items() for name in lists])
def test_each_list_is_the_published_file_and_its_data_set_can_read_it(dataset: str, name: str) -> None:
    source, entries = official_list(dataset, name)
    assert (source.name, source.is_official) == (f"{dataset}/{name}", True)
    assert len(entries) == len(set(entries)) == COUNTS[name]
    assert hasattr(registry.load_dataset(dataset), "listed_samples")


def test_the_first_list_is_the_default() -> None:
    assert official_list("imagenet") == official_list("imagenet", "cal_image_list_option_1.txt")
    assert official_list("imagenet") != official_list("imagenet", "cal_image_list_option_2.txt")


@pytest.mark.parametrize(
    ("dataset", "name", "known"), [("imagenet", "x.txt", "option_1"), ("cnndm", "", "Lists of cnndm: none")]
)
def test_an_unknown_list_is_refused_with_those_there_are(dataset: str, name: str, known: str) -> None:
    with pytest.raises(HarnessError, match=known):
        official_list(dataset, name)


def test_a_changed_list_is_not_official_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(calibration_lists._FOLDER, tmp_path / "lists")
    with (tmp_path / "lists" / "calibration_cases.txt").open("a") as file:
        file.write("case_00000\n")
    monkeypatch.setattr(calibration_lists, "_FOLDER", tmp_path / "lists")
    with pytest.raises(HarnessError, match="the official list has a671b8d7"):
        official_list("kits19")


def test_official_cases_are_outside_those_that_are_measured() -> None:
    assert not set(official_list("kits19")[1]) & set(kits19.INFERENCE_CASES)
    assert not set(brats19._listed(official_list("brats19")[1])) & set(brats19.INFERENCE_CASES)


# --- the samples that entries name ---


def imagenet_folder(folder: Path, names: list[str]) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes(b"x")
    (folder / "val_map.txt").write_text("".join(f"{name} 0\n" for name in names))
    return folder


def test_imagenet_names_become_indices_of_the_validation_set(tmp_path: Path) -> None:
    folder = imagenet_folder(tmp_path / "data", ["a.JPEG", "b.JPEG", "c.JPEG"])
    listed = imagenet.listed_samples(folder, ["c.JPEG 0", "a.JPEG 1"])
    assert (list(listed.indices), listed.is_measured, listed.dataset.count) == ([2, 0], True, 3)
    with pytest.raises(HarnessError, match=r"is missing 1 of the 2 samples of the calibration list: d\.JPEG"):
        imagenet.listed_samples(folder, ["a.JPEG", "d.JPEG"])


def test_squad_entries_are_windows_or_questions_with_all_their_windows(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "w", "q", "?"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    paragraphs = [
        {"context": text, "qas": [{"id": name, "question": "q ?", "answers": [{"text": "w", "answer_start": 0}]}]}
        for name, text in (("5a", "w w"), ("5b", "w " * 600))
    ]
    (tmp_path / "dev-v1.1.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    assert squad.open_dataset(tmp_path).count == 4  # one window, and three of the long paragraph
    assert list(squad.listed_samples(tmp_path, ["2", "0"]).indices) == [2, 0]
    assert list(squad.listed_samples(tmp_path, ["5b", "5a"]).indices) == [1, 2, 3, 0]
    with pytest.raises(HarnessError, match=r"is missing 2 of the 2 .*: 4, 5c"):
        squad.listed_samples(tmp_path, ["4", "5c"])


@pytest.mark.parametrize(("module", "place"), [(coco, "train2017"), (openimages, "calibration/data")])
def test_listed_images_are_looked_for_outside_the_validation_images(tmp_path: Path, module: object, place: str) -> None:
    (tmp_path / place).mkdir(parents=True)
    for name in ("1.jpg", "2.jpg"):
        (tmp_path / place / name).write_bytes(b"x")
    listed = module.listed_samples(tmp_path, ["2.jpg", "1.jpg"])  # type: ignore[attr-defined]
    assert [file.path.name for file in listed.dataset.load(listed.indices)] == ["2.jpg", "1.jpg"]
    assert listed.is_measured is False
    with pytest.raises(HarnessError, match=f"{place} is missing 1 of the 1"):
        module.listed_samples(tmp_path, ["3.jpg"])  # type: ignore[attr-defined]


def test_listed_utterances_are_read_without_a_manifest(tmp_path: Path) -> None:
    entry = "train-clean-100-wav/103/1240/103-1240-0010.wav"
    assert entry in official_list("librispeech")[1]
    (tmp_path / entry).parent.mkdir(parents=True)
    with wave.open(str(tmp_path / entry), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(np.arange(16_000, dtype="<i2").tobytes())
    listed = librispeech.listed_samples(tmp_path, [entry])
    (sound,) = listed.dataset.load(listed.indices)
    assert sound.shape == (16_000,) and sound[1] == np.float32(1 / 32768)
    with pytest.raises(HarnessError, match="is missing 1 of the 1 samples"):
        librispeech.listed_samples(tmp_path, ["train-clean-100-wav/1.wav"])


def test_brats_entries_are_cases_below_their_group(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"HGG/BraTS19_2013_18_1/BraTS19_2013_18_1_t1\.nii\.gz is missing"):
        brats19.listed_samples(tmp_path, ["HGG__BraTS19_2013_18_1"])


# --- what is chosen, and how it is marked ---


def test_real_data_are_calibrated_with_the_official_list_by_default(tmp_path: Path) -> None:
    names = sorted({entry.split()[0] for name in OFFICIAL["imagenet"] for entry in official_list("imagenet", name)[1]})
    folder = imagenet_folder(tmp_path / "data", names)
    for list_name, wanted in (("", "cal_image_list_option_1.txt"), ("cal_image_list_option_2.txt",) * 2):
        listed, source = choose("imagenet", imagenet, folder, Choice(list_name=list_name))
        assert len(listed.indices) == 500
        assert source == official_list("imagenet", wanted)[0]
    (folder / names[0]).unlink()
    with pytest.raises(HarnessError, match=r"1 images missing"):
        choose("imagenet", imagenet, folder, Choice())


@pytest.mark.parametrize("choice", [Choice(count=2), Choice(sample_list=Path("list.txt"))])
def test_other_samples_of_real_data_are_marked_and_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], choice: Choice
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("list.txt").write_text("0\n2\n")
    folder = imagenet_folder(tmp_path / "data", ["a.JPEG", "b.JPEG", "c.JPEG"])
    listed, source = choose("imagenet", imagenet, folder, choice)
    assert len(listed.indices) == 2
    assert (source.is_official, len(source.sha256)) == (False, 64)
    assert "of the measured samples" in source.name
    assert "open division only" in capsys.readouterr().err


def test_synthetic_data_are_never_official(tmp_path: Path) -> None:
    names = list(official_list("imagenet")[1])
    folder = imagenet_folder(tmp_path / "data", names)
    (folder / "dataset.json").write_text('{"is_synthetic": true}')
    listed, source = choose("imagenet", imagenet, folder, Choice())
    assert (len(listed.indices), source.is_official) == (64, False)
    assert choose("imagenet", imagenet, folder, Choice(list_name="cal_image_list_option_1.txt"))[1].is_official is False


def test_a_data_set_without_a_list_gives_samples_that_are_not_measured(tmp_path: Path) -> None:
    for part, count in (("validation", 5), ("train", 9)):
        np.save(tmp_path / f"{part}_images.npy", np.full((count, 8, 8), count, dtype=np.uint8))
        np.save(tmp_path / f"{part}_labels.npy", np.zeros(count, dtype=np.uint8))
    listed, source = choose("digits", digits, tmp_path, Choice(count=4))
    assert set(listed.dataset.load(listed.indices).reshape(-1).tolist()) == {9}
    assert (listed.is_measured, source.is_official) == (False, False)
    assert source.name == "digits: 4 samples, seed 0, of the calibration part"


# --- the record ---


def model_json(calibration: object) -> str:
    return json.dumps({"format": 1, "files": {}, "calibration": calibration})


def test_a_models_record_of_its_calibration_is_read() -> None:
    record = {"name": "imagenet/cal_image_list_option_1.txt", "sha256": "ab", "is_official": True}
    facts = parse_model_facts(model_json(record), Path("model.json"))
    assert facts.calibration == CalibrationSource(name=record["name"], sha256="ab", is_official=True)
    assert parse_model_facts(model_json(None), Path("model.json")).calibration is None


@pytest.mark.parametrize(
    "record", ["official", {"name": "x", "sha256": "ab"}, {"name": "x", "sha256": 1, "is_official": 1}]
)
def test_a_damaged_record_is_refused(record: object) -> None:
    with pytest.raises(HarnessError, match=r"model\.json cannot be used: calibration"):
        parse_model_facts(model_json(record), Path("model.json"))


@pytest.mark.parametrize("score", [None, "99", True, float("nan")])
def test_a_reference_without_its_score_is_refused(score: object) -> None:
    text = json.dumps({"format": 1, "files": {}, "reference": {"acc": score}})
    with pytest.raises(HarnessError, match=r"reference\.acc: found .*; allowed: a finite number"):
        parse_model_facts(text, Path("model.json"))
