"""Bundles: the content of the file, and the refusals of its program. A bundle of a real run is in
tests/e2e/test_first_result.py."""

import hashlib
import json
import os
import platform
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from crowdperf.call import bundle, bundle_program
from crowdperf.call.bundle import Given
from crowdperf.call.bundle_program import BundleError

RECIPE = "get-numbers,1234567890abcdef"
DATA = b"some numbers" * 100


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with the entry of a data set, and one of an environment, which has no files of its own."""
    root = tmp_path / "here" / "cache"
    for name, recipe, files in (("aaaa", RECIPE, {"data.bin": DATA}), ("bbbb", "install-python-venv,0", {})):
        folder = root / name
        folder.mkdir(parents=True)
        state = json.dumps({"new_env": {"CM_DATA": str(folder / "data.bin")}})
        (folder / "_cm.json").write_text(json.dumps({"uid": name}))
        (folder / "cm-cached-state.json").write_text(state)
        rows = []
        for file, content in files.items():
            (folder / file).write_bytes(content)
            digest = hashlib.sha256(content).hexdigest()
            rows.append({"path": file, "sha256": digest, "size_bytes": len(content), "mtime_ns": 5})
        details = {"recipe": recipe, "files": rows, "state_sha256": hashlib.sha256(state.encode()).hexdigest()}
        (folder / "entry.json").write_text(json.dumps(details))
    return root


@pytest.fixture
def made(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle of a repository with one recipe; no package is fetched."""
    repository = tmp_path / "repository"
    for name in ("automation", "script/get-numbers/__pycache__", "src"):
        (repository / name).mkdir(parents=True)
    (repository / "cmr.yaml").write_text("alias: crowdperf\n")
    (repository / "script/get-numbers/run.sh").write_text("#!/bin/sh\n")
    (repository / "script/get-numbers/run.sh").chmod(0o755)
    (repository / "script/get-numbers/__pycache__/one.pyc").write_text("compiled")
    monkeypatch.setattr(bundle, "_pip", lambda *words: None)
    monkeypatch.setattr(bundle, "engine_packages", lambda: ["cmind==4.2.0"])
    row = {"size_bytes": len(DATA), "sha256": hashlib.sha256(DATA).hexdigest()}
    python = {"recipe": "get-python3,1", "version": platform.python_version()}
    lock = {"things": [{"recipe": RECIPE, "files": {"data.bin": row}}, {"recipe": "install-python-venv,0"}, python]}
    own = tmp_path / "own.txt"
    own.write_text("mine")
    order = bundle.Order(
        command=("run", "script", "--tags=get,numbers", "--quiet"), lock=lock, repository=repository, cache=cache,
        output=tmp_path / "out" / "it.pyz", entries=("aaaa", "bbbb", "made-by-cm"), given={"list": Given(own, (own,))},
        built_from={"commit": "c" * 40, "is_modified": False},
    )  # fmt: skip
    result = bundle.make_bundle(order)
    assert (result.wheels, result.entries) == (0, 1)
    assert result.sha256 == hashlib.sha256(result.path.read_bytes()).hexdigest()
    assert os.listdir(result.path.parent) == ["it.pyz"], "nothing is left beside it"
    return result.path


def changed(path: Path, change: Any) -> Path:
    """A copy of a bundle with a changed manifest."""
    target = path.with_name("changed.pyz")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "manifest.json":
                manifest = json.loads(content)
                change(manifest)
                content = json.dumps(manifest).encode()
            new.writestr(name, content)
    return target


def started(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(path), *words], capture_output=True, text=True, timeout=60, check=False)


def unpacked(path: Path, folder: Path) -> None:
    with zipfile.ZipFile(path) as opened:
        manifest, digest = bundle_program.read_manifest(opened, path.name)
        bundle_program.make_folder(opened, manifest, digest, folder)


def test_a_bundle_has_recipes_and_data_and_is_checked_as_a_whole(made: Path) -> None:
    with zipfile.ZipFile(made) as opened:
        names = opened.namelist()
    assert {"__main__.py", "manifest.json", "files/crowdperf.lock", "files/cache/aaaa/data.bin"} <= set(names)
    assert "files/repository/script/get-numbers/run.sh" in names
    assert not [name for name in names if "__pycache__" in name or "bbbb" in name]
    with zipfile.ZipFile(made) as opened:
        command = json.loads(opened.read("manifest.json"))["command"]
    assert command == ["run", "script", "--tags=get,numbers", "--quiet", "--list=@FOLDER@/given/list/own.txt"]
    with zipfile.ZipFile(made) as opened:
        assert json.loads(opened.read("files/repository/built-from.json")) == {"commit": "c" * 40, "is_modified": False}
    done = started(made, "--check")
    assert done.returncode == 0, done.stderr
    assert "9 files, all with the SHA-256 of the manifest" in done.stdout


def test_a_damaged_file_is_refused_with_its_hashes_and_leaves_nothing(made: Path) -> None:
    content = made.read_bytes()
    assert content.count(DATA) == 1
    made.write_bytes(content.replace(DATA, DATA[:-1] + b"S"))
    wanted = hashlib.sha256(DATA).hexdigest()
    for words in (["--check"], []):
        done = started(made, *words)
        assert done.returncode == 1
        assert "cache/aaaa/data.bin is damaged (Bad CRC-32" in done.stderr
        assert f"its SHA-256 must be {wanted}" in done.stderr
        assert os.listdir(made.parent) == ["it.pyz"]


def test_a_file_that_was_replaced_is_refused_with_both_hashes(made: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["files"]["repository/cmr.yaml"]["sha256"] = "0" * 64

    done = started(changed(made, change), "--check")
    found = hashlib.sha256(b"alias: crowdperf\n").hexdigest()
    assert done.returncode == 1
    assert f"repository/cmr.yaml has the SHA-256 {found}, the manifest has {'0' * 64}\nhint: " in done.stderr


@pytest.mark.parametrize("name", ["/etc/passwd", "../out", "a/../../b", "a\\b", "", ".", "a//b", "./a", "a/", "a\0b"])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(BundleError, match="not safe to unpack"):
        bundle_program.checked_name(name)


def test_a_manifest_with_such_a_name_unpacks_nothing(made: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["files"]["../outside"] = manifest["files"].pop("repository/cmr.yaml")

    done = started(changed(made, change))
    assert done.returncode == 1
    assert "it has a file named '../outside'" in done.stderr
    assert sorted(os.listdir(made.parent)) == ["changed.pyz", "it.pyz"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "bundle format 2, known is 1"),
        *(({key: value}, "its manifest cannot be read")
          for key, value in (("files", []), ("files", {"a": {}}), ("machine", {}), ("command", None))),
    ],
    ids=["format", "list", "no hash", "no machine", "no command"],
)  # fmt: skip
def test_a_manifest_of_another_form_is_refused(made: Path, change: dict[str, Any], words: str) -> None:
    done = started(changed(made, lambda manifest: manifest.update(change)))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert words in done.stderr


def test_packages_that_pip_cannot_fetch_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 3, stderr="ERROR: no such package\n")
    monkeypatch.setattr(bundle.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(BundleError, match=r"\(exit code 3\): ERROR: no such package\n"):
        bundle.fetch_wheels([{"numpy": "==2.0"}], tmp_path / "wheels")


HERE = {"system": "Linux", "machine": "x86_64", "python": "CPython 3.11", "python_version": "3.11.7"}
WHEEL = "wheels/numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"


@pytest.mark.parametrize(
    ("here", "libc", "words"),
    [
        ({}, "2.36", ""),
        ({}, "2.27", ""),
        (
            {"system": "Darwin"},
            "",
            "was made for Linux x86_64, this is Darwin x86_64\nhint: make a bundle on a machine",
        ),
        ({"machine": "aarch64"}, "2.36", "was made for Linux x86_64, this is Linux aarch64"),
        ({"python": "CPython 3.12"}, "2.36", "for CPython 3.11, this is CPython 3.12\nhint: python3.11 'a b.pyz'"),
        (
            {"python_version": "3.11.2"},
            "2.36",
            "a b.pyz is locked to Python 3.11.7, this is 3.11.2\nhint: PYTHON 'a b.pyz', where",
        ),
        ({}, "2.26", "need glibc 2.27 or newer, this machine has 2.26"),
        ({}, "", "need glibc 2.27 or newer, this machine has none"),
    ],
)
def test_another_machine_or_python_is_refused_with_what_is_needed(here: dict[str, str], libc: str, words: str) -> None:
    older = WHEEL.replace("2_27", "2_17").replace("numpy", "orjson")
    manifest = {"machine": HERE, "files": {older: {}, WHEEL: {}, "wheels/pyyaml-6-py3-none-any.whl": {}}}
    if not words:
        bundle_program.check_machine(manifest, HERE, libc, "a b.pyz")
        return
    with pytest.raises(BundleError) as caught:
        bundle_program.check_machine(manifest, {**HERE, **here}, libc, "a b.pyz")
    assert words in str(caught.value)


def test_entries_are_unpacked_with_the_path_of_the_new_cache(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_program, "install", lambda folder, manifest: None)
    folder = tmp_path / 'new "place"' / "it"
    unpacked(made, folder)
    entry = folder / "used-cache" / "aaaa"
    state = (entry / "cm-cached-state.json").read_bytes()
    assert json.loads(state)["new_env"] == {"CM_DATA": str(entry / "data.bin")}
    assert json.loads((entry / "entry.json").read_text())["state_sha256"] == hashlib.sha256(state).hexdigest()
    assert (entry / "data.bin").read_bytes() == DATA
    assert os.access(folder / "repository/script/get-numbers/run.sh", os.X_OK)
    assert bundle_program.settings(folder)["CROWDPERF_CM"] == shlex.quote(f"{folder}/cm")
    unpacked(made, folder)  # once more: all is there and as it was
    (folder / "repository/cmr.yaml").write_text("alias: other\n")
    with pytest.raises(BundleError, match=r"1 files in .* were changed:\n  repository/cmr.yaml has the SHA-256 \w{64}"):
        unpacked(made, folder)


def test_a_folder_of_another_bundle_and_a_half_made_one_are_refused(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_program, "install", lambda folder, manifest: None)
    unpacked(made, tmp_path / "it")
    other = changed(made, lambda manifest: manifest["command"].append("--more"))
    with pytest.raises(BundleError, match="is of another bundle: its manifest has the SHA-256"):
        unpacked(other, tmp_path / "it")
    (tmp_path / "it" / "bundle.json").unlink()
    with pytest.raises(BundleError, match=r"does not contain a complete bundle\nhint: remove it"):
        unpacked(made, tmp_path / "it")


def test_an_entry_whose_data_changed_is_not_packed(cache: Path, tmp_path: Path) -> None:
    (cache / "aaaa" / "data.bin").write_bytes(b"others")
    with pytest.raises(BundleError, match="recorded is"):
        bundle.pack_entry(cache / "aaaa", cache, tmp_path / "packed")


def test_own_files_are_packed_and_named_where_they_are_unpacked(tmp_path: Path) -> None:
    mine, files = tmp_path / "mine", tmp_path / "files"
    (mine / "parts").mkdir(parents=True)
    for name in ("net.onnx", "parts/weights", "user.conf"):
        (mine / name).write_text(name)
    given = {
        "model_path": Given(mine / "net.onnx", (mine / "net.onnx", mine / "parts/weights")),
        "inputs": Given(mine / "parts", (mine / "parts",)), "tokenizer": Given(mine, (mine / "user.conf",)),
    }  # fmt: skip
    assert bundle.copy_given(given, files) == {
        "model_path": "given/model_path/net.onnx", "inputs": "given/inputs/parts", "tokenizer": "given/tokenizer/mine",
    }  # fmt: skip
    names = {path.relative_to(files).as_posix() for path in files.rglob("*") if path.is_file()}
    assert names == {
        "given/model_path/net.onnx", "given/model_path/parts/weights", "given/inputs/parts/weights",
        "given/tokenizer/mine/user.conf",
    }  # fmt: skip


def test_a_lockfile_pins_one_version_of_python_or_none() -> None:
    def of(*versions: str) -> str:
        return bundle.python_version({"things": [{"recipe": "get-python3,u", "version": one} for one in versions]})

    assert [of("3.11.7", "3.11.7"), of("3.11.7", "3.12.1"), of()] == ["3.11.7", "", ""]


def test_packages_are_fetched_by_their_hashes_and_two_versions_in_two_calls() -> None:
    def thing(**packages: dict[str, str]) -> dict[str, Any]:
        return {"facts": {"python_packages": packages}}

    one, two = {"version": "1", "sha256": "aa"}, {"version": "2", "sha256": "bb"}
    lock = {"things": [thing(numpy=one, onnx=one), thing(numpy=two), thing(numpy=one, old={"version": "3"}), {}]}
    assert bundle.locked_packages(lock) == [
        {"numpy": "==1 --hash=sha256:aa", "onnx": "==1 --hash=sha256:aa", "old": "==3"},
        {"numpy": "==2 --hash=sha256:bb"},
    ]
