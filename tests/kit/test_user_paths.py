"""The home folder where there is none, and the paths of users who are not there."""

import os
from pathlib import Path

import pytest

from crowdperf.kit.user_paths import expanded, given_path, home_folder, unusual_path


def test_the_home_folder_is_that_of_the_variable_of_the_account_or_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/of/variable")
    assert (home_folder(), expanded("~/x"), expanded("~")) == (
        Path("/of/variable"),
        Path("/of/variable/x"),
        home_folder(),
    )
    monkeypatch.delenv("HOME")
    assert str(home_folder()) == os.path.expanduser("~")
    monkeypatch.setattr(os, "getuid", lambda: 2_000_000_000)  # as in a container that is given any number
    assert home_folder() == Path("/")
    assert expanded("~/x") == Path("/x")


def test_the_home_of_an_unknown_user_is_a_folder_that_is_not_there() -> None:
    assert expanded("~no-such-user/x") == Path("~no-such-user/x")
    env = {"CM_TMP_CURRENT_PATH": "/here", "PLACE": " ~no-such-user/x "}
    assert given_path(env, "PLACE") == Path("/here/~no-such-user/x")


@pytest.mark.parametrize(("path", "is_usual"), [("/a b/é", True), (Path("/x"), True), ("/lat\udce9", False)])
def test_a_path_that_is_not_utf_8_is_named_in_ascii(path: str | Path, is_usual: bool) -> None:
    why = unusual_path(path)
    assert (why == "") is is_usual and why.isascii()


def test_a_path_that_the_locale_writes_otherwise_is_unusual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsencode", lambda path: str(path).encode("latin-1"))
    assert unusual_path("/plain") == "" and "\\xe9" in unusual_path("/é")
