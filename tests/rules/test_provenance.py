"""Where weights and samples came from, and the words that stand next to the figures because of it."""

from typing import Any

import pytest

from crowdperf.rules.provenance import Provenance, all_labels, parse, together

OWN = "own model (not the published file)"


def row(model: str = "published", dataset: str = "given", count: int = 50_000, whole: int | None = 50_000) -> Any:
    return {"model": model, "dataset": dataset, "sample_count": count, "benchmark_sample_count": whole}


@pytest.mark.parametrize(
    ("record", "labels"),
    [
        (row(), ()),
        (row(dataset="fetched"), ()),
        (row("own"), (OWN,)),
        (row("own", count=50), (OWN, "50 of 50,000 samples")),
        (row("unchecked"), ("weights given by path, no published digest compared",)),
        (row("server"), ("weights of a server, not checked",)),
        (row("made", "made", 32), ()),  # the label of made inputs covers their number
        (row("own", "made", 32), (OWN,)),
        (row(dataset="own"), ("own data (not the benchmark's)",)),
        (row("own", "own", 5), (OWN, "own data (not the benchmark's)", "5 of 50,000 samples")),
        (row("none", count=50_001), ("50,001 of 50,000 samples",)),
        (row("project", "fetched", 360, None), ()),
    ],
)
def test_what_a_reader_must_know_of_the_inputs_is_a_label(record: Any, labels: tuple[str, ...]) -> None:
    found = parse(record)
    assert found is not None and found.labels == labels
    assert all_labels([{"provenance": record}, {"provenance": record}, {}]) == labels


@pytest.mark.parametrize(
    "record",
    [None, [], {}, row("resnet"), row(dataset=3), row(count=-1), row(count=True), row(whole="50000")],
)
def test_a_record_that_says_nothing_usable_gives_no_facts(record: Any) -> None:
    assert parse(record) is None


def test_several_runs_are_as_good_as_their_worst_part() -> None:
    rows = [row(count=50), row("own"), row("server", "made")]
    assert together([{"provenance": one} for one in rows]) == row("own", "given", 50)
    assert together([{}, {"provenance": None}]) is None


def test_a_whole_data_set_has_as_many_samples_as_the_benchmark() -> None:
    assert Provenance(model="own", dataset="given", sample_count=3, benchmark_sample_count=None).is_whole_dataset
