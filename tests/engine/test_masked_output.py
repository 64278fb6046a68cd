"""Output of processes and of this process without secrets, however it is cut into blocks."""

import sys
from collections.abc import Iterator

import pytest
from recipe_engine.rules.secrets import MASK, known_from
from recipe_engine.running.console import HELD_LIMIT, StreamMask, masked_output

TOKEN = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3dE6gH9"
KEY = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE+/=\nabc\n-----END RSA PRIVATE KEY-----"
TEXT = (
    f"start {TOKEN}, hunter22 hunter22-and-more hunting https://me:q9w8e7@x.org/y\rnext ghost hunter2\n"
    f"Authorization: Bearer {TOKEN}\n{KEY}\né\n\nend hunter22-and"
)
SHOWN = (
    f"start {MASK}, {MASK} {MASK} hunting https://{MASK}@x.org/y\rnext ghost hunter2\n"
    f"Authorization: {MASK}\n{MASK}\né\n\nend {MASK}-and"
)


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    """Two secrets, one the beginning of the other."""
    with known_from({"A_TOKEN": "hunter22", "B_TOKEN": "hunter22-and-more", "C_TOKEN": "pässwörd"}):
        yield


def fed(blocks: list[bytes]) -> bytes:
    mask = StreamMask()
    return b"".join([*(mask.feed(block) for block in blocks), mask.feed(b"")])


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 20, 41, 100, 10_000])
def test_no_secret_is_shown_however_the_output_is_cut(size: int) -> None:
    data = TEXT.encode()
    assert fed([data[at : at + size] for at in range(0, len(data), size)]).decode() == SHOWN


@pytest.mark.parametrize(
    ("blocks", "shown"),
    [
        ([b"nothing here"], b"nothing here"),
        ([b"it is hun", b"ting season"], b"it is hunting season"),
        ([b"ends with hunter2"], b"ends with hunter2"),
        (["ein pässwörd!".encode()[:9], "ein pässwörd!".encode()[9:]], b"ein ********!"),
        ([b"\xff\xfe hunter22 \x00"], b"\xff\xfe ******** \x00"),
        ([], b""),
    ],
)
def test_all_other_bytes_arrive_as_they_are(blocks: list[bytes], shown: bytes) -> None:
    assert fed(blocks) == shown


def test_a_question_is_shown_while_the_program_waits_for_the_answer() -> None:
    mask = StreamMask()
    assert mask.feed(b"Load https://x.org? [y/N] ") == b"Load https"
    assert mask.settle() == b"://x.org? [y/N] "
    assert mask.feed(b"Sure (a") + mask.settle() == b"Sure (a"


def test_the_beginning_of_a_secret_is_not_shown_while_the_program_waits() -> None:
    mask = StreamMask()
    assert mask.feed(b"x hunter") + mask.settle() == b"x "
    assert mask.feed(b"22 " + TOKEN[:9].encode()) + mask.settle() == b"******** "
    assert mask.feed(TOKEN[9:].encode() + b"\n") == b"********\n"


def test_a_long_line_is_not_held_back_for_ever() -> None:
    assert len(StreamMask().feed(b"://" + b"x" * HELD_LIMIT)) > HELD_LIMIT


def test_what_is_printed_is_masked_and_the_streams_are_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with masked_output(True):
        print("out hunter22", flush=True)
        sys.stderr.writelines(["err ", TOKEN])
        assert sys.stdout.encoding == before[0].encoding
    assert (sys.stdout, sys.stderr) == before
    assert tuple(capsys.readouterr()) == (f"out {MASK}\n", f"err {MASK}")


def test_nothing_is_masked_for_a_program_that_calls_the_engine(capsys: pytest.CaptureFixture[str]) -> None:
    with masked_output(False):
        print("hunter22")
    assert capsys.readouterr().out == "hunter22\n"
