"""NVIDIA's archives of cuDNN and TensorRT made up for tests, honest and hostile ones, and stub libraries inside.

Layouts after the "Tar File Installation" of NVIDIA's installation guides for cuDNN 8.9 and TensorRT 8.6; no archive of
NVIDIA's was at hand. The stubs are compiled here: they export the one function that says the version.
"""

import functools
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from machine_builder import bare as recorded  # noqa: F401 - for those who import this
from recipe_loader import load_recipe, recipe_meta

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="stub libraries are compiled by gcc")
Entry = tuple[str, Any]
"""A member: its name, and bytes, ("link", target), ("hard", target), ("bomb", claimed size in bytes), "folder", ..."""
TYPES = {"folder": tarfile.DIRTYPE, "fifo": tarfile.FIFOTYPE, "disk": tarfile.BLKTYPE, "terminal": tarfile.CHRTYPE}


@functools.cache
def library(function: str, number: int, more: str = "") -> bytes:
    """A shared library whose function answers a number; ``more`` are words for gcc."""
    with tempfile.TemporaryDirectory() as name:
        source, made = Path(name) / "stub.c", Path(name) / "stub.so"
        source.write_text(f"unsigned long {function}(void) {{ return {number}; }}\n", encoding="utf-8")
        subprocess.run(["gcc", "-shared", "-fPIC", *more.split(), "-o", str(made), str(source)], check=True)
        return made.read_bytes()


def tar(path: Path, entries: Iterable[Entry]) -> Path:
    """An archive, packed as the end of its name says."""
    packing = {".xz": "w:xz", ".gz": "w:gz", ".tgz": "w:gz"}.get(path.suffix, "w")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, packing) as archive:  # type: ignore[call-overload]
        for name, content in entries:
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
                continue
            kind, value = content if isinstance(content, tuple) else (content, "")
            if kind == "bomb":
                info.size = value  # the header alone says it; nothing of that size is ever made
                archive.fileobj.write(info.tobuf())  # addfile of Python 3.13 wants the content too
                archive.offset += tarfile.BLOCKSIZE
                continue
            if kind in ("link", "hard"):
                info.type, info.linkname = (tarfile.SYMTYPE if kind == "link" else tarfile.LNKTYPE), value
            else:
                info.type = TYPES[kind]
            archive.addfile(info)
    return path


def cudnn_header(version: str) -> bytes:
    """cudnn_version.h for 8.9.7."""
    names = ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL")
    lines = (f"#define {name} {number}" for name, number in zip(names, version.split("."), strict=False))
    return "\n".join(lines).encode() + b"\n"


def tensorrt_header(version: str) -> bytes:
    """NvInferVersion.h for 8.6.1.6."""
    names = ("MAJOR", "MINOR", "PATCH", "BUILD")
    numbers = zip(names, version.split("."), strict=False)
    lines = (f"#define NV_TENSORRT_{name} {number} //!< {name}" for name, number in numbers)
    return "\n".join(lines).encode() + b"\n"


def cudnn_entries(
    top: str = "cudnn-linux-x86_64-8.9.7.29_cuda12-archive", version: str = "8.9.7", number: int = 8907
) -> list[Entry]:
    """The members of NVIDIA's archive of cuDNN."""
    major = version.split(".")[0]
    return [
        (f"{top}/", "folder"),
        (f"{top}/LICENSE", b"stand-in"),
        (f"{top}/include/cudnn.h", b'#include "cudnn_version.h"\n'),
        (f"{top}/include/cudnn_version.h", cudnn_header(version)),
        (f"{top}/lib/libcudnn.so", ("link", f"libcudnn.so.{major}")),
        (f"{top}/lib/libcudnn.so.{major}", ("link", f"libcudnn.so.{version}")),
        (f"{top}/lib/libcudnn.so.{version}", library("cudnnGetVersion", number)),
        (f"{top}/lib/libcudnn_static.a", b"!<arch>\n"),
    ]


def tensorrt_entries(top: str = "TensorRT-8.6.1.6", version: str = "8.6.1.6", number: int = 8601) -> list[Entry]:
    """The members of NVIDIA's archive of TensorRT."""
    short, major = ".".join(version.split(".")[:3]), version.split(".")[0]
    inner = f"{top}/targets/x86_64-linux-gnu"
    return [
        (f"{top}/", "folder"),
        (f"{top}/bin", ("link", "targets/x86_64-linux-gnu/bin")),
        (f"{top}/lib", ("link", "targets/x86_64-linux-gnu/lib")),
        (f"{top}/include/NvInfer.h", b'#include "NvInferVersion.h"\n'),
        (f"{top}/include/NvInferVersion.h", tensorrt_header(version)),
        (f"{inner}/include", ("link", "../../include")),
        (f"{inner}/bin/trtexec", b"#!/bin/sh\n"),
        (f"{inner}/lib/libnvinfer.so", ("link", f"libnvinfer.so.{major}")),
        (f"{inner}/lib/libnvinfer.so.{major}", ("link", f"libnvinfer.so.{short}")),
        (f"{inner}/lib/libnvinfer.so.{short}", library("getInferLibVersion", number)),
        (f"{top}/python/tensorrt-{short}-cp310-none-linux_x86_64.whl", b"PK"),
    ]


HOSTILE: dict[str, tuple[Entry, str]] = {
    "an absolute path": (("{outside}/evil", b"x"), "absolute"),
    "a parent folder": (("{top}/../../evil", b"x"), "'..' in the name"),
    "a link out": (("{top}/include/out", ("link", "../../../../evil")), "outside of the folder"),
    "an absolute link": (("{top}/include/out", ("link", "{outside}")), "outside of the folder"),
    "a hard link out": (("{top}/include/out", ("hard", "{outside}/secret")), "hard link to"),
    "a hard link to a parent": (("{top}/include/out", ("hard", "../../secret")), "hard link to"),
    "a disk": (("{top}/lib/disk", "disk"), "device"),
    "a terminal": (("{top}/lib/terminal", "terminal"), "device"),
    "a pipe": (("{top}/lib/pipe", "fifo"), "device or other special file"),
    "a bomb of 10 GB": (("{top}/lib/big", ("bomb", 10 * 1024**3)), "unpacks to more than 1073741824 bytes"),
}
"""A member to add, and what the refusal says. A bomb has to be the last member: nothing follows its header."""


def hostile(entries: list[Entry], name: str, outside: Path) -> list[Entry]:
    """An honest archive's members with a hostile one behind them."""
    (member, content), _ = HOSTILE[name]
    top = entries[0][0].rstrip("/")
    if isinstance(content, tuple) and isinstance(content[1], str):
        content = (content[0], content[1].format(top=top, outside=outside))
    return [*entries, (member.format(top=top, outside=outside), content)]


def snapshot(folder: Path) -> dict[str, str]:
    """Every file and link below a folder, with what it is."""
    return {
        str(path): f"-> {os.readlink(path)}" if path.is_symlink() else f"{path.is_dir()} {path.lstat().st_mtime_ns}"
        for path in sorted(folder.rglob("*"))
        if not path.is_dir() or path.is_symlink()
    }


def make_entry(folder: Path) -> None:
    """Marks a folder as a cache entry of CM."""
    (folder / "_cm.json").write_text("{}", encoding="utf-8")


def take(alias: str, call: dict[str, Any]) -> dict[str, Any]:
    """The answer of preprocess, extract-file (called as in the recipe's _cm.yaml) and postprocess: the first error."""
    recipe = load_recipe(alias)
    answer = recipe.preprocess(call)
    if answer["return"] > 0:
        return dict(answer)
    (dependency,) = [one for one in recipe_meta(alias)["prehook_deps"] if "extract,file" in one["tags"]]
    env = {key: _expanded(value, call["env"]) for key, value in dependency["env"].items()}
    answer = load_recipe("extract-file").postprocess({**call, "env": env})
    return dict(answer) if answer["return"] > 0 else dict(recipe.postprocess(call))


def _expanded(value: str, env: dict[str, Any]) -> str:
    return str(env[value.strip("<>")]) if value.startswith("<<<") else value
