"""The benchmarks this project runs, collected from their records (record.py, crowdperf/benchmarks/<folder>/record.py).

Records state the newest round that has the benchmark; rounds.py derives what was asked before. Sources of their
figures: the tables of the official submission checker of mlcommons/inference (tools/submission/submission_checker/
constants.py, read at b66003e1, August 2026) for rounds since v5.0; MODEL_CONFIG of the checkers of tags v4.0 and v4.1
for older rounds; LoadGen's embedded mlperf.conf (6.0.17) for sample counts and latencies it repeats.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crowdperf.rules.names import UnknownName
from crowdperf.rules.record import Record
from crowdperf.rules.record_files import read_records, records_folder

_LEVEL = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyTarget:
    """What the closed division asks of one metric.

    metric: as the official checker calls it. reference: the fp32 reference model's score. target: the least accepted
    value. upper_limit: the greatest accepted value, None where there is none.
    """

    metric: str
    reference: float
    target: float
    upper_limit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One official benchmark at one accuracy level. model: the folder of its record. level: 0.99 or 0.999."""

    name: str
    model: str
    level: float
    record: Record

    def targets(self, reference: float | None = None) -> tuple[AccuracyTarget, ...]:
        """Return what is asked of each metric; `reference` stands for the record's scores where it is given."""
        return tuple(
            AccuracyTarget(
                metric=one.metric,
                reference=score,
                target=score * (one.ratio or self.level),
                upper_limit=score * one.most if one.most else None,
            )
            for one in self.record.references
            for score in (one.score if reference is None else reference,)
        )


RECORDS: Mapping[str, Record] = dict(sorted(read_records("benchmarks", Record).items(), key=lambda pair: pair[1].name))
"""Every record by its folder, which model.json, stores and results call the model; sorted by name."""


def _rows() -> Iterator[Benchmark]:
    for folder, record in RECORDS.items():
        for name, level in zip(record.names, record.levels or (_LEVEL,), strict=True):
            if record.is_official:
                yield Benchmark(name=name, model=folder, level=level, record=record)


BENCHMARKS: Mapping[str, Benchmark] = {row.name: row for row in _rows()}
"""Every benchmark of MLPerf Inference by its official name."""

_FOLDER_OF: Mapping[str, str] = {
    name: folder for folder, record in RECORDS.items() for name in (record.name, *record.names)
}


def benchmarks_of(model: str) -> tuple[Benchmark, ...]:
    """Return the official benchmarks of a record's folder, empty for one that MLPerf does not have."""
    return tuple(row for row in BENCHMARKS.values() if row.model == model)


def model_of(name: str) -> str:
    """Return the folder of a benchmark's name ("bert-99"); a name without a record is its own."""
    return _FOLDER_OF.get(name, name)


def record_of(name: str) -> Record:
    """Return the record of a benchmark's or a folder's name; raises UnknownName."""
    folder = model_of(name)
    if folder not in RECORDS:
        raise UnknownName("benchmark", name, tuple(sorted(_FOLDER_OF)))
    return RECORDS[folder]


def dataset_module(dataset: str) -> str:
    """Return the name of a data set's module: `dataset` of the one benchmark that has it, else one of the harness's."""
    folders = (records_folder("benchmarks") / folder for folder, record in RECORDS.items() if record.dataset == dataset)
    own = next((folder.name for folder in folders if (folder / "dataset.py").is_file()), None)
    return f"crowdperf.harness.datasets.{dataset}" if own is None else f"crowdperf.benchmarks.{own}.dataset"


def accuracy_tags(benchmark: str) -> str:
    """Return the query of the recipe that scores a benchmark's accuracy runs: with the variation of its data set."""
    record = RECORDS.get(model_of(benchmark))
    return "process,mlperf,accuracy" + (f",_{record.dataset}" if record is not None and record.is_official else "")


def user_limits(model: str) -> tuple[tuple[str, float], ...]:
    """Return words and tokens/s for each user of the TPOT limits that MLPerf Inference has for a language model.

    model: also as MLPerf Endpoints spells it, llama3_1-8b. Empty for any other. A user who waits `tpot_ms` for each
    token gets 1000 / tpot_ms tokens a second.
    """
    row = BENCHMARKS.get(model) or BENCHMARKS.get(model.replace("_", "."))
    generation = row.record.generation if row else None
    if generation is None:
        return ()
    limits = (("Server", generation.server), ("Interactive", generation.interactive))
    return tuple((f"{name} TPOT {one.tpot_ms:g} ms", 1000 / one.tpot_ms) for name, one in limits if one)
