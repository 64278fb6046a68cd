"""Tools of which only the first lines are read, as by `| head`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
PROGRAM = """
import socket, sys
from reader import exit_code
def main(word):
    if word == "socket":
        one, other = socket.socketpair()
        other.close()
        one.sendall(b"x")
    print("line\\n" * 100_000)
    return 3
sys.exit(exit_code(main, {word!r}))
"""


@pytest.mark.parametrize(
    ("is_read", "word", "code", "said"),
    [(True, "", 3, ""), (False, "", 141, ""), (True, "socket", 1, "BrokenPipeError: [Errno 32] Broken pipe")],
)
def test_a_reader_that_ends_early_is_no_traceback_and_a_broken_socket_is_one(
    is_read: bool, word: str, code: int, said: str
) -> None:
    reading, writing = os.pipe()
    if not is_read:
        os.close(reading)
    command = [sys.executable, "-c", PROGRAM.format(word=word)]
    env = {**os.environ, "PYTHONPATH": str(TOOLS)}
    with subprocess.Popen(command, env=env, stdout=writing, stderr=subprocess.PIPE, text=True) as tool:
        os.close(writing)
        if is_read:
            with open(reading, "rb") as file:
                file.read()
        assert tool.stderr is not None
        errors = tool.stderr.read()
    assert (tool.returncode, errors.strip().rpartition("\n")[2]) == (code, said)


def test_every_tool_with_a_main_ends_this_way() -> None:
    for path in TOOLS.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert 'if __name__ == "__main__"' not in text or "exit_code(" in text.rpartition("__main__")[2], path.name
