"""What the database keeps of a result, as values. `schema.py` has the tables; every field here is a column there.

Text from outside (names, notes, facts) is kept as it came and is text for ever: who shows it escapes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from crowdperf.kit.records import Kind

SourceKind = Literal["inference-csv", "endpoints-tree", "results-folder", "bundle", "other-tool"]
ResultKind = Literal["published", "crowd", "own"]
Verification = Literal["logs consistent", "not consistent", "summary", "published", "none"]
"""`logs consistent`: every figure was derived again from the logs; `not consistent`: something differs, which the notes
name; `summary`: read from a summary only."""


_BYTES: Kind[bytes] = Kind("bytes", lambda value: value if isinstance(value, bytes) else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The hardware of a result. `facts`: what else was said of it, by the words of its source."""

    accelerator: str
    accelerator_count: int
    nodes: int
    cpu: str
    sockets: int
    cores: int
    memory_gib: int
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What was measured: two results of one configuration may be compared.

    suite: "inference", "endpoints" or "other tool". round: of a published result, else "". tier: quality tier ("99",
    "99.9"), else "". stack: the family of the software, without a version. data_kind: "real", "synthetic" or "tiny",
    "own data" where another tool measured. run_class: "valid", "fast" or "test", "other tool" where one measured.
    `settings`: those that the user chose, by name.
    """

    suite: str
    benchmark: str
    round: str
    division: str
    category: str
    scenario: str
    precision: str
    tier: str
    stack: str
    device: str
    data_kind: str
    run_class: str
    model_digest: str
    settings: Mapping[str, str]
    system: System


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A further figure: a latency percentile, tokens per second, time to the first token ..."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """A score; `basis` is "recomputed" where the collector has the labels, else "claimed"."""

    name: str
    value: float
    target: float | None
    passed: bool | None
    basis: Literal["recomputed", "claimed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of the result; `body` is None where only its digest is kept."""

    name: str
    sha256: str
    size_bytes: int
    body: Annotated[bytes | None, _BYTES]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """A point of an Endpoints curve; rates in tokens per second, the 90th percentile of TTFT in ms."""

    concurrency: int
    region: str
    system_tps: float
    tps_per_user: float
    ttft_p90_ms: float
    accuracy: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where results came from; `digest`: SHA-256 of the file or of the listing of the folder."""

    kind: SourceKind
    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """Who signed a bundle: a pseudonym. key_id: first 16 hex digits of the SHA-256 of the public key (32 bytes)."""

    key_id: str
    public_key: bytes
    alias: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewResult:
    """A result before it is kept.

    run_id: what tells it from others of its source. labels: words that must stand beside its figures (unofficial,
    synthetic, stand-in, test run, not exclusive). stack_version: the versions, which are the axis of its history.
    metric, unit, higher_is_better: of `value`, which is finite. command: what repeats it, "" where it is not known.
    notes: what could not be normalised. raw: the source's own words, untouched: what JSON can hold. submitter,
    system_name: of a published result, as its source spells them.
    """

    run_id: str
    kind: ResultKind
    configuration: Configuration
    labels: tuple[str, ...]
    made_utc: str
    stack_version: str
    metric: str
    value: float
    unit: str
    higher_is_better: bool
    valid: bool | None
    verification: Verification
    command: str
    figures: tuple[Figure, ...]
    accuracy: tuple[Accuracy, ...]
    files: tuple[File, ...]
    curve: tuple[CurvePoint, ...]
    notes: tuple[str, ...]
    raw: Mapping[str, Any]
    submitter: str = ""
    system_name: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A result to keep, with where it came from. added_utc: when it was first kept, "" for now. stamp: of the files
    that it was read from (`result_folders.Stamp`), "" if they are to be read again."""

    new: NewResult
    source: Source
    signer: Signer | None = None
    added_utc: str = ""
    stamp: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A kept result. id: short, never reused. key: of its configuration. state: shown, hidden or withdrawn."""

    id: str
    key: str
    system_key: str
    added_utc: str
    state: Literal["shown", "hidden", "withdrawn"]
    source: Source
    signer: Signer | None
    result: NewResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why something is refused: the rule, the file, what stands there and what was expected."""

    rule: str
    file: str
    found: str
    expected: str
