"""Colours on a terminal, and none anywhere else."""

from __future__ import annotations

import io

import pytest

from crowdperf.kit.terminal import coloured

TEXT = "Offline  VALID\nServer  INVALID\nbusy\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "is_coloured"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "", "TERM": "xterm"}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_verdicts_and_warnings_are_coloured_where_the_stream_takes_it(stream, environment, is_coloured):
    text = coloured(TEXT, stream, environment, warnings=["busy"])
    in_colour = "Offline  \x1b[32mVALID\x1b[0m\nServer  \x1b[31mINVALID\x1b[0m\n\x1b[33mbusy\x1b[0m\n"
    assert text == (in_colour if is_coloured else TEXT)
