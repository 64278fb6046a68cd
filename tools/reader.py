"""Ends a tool whose output nobody reads any more, as after `| head`, without a traceback."""

import os
import select
import sys
from collections.abc import Callable
from typing import ParamSpec

ENDED = 141
"""128 and SIGPIPE: what a shell reports for other programs in that place."""
P = ParamSpec("P")


def exit_code(main: Callable[P, int | None], *arguments: P.args, **options: P.kwargs) -> int:
    """The exit code of a tool's `main`; ENDED where the program that read standard output or error ended early."""
    try:
        code = main(*arguments, **options) or 0
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        if not any([_is_closed(sys.stdout.fileno()), _is_closed(sys.stderr.fileno())]):
            raise
        return ENDED


def _is_closed(descriptor: int) -> bool:
    """Whether nobody reads a stream any more; then it becomes /dev/null, because Python flushes it once more."""
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        is_closed = any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except OSError:
        is_closed = True
    if is_closed:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
    return is_closed
