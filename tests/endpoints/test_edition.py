"""The edition's numbers, and a newer file of seed sets in their place."""

import json
from pathlib import Path

import pytest

from crowdperf.endpoints.edition import DATA_FILE, UnknownName, cohort_of, read_edition
from crowdperf.endpoints.fields import ClientFileError

SEEDS = "{id: Q, scheduler_rng_seed: 1, sample_index_rng_seed: 2, model_seed: 3}"


def test_every_group_of_numbers_has_its_source_and_the_whole_its_date():
    data = json.loads(DATA_FILE.read_text(encoding="utf-8"))
    assert data["read"] == "2026-11-23"
    assert all(group["source"] for group in data.values() if isinstance(group, dict))


def test_floors_depend_on_concurrency_and_on_the_kind_of_model():
    edition = read_edition()
    assert [edition.floor_s(one, is_agentic=False) for one in (32, 33)] == [600, 1200]
    assert [edition.floor_s(one, is_agentic=True) for one in (32, 33)] == [600, 2400]
    assert edition.model("kimi-k3").is_agentic and not edition.model("gpt-oss-120b").is_agentic


def test_a_seed_set_may_be_adopted_in_four_cohorts_also_over_the_new_year():
    assert [str(one) for one in read_edition().seed_set("A").cohorts] == [
        "2026-10-C1", "2026-11-C0", "2026-11-C1", "2026-12-C0",
    ]  # fmt: skip
    assert str(cohort_of("2026-12-C1").following()) == "2027-01-C0"


@pytest.mark.parametrize("text", ["2026-13-C0", "2026-11-C2", "2026-11", ""])
def test_what_is_no_cohort_is_refused_with_an_example(text: str):
    with pytest.raises(UnknownName, match="must look like 2026-10-C1"):
        cohort_of(text)


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(UnknownName, match="allowed: llama3_1-8b, gpt-oss-120b"):
        read_edition().model("llama3.1-8b")
    with pytest.raises(UnknownName, match="allowed: A"):
        read_edition().seed_set("B")


@pytest.mark.parametrize(
    ("text", "cohorts"),
    [
        (
            f"cohort: {{cohort-id: 2027-01-C0, seed_sets: [{SEEDS}]}}",
            ["2027-01-C0", "2027-01-C1", "2027-02-C0", "2027-02-C1"],
        ),
        (f"seed_sets: [{SEEDS}]", []),
    ],
)
def test_a_newer_file_replaces_the_seed_sets(tmp_path: Path, text: str, cohorts: list[str]):
    (tmp_path / "seedset.yaml").write_text(text)
    seeds = read_edition(tmp_path / "seedset.yaml").seed_set("Q")
    assert (seeds.scheduler, seeds.sample_index, seeds.model) == (1, 2, 3)
    assert [str(one) for one in seeds.cohorts] == cohorts


@pytest.mark.parametrize(
    "text", ["{}", "seed_sets: [{id: Q}]", "cohort: {cohort-id: 2027, seed_sets: []}", "[1]", "a: ["]
)
def test_a_file_that_holds_no_seed_sets_is_refused(tmp_path: Path, text: str):
    (tmp_path / "seedset.yaml").write_text(text)
    with pytest.raises(ClientFileError, match=r"seedset\.yaml: "):
        read_edition(tmp_path / "seedset.yaml")
