"""get-cudnn: all installed ones with reasons, NVIDIA's archive checked whole, PyPI's wheels, and the load check.

Archives and wheels are made up here (nvidia_archives.py); nothing of NVIDIA's is downloaded, and no GPU is used.
"""

import hashlib
import re
import zipfile
from pathlib import Path
from typing import Any

import nvidia_archives as made
import pytest
from nvidia_archives import needs_gcc
from recipe_loader import exported, load_recipe
from test_get_generic_python_lib import make_wheel

from crowdperf.machine import nvidia, probe

recipe = load_recipe("get-cudnn")

NAME = "cudnn-linux-x86_64-8.9.7.29_cuda12-archive.tar.xz"


# --- what is installed ---


def run(hook_input: Any, machine: Any, **env: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    call = hook_input({"CM_CUDNN_ASKED_SOURCE": "installed", **env}, machine=machine)
    return recipe.preprocess(call), call


def several(folder: Path) -> probe.Machine:
    """A machine with four: the system's package, one beside CUDA, one behind a variable, one on the loader's path."""
    files = {
        "/usr/include/cudnn_version.h": made.cudnn_header("8.9.2"),
        "/usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.2": b"",
        "/usr/local/cuda-12.4/version.json": b'{"cuda": {"version": "12.4.1"}}',
        "/usr/local/cuda-12.4/bin/nvcc": b"",
        "/usr/local/cuda-12.4/lib64/libcudart.so.12": b"",
        "/usr/local/cuda-12.4/include/cudnn_version.h": made.cudnn_header("8.9.7"),
        "/usr/local/cuda-12.4/lib64/libcudnn.so.8.9.7": b"",
        "/data/cudnn/include/cudnn_version.h": made.cudnn_header("9.1.0"),
        "/data/cudnn/lib/libcudnn.so.9": b"",
        "/data/more/libcudnn.so.7.6.5": b"",
    }
    environment = {"CUDNN_ROOT": "/data/cudnn", "LD_LIBRARY_PATH": "/data/more"}
    return made.recorded(folder, files, environment=environment)


def test_all_installed_ones_are_found_and_the_reasons_told(hook_input: Any, tmp_path: Path, capsys: Any) -> None:
    answer, call = run(hook_input, several(tmp_path), CM_CUDA_PATH_LIB="/usr/local/cuda-12.4/lib64")
    assert answer == {"return": 0, "version": "8.9.7"}
    told = capsys.readouterr().err
    assert "# Found artifact in /usr/local/cuda-12.4/lib64/libcudnn.so.8.9.7 (it is next to the CUDA toolkit)" in told
    assert "Detected version: 8.9.7" in told
    state = call["state"]["cm_cudnn_found"]
    assert [row["version"] for row in state] == ["8.9.7", "9.1.0", "8.9.2", "7.6.5"]
    assert [row["is_chosen"] for row in state] == [True, False, False, False]
    env = exported("get-cudnn", call["env"])
    assert env["CM_CUDNN_VERSION"] == "8.9.7"
    assert env["CM_CUDA_PATH_LIB_CUDNN"] == "/usr/local/cuda-12.4/lib64"
    assert env["CM_CUDA_PATH_INCLUDE_CUDNN"] == "/usr/local/cuda-12.4/include"
    assert env["CM_CUDA_PATH_LIB_CUDNN_EXISTS"] == "yes"
    assert env["+LD_LIBRARY_PATH"] == ["/usr/local/cuda-12.4/lib64"]
    assert env["+CPLUS_INCLUDE_PATH"] == ["/usr/local/cuda-12.4/include"]
    assert env["CM_CUDNN_LOADS"] == "not-tried"


@pytest.mark.parametrize(
    ("env", "version", "lib"),
    [
        ({}, "9.1.0", "/data/cudnn/lib"),
        ({"CM_VERSION": "8.9.2"}, "8.9.2", "/usr/lib/x86_64-linux-gnu"),
        ({"CM_VERSION_MAX": "8.9.6"}, "8.9.2", "/usr/lib/x86_64-linux-gnu"),
        ({"CM_VERSION_MAX": "7"}, "7.6.5", "/data/more"),
        ({"CM_CUDNN_INPUT_PATH": "/data/more"}, "7.6.5", "/data/more"),
        ({"CM_CUDNN_INPUT_PATH": "/data/more/libcudnn.so.7.6.5"}, "7.6.5", "/data/more"),
        ({"CM_INPUT": "/usr/local/cuda-12.4"}, "8.9.7", "/usr/local/cuda-12.4/lib64"),
        ({"CM_INPUT": "/usr/local/cuda-12.4/lib64"}, "8.9.7", "/usr/local/cuda-12.4/lib64"),
        ({"CM_TMP_PATH": "/data/more:/usr/lib/x86_64-linux-gnu"}, "8.9.2", "/usr/lib/x86_64-linux-gnu"),
        ({"+CM_HOST_OS_DEFAULT_LIBRARY_PATH": ["/lib/nowhere"]}, "9.1.0", "/data/cudnn/lib"),
    ],
)
def test_version_ranges_and_paths_choose(
    hook_input: Any, tmp_path: Path, env: dict[str, Any], version: str, lib: str
) -> None:
    answer, call = run(hook_input, several(tmp_path), **env)
    assert answer == {"return": 0, "version": version}
    assert call["env"]["CM_CUDA_PATH_LIB_CUDNN"] == lib


def test_folders_of_the_system_are_not_put_before_the_compilers_own(hook_input: Any, tmp_path: Path) -> None:
    _, call = run(hook_input, several(tmp_path), CM_VERSION="8.9.2")
    assert call["env"]["CM_CUDA_PATH_INCLUDE_CUDNN"] == "/usr/include"
    assert call["env"]["+CPLUS_INCLUDE_PATH"] == call["env"]["+LD_LIBRARY_PATH"] == []


@pytest.mark.parametrize(
    ("env", "code", "says"),
    [
        ({"CM_VERSION_MIN": "10"}, 16, "required: version 10 or newer"),
        ({"CM_CUDNN_INPUT_PATH": "/nowhere"}, 16, "/nowhere does not exist"),
        ({"CM_CUDNN_INPUT_PATH": "/usr/local/cuda-12.4/bin"}, 16, "no cuDNN (libcudnn.so) in"),
        ({"CM_VERSION": "7.6.5", "CM_CUDNN_REQUIRE_DEV": "yes"}, 16, "no headers"),
    ],
)
def test_none_fits(hook_input: Any, tmp_path: Path, env: dict[str, str], code: int, says: str) -> None:
    answer, _ = run(hook_input, several(tmp_path), **env)
    assert answer["return"] == code
    assert says in answer["error"]
    assert "hint:" in answer["error"]


@pytest.mark.parametrize(("is_merged", "lib"), [(True, "/usr/lib/x86_64-linux-gnu"), (False, "/lib/x86_64-linux-gnu")])
def test_a_runtime_in_the_systems_folder_is_found_once(
    hook_input: Any, tmp_path: Path, is_merged: bool, lib: str
) -> None:
    """Since Debian 12 /lib is a link to /usr/lib."""
    machine = made.recorded(tmp_path, {f"{lib}/libcudnn.so.8.9.2": b"", f"{lib}/libcudnn.so.8": b""})
    if is_merged:
        (tmp_path / "root/lib").symlink_to("usr/lib")
    folders = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/nowhere"]
    answer, call = run(hook_input, machine, **{"+CM_HOST_OS_DEFAULT_LIBRARY_PATH": folders})
    assert answer == {"return": 0, "version": "8.9.2"}
    assert [row["lib"] for row in call["state"]["cm_cudnn_found"]] == [lib]
    assert call["env"]["+LD_LIBRARY_PATH"] == []
    given = run(hook_input, machine, CM_INPUT="/lib/x86_64-linux-gnu")[1]["env"]["CM_CUDA_PATH_LIB_CUDNN"]
    assert machine.real_path(given) == lib


# --- the archive ---


@pytest.fixture
def entry(inside: Path) -> Path:
    made.make_entry(inside)
    return inside


def unpack(hook_input: Any, path: Path, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """All hooks for an archive, and the env afterwards."""
    call = hook_input({"CM_CUDNN_ASKED_SOURCE": "installed", "CM_CUDNN_TAR_FILE_PATH": str(path), **env})
    return made.take("get-cudnn", call), call["env"]


@needs_gcc
def test_nvidias_archive_goes_into_the_entry_and_says_its_version(
    hook_input: Any, tmp_path: Path, entry: Path, capsys: Any
) -> None:
    path = made.tar(tmp_path / NAME, made.cudnn_entries())
    (tmp_path / "cuda" / "lib64").mkdir(parents=True)  # the system's CUDA, which this user may write to
    before = made.snapshot(tmp_path)
    answer, env = unpack(hook_input, path, CM_CUDA_VERSION="11.8", CM_CUDA_PATH_LIB=str(tmp_path / "cuda" / "lib64"))
    home = entry / "unpacked" / NAME.removesuffix(".tar.xz")
    assert answer["return"] == 0, answer
    assert answer["version"] == "8.9.7.29"
    assert answer["files"] == [str(home / "lib/libcudnn.so.8.9.7"), str(home / "include/cudnn_version.h")]
    given = exported("get-cudnn", env)
    assert given["CM_CUDNN_VERSION"] == "8.9.7.29"
    assert given["CM_CUDA_PATH_LIB_CUDNN"] == str(home / "lib")
    assert given["CM_CUDA_PATH_INCLUDE_CUDNN"] == str(home / "include")
    assert given["+LD_LIBRARY_PATH"] == [str(home / "lib")]
    assert given["CM_CUDNN_CUDA_VERSION"] == "12"
    assert given["CM_CUDNN_LOADS"] == "loads"
    assert given["CM_CUDNN_TAR_FILE_SHA256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    told = capsys.readouterr().err
    assert "cudnnGetVersion() says 8.9.7" in told
    assert "WARNING: this cuDNN is made for CUDA 12, the toolkit found is CUDA 11.8" in told
    after = {name: what for name, what in made.snapshot(tmp_path).items() if not name.startswith(str(entry))}
    assert after == {name: what for name, what in before.items() if not name.startswith(str(entry))}


@needs_gcc
@pytest.mark.parametrize(
    ("name", "top", "version", "number", "told"),
    [
        ("cudnn-11.2-linux-x64-v8.1.1.33.tgz", "cuda", "8.1.1", 8101, "8.1.1.33"),
        ("cudnn-linux-x86_64-9.1.0.70_cuda12-archive.tar.xz", "", "9.1.0", 90100, "9.1.0.70"),
        ("renamed.tar.gz", "cudnn-linux-x86_64-8.9.7.29_cuda12-archive", "8.9.7", 8907, "8.9.7.29"),
        ("renamed.tar", "any", "8.9.7", 8907, "8.9.7"),
    ],
)
def test_older_and_newer_layouts_and_renamed_files(
    hook_input: Any, tmp_path: Path, entry: Path, name: str, top: str, version: str, number: int, told: str
) -> None:
    entries = made.cudnn_entries(top or name.removesuffix(".tar.xz"), version, number)
    if top == "cuda":
        entries = [(name.replace("/lib/", "/lib64/"), content) for name, content in entries]
    answer, env = unpack(hook_input, made.tar(tmp_path / name, entries))
    assert answer["return"] == 0, answer
    assert (answer["version"], env["CM_CUDNN_VERSION"]) == (told, told)


@needs_gcc
def test_a_larger_limit_can_be_asked_for_and_a_smaller_one(hook_input: Any, tmp_path: Path, entry: Path) -> None:
    path = made.tar(tmp_path / NAME, made.cudnn_entries())
    answer, _ = unpack(hook_input, path, CM_CUDNN_MAX_SIZE_BYTES="100")
    assert "unpacks to more than 100 bytes" in answer["error"]
    assert unpack(hook_input, path, CM_CUDNN_MAX_SIZE_BYTES="1000000")[0]["return"] == 0


@pytest.mark.parametrize(
    ("name", "env", "says"),
    [
        ("cudnn-local-repo-ubuntu2204-8.9.7.29_1.0-1_amd64.deb", {}, "sudo apt-get install ./cudnn-local"),
        ("cudnn-linux-sbsa-8.9.7.29_cuda12-archive.tar.xz", {}, "is made for linux-sbsa, this machine is Linux on x86"),
        ("cudnn-windows-x86_64-8.9.7.29_cuda12-archive.zip", {}, "is made for windows-x86_64"),
        ("TensorRT-8.6.1.6.Linux.x86_64-gnu.cuda-12.0.tar.gz", {}, 'cm run script "get tensorrt" --tar_file='),
        (NAME, {"CM_VERSION": "8.8"}, "is cuDNN 8.9.7.29, required: version 8.8"),
        (NAME, {"CM_CUDNN_EXPECTED_SHA256": "0" * 64}, "expected is 000"),
        ("", {}, "is not a file"),
    ],
)
def test_what_the_name_or_the_checksum_rules_out_is_not_unpacked(
    hook_input: Any, tmp_path: Path, entry: Path, name: str, env: dict[str, str], says: str
) -> None:
    path = tmp_path / (name or "nowhere.tar.xz")
    if name:
        path.write_bytes(b"not read")
    commands = {"uname -m": {"stdout": "x86_64\n"}}
    machine = made.recorded(tmp_path / "machine", {}, commands=commands)
    env = {"CM_CUDNN_ASKED_SOURCE": "installed", "CM_CUDNN_TAR_FILE_PATH": str(path), **env}
    answer = recipe.preprocess(hook_input(env, machine=machine))
    assert answer["return"] == 16
    assert says in answer["error"]
    assert "hint:" in answer["error"]


def test_a_folder_of_the_user_is_left_alone_without_the_cache(hook_input: Any, tmp_path: Path, inside: Path) -> None:
    (inside / "unpacked").mkdir()
    (inside / "unpacked" / "mine.txt").write_text("mine", encoding="utf-8")
    (tmp_path / NAME).write_bytes(b"not read")
    machine = made.recorded(tmp_path / "machine", {})
    env = {"CM_CUDNN_TAR_FILE_PATH": str(tmp_path / NAME)}
    answer = recipe.preprocess(hook_input(env, machine=machine))
    assert "already exists and is not changed" in answer["error"]
    assert (inside / "unpacked" / "mine.txt").is_file()


# --- through the engine ---


@needs_gcc
def test_a_changed_archive_is_another_entry_and_an_unchanged_one_is_reused(home: Any) -> None:
    path = made.tar(home.work / NAME, made.cudnn_entries())
    words = ("get,cudnn", f"--tar_file={NAME}")
    first = home.run_cm(*words)
    assert first.code == 0, first.stderr
    env = first.answer["new_env"]
    assert Path(env["CM_CUDA_PATH_LIB_CUDNN"]).is_relative_to(home.store)
    assert sorted(path.name for path in home.work.iterdir()) == [NAME]
    again = home.run_cm(*words)
    assert "get-cudnn 8.9.7.29: reused from the cache" in again.stderr
    without = home.run_cm("get,cudnn")
    assert without.answer["new_env"]["CM_CUDNN_VERSION"] == "8.9.7.29", "what is there is good enough"

    made.tar(path, made.cudnn_entries("any", "8.9.4", 8904))
    path = path.rename(path.with_name("other.tar.xz"))
    made.tar(home.work / NAME, [*made.cudnn_entries(), ("more.txt", b"")])
    changed = home.run_cm(*words)
    assert "has changed since" in changed.stderr
    assert changed.answer["new_env"]["CM_CUDNN_TAR_FILE_SHA256"] != env["CM_CUDNN_TAR_FILE_SHA256"]
    other = home.run_cm("get,cudnn", "--tar_file=other.tar.xz")
    assert other.answer["new_env"]["CM_CUDNN_VERSION"] == "8.9.4"
    (home.work / NAME).touch()
    touched = home.run_cm(*words)
    assert "get-cudnn 8.9.7.29: reused from the cache" in touched.stderr, "only its time has changed"
    (home.work / NAME).unlink()
    assert home.run_cm(*words).code == 0, "the archive may be deleted"


@needs_gcc
def test_a_hostile_archive_leaves_no_entry_and_no_file(home: Any) -> None:
    outside = home.folder / "outside"
    outside.mkdir()
    made.tar(home.work / NAME, made.hostile(made.cudnn_entries(), "an absolute path", outside))
    before = {**made.snapshot(home.work), **made.snapshot(outside)}
    done = home.run_cm("get,cudnn", f"--tar_file={NAME}")
    assert done.code == 1
    assert "no files were unpacked" in done.answer["error"]
    assert {**made.snapshot(home.work), **made.snapshot(outside)} == before
    assert not list(home.store.glob("*/unpacked/*"))


@needs_gcc
def test_a_machine_without_cuda_takes_the_archive_all_the_same(home: Any) -> None:
    made.tar(home.work / NAME, made.cudnn_entries())
    done = home.run_cm("get,cudnn", f"--tar_file={NAME}", "--adr.cuda.version=99.9")
    assert done.code == 0, done.stderr
    assert "continuing without get,cuda" in done.stderr
    assert done.answer["new_env"]["CM_CUDNN_VERSION"] == "8.9.7.29"


@needs_gcc
def test_a_path_with_signs_that_a_shell_knows_is_only_a_path(home: Any) -> None:
    folder = home.work / 'it\'s, a $(touch pwned) "folder"'
    made.tar(folder / NAME, made.cudnn_entries())
    for _ in range(2):
        done = home.run_cm("get,cudnn", f"--tar_file={NAME}", cwd=folder)
        assert done.code == 0, done.stderr
    assert "reused from the cache" in done.stderr
    (folder / NAME).touch()
    assert "reused from the cache" in home.run_cm("get,cudnn", f"--tar_file={NAME}", cwd=folder).stderr
    assert not list(home.folder.rglob("pwned"))


def test_a_plan_looks_and_unpacks_nothing(home: Any) -> None:
    (home.work / NAME).write_bytes(b"not read")
    done = home.cm("plan", "script", "--tags=get,cudnn", f"--tar_file={NAME}")
    assert "extract-file" in done.stdout + done.stderr
    assert not home.store.exists() or not list(home.store.glob("*/unpacked"))


def test_a_plan_refuses_an_archive_that_is_not_there_before_a_cuda_is_looked_for(home: Any) -> None:
    done = home.cm("plan", "script", "--tags=get,cudnn", f"--tar_file={NAME}")
    assert (done.code, f"{NAME} is not a file" in done.stdout + done.stderr) == (16, True)


def cudnn_wheel(folder: Path) -> None:
    """A wheel with the files of nvidia-cudnn-cu12 8.9.7.29 (layout as in nvidia-cudnn-cu13 9.28.0.42 of PyPI)."""
    path = make_wheel(folder, "nvidia_cudnn_cu12", "8.9.7.29")
    with zipfile.ZipFile(path, "a") as wheel:
        wheel.writestr("nvidia/cudnn/include/cudnn_version.h", made.cudnn_header("8.9.7"))
        wheel.writestr("nvidia/cudnn/lib/libcudnn.so.8", made.library("cudnnGetVersion", 8907))


@needs_gcc
@pytest.mark.full
def test_wheels_go_into_a_named_environment(home: Any) -> None:
    cudnn_wheel(home.folder / "wheels")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(home.folder / "wheels")}
    done = home.run_cm("get,cudnn,_pip,_cu12", env=offline)
    assert done.code == 0, done.stderr
    env = done.answer["new_env"]
    assert (env["CM_CUDNN_VERSION"], env["CM_CUDNN_SOURCE"], env["CM_CUDNN_CUDA_VERSION"]) == ("8.9.7.29", "pip", "12")
    assert re.search(r"/cudnn/lib/python3\.\d+/site-packages/nvidia/cudnn/lib$", env["CM_CUDA_PATH_LIB_CUDNN"])
    assert "cudnnGetVersion() says 8.9.7" in done.stderr
    again = home.run_cm("get,cudnn,_pip,_cu12", env=offline)
    assert "get-cudnn,_pip,_cu12 8.9.7.29: reused from the cache" in again.stderr


@pytest.mark.parametrize("name", ["cu12", "cu13"])
def test_the_size_of_the_wheels_is_in_the_plan(home: Any, name: str) -> None:
    done = home.cm("plan", "script", f"--tags=get,cudnn,_{name}")
    size = {"cu12": "717.0 MB", "cu13": "517.0 MB"}[name]
    assert f"download:  {size}: PyPI: nvidia-cudnn-{name} (license" in done.stdout


def test_older_drivers_are_warned_of(hook_input: Any, tmp_path: Path, capsys: Any) -> None:
    rows = "0, GPU-a, NVIDIA A30, 24576, 535.161.08, 8.0, Disabled, 00000000:07:00.0\n"
    header = "| NVIDIA-SMI 535.161.08   Driver Version: 535.161.08   CUDA Version: 12.2     |\n"
    commands = {"nvidia-smi": {"stdout": header}, " ".join(nvidia.QUERY): {"stdout": rows}}
    machine = made.recorded(tmp_path, {"/usr/bin/nvidia-smi": b""}, commands=commands)
    assert nvidia.look(machine).cuda_version == "12.2"
    for package, is_warned in (("nvidia-cudnn-cu13", True), ("nvidia-cudnn-cu12", False)):
        run(hook_input, machine, CM_CUDNN_ASKED_SOURCE="pip", CM_CUDNN_PIP_PACKAGE=package, CM_VERSION_MAX="9.10")
        assert ("these wheels are made for CUDA 13" in capsys.readouterr().err) is is_warned


def test_wheels_that_left_no_cudnn_are_told(hook_input: Any, tmp_path: Path) -> None:
    machine = made.recorded(tmp_path, {"/venv/lib/python3.11/site-packages/x.py": b""})
    env = {"CM_CUDNN_ASKED_SOURCE": "pip", "CM_CUDNN_PIP_PACKAGE": "nvidia-cudnn-cu13"}
    call = hook_input({**env, "CM_PYTHON_BIN_WITH_PATH": "/venv/bin/python3"}, machine=machine)
    answer = recipe.postprocess(call)
    assert answer["return"] == 1
    assert "there is no cuDNN below /venv" in answer["error"]


@needs_gcc
def test_a_broken_installed_one_is_refused(hook_input: Any, tmp_path: Path) -> None:
    (tmp_path / "cudnn/include").mkdir(parents=True)
    (tmp_path / "cudnn/lib").mkdir()
    (tmp_path / "cudnn/include/cudnn_version.h").write_bytes(made.cudnn_header("8.9.7"))
    (tmp_path / "cudnn/lib/libcudnn.so.8").write_bytes(made.library("cudnnGetVersion", 8902))
    answer, _ = run(hook_input, probe.Machine(), CM_CUDNN_INPUT_PATH=str(tmp_path / "cudnn"))
    assert answer["return"] == 1
    assert "the library says cuDNN 8.9.2, its headers or name say 8.9.7" in answer["error"]


@pytest.mark.parametrize(("cuda", "first"), [("", "_cu12"), ("12.4", "_cu12"), ("13.0", "_cu13"), ("11.8", "_cu12")])
def test_the_wheels_for_the_cuda_that_was_found_come_first(cuda: str, first: str) -> None:
    assert f'"get cudnn _pip,{first}"' in recipe.more_hints({"CM_CUDA_VERSION": cuda})[0]
