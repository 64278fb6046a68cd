"""The exceptions of the harness; each says what failed, what was found and what to try, and has an exit code.

Exit code 2: the request cannot be right as written. Exit code 1: the run failed.
"""

import sys
from collections.abc import Callable, Sequence

from crowdperf.kit.records import Problem


class HarnessError(Exception):
    """A run that failed; `hint` is the next thing to try."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    @property
    def with_hint(self) -> str:
        """The message and, in a line of its own, the hint: what programs print."""
        return f"{self}\nhint: {self.hint}" if self.hint else str(self)


def hint_of(error: BaseException | None) -> str:
    """The hint of an error; empty for one of another kind."""
    return error.hint if isinstance(error, HarnessError) else ""


class OutOfDeviceMemory(HarnessError):
    """A batch that needs more memory than the device has: the search for a batch goes on with a smaller one."""


def program(name: str) -> Callable[[Callable[[Sequence[str] | None], None]], Callable[..., int]]:
    """Return the decorator of a program's `main(words)`, which then returns its exit code: that of a HarnessError,
    which is printed on stderr with its hint, else 0."""

    def with_exit_code(main: Callable[[Sequence[str] | None], None]) -> Callable[..., int]:
        def run(words: Sequence[str] | None = None) -> int:
            try:
                main(words)
            except HarnessError as error:
                print(f"{name}: {error.with_hint}", file=sys.stderr)
                return error.exit_code
            return 0

        return run

    return with_exit_code


class ConfigError(HarnessError):
    """A configuration that cannot be run; all its problems at once."""

    exit_code = 2

    def __init__(self, source: str, problems: Sequence[Problem], hint: str = "") -> None:
        noun = "problem" if len(problems) == 1 else "problems"
        lines = "".join(f"\n  {problem}" for problem in problems)
        super().__init__(f"{source} has {len(problems)} {noun}:{lines}", hint)
        self.problems = tuple(problems)
