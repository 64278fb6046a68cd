"""`--power_command` becomes words without a shell, or is refused with what to change."""

from pathlib import Path

import pytest

from crowdperf.call.power_command import power_words


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, mode in (("meter.sh", 0o755), ("notes.txt", 0o644)):
        (tmp_path / name).write_text("#!/bin/sh\necho 1\n")
        (tmp_path / name).chmod(mode)
    return tmp_path


def test_words_are_split_as_a_shell_does_and_no_more(folder: Path) -> None:
    program, *words = power_words("./meter.sh --host='my bmc' a\\ b $HOME *", folder)
    assert program == str(folder / "meter.sh")
    assert words == ["--host=my bmc", "a b", "$HOME", "*"]
    assert power_words("sh -c 'while :; do echo 3; sleep 1; done'", folder)[1:] == (
        "-c", "while :; do echo 3; sleep 1; done",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty; allowed: a program"),
        ("  ", "it is empty"),
        ("sh -c 'echo", "no closing quotation"),
        ("./meter.sh | grep W", "not run by a shell, so that '|' has no effect. Write it into a script"),
        ("sh; rm x", "'sh;' has no effect"),
        ("sh $(date)", "'$(date)' has no effect"),
        ("sh > out", "'>' has no effect"),
        ("./none.sh", "the program ./none.sh was not found"),
        ("no-such-program-here -x", "the program no-such-program-here was not found"),
        ("notes.txt", "the program notes.txt was not found"),  # looked for in PATH alone
        ("./notes.txt", "the program ./notes.txt is not executable. Run: chmod +x "),
    ],
)
def test_what_cannot_be_started_is_refused(folder: Path, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        power_words(text, folder)
    assert words in str(caught.value)
