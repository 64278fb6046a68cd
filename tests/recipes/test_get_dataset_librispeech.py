"""get-dataset-librispeech: made sound has the real layout, FLAC is converted whole, damage is named."""

import json
import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from harness_libraries import need
from recipe_programs import program, run_python

SCRIPTS = Path(__file__).resolve().parents[2] / "script"
RECIPE = SCRIPTS / "get-dataset-librispeech"
MAKE = ("-m", "crowdperf.standins.datasets.librispeech")
CHECK = ("-m", "crowdperf.harness.commands.check_dataset")


def check(folder: Path, count: int = 0) -> subprocess.CompletedProcess[str]:
    return run_python(*CHECK, "--dataset", "librispeech", "--folder", folder, "--thorough", "--count", count)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("numpy")
    folder = tmp_path_factory.mktemp("made")
    done = run_python(*MAKE, "--output_dir", folder, "--count", 6, "--longest_s", 3, "--training_count", 2)
    assert done.returncode == 0, done.stderr
    return folder


def test_made_sound_has_the_real_layout_and_passes_the_check(made: Path) -> None:
    entries = json.loads((made / "dev-clean-wav.json").read_text())
    assert [entry["original_duration"] > 15 for entry in entries].count(True) == 1
    keys = ["channels", "sample_rate", "bitrate", "duration", "num_samples", "encoding", "silent", "fname", "speed"]
    for entry in entries:
        assert list(entry["files"][0]) == keys  # as the official conversion writes them
        assert (made / entry["files"][0]["fname"]).stat().st_size == 44 + 2 * entry["original_num_samples"]
    facts = json.loads((made / "dataset.json").read_text())
    assert (facts["is_synthetic"], facts["count"], facts["seed"]) == (True, 6, 0)
    training = json.loads((made / "training-wav.json").read_text())
    assert [len(entry["character_ends"]) for entry in training] == [len(entry["transcript"]) for entry in training]
    checked = check(made, 6)
    assert checked.returncode == 0, checked.stderr


def test_the_same_seed_makes_the_same_sound_and_another_one_other_sound(made: Path, tmp_path: Path) -> None:
    for seed in (0, 1):
        (tmp_path / str(seed)).mkdir()
        run_python(*MAKE, "--output_dir", tmp_path / str(seed), "--count", 6, "--longest_s", 3, "--seed", seed)
    lists = [(folder / "dev-clean-wav.json").read_text() for folder in (made, tmp_path / "0", tmp_path / "1")]
    assert lists[0] == lists[1] != lists[2]
    name = json.loads(lists[0])[0]["files"][0]["fname"]
    assert (made / name).read_bytes() == (tmp_path / "0" / name).read_bytes()


@pytest.mark.parametrize("words", [("--count", 0), ("--longest_s", 99), ("--seed", -1)])
def test_impossible_orders_are_refused(tmp_path: Path, words: tuple[str, int]) -> None:
    need("numpy")
    ended = run_python(*MAKE, "--output_dir", tmp_path, "--count", 2, "--longest_s", 5, *words)
    assert ended.returncode == 2
    assert not list(tmp_path.iterdir())


def test_the_check_names_missing_cut_and_unknown_files(made: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    waves = sorted((folder / "dev-clean-wav").rglob("*.wav"))
    shutil.copyfile(waves[0], waves[0].with_name("stranger.wav"))
    ended = check(folder)
    assert ended.returncode == 1
    assert "stranger.wav is not in dev-clean-wav.json" in ended.stderr
    waves[0].unlink()
    os.truncate(waves[1], 1000)
    ended = check(folder)
    assert ended.returncode == 1
    assert f"{waves[0]}: No such file" in ended.stderr
    assert f"{waves[1]} has 1000 bytes" in ended.stderr
    assert "2 of 6 files cannot be used" in ended.stderr


def test_a_damaged_head_is_found_by_reading(made: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    broken = sorted((folder / "dev-clean-wav").rglob("*.wav"))[2]
    broken.write_bytes(b"junk" + broken.read_bytes()[4:])
    ended = check(folder, 7)
    assert ended.returncode == 1
    assert f"cannot read {broken}" in ended.stderr
    assert "6 samples, expected 7" in ended.stderr


def test_flac_files_become_the_same_sound_in_the_real_layout(made: Path, tmp_path: Path) -> None:
    (soundfile,) = need("soundfile")
    entries = json.loads((made / "dev-clean-wav.json").read_text())
    source = tmp_path / "LibriSpeech" / "dev-clean"
    lines: dict[Path, list[str]] = {}
    for entry in entries:
        wav = Path(entry["files"][0]["fname"])
        flac = source / wav.relative_to("dev-clean-wav").with_suffix(".flac")
        flac.parent.mkdir(parents=True, exist_ok=True)
        samples, rate = soundfile.read(made / wav, dtype="int16")
        soundfile.write(flac, samples, rate)
        lines.setdefault(flac.parent, []).append(f"{flac.stem} {entry['transcript'].upper()}\n")
    for folder, texts in lines.items():
        (folder / f"{folder.parent.name}-{folder.name}.trans.txt").write_text("".join(texts))
    output = tmp_path / "out"
    output.mkdir()
    for _ in range(2):  # the second time everything is there already
        ended = run_python(
            RECIPE / "convert.py", "--source", source, "--output_dir", output, "--workers", 2, "--expected", 7
        )
        assert ended.returncode == 0, ended.stderr
    converted = json.loads((output / "dev-clean-wav.json").read_text())
    assert converted == sorted(entries, key=lambda entry: entry["files"][0]["fname"])
    for entry in converted:
        name = entry["files"][0]["fname"]
        assert (output / name).read_bytes() == (made / name).read_bytes()
    next(source.rglob("*.flac")).unlink()
    ended = run_python(RECIPE / "convert.py", "--source", source, "--output_dir", output)
    assert ended.returncode == 1
    assert "1 files are missing" in ended.stderr


def test_a_folder_without_transcripts_is_no_librispeech(tmp_path: Path) -> None:
    need("numpy")
    ended = run_python(RECIPE / "convert.py", "--source", tmp_path, "--output_dir", tmp_path)
    assert ended.returncode == 1
    assert "contains no *.trans.txt files" in ended.stderr


@pytest.fixture
def customize() -> ModuleType:
    return program(RECIPE.name, "customize")


def test_the_work_follows_from_variation_and_path(customize: ModuleType, tmp_path: Path) -> None:
    entry = tmp_path / "entry"
    assert customize.plan_work(None, "synthetic", entry)["CM_LIBRISPEECH_WORK"] == "synthetic"
    fetched = customize.plan_work(None, "download", entry)
    assert (fetched["CM_LIBRISPEECH_WORK"], fetched["CM_LIBRISPEECH_IS_DOWNLOADED"]) == ("convert", "yes")
    assert fetched["CM_LIBRISPEECH_EXPECTED_COUNT"] == "2513"
    wav, flac = tmp_path / "wav", tmp_path / "flac"
    wav.mkdir()
    (wav / "dev-clean-wav.json").write_text("[]")
    checked = customize.plan_work(wav, "download", entry)
    assert (checked["CM_LIBRISPEECH_WORK"], checked["CM_LIBRISPEECH_FOLDER"]) == ("check", str(wav))
    (flac / "LibriSpeech" / "dev-clean" / "84").mkdir(parents=True)
    (flac / "LibriSpeech" / "dev-clean" / "84" / "84-1.trans.txt").write_text("")
    converted = customize.plan_work(flac, "download", entry)
    assert converted["CM_LIBRISPEECH_FLAC_PATH"] == str(flac / "LibriSpeech" / "dev-clean")
    assert converted["CM_LIBRISPEECH_IS_DOWNLOADED"] == "no"


def test_impossible_paths_are_refused(customize: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"contains neither dev-clean-wav\.json nor"):
        customize.plan_work(tmp_path, "download", tmp_path)
    with pytest.raises(customize.copy_identity.GivenError, match="a synthetic data set exclude each other"):
        customize.plan_work(tmp_path, "synthetic", tmp_path)


def test_the_archive_is_the_published_one() -> None:
    text = (RECIPE / "_cm.yaml").read_text()
    assert "42e2234ba48799c1f50f24a7926300a1" in text  # openslr.org/resources/12/md5sum.txt
    assert "76f87d090650617fca0cac8f88b9416e0ebf80350acb97b343a85fa903728ab3" in text  # torchaudio's list
