"""crowdperf/machine/nvidia_libraries: names of archives, versions, choice and reasons, loading a library elsewhere."""

from pathlib import Path
from typing import Any

import nvidia_archives as made
import pytest
from machine_builder import every_shipped, shipped
from nvidia_archives import needs_gcc
from recipe_loader import input_values, load_recipe

from crowdperf.machine import probe, toolkits
from crowdperf.machine.nvidia_libraries import archive, load, request, selection, steps
from crowdperf.machine.nvidia_libraries.kinds import CUDNN, TENSORRT, Kind, version_of_number

NAME = "cudnn-linux-x86_64-8.9.7.29_cuda12-archive.tar.xz"
Request = request.Request


def library(version: str, home: str = "/usr", *, lib: str = "", header: bool = True) -> toolkits.Library:
    include = f"{home}/include" if header else ""
    lib = f"{home}/lib64" if lib == "" else lib.strip("-")
    return toolkits.Library(version, home, f"{include}/cudnn_version.h" * header, include, lib, "cudnn_version.h")


@pytest.mark.parametrize(
    ("text", "version", "cuda", "machine"),
    [
        (NAME, "8.9.7.29", "12", "linux-x86_64"),
        ("cudnn-linux-x86_64-8.7.0.84_cuda11-archive", "8.7.0.84", "11", "linux-x86_64"),
        ("cudnn-linux-sbsa-9.1.0.70_cuda12-archive.tar.xz", "9.1.0.70", "12", "linux-sbsa"),
        ("cudnn-11.2-linux-x64-v8.1.1.33.tgz", "8.1.1.33", "11.2", "linux-x64"),
        ("cudnn-windows-x86_64-8.9.7.29_cuda12-archive.zip", "8.9.7.29", "12", "windows-x86_64"),
        ("cuda", "", "", ""),
        ("my-download.tar.xz", "", "", ""),
    ],
)
def test_the_name_of_an_archive_says_version_cuda_and_machine(text: str, version: str, cuda: str, machine: str) -> None:
    assert archive.parse(text, CUDNN) == (version, cuda, machine)


@pytest.mark.parametrize(
    ("number", "version"), [(8907, "8.9.7"), (8700, "8.7.0"), (90100, "9.1.0"), (92800, "9.28.0"), (100201, "10.2.1")]
)
def test_the_number_that_a_library_answers_is_a_version(number: int, version: str) -> None:
    assert version_of_number(number) == version


@pytest.mark.parametrize(
    ("asked", "version", "is_right"),
    [
        ({"exact": "8.9"}, "8.9.7", True),
        ({"exact": "8.9.7.29"}, "8.9.7", True),
        ({"exact": "8.9.7.29"}, "8.9.7.28", False),
        ({"exact": "8.9.7.29"}, "8.9", False),
        ({"minimum": "8.6", "maximum": "8.9"}, "8.9.7", True),
        ({"minimum": "9"}, "8.9.7", False),
        ({}, "7.6.5", True),
    ],
)
def test_which_versions_are_admitted(asked: dict[str, str], version: str, is_right: bool) -> None:
    assert Request(**asked).admits(version) is is_right


def test_an_impossible_request_is_refused_with_what_is_allowed() -> None:
    env = {"CM_VERSION": "latest"}
    with pytest.raises(request.RequestError, match=r"(?s)not a version of cuDNN.*hint:"):
        request.asked_in(env, input_values("get-cudnn", env), CUDNN)


def test_the_one_beside_cuda_is_taken_then_the_one_with_headers_then_the_newest() -> None:
    beside, runtime, newest, old = (
        library("8.9.7", "/usr/local/cuda"),
        library("9.9", "/data", header=False),
        library("9.1.0", "/opt/cudnn"),
        library("8.0.5", "/opt/old"),
    )
    found = (old, runtime, newest, beside)
    assert selection.choose(found, Request(), ["/usr/local/cuda/lib64"]).reason == "it is next to the CUDA toolkit"
    order = [one.library for one in selection.choose(found, Request(), ["/usr/local/cuda/lib64"]).judged]
    assert order == [beside, newest, old, runtime]
    choice = selection.choose(found, Request(minimum="9"), ["/usr/local/cuda/lib64"])
    assert choice.chosen is not None
    assert choice.chosen.library is newest
    assert choice.reason == "it has headers"
    refused = [one.text(CUDNN) for one in choice.judged if one.refusal]
    assert len(refused) == 2
    assert all("required: version 9 or newer" in text for text in refused)


@pytest.mark.parametrize(
    ("one", "asked", "says"),
    [
        (library("8.9.7", lib="-"), Request(), "no library"),
        (library("8.9.7", header=False), Request(needs_headers=True), "no headers"),
        (library("8.9.7"), Request(exact="8.8"), "required: version 8.8"),
        (library("8.9.7"), Request(), ""),
    ],
)
def test_why_one_is_refused(one: Any, asked: Any, says: str) -> None:
    said = selection.refusal(one, asked)
    assert says in said if says else said == ""


@pytest.mark.parametrize(
    ("number", "error", "level"),
    [
        (8907, "", "loads"),
        (None, "libcuda.so.1: cannot open shared object file: No such file or directory", "needs-other"),
        (None, "libcublasLt.so.12: cannot open shared object file: No such file or directory", "needs-other"),
        (None, "/x/libcudnn.so: cannot open shared object file: No such file or directory", "broken"),
        (None, "/x/libcudnn.so: invalid ELF header", "broken"),
        (None, "/x/libcudnn.so: undefined symbol: cudnnGetVersion", "broken"),
    ],
)
def test_what_the_loader_says_is_told_apart(number: int | None, error: str, level: str) -> None:
    loaded = load.judge(CUDNN, "/x/libcudnn.so", number, error)
    assert loaded.level == level
    assert ("the NVIDIA driver" in loaded.text) is ("libcuda.so.1" in error)


def test_words_for_both_libraries_name_their_own_command() -> None:
    for kind in (CUDNN, TENSORRT):
        text = steps.not_found(kind, Request(), selection.Choice(None, ()), ())
        assert f'cm run script "{kind.tags}" --tar_file={{full path to the {kind.name} tar file}}' in text
        assert kind.page in text


@needs_gcc
@pytest.mark.parametrize(
    ("data", "level"),
    [
        ("good", "loads"),
        ("text", "broken"),
        ("cut", "broken"),
        ("other", "broken"),
        ("crash", "broken"),
    ],
)
def test_a_real_library_is_loaded_in_another_process(tmp_path: Path, data: str, level: str) -> None:
    good = made.library("cudnnGetVersion", 8907)
    crash = "__attribute__((constructor)) static void f(void) { *(volatile int *)0 = 0; }"
    texts = {"good": good, "text": b"not a library", "cut": good[:4000], "other": made.library("somethingElse", 1)}
    path = tmp_path / "libcudnn.so"
    if data == "crash":
        texts["crash"] = made.library("cudnnGetVersion", 1, f"-include {_header(tmp_path, crash)}")
    path.write_bytes(texts[data])
    loaded = load.load(probe.Machine(), CUDNN, str(path), [str(tmp_path)])
    assert loaded.level == level, loaded
    assert ("8.9.7" in loaded.text) is (level == "loads")


def _header(folder: Path, text: str) -> Path:
    path = folder / "crash.h"
    path.write_text(text + "\n", encoding="utf-8")
    return path


@needs_gcc
def test_what_another_library_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "libcublas.so.12").write_bytes(made.library("cublasCreate", 1, "-Wl,-soname,libcublas.so.12"))
    words = f"-Wl,--no-as-needed -L{tmp_path} -l:libcublas.so.12"
    (tmp_path / "a").mkdir()
    path = tmp_path / "a" / "libcudnn.so"
    path.write_bytes(made.library("cudnnGetVersion", 8907, words))
    loaded = load.load(probe.Machine(), CUDNN, str(path), [])
    assert (loaded.level, "needs libcublas.so.12 (another library of CUDA)" in loaded.text) == ("needs-other", True)
    assert load.load(probe.Machine(), CUDNN, str(path), [str(tmp_path)]).level == "loads"


# --- what get-cudnn and get-tensorrt do alike ---

TENSORRT_NAME = "TensorRT-8.6.1.6.Linux.x86_64-gnu.cuda-12.0.tar.gz"
both = pytest.mark.parametrize("kind", [CUDNN, TENSORRT], ids=["cudnn", "tensorrt"])


def archive_of(kind: Kind, folder: Path, outside: Path | None = None, hostile: str = "") -> Path:
    """NVIDIA's archive of a library, with a hostile member where one is named."""
    name, entries = (NAME, made.cudnn_entries()) if kind is CUDNN else (TENSORRT_NAME, made.tensorrt_entries())
    return made.tar(folder / name, made.hostile(entries, hostile, outside) if outside else entries)


def found_on(machine: probe.Machine, kind: Kind, hook_input: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    call = hook_input({f"{kind.prefix}_ASKED_SOURCE": "installed"}, machine=machine)
    return load_recipe(kind.recipe).preprocess(call), call["env"]


@both
def test_nothing_installed_gives_the_tutorials_command_and_its_exit_code(
    hook_input: Any, tmp_path: Path, kind: Kind
) -> None:
    answer, _ = found_on(made.recorded(tmp_path, {}), kind, hook_input)
    assert answer["return"] == 1
    assert archive.command(kind) in answer["error"]
    assert kind.home_variables[0] in answer["error"], "it says where it looked"
    if kind is TENSORRT:
        assert '"get tensorrt _rtx"' in answer["error"]


@both
@pytest.mark.parametrize("name", every_shipped())
def test_no_recorded_machine_makes_it_fail_with_a_traceback(hook_input: Any, kind: Kind, name: str) -> None:
    machine = shipped(name)
    answer, env = found_on(machine, kind, hook_input)
    if kind.installed(machine, ()):
        assert answer == {"return": 0, "version": env[f"{kind.prefix}_VERSION"]}
    else:
        assert archive.command(kind) in answer["error"]


def unpack(hook_input: Any, kind: Kind, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """All hooks for an archive, and the env afterwards."""
    call = hook_input({f"{kind.prefix}_ASKED_SOURCE": "installed", f"{kind.prefix}_TAR_FILE_PATH": str(path)})
    return made.take(kind.recipe, call), call["env"]


@needs_gcc
@both
@pytest.mark.parametrize("name", made.HOSTILE)
def test_hostile_archives_write_nothing(hook_input: Any, tmp_path: Path, inside: Path, kind: Kind, name: str) -> None:
    made.make_entry(inside)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("mine", encoding="utf-8")
    path = archive_of(kind, tmp_path, outside, name)
    before = made.snapshot(tmp_path)
    answer, env = unpack(hook_input, kind, path)
    assert answer["return"] == 1
    assert made.HOSTILE[name][1] in answer["error"]
    assert made.snapshot(tmp_path) == before, "not a file more, inside or outside of the entry"
    assert f"{kind.prefix}_VERSION" not in env


@needs_gcc
@both
@pytest.mark.parametrize("part", [0.3, 0.9])
def test_a_truncated_archive_is_told(hook_input: Any, tmp_path: Path, inside: Path, kind: Kind, part: float) -> None:
    made.make_entry(inside)
    path = archive_of(kind, tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    before = made.snapshot(tmp_path)
    answer, _ = unpack(hook_input, kind, path)
    assert answer["return"] == 1
    assert "is damaged" in answer["error"] or "is none of" in answer["error"]
    assert made.snapshot(tmp_path) == before


ENTRIES = {CUDNN: made.cudnn_entries, TENSORRT: made.tensorrt_entries}
PHOTO = [("photos/cat.jpg", b"cat")]


def without(part: str, entries: list[made.Entry]) -> list[made.Entry]:
    return [one for one in entries if part not in one[0]]


@needs_gcc
@pytest.mark.parametrize(
    ("kind", "entries", "says"),
    [
        (CUDNN, lambda: without("/lib/", made.cudnn_entries()), "missing in it: lib/libcudnn.so* (or lib64/)."),
        (CUDNN, lambda: without("/include/", made.cudnn_entries()), "missing in it: include/cudnn_version.h."),
        (CUDNN, lambda: PHOTO, "missing in it: lib/libcudnn.so* (or lib64/); include/cudnn_version.h."),
        (CUDNN, made.tensorrt_entries, "TensorRT-8.6.1.6 with bin, include, lib"),
        (TENSORRT, lambda: without("/lib", made.tensorrt_entries()), "missing in it: lib/libnvinfer.so*"),
        (TENSORRT, lambda: PHOTO, "missing in it: lib/libnvinfer.so* (or lib64/); include/NvInferVersion"),
        (TENSORRT, made.cudnn_entries, "It has: cudnn-linux-x86_64-8.9.7.29_cuda12-archive with LICENSE, include, lib"),
    ],
)
def test_the_wrong_thing_is_refused_with_what_is_missing(
    hook_input: Any, tmp_path: Path, inside: Path, kind: Kind, entries: Any, says: str
) -> None:
    made.make_entry(inside)
    before = made.snapshot(inside)
    answer, _ = unpack(hook_input, kind, made.tar(tmp_path / "download.tar.gz", entries()))
    assert answer["return"] == 1
    assert f"not NVIDIA's archive of {kind.name}" in answer["error"]
    assert says in answer["error"]
    assert archive.command(kind) in answer["error"]
    assert made.snapshot(inside) == before and not (inside / "unpacked").exists(), "what was unpacked is gone"


TOP = NAME.removesuffix(".tar.xz")


@needs_gcc
@pytest.mark.parametrize(
    ("kind", "name", "members", "says"),
    [
        (CUDNN, NAME, (TOP, "8.9.2", 8902), "says cuDNN 8.9.7.29, its cudnn_version.h says 8.9.2"),
        (CUDNN, NAME.replace("8.9.7.29", "8.8.0.121"), ("cuda", "8.9.7", 8907), "says cuDNN 8.8.0.121"),
        (CUDNN, NAME, (TOP, "8.9.7", 8902), "the library says cuDNN 8.9.2, its headers or name say"),
        (
            TENSORRT,
            TENSORRT_NAME,
            ("TensorRT-8.5.1.7", "8.5.1.7", 8501),
            f"the name '{TENSORRT_NAME}' says TensorRT 8.6.1.6",
        ),
        (TENSORRT, TENSORRT_NAME, ("TensorRT-8.6.1.6", "8.6.1.7", 8601), "its NvInferVersion.h says 8.6.1.7"),
        (TENSORRT, TENSORRT_NAME, ("TensorRT-8.6.1.6", "8.6.1.6", 8503), "the library says TensorRT 8.5.3"),
    ],
)
def test_name_headers_and_library_must_agree(
    hook_input: Any, tmp_path: Path, inside: Path, kind: Kind, name: str, members: tuple[str, str, int], says: str
) -> None:
    made.make_entry(inside)
    answer, _ = unpack(hook_input, kind, made.tar(tmp_path / name, ENTRIES[kind](*members)))
    assert answer["return"] == 1
    assert says in answer["error"]
    assert not (inside / "unpacked").exists()
