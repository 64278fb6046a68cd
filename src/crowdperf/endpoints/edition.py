"""What an edition of the Endpoints rules fixes by number: models, data sets, floors, seed sets. Data with a date.

The figures are in endpoints_v1.json, each group with its source. A newer list of seed sets comes from a file in the
form of MLCommons' seedset.yaml, the one that the official checker takes by $MLPERF_ENDPOINTS_SEED_SETS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crowdperf.endpoints.fields import ClientFileError, checked, read_fields
from crowdperf.kit.records import Record

DATA_FILE = Path(__file__).with_name("endpoints_v1.json")
SEED_SETS_VARIABLE = "MLPERF_ENDPOINTS_SEED_SETS"

_COHORT = re.compile(r"(\d{4})-(0[1-9]|1[0-2])-C([01])")
_ADOPTION_COHORTS = 4
"""A seed set may be adopted in the cohort that it was published for and the three after (section 4.6)."""


class UnknownName(ValueError):
    """A model, seed set or cohort is not one of the edition's; the text lists those there are."""


@dataclass(frozen=True, slots=True, order=True)
class Cohort:
    """A publication cohort: two a month, written 2026-10-C1."""

    year: int
    month: int
    index: int

    def __str__(self) -> str:
        return f"{self.year:04d}-{self.month:02d}-C{self.index}"

    def following(self) -> Cohort:
        """Return the next cohort."""
        if self.index == 0:
            return Cohort(self.year, self.month, 1)
        return Cohort(self.year + 1, 1, 0) if self.month == 12 else Cohort(self.year, self.month + 1, 0)


def cohort_of(text: str) -> Cohort:
    """Return a cohort by its name; raises UnknownName."""
    match = _COHORT.fullmatch(text)
    if not match:
        raise UnknownName(f"a cohort must look like 2026-10-C1 (year, month, C0 or C1), got {text!r}")
    return Cohort(int(match[1]), int(match[2]), int(match[3]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedSet:
    """Published seeds, one set for all points of a curve. cohorts: in which it may be adopted, earliest first."""

    id: str
    scheduler: int
    sample_index: int
    model: int
    cohorts: tuple[Cohort, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """A benchmark model; its name is exact and is the folder's name."""

    name: str
    is_agentic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """One edition of the rules, as read on a date."""

    name: str
    read_on: str
    models: Mapping[str, Model]
    dataset_samples: Mapping[str, int]
    seed_sets: Mapping[str, SeedSet]
    ultra_low_max: int
    floors_s: Mapping[bool, tuple[float, float]]
    """By whether the model is agentic: seconds up to `ultra_low_max`, seconds above."""

    def model(self, name: str) -> Model:
        """Return a model; raises UnknownName."""
        if name not in self.models:
            raise UnknownName(f"{name!r} is not a model of {self.name}; allowed: {', '.join(self.models)}")
        return self.models[name]

    def seed_set(self, set_id: str) -> SeedSet:
        """Return a seed set; raises UnknownName."""
        if set_id not in self.seed_sets:
            raise UnknownName(f"seed set {set_id!r} is not published; allowed: {', '.join(self.seed_sets)}")
        return self.seed_sets[set_id]

    def floor_s(self, concurrency: int, *, is_agentic: bool) -> float:
        """Return the least seconds of steady state, by issue time, of a point."""
        ultra_low, above = self.floors_s[is_agentic]
        return ultra_low if concurrency <= self.ultra_low_max else above


def _seed_sets(entries: list[Record], published: str) -> Mapping[str, SeedSet]:
    cohorts = [cohort_of(published)] if published else []
    while 0 < len(cohorts) < _ADOPTION_COHORTS:
        cohorts.append(cohorts[-1].following())
    return {
        entry.needed("id"): SeedSet(
            id=entry.needed("id"),
            scheduler=entry.count("scheduler_rng_seed"),
            sample_index=entry.count("sample_index_rng_seed"),
            model=entry.count("model_seed"),
            cohorts=tuple(cohorts),
        )
        for entry in entries
    }


def read_seed_sets(path: Path) -> Mapping[str, SeedSet]:
    """Return the seed sets of a file in MLCommons' form, by id; raises ClientFileError."""
    fields = read_fields(path)
    inner = fields.within("cohort") if "cohort" in fields.values else fields
    try:
        sets = _seed_sets(inner.each("seed_sets"), inner.text("cohort-id"))
    except UnknownName as error:
        raise ClientFileError(path, (f"cohort-id: {error}",)) from None
    if not sets and not fields.problems:
        fields.note("seed_sets", "none", "at least one")
    return checked(fields, path, sets)


def _floors(fields: Record) -> tuple[float, float]:
    return fields.number("ultra_low") or 0.0, fields.number("above") or 0.0


def read_edition(seed_sets: Path | None = None) -> Edition:
    """Return the edition of DATA_FILE, with the seed sets of a file in place of its own; raises ClientFileError."""
    fields = read_fields(DATA_FILE)
    models, floors, seeds = (fields.within(key) for key in ("models", "floors_s", "seed_sets"))
    sizes = fields.within("datasets").within("samples")
    kinds = ((False, "single_turn"), (True, "agentic"))
    own = _seed_sets(seeds.each("sets"), seeds.text("cohort"))
    edition = Edition(
        name=fields.needed("edition"),
        read_on=fields.needed("read"),
        models={name: Model(name, is_agentic) for is_agentic, key in kinds for name in models.texts(key) or ()},
        dataset_samples={name: sizes.count(name) for name in sizes.values},
        seed_sets=own if seed_sets is None else read_seed_sets(seed_sets),
        ultra_low_max=floors.count("ultra_low_max"),
        floors_s={is_agentic: _floors(floors.within(key)) for is_agentic, key in kinds},
    )
    return checked(fields, DATA_FILE, edition)
