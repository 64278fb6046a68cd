"""A curve from run folders of the client that somebody has already, made elsewhere or by hand."""

from collections.abc import Sequence
from pathlib import Path

from crowdperf.endpoints.clientfiles import CONFIG, RecordedRun, read_run
from crowdperf.endpoints.edition import Edition, SeedSet, UnknownName
from crowdperf.endpoints.events import CountTokens, derive
from crowdperf.endpoints.pointfiles import Offline
from crowdperf.endpoints.regions import RegionError
from crowdperf.endpoints.tree import CurveFacts, MeasuredPoint


class RecordedError(ValueError):
    """A folder has no runs of the client; the text says what was looked for."""


def recorded_points(folder: Path, count_tokens: CountTokens | None = None) -> tuple[MeasuredPoint, ...]:
    """Return the runs in the folders of a folder; raises RecordedError, ClientFileError, EventsError, OSError.

    When a run began and which commit its client had is unknown, unless the client says it.
    """
    folders = sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))
    if not folders:
        raise RecordedError(f"{folder}: no runs of the client: */{CONFIG} does not exist")
    return tuple(_measured(read_run(one), count_tokens) for one in folders)


def _measured(run: RecordedRun, count_tokens: CountTokens | None) -> MeasuredPoint:
    derived = derive(run.events, count_tokens) if run.events else None
    return MeasuredPoint(run=run, derived=derived, client_commit=run.summary.git_sha or "")


def with_offline(points: Sequence[MeasuredPoint], offline: Offline) -> tuple[MeasuredPoint, ...]:
    """Return the points of a curve: max-throughput runs only where the Offline result is a dedicated one."""
    return tuple(one for one in points if offline is Offline.DEDICATED or not one.is_dedicated_offline)


def c_max_of(points: Sequence[MeasuredPoint]) -> int:
    """Return the greatest fixed concurrency; raises RegionError without any."""
    found = [one.concurrency for one in points if not one.is_dedicated_offline]
    if not found:
        raise RegionError("no run with a fixed concurrency")
    return max(found)


def seeds_of(points: Sequence[MeasuredPoint], edition: Edition) -> SeedSet:
    """Return the seed set that the runs had; raises UnknownName where they had none or several."""
    found = {(one.run.config.scheduler_seed, one.run.config.sample_seed) for one in points}
    for seeds in edition.seed_sets.values():
        if found == {(seeds.scheduler, seeds.sample_index)}:
            return seeds
    raise UnknownName(f"the runs have the seeds {sorted(map(str, found))}, which are not a published set: "
                      f"{', '.join(edition.seed_sets)}")  # fmt: skip


def dataset_samples_of(points: Sequence[MeasuredPoint]) -> int | None:
    """Return how many different prompts the runs issued, the same in all; None where the events do not say it."""
    found = {one.derived.distinct_prompts for one in points if one.derived and one.derived.distinct_prompts}
    return found.pop() if len(found) == 1 else None


def facts_of(points: Sequence[MeasuredPoint], edition: Edition, division: str, offline: Offline) -> CurveFacts:
    """Return what the runs themselves say of their curve; raises UnknownName, RegionError."""
    models = sorted({one.run.config.model for one in points})
    if len(models) != 1:
        raise UnknownName(f"the runs have several models: {', '.join(models)}")
    seeds = seeds_of(points, edition)
    return CurveFacts(
        model=edition.model(models[0]).name,
        division=division,
        c_max=c_max_of(points),
        offline=offline,
        seed_set=seeds,
        target_cohort=str(seeds.cohorts[0]),
        dataset_samples=dataset_samples_of(points),
    )
