"""The reference answers of smollm2 are made again when the benchmark asks for answers of another length."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from helpers import CHECKOUT, Finished, TemporaryHome
from recipe_loader import load_recipe, recipe_meta

from crowdperf.rules.record import Generation, Sampling

ALIAS = "get-dataset-smollm2"
ASKED = Generation(sampling=Sampling(max_tokens=16), longest_prompt=256)


@pytest.mark.parametrize(
    "changed",
    [
        replace(ASKED, sampling=Sampling(max_tokens=17)),
        replace(ASKED, sampling=replace(ASKED.sampling, min_tokens=2)),
        replace(ASKED, sampling=replace(ASKED.sampling, is_end_ignored=True)),
        replace(ASKED, longest_prompt=128),
    ],
)
def test_answers_of_another_kind_have_another_key(changed: Generation) -> None:
    assert changed.answers_key != ASKED.answers_key
    assert ASKED.answers_key.startswith("16-tokens-")


def test_the_harness_library_says_the_key_of_the_benchmark_it_is_asked_for() -> None:
    env = {"CM_MLPERF_HARNESS_ANSWERS_OF": "smollm2"}
    assert load_recipe("get-crowdperf-lib").preprocess({"env": env}) == {"return": 0}
    assert env["CM_MLPERF_HARNESS_ANSWERS_KEY"].startswith("16-tokens-")
    without: dict[str, str] = {}
    assert load_recipe("get-crowdperf-lib").preprocess({"env": without}) == {"return": 0}
    assert "CM_MLPERF_HARNESS_ANSWERS_KEY" not in without


def test_the_key_is_known_before_the_cache_is_looked_at() -> None:
    meta = recipe_meta(ALIAS)
    (dependency,) = (one for one in meta["deps"] if one["tags"] == "get,crowdperf-lib")
    assert dependency["dynamic"] is True
    assert dependency["env"] == {"CM_MLPERF_HARNESS_ANSWERS_OF": "smollm2"}
    assert meta["extra_cache_tags_from_env"] == [{"env": "CM_MLPERF_HARNESS_ANSWERS_KEY", "prefix": "answers-"}]


@pytest.fixture
def checkout(home: TemporaryHome) -> Path:
    """A copy of this checkout with the recipe and its libraries, whose answers are made by a line of shell."""
    place = home.folder / "checkout"
    (place / "script").mkdir(parents=True)
    (place / "automation").symlink_to(CHECKOUT / "automation")
    shutil.copy(CHECKOUT / "cmr.yaml", place)
    for name in (f"script/{ALIAS}", "script/get-crowdperf-lib", "script/detect-os", "src"):
        shutil.copytree(CHECKOUT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    folder = place / "script" / ALIAS
    meta = recipe_meta(ALIAS)
    kept = ("detect,os", "get,crowdperf-lib")
    meta["deps"] = [one for one in meta["deps"] if one["tags"].startswith(kept)]
    (folder / "_cm.yaml").write_text(yaml.safe_dump(meta), encoding="utf-8")
    (folder / "run.sh").write_text("echo '{}' >samples.jsonl\necho '{\"count\": 1}' >dataset.json\n", encoding="utf-8")
    home.register(place)
    return place


def reused(done: Finished) -> bool:
    """Whether the answers came from the cache."""
    assert done.code == 0, done.stderr
    return f"{ALIAS}: reused from the cache" in done.stderr


def test_another_length_renews_the_answers_and_the_same_does_not(home: TemporaryHome, checkout: Path) -> None:
    assert not reused(home.run_cm("get,dataset,smollm2"))
    again = home.run_cm("get,dataset,smollm2")
    assert reused(again)
    record = checkout / "src/crowdperf/benchmarks/smollm2/record.py"
    text = record.read_text(encoding="utf-8")
    record.write_text(text.replace("max_tokens=16", "max_tokens=24"), encoding="utf-8")
    other = home.run_cm("get,dataset,smollm2")
    assert not reused(other)
    paths = [done.answer["new_env"]["CM_DATASET_PATH"] for done in (again, other)]
    assert paths[0] != paths[1]
