"""Where the weights and the samples of a run came from, and the words that follow from that. Key `provenance` of
result.json, and of results.json for all runs of a command:

    {"model": "own", "dataset": "given", "sample_count": 50, "benchmark_sample_count": 50000}

model: one of MODEL_ORIGINS. dataset: one of DATASET_ORIGINS. benchmark_sample_count: how many samples the benchmark has
in such a run, null for what is not an MLPerf benchmark. The harness decides from the digests of the files and the
number of samples (crowdperf/harness/runner/loadgen_run.py); nobody states these facts by hand. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PUBLISHED, OWN, UNCHECKED, SERVER, MADE = "published", "own", "unchecked", "server", "made"
PROJECT, NO_MODEL = "project", "none"
MODEL_ORIGINS = (OWN, UNCHECKED, SERVER, MADE, PUBLISHED, PROJECT, NO_MODEL)
"""own: the digest is not that of a published file. unchecked: given by path, and no digest is published. server: the
weights of a server. made: by a program. published: the benchmark's own file, or made from it here. project: a network
of this project, which is not an MLPerf benchmark. none: the backend reads none. What a reader must know comes first."""

GIVEN, FETCHED = "given", "fetched"
DATASET_ORIGINS = (OWN, GIVEN, MADE, FETCHED)
"""own: given by path, and names, labels or sizes show that it is not the benchmark's. given: a copy given by path,
whose contents no published digest covers. made: by a program. fetched: by a recipe."""

OWN_MODEL_LABEL = "own model (not the published file)"
UNCHECKED_LABEL = "weights given by path, no published digest compared"
OWN_DATA_LABEL = "own data (not the benchmark's)"
SERVER_LABEL = "weights of a server, not checked"
_KEYS = ("model", "dataset", "sample_count", "benchmark_sample_count")
_MODEL_LABELS = {OWN: OWN_MODEL_LABEL, UNCHECKED: UNCHECKED_LABEL, SERVER: SERVER_LABEL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What was measured with; the fields are the keys of the module's example."""

    model: str
    dataset: str
    sample_count: int
    benchmark_sample_count: int | None

    @property
    def is_whole_dataset(self) -> bool:
        """Whether the samples are as many as the benchmark has."""
        return self.benchmark_sample_count in (None, self.sample_count)

    @property
    def labels(self) -> tuple[str, ...]:
        """The words that must stand next to every figure: an own model, an unchecked one, own or incomplete data. That
        data was made by a program has a label of its own (names.SYNTHETIC_LABEL), which covers its number, too."""
        found = [_MODEL_LABELS[self.model]] if self.model in _MODEL_LABELS else []
        found += [OWN_DATA_LABEL] if self.dataset == OWN else []
        if not self.is_whole_dataset and self.dataset != MADE:
            found.append(f"{self.sample_count:,} of {self.benchmark_sample_count:,} samples")
        return tuple(found)


def parse(record: object) -> Provenance | None:
    """Return what `provenance` of a result.json or results.json says; None where there is none, as in results of older
    versions, or where it says something that cannot be."""
    if not isinstance(record, Mapping):
        return None
    model, dataset, count, whole = (record.get(key) for key in _KEYS)
    is_right = model in MODEL_ORIGINS and dataset in DATASET_ORIGINS and _is_count(count)
    if not is_right or not (whole is None or _is_count(whole)):
        return None
    return Provenance(
        model=str(model),
        dataset=str(dataset),
        sample_count=int(str(count)),
        benchmark_sample_count=None if whole is None else int(str(whole)),
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def all_labels(results: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the labels of several contents of result.json, each once, in the order of the runs."""
    found = (parse(result.get("provenance")) for result in results)
    return tuple(dict.fromkeys(label for one in found if one is not None for label in one.labels))


def together(results: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the `provenance` of results.json: of each part what a reader must know most, the smallest data set. None
    where no run says anything."""
    found = [one for result in results if (one := parse(result.get("provenance"))) is not None]
    if not found:
        return None
    model = min((one.model for one in found), key=MODEL_ORIGINS.index)
    dataset = min((one.dataset for one in found), key=DATASET_ORIGINS.index)
    least = min(found, key=lambda one: (one.is_whole_dataset, one.sample_count))
    return {
        "model": model,
        "dataset": dataset,
        "sample_count": least.sample_count,
        "benchmark_sample_count": least.benchmark_sample_count,
    }
