"""A rule on the size of the files that are parsed: one too large for its kind is refused, not waited for."""

from __future__ import annotations

from collections.abc import Iterator

from crowdperf.gate.documents import READ_LIMIT_BYTES, limit_of
from crowdperf.gate.rulebook import OURS, Scope, Violation, rule
from crowdperf.gate.views import TreeView, divisions_of

_PARSED = ("results", "measurements", "compliance", "systems")


@rule("SIZE-001", Scope.TREE, "No log or description is larger than such files are.", source=OURS)
def sizes_are_of_kind(tree: TreeView) -> Iterator[Violation]:
    divisions = divisions_of(tree)
    for path, size in tree.listing.sizes.items():
        parts = path.split("/", 3)
        is_parsed = len(parts) > 3 and parts[0] in divisions and parts[2] in _PARSED
        is_of_submitter = tree.options.submitter in (None, parts[1] if len(parts) > 1 else "")
        if is_parsed and is_of_submitter and limit_of(path) < size <= READ_LIMIT_BYTES:  # FILE-002 has those above
            yield Violation(path=path, found=f"{size} bytes", allowed=f"at most {limit_of(path)} bytes")
