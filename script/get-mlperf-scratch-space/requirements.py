"""Rules of get-mlperf-scratch-space: what the chosen benchmarks need, against what is free. Sizes in bytes."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from crowdperf.machine.probe import Disk

from . import benchmarks
from .benchmarks import GB, Benchmark, Size

Verdict = Literal["enough", "too small", "unknown", "not asked"]


class Need(NamedTuple):
    """What the chosen benchmarks need in bytes; ``is_least`` when there is more of which nobody told the size."""

    chosen: tuple[Benchmark, ...]
    needed_bytes: int
    is_least: bool

    @property
    def is_everything(self) -> bool:
        """Whether these are all of NVIDIA's seven, for which its README names a size."""
        return set(benchmarks.ALL_OF_NVIDIA) <= {one.name for one in self.chosen}


def reckon(chosen: Sequence[Benchmark]) -> Need:
    """The need of all together: the sum of each one's, and at least NVIDIA's 3 TB for its seven."""
    need = Need(tuple(chosen), sum(one.needed_bytes for one in chosen), not all(one.is_whole for one in chosen))
    if need.is_everything:
        return need._replace(needed_bytes=max(need.needed_bytes, benchmarks.ALL_BYTES), is_least=False)
    return need


def verdict(need: Need, disk: Disk | None) -> Verdict:
    """Whether the free space will do. With sizes missing it can be too small for sure, but never enough for sure."""
    if not need.chosen:
        return "not asked"
    if disk is None:
        return "unknown"
    if disk.free_bytes < need.needed_bytes:
        return "too small"
    return "unknown" if need.is_least else "enough"


def text(need: Need, disk: Disk | None, *, has_hint: bool = True) -> str:
    """The table of the chosen benchmarks, their sources, and the verdict in words; has_hint: where none is chosen, how
    to choose some."""
    free = (
        f"{_shown(disk.free_bytes)} free of {_shown(disk.total_bytes)}, {disk.kind or 'unknown kind'}" if disk else ""
    )
    lines = [f"  space:   {free or 'unknown: the file system does not tell'}"]
    if not need.chosen:
        hint = f"  needed:  not computed without --benchmarks=..., {benchmarks.NVIDIA_README}"
        return "\n".join([*lines, *([hint] if has_hint else [])])
    lines.append(f"  {'benchmark':<14} {'model':>10} {'data':>10} {'prepared':>10} {'in all':>10}")
    for one in need.chosen:
        lines.append(f"  {one.name:<14} " + " ".join(f"{_cell(size):>10}" for _, size in _parts(one)))
    lines += [f"    {name}: {said}" for name, said in _sources(need)]
    least = "at least " if need.is_least else ""
    lines.append(f"  needed:  {least}{_shown(need.needed_bytes)} (existing files are not counted)")
    lines.append(f"  verdict: {_words(need, disk)}")
    return "\n".join(lines)


def warning(need: Need, disk: Disk | None) -> str:
    """The line that warns of too little space, empty when there is no reason to."""
    if verdict(need, disk) != "too small" or disk is None:
        return ""
    short = need.needed_bytes - disk.free_bytes
    names = ", ".join(one.name for one in need.chosen)
    return (
        f"WARNING: {_shown(disk.free_bytes)} are free, {names} need {_shown(need.needed_bytes)}: "
        f"{_shown(short)} are missing\n"
        "  hint: cm run script --tags=get,scratch,disk finds a larger file system, --path=FOLDER names one"
    )


def state(need: Need, disk: Disk | None) -> dict[str, object]:
    """Need and space as JSON has them; null is unknown."""
    return {
        "benchmarks": [
            {
                "name": one.name,
                **{f"{part}_bytes": size.size_bytes if size else None for part, size in _parts(one)},
                "sources": {part: size.source for part, size in _parts(one) if size},
                "note": one.sizes.note,
            }
            for one in need.chosen
        ],
        "needed_bytes": need.needed_bytes,
        "is_least": need.is_least,
        "free_bytes": disk.free_bytes if disk else None,
        "total_bytes": disk.total_bytes if disk else None,
        "verdict": verdict(need, disk),
    }


def _parts(one: Benchmark) -> tuple[tuple[str, Size | None], ...]:
    sizes = one.sizes
    return (("model", sizes.model), ("data", sizes.data), ("prepared", sizes.prepared), ("advised", sizes.advised))


def _sources(need: Need) -> list[tuple[str, str]]:
    said: dict[str, list[str]] = {}
    for one in need.chosen:
        for part, size in _parts(one):
            if size:
                said.setdefault(size.source, []).append(f"{one.name} {'in all' if part == 'advised' else part}")
    rows = [(", ".join(cells), source) for source, cells in said.items()]
    if need.is_everything:
        rows.append(("all", benchmarks.NVIDIA_README))
    return rows + [(one.name, one.sizes.note) for one in need.chosen if one.sizes.note]


def _words(need: Need, disk: Disk | None) -> str:
    missing = [one.name for one in need.chosen if not one.is_whole]
    found = verdict(need, disk)
    if found == "unknown":
        return f"unknown: the sizes of {', '.join(missing)} are not all known" if disk else "unknown"
    return found


def _cell(size: Size | None) -> str:
    return _shown(size.size_bytes) if size else "unknown"


def _shown(size_bytes: int) -> str:
    """A size in units of 10^9 bytes, or 10^12 from there on."""
    return f"{size_bytes / (1000 * GB):.2f} TB" if size_bytes >= 1000 * GB else f"{size_bytes / GB:.2f} GB"
