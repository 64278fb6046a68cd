"""What each error of the operating system becomes for the user."""

import errno
import os
from pathlib import Path

import pytest
from recipe_engine.disk.files import explained, naming, store_error
from recipe_engine.rules.errors import StoreError


@pytest.mark.parametrize(
    ("code", "path", "message", "hint"),
    [
        (errno.ENOSPC, "/x/y", "cannot write /x/y: No space left on device", "cm gc cache -f"),
        (errno.EDQUOT, "/x/y", "cannot write /x/y: Disk quota exceeded", "Or choose a folder on another disk"),
        (errno.ENOSPC, None, "cannot write standard output or a file: No space left on device", "cm gc cache"),
        (errno.EACCES, "/x/y", "cannot use /x/y: Permission denied, / belongs to ", "use a writable folder"),
        (errno.EROFS, "/x/y", "cannot use /x/y: Read-only file system", "CROWDPERF_CACHE"),
        (errno.EMFILE, "/x/y", "/x/y: Too many open files (EMFILE)", "ulimit -n"),
        (errno.ENAMETOOLONG, "/x/y", "/x/y: File name too long (ENAMETOOLONG)", "shorter name"),
        (errno.EIO, "/x/y", "/x/y: Input/output error (EIO)", "dmesg"),
        (errno.EPIPE, None, "the program that read standard output ended early", ""),
        (errno.EXDEV, "/x/y", "/x/y: Invalid cross-device link (EXDEV)", "--debug"),
        (errno.ENOEXEC, None, "the operating system refused: Exec format error (ENOEXEC)", ""),
    ],
)
def test_an_error_names_the_path_the_reason_and_a_way_out(code: int, path: str | None, message: str, hint: str) -> None:
    made = store_error(OSError(code, os.strerror(code), path))
    assert made.message.startswith(message)
    assert hint in made.hint


def test_a_long_path_is_cut(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"xxx\.\.\. \(\d+ letters\): File name too long") as caught, explained():
        (tmp_path / ("x" * 5000)).touch()
    assert len(caught.value.message) < 400


def test_in_a_cache_its_owner_is_named(tmp_path: Path) -> None:
    (tmp_path / "CACHEDIR.TAG").touch()
    made = store_error(PermissionError(errno.EACCES, "Permission denied", str(tmp_path / ".locks" / "a.lock")))
    assert made.message.startswith(f"cannot write to the cache {tmp_path} of ")
    assert "choose your own cache: export CROWDPERF_CACHE=" in made.hint
    full = store_error(OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "entry" / "file")))
    assert "Or choose a cache on another disk: export CROWDPERF_CACHE=" in full.hint


def test_a_write_names_the_file_and_on_a_full_disk_the_size_that_it_needs() -> None:
    with (
        pytest.raises(StoreError, match=r"cannot write /dev/full \(12\.3 kB needed\): No space left"),
        explained(),
        naming(Path("/dev/full"), 12_345),
        open("/dev/full", "wb", buffering=0) as file,
    ):
        file.write(b"x")
    with pytest.raises(OSError, match="Input/output error: '/some/file'"), naming(Path("/some/file")):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_errors_of_other_kinds_pass() -> None:
    with pytest.raises(ValueError, match="x"), explained():
        raise ValueError("x")
