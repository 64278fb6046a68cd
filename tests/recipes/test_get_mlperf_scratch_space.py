"""get-mlperf-scratch-space and detect-mlperf-scratch-path: which folder, what is made in it, the space, the links."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recipe_loader import RECIPES, exported, load_module, load_recipe

from crowdperf.machine import probe

recipe = load_recipe("get-mlperf-scratch-space")
detect = load_recipe("detect-mlperf-scratch-path")
benchmarks = load_module("get-mlperf-scratch-space", "benchmarks")
requirements = load_module("get-mlperf-scratch-space", "requirements")
folders = load_module("get-mlperf-scratch-space", "folders")

GB = 10**9


class MachineWithDisk(probe.Machine):
    """This machine, but its disks have this much free space."""

    def __init__(self, free_bytes: int | None) -> None:
        self.free_bytes = free_bytes

    def disk(self, path: str) -> probe.Disk | None:
        return None if self.free_bytes is None else probe.Disk(5000 * GB, self.free_bytes, "xfs")


def run(hook_input: Any, path: Path | str, free_gb: int | None = 1000, **env: str) -> tuple[dict[str, Any], Any]:
    machine = MachineWithDisk(None if free_gb is None else free_gb * GB)
    call = hook_input({"CM_MLPERF_SCRATCH_ASKED_PATH": str(path), **env}, machine=machine)
    return recipe.preprocess(call), call


def below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("env", "process_env", "path"),
    [
        ({}, {}, ""),
        ({}, {"MLPERF_SCRATCH_PATH": "/home/mlperf_inference_data"}, "/home/mlperf_inference_data"),
        ({"MLPERF_SCRATCH_PATH": "/b/"}, {"MLPERF_SCRATCH_PATH": "/c"}, "/b"),
        ({"CM_MLPERF_SCRATCH_PATH": "/a", "MLPERF_SCRATCH_PATH": "/b"}, {"MLPERF_SCRATCH_PATH": "/c"}, "/a"),
        ({"CM_MLPERF_SCRATCH_PATH": " "}, {"MLPERF_SCRATCH_PATH": ""}, ""),
        ({"CM_MLPERF_SCRATCH_PATH": "/e/scratch", "CM_MLPERF_SCRATCH_DEFAULT_PATH": "/e/scratch"}, {}, ""),
    ],
)
def test_the_input_wins_over_the_environment_and_nothing_means_the_default(
    env: dict[str, str], process_env: dict[str, str], path: str
) -> None:
    assert detect.asked_path(env, process_env) == path


def test_each_folder_has_a_tag_of_its_own(hook_input: Any) -> None:
    tags = set()
    for path in ("", "/a", "/b"):
        call = hook_input({}, process_env={"MLPERF_SCRATCH_PATH": path})
        assert detect.preprocess(call) == {"return": 0}
        tags.add(call["env"]["CM_MLPERF_SCRATCH_CACHE_TAGS"])
    assert len(tags) == 3
    assert "scratch-default" in tags
    assert all("," not in tag for tag in tags)


@pytest.mark.parametrize("path", ["scratch", "./x", "/a\nb"])
def test_a_path_that_would_mean_another_folder_in_each_step_is_refused(hook_input: Any, path: str) -> None:
    answer = detect.preprocess(hook_input({}, process_env={"MLPERF_SCRATCH_PATH": path}))
    assert answer["return"] == 1
    assert "hint:" in answer["error"]


def test_the_three_folders_are_made_there_and_nothing_else_anywhere(
    hook_input: Any, inside: Path, tmp_path: Path
) -> None:
    scratch = tmp_path / "my data" / "mlperf"
    answer, call = run(hook_input, scratch)
    assert answer == {"return": 0}
    assert below(scratch) == ["data", "models", "preprocessed_data"]
    assert below(inside) == []
    assert exported("get-mlperf-scratch-space", call["env"]) == {
        "MLPERF_SCRATCH_PATH": str(scratch),
        "CM_MLPERF_SCRATCH_PATH": str(scratch),
        "CM_MLPERF_SCRATCH_MODELS_PATH": str(scratch / "models"),
        "CM_MLPERF_SCRATCH_DATA_PATH": str(scratch / "data"),
        "CM_MLPERF_SCRATCH_PREPROCESSED_DATA_PATH": str(scratch / "preprocessed_data"),
        "CM_MLPERF_SCRATCH_FREE_BYTES": str(1000 * GB),
        "CM_MLPERF_SCRATCH_NEEDED_BYTES": "",
        "CM_MLPERF_SCRATCH_VERDICT": "not asked",
    }
    assert call["env"]["CM_GET_DEPENDENT_CACHED_PATH"] == str(scratch)


def test_what_is_there_stays(hook_input: Any, tmp_path: Path) -> None:
    (tmp_path / "s" / "data").mkdir(parents=True)
    (tmp_path / "s" / "data" / "precious").write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "s" / "models").symlink_to(tmp_path / "elsewhere")
    answer, _ = run(hook_input, tmp_path / "s")
    assert answer["return"] == 0, answer
    assert (tmp_path / "s" / "data" / "precious").read_text() == "mine"
    assert (tmp_path / "s" / "models").is_symlink()


@pytest.mark.parametrize("kind", ["file", "dangling"])
def test_something_else_in_the_place_of_a_folder_is_an_error(hook_input: Any, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "models"
    if kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to("/nowhere/at/all")
    answer, _ = run(hook_input, tmp_path)
    assert answer["return"] == 1
    assert str(place) in answer["error"] and "hint:" in answer["error"]


def test_a_folder_that_cannot_be_made_is_told_without_a_trace(hook_input: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer, _ = run(hook_input, tmp_path / "file" / "scratch")
    assert answer["return"] == 1
    assert "cannot be made: Not a directory" in answer["error"]
    assert "get,scratch,disk" in answer["error"]


def test_inferentia_has_its_folders_under_both_spellings_also_the_second_time(hook_input: Any, tmp_path: Path) -> None:
    for _ in range(2):
        answer, _ = run(hook_input, tmp_path, CM_MLPERF_SCRATCH_LAYOUT="inferentia")
        assert answer["return"] == 0, answer
    imagenet = tmp_path / "preprocessed_data" / "imagenet"
    assert (imagenet / "Resnet50" / "fp32_pytorch").is_dir()
    assert os.readlink(imagenet / "Resnet50") == "ResNet50"
    assert (tmp_path / "preprocessed_data" / "squad_tokenized").is_dir()


@pytest.mark.parametrize(("key", "is_told"), [("DEFAULT", True), ("ASKED", False)])
def test_a_default_is_called_one_beside_that_of_the_document(
    hook_input: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, is_told: bool
) -> None:
    call = hook_input({f"CM_MLPERF_SCRATCH_{key}_PATH": str(tmp_path / "S")})
    assert recipe.preprocess(call)["return"] == 0
    assert ("/home/mlperf_inference_data: export" in capsys.readouterr().out) == is_told


def test_the_default_folder_lies_in_the_cache_entry(hook_input: Any, inside: Path) -> None:
    call = hook_input({"CM_MLPERF_SCRATCH_MAKES_DEFAULT": "yes"})
    assert recipe.preprocess(call) == {"return": 0}
    default = call["env"]["CM_MLPERF_SCRATCH_DEFAULT_PATH"]
    assert default == str(inside / "scratch")
    call = hook_input({"CM_MLPERF_SCRATCH_DEFAULT_PATH": default}, machine=MachineWithDisk(GB))
    assert recipe.preprocess(call)["return"] == 0
    assert below(inside) == ["scratch", "scratch/data", "scratch/models", "scratch/preprocessed_data"]


def test_without_any_folder_it_is_an_error(hook_input: Any) -> None:
    assert "hint: --path=FOLDER" in recipe.preprocess(hook_input({}))["error"]


def test_a_plan_tells_the_space_and_makes_nothing(hook_input: Any, tmp_path: Path) -> None:
    env = {"CM_MLPERF_SCRATCH_ASKED_PATH": str(tmp_path / "new"), "CM_MLPERF_SCRATCH_BENCHMARKS": "gptj"}
    call = hook_input(env, machine=MachineWithDisk(GB))
    assert recipe.plan(call) == {"return": 0}
    assert call["env"]["CM_MLPERF_SCRATCH_VERDICT"] == "too small"
    assert below(tmp_path) == []
    assert recipe.plan(hook_input({"CM_MLPERF_SCRATCH_DEFAULT_PATH": object()})) == {"return": 0}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("resnet50,bert", ["resnet50", "bert"]),
        ("ResNet Unet ssd-large", ["resnet50", "3d-unet", "ssd-resnet34"]),
        ("SSDResNet34,3D-UNET RNN-T", ["ssd-resnet34", "3d-unet", "rnnt"]),
        ("bert-99,bert-99.9,dlrm-v2-99", ["bert", "dlrm-v2"]),
        ("", []),
        ("none", []),
        ("all", list(benchmarks.ALL_OF_NVIDIA)),
    ],
)
def test_benchmarks_go_by_their_names_aliases_and_levels(text: str, names: list[str]) -> None:
    assert [one.name for one in benchmarks.named(text)] == names


def test_an_unknown_benchmark_is_refused_with_the_known_ones(hook_input: Any, tmp_path: Path) -> None:
    answer, _ = run(hook_input, tmp_path / "s", CM_MLPERF_SCRATCH_BENCHMARKS="resnet50,resnet51")
    assert answer["return"] == 1
    assert "resnet51" in answer["error"] and "known: all, " in answer["error"]
    assert not (tmp_path / "s").exists()


def test_every_size_has_a_source_and_every_alias_a_benchmark() -> None:
    for one in benchmarks.KNOWN.values():
        for size in (one.sizes.model, one.sizes.data, one.sizes.prepared, one.sizes.advised):
            assert size is None or (size.size_bytes > 0 and len(size.source) > 10)
    assert set(benchmarks._SPELLINGS_NOT_RUN.values()) <= set(benchmarks.KNOWN)
    assert len(benchmarks.ALL_OF_NVIDIA) == 7 and set(benchmarks.ALL_OF_NVIDIA) <= set(benchmarks.KNOWN)


def test_sizes_that_are_arithmetic_are_reckoned_right() -> None:
    assert benchmarks.KNOWN["resnet50"].sizes.prepared.size_bytes == 30_105_600_000
    assert benchmarks.KNOWN["bert"].sizes.prepared.size_bytes == 49_918_464


@pytest.mark.parametrize(
    ("names", "free_gb", "verdict"),
    [
        ("resnet50,bert", 100, "enough"),
        ("resnet50,bert", 99, "too small"),
        ("ssd-mobilenet", 5000, "unknown"),
        ("dlrm", 5000, "unknown"),
        ("dlrm", 1000, "too small"),
        ("all", 2999, "too small"),
        ("all", 3000, "enough"),
        ("", 1, "not asked"),
        ("bert", None, "unknown"),
    ],
)
def test_the_verdict_never_says_enough_where_a_size_is_unknown(
    hook_input: Any, tmp_path: Path, names: str, free_gb: int | None, verdict: str
) -> None:
    answer, call = run(hook_input, tmp_path, free_gb, CM_MLPERF_SCRATCH_BENCHMARKS=names)
    assert answer == {"return": 0}, "too little space is a warning"
    assert call["env"]["CM_MLPERF_SCRATCH_VERDICT"] == verdict
    assert call["state"]["mlperf_scratch_space"]["verdict"] == verdict


def test_too_little_space_is_warned_of_with_numbers_sources_and_a_command(
    hook_input: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(hook_input, tmp_path, 20, CM_MLPERF_SCRATCH_BENCHMARKS="resnet50,dlrm-v2")
    told = capsys.readouterr().out
    assert "WARNING: 20.00 GB are free, resnet50, dlrm-v2 need 550.00 GB: 530.00 GB are missing" in told
    assert "cm run script --tags=get,scratch,disk" in told
    assert benchmarks.MLC_DOCS in told
    assert "6 to 8 TB" in told
    run(hook_input, tmp_path, 20, CM_MLPERF_SCRATCH_BENCHMARKS="llama3.1-8b")
    assert "unknown: the sizes of llama3.1-8b are not all known" in capsys.readouterr().out


def test_links_lead_into_the_scratch_space_and_making_them_again_changes_nothing(
    hook_input: Any, tmp_path: Path
) -> None:
    scratch, code = tmp_path / "s", tmp_path / "code"
    for _ in range(2):
        answer, _ = run(hook_input, scratch, CM_MLPERF_SCRATCH_LINK="yes", CM_MLPERF_SCRATCH_BUILD_DIR=str(code))
        assert answer == {"return": 0}
    assert below(code) == ["build", "build/data", "build/models", "build/preprocessed_data"]
    assert {name: os.readlink(code / "build" / name) for name in folders.NAMES} == {
        name: str(scratch / name) for name in folders.NAMES
    }


def test_links_do_not_point_to_an_input_that_make_does_not_have(
    hook_input: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(hook_input, tmp_path / "s", CM_MLPERF_SCRATCH_LINK="yes", CM_MLPERF_SCRATCH_BUILD_DIR=str(tmp_path))
    assert "needed:" not in capsys.readouterr().out
    run(hook_input, tmp_path / "s")
    assert "needed:  not computed without --benchmarks=" in capsys.readouterr().out


def test_links_need_to_be_told_where(hook_input: Any, tmp_path: Path) -> None:
    answer, _ = run(hook_input, tmp_path / "s", CM_MLPERF_SCRATCH_LINK="yes")
    assert "hint: --build_dir=FOLDER" in answer["error"]
    assert not (tmp_path / "s").exists()


def test_a_link_that_leads_elsewhere_is_replaced_only_when_told_and_a_folder_never(
    hook_input: Any, tmp_path: Path
) -> None:
    build = tmp_path / "code" / "build"
    build.mkdir(parents=True)
    (build / "data").symlink_to("/elsewhere")
    order = {"CM_MLPERF_SCRATCH_LINK": "yes", "CM_MLPERF_SCRATCH_BUILD_DIR": str(tmp_path / "code")}
    answer, _ = run(hook_input, tmp_path / "s", **order)
    assert "leads to /elsewhere" in answer["error"]
    command = (
        f"cm run script --tags=get,mlperf,scratch,space,_link-dirs --path={tmp_path / 's'} --build_dir={build.parent}"
    )
    assert f"hint: {command} --relink   #" in answer["error"], "a whole command, because make has no --relink"
    assert below(build) == ["data"], "nothing was linked before the trouble was known"
    answer, _ = run(hook_input, tmp_path / "s", **order, CM_MLPERF_SCRATCH_RELINK="yes")
    assert answer["return"] == 0, answer
    assert os.readlink(build / "data") == str(tmp_path / "s" / "data")
    (build / "models").unlink()
    (build / "models").mkdir()
    (build / "models" / "mine").write_text("x")
    answer, _ = run(hook_input, tmp_path / "s", **order, CM_MLPERF_SCRATCH_RELINK="yes")
    assert "is not a link" in answer["error"]
    assert (build / "models" / "mine").exists()


def test_verify_prints_the_links_and_fails_when_one_does_not_lead_there(
    hook_input: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scratch, code = tmp_path / "s", tmp_path / "code"
    order = {"CM_MLPERF_SCRATCH_BUILD_DIR": str(code), "CM_MLPERF_SCRATCH_VERIFY": "yes"}
    answer, _ = run(hook_input, scratch, **order)
    assert answer["return"] == 1
    assert "3 of 3 links" in answer["error"]
    assert f"_link-dirs --path={scratch} --build_dir={code}" in answer["error"]
    answer, call = run(hook_input, scratch, **order, CM_MLPERF_SCRATCH_LINK="yes")
    assert answer["return"] == 0, answer
    assert f"MLPERF_SCRATCH_PATH={scratch}" in capsys.readouterr().out
    assert [row["is_right"] for row in call["state"]["mlperf_scratch_space"]["links"]] == [True] * 3
    (code / "build" / "data").unlink()
    (code / "build" / "data").symlink_to("/gone")
    answer, _ = run(hook_input, scratch, **order)
    assert "/build/data -> /gone (DOES NOT EXIST)" in answer["error"]
    assert f"/build/models -> {scratch}/models (exists)" in answer["error"]


def test_the_commands_of_export_and_import_carry_the_data(tmp_path: Path) -> None:
    """They are only printed; here they are typed, as a user would, with a path that needs quotes."""
    source, target = tmp_path / "it's here", tmp_path / "to $HOME"
    for folder in (source, target):
        folders.make(folder, is_inferentia=False)
    (source / "models" / "m.onnx").write_text("weights")
    archive = str(tmp_path / "a b.tar")
    typed = [line for line in recipe.export_text(source, archive).splitlines() if line.startswith(("  tar", "  sha"))]
    typed += [line for line in recipe.import_text(target, archive).splitlines() if line.startswith(("  tar", "  sha"))]
    assert len(typed) == 5
    subprocess.run(["bash", "-c", "set -eo pipefail\n" + "\n".join(typed)], check=True, capture_output=True)
    assert (target / "models" / "m.onnx").read_text() == "weights"


def test_export_and_import_print_and_change_nothing(
    hook_input: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for way in ("export", "import"):
        answer, _ = run(hook_input, tmp_path / "s", CM_MLPERF_SCRATCH_TRANSFER=way, CM_MLPERF_SCRATCH_ARCHIVE="x.tar")
        assert answer == {"return": 0}
        assert "(no command was run)" in capsys.readouterr().out
    assert below(tmp_path) == ["s", "s/data", "s/models", "s/preprocessed_data"]


def cm(home: Path, *words: str, **env: str) -> dict[str, Any]:
    """The answer of a real ``cm run script`` in a home that has this repository only."""
    home.mkdir(exist_ok=True)
    (home / "repos.json").write_text(json.dumps([str(RECIPES.parent)]), encoding="utf-8")
    known = {key: value for key, value in os.environ.items() if key != "MLPERF_SCRATCH_PATH"}
    done = subprocess.run(
        [sys.executable, "-m", "cmind.cli", "run", "script", *words, "--out=json"],
        env={**known, "CM_REPOS": str(home), "PYTHONDONTWRITEBYTECODE": "1", **env},
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_cached_space_is_reused_only_for_the_folder_that_is_asked_for_now(tmp_path: Path) -> None:
    home, query = tmp_path / "home", "--tags=get,mlperf,scratch,space"
    reckoned = cm(home, query, "--benchmarks=bert")
    default = cm(home, query)
    by_shell = cm(home, query, MLPERF_SCRATCH_PATH=str(tmp_path / "shell"))
    by_input = cm(home, query, f"--path={tmp_path / 'input'}", MLPERF_SCRATCH_PATH=str(tmp_path / "shell"))
    again = cm(home, query)
    paths = [one["new_env"]["MLPERF_SCRATCH_PATH"] for one in (default, by_shell, by_input, again, reckoned)]
    assert paths[1:3] == [str(tmp_path / "shell"), str(tmp_path / "input")]
    assert paths[0] == paths[3] == paths[4], "the default folder is one, whatever is reckoned"
    assert paths[0].startswith(str(home))
    assert again["cache_entry"] == default["cache_entry"]
    assert default["new_env"]["CM_MLPERF_SCRATCH_VERDICT"] == "not asked", "not what another asked for"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "input", "shell"]
