"""A file of secrets is of its owner alone, and what is wrong with it is said without a value of it."""

import os
from pathlib import Path

import pytest

from crowdperf.sweeps.secretsfile import WrongSecrets, read_secrets


def _written(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    path = folder / "secrets"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_lines_become_variables_and_comments_nothing(tmp_path: Path) -> None:
    path = _written(tmp_path, b"# a key\r\n\r\nTOKEN=very secret=1\r\nRAW=\xff\n")
    assert read_secrets(path) == {"TOKEN": "very secret=1", "RAW": "\udcff"}
    assert read_secrets(None) == {}


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (b"TOKEN=sesame", 0o644, "chmod 600"),
        (b"A=1\nexport TOKEN=sesame", 0o600, "line 2, must be NAME=VALUE, without export"),
        (b"sesame", 0o600, "line 1, must be NAME=VALUE"),
        (b"MY TOKEN=sesame", 0o600, "line 1, must be NAME=VALUE"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_without_its_values(
    tmp_path: Path, content: bytes, mode: int, words: str
) -> None:
    with pytest.raises(WrongSecrets, match=words) as caught:
        read_secrets(_written(tmp_path, content, mode))
    assert "sesame" not in str(caught.value)


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _written(tmp_path, b"TOKEN=sesame")
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(WrongSecrets, match="must be your own file"):
        read_secrets(path)


def test_a_file_that_is_not_there_comes_with_the_way_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(WrongSecrets, match=r"secrets is not a file; try: install -m 600 /dev/null "):
        read_secrets(tmp_path / "secrets")
