"""The decision which cuDNN or TensorRT of a machine to take, and why not the others. Pure.

One is refused when it lacks a part or is outside the versions asked for. Of the others: the one beside the CUDA that
was found, then the one with headers, then the newest.
"""

from collections.abc import Sequence
from typing import NamedTuple

from crowdperf.machine import toolkits, versions
from crowdperf.machine.nvidia_libraries.kinds import Kind
from crowdperf.machine.nvidia_libraries.request import Request


class RatedLibrary(NamedTuple):
    """One that was found, and why it is refused (empty when it is not)."""

    library: toolkits.Library
    refusal: str
    is_beside_cuda: bool

    def text(self, kind: Kind) -> str:
        """One line: what it is, where, by which file, and what is to be said of it."""
        one = self.library
        where = f"libraries in {one.lib}" if one.lib else f"headers in {one.include}"
        beside = "next to the CUDA toolkit" if self.is_beside_cuda else "fits"
        return f"{kind.name} {one.version} ({where}, version by {one.version_source}): {self.refusal or beside}"


class Choice(NamedTuple):
    """All that were found, best first, the refused ones last; ``chosen`` is None when each is refused."""

    chosen: RatedLibrary | None
    judged: tuple[RatedLibrary, ...]

    @property
    def reason(self) -> str:
        """Why this one, where there was a choice."""
        others = [one for one in self.judged if not one.refusal and one is not self.chosen]
        if self.chosen is None or not others:
            return "the only match"
        if self.chosen.is_beside_cuda and not others[0].is_beside_cuda:
            return "it is next to the CUDA toolkit"
        if self.chosen.library.header and not others[0].library.header:
            return "it has headers"
        return "the newest match"


def choose(found: Sequence[toolkits.Library], asked: Request, cuda_folders: Sequence[str]) -> Choice:
    """The one to take; ``cuda_folders`` are the library folders of the CUDA toolkit in use."""
    rows = [RatedLibrary(one, refusal(one, asked), bool(one.lib) and one.lib in cuda_folders) for one in found]
    rows.sort(
        key=lambda one: (
            bool(one.refusal),
            not one.is_beside_cuda,
            not one.library.header,
            tuple(-number for number in versions.key(one.library.version)),
            one.library.prefix,
        )
    )
    return Choice(rows[0] if rows and not rows[0].refusal else None, tuple(rows))


def refusal(one: toolkits.Library, asked: Request) -> str:
    """Why it cannot be taken, empty when it can."""
    if not one.lib:
        return "it has headers, but no library"
    if asked.needs_headers and not one.header:
        return "it has no headers (a runtime without its -dev package), but _dev requires them"
    return "" if asked.admits(one.version) else f"required: {asked.limits_text}"
