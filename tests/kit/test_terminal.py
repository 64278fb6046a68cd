"""Colours on a terminal, and none anywhere else."""

import io

import pytest

from crowdperf.kit.terminal import colored

TEXT = "Offline  VALID\nServer  INVALID\nbusy\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "is_colored"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "", "TERM": "xterm"}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
        (io.StringIO(), {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        (io.StringIO(), {"CLICOLOR_FORCE": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": "0", "CLICOLOR_FORCE": ""}, False),
        (Terminal(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_verdicts_and_warnings_are_colored_where_the_stream_takes_it(stream, environment, is_colored):
    text = colored(TEXT, stream, environment, warnings=["busy"])
    in_color = "Offline  \x1b[32mVALID\x1b[0m\nServer  \x1b[31mINVALID\x1b[0m\n\x1b[33mbusy\x1b[0m\n"
    assert text == (in_color if is_colored else TEXT)
