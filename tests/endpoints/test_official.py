"""MLCommons' checker and viewer: how they are run, with stand-ins; in --full, what the real ones say of our trees."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from curve_tree import NUMBERS, declaration, measured, setup_of, write_curve
from report_folder import Setup
from tree_changes import MUTATIONS, Mutation

from crowdperf.curves.official import (
    CHECKER_VERSION,
    VIEWER_VERSION,
    OfficialError,
    build_site,
    check_officially,
    export_view,
)
from crowdperf.endpoints.edition import SEED_SETS_VARIABLE, read_edition
from crowdperf.endpoints.pointfiles import Offline
from crowdperf.endpoints.regions import Region, RegionError, regions_of
from crowdperf.endpoints.rules import check_tree
from crowdperf.endpoints.tree import write_tree

GIVEN = os.environ.get("CROWDPERF_ENDPOINTS_CHECKER", "")
"""The folder of the two programs, bin/ of an environment that has them; without it --full makes one."""


def stand_in(folder: Path, body: str) -> Path:
    """A program of one Python file."""
    path = folder / "program"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{body}\n")
    path.chmod(0o755)
    return path


REPORT = (
    "error = {'rule': 'point-count', 'severity': 'error', 'message': 'too few', 'path': sys.argv[2] + '/results'}\n"
    "info = {'rule': 'x', 'severity': 'info', 'message': '', 'path': None}\n"
    "print(json.dumps({'passed': False, 'results': [error, info]}))"
)


def test_a_report_is_read_and_its_paths_are_relative(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    report = check_officially(stand_in(tmp_path, REPORT + "\nsys.exit(1)"), tmp_path / "sub")
    assert not report.passed
    assert [(one.rule, one.path, one.message) for one in report.errors] == [("point-count", "results", "too few")]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("print('no such command', file=sys.stderr); sys.exit(2)", "ended with code 2 and no report: no such command"),
        (REPORT, "ended with code 0 and passed = False"),
        ("print('{}')", "ended with code 0 and passed = None"),
    ],
)
def test_a_checker_that_says_nothing_usable_is_an_error(tmp_path: Path, body: str, words: str):
    with pytest.raises(OfficialError, match=words):
        check_officially(stand_in(tmp_path, body), tmp_path)


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path):
    with pytest.raises(OfficialError, match="cannot be started"):
        check_officially(tmp_path / "nothing", tmp_path)


def test_the_checker_has_a_home_of_its_own_and_no_variables_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv(SEED_SETS_VARIABLE, "/elsewhere.yaml")
    (tmp_path / "seeds.yaml").write_text("{}")
    notes = tmp_path / "notes.json"
    body = (
        "home = os.environ['HOME']\n"
        "answer = json.load(open(home + '/.cache/endpoints-submission-cli/version_check.json'))\n"
        f"json.dump({{'env': dict(os.environ), 'latest': answer['latest']}}, open({str(notes)!r}, 'w'))\n"
        "print(json.dumps({'passed': True, 'results': []}))"
    )
    program = stand_in(tmp_path, body)
    assert check_officially(program, tmp_path).passed
    seen = json.loads(notes.read_text())
    assert seen["latest"] == CHECKER_VERSION
    assert "SECRET_TOKEN" not in seen["env"] and SEED_SETS_VARIABLE not in seen["env"]
    assert not Path(seen["env"]["HOME"]).exists()
    check_officially(program, tmp_path, tmp_path / "seeds.yaml")
    assert json.loads(notes.read_text())["env"][SEED_SETS_VARIABLE] == str(tmp_path / "seeds.yaml")


def test_the_viewers_bundle_loses_the_path_of_the_machine(tmp_path: Path):
    body = "json.dump({'source_root': sys.argv[1], 'runs': [1, 2]}, open(sys.argv[4], 'w'))"
    assert export_view(stand_in(tmp_path, body), tmp_path, tmp_path / "bundle.json") == 2
    assert json.loads((tmp_path / "bundle.json").read_text())["source_root"] == tmp_path.name


def test_a_viewer_that_warns_is_an_error(tmp_path: Path):
    with pytest.raises(OfficialError, match="ended with code 3: warning: r4 has no summary"):
        body = "print('warning: r4 has no summary', file=sys.stderr); sys.exit(3)"
        export_view(stand_in(tmp_path, body), tmp_path, tmp_path / "bundle.json")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with the real programs."""
    if GIVEN:
        yield Path(GIVEN)
        return
    folder = tmp_path_factory.mktemp("checker")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=120)
    packages = [f"endpoints-submission-cli=={CHECKER_VERSION}", f"mlperf-viz=={VIEWER_VERSION}"]
    install = [folder / "bin" / "python", "-m", "pip", "install", "-q", *packages]
    installed = subprocess.run(install, capture_output=True, text=True, timeout=300, check=False)
    if installed.returncode:
        pytest.skip(f"pip cannot install {' and '.join(packages)}: {installed.stderr[-300:]}")
    yield folder / "bin"
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_curve(tmp_path_factory.mktemp("curve"))


_REGIONS = """
import json, sys
from submission_checker.models.regions import compute_regions, classify_concurrency
out = []
for c_max, c_min in json.load(sys.stdin):
    try:
        regions = compute_regions(c_max, c_min)
    except Exception:
        out.append(None)
        continue
    names = ("low_latency", "low_concurrency", "med_concurrency", "high_concurrency", "margin")
    bounds = [[getattr(regions, one).start, getattr(regions, one).end] for one in names]
    out.append([bounds, [classify_concurrency(one, regions) for one in range(0, min(c_max, 500) + 60)]])
json.dump(out, sys.stdout)
"""


@pytest.mark.full
def test_regions_are_those_of_the_official_package(programs: Path):
    rng = random.Random(20)
    pairs = [(64, 1), (256, 1), (1024, 16), (8192, 32), (33, 32), (33, 1), (32, 1), (64, 33), (64, 0)]
    pairs += [(rng.choice((rng.randint(30, 80), rng.randint(33, 20_000))), rng.randint(0, 34)) for _ in range(300)]
    theirs = subprocess.run(
        [programs / "python", "-c", _REGIONS], input=json.dumps(pairs), capture_output=True, text=True, check=True
    )
    for (c_max, c_min), found in zip(pairs, json.loads(theirs.stdout), strict=True):
        try:
            regions = regions_of(c_max, c_min)
        except RegionError:
            assert found is None
            continue
        bounds = [[regions.bounds(one).start, regions.bounds(one).end] for one in Region]
        assert [bounds, [regions.region_of(one) for one in range(min(c_max, 500) + 60)]] == found


@pytest.mark.full
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_official_checker_says_of_each_change_what_was_recorded(
    programs: Path, passing: Path, tmp_path: Path, mutation: Mutation
):
    submission = Path(shutil.copytree(passing, tmp_path / "LabOrg" / "sub-0001"))
    mutation.apply(submission)
    report = check_officially(programs / "endpoints-submission-cli", submission)
    assert {one.rule for one in report.errors} == set(mutation.official)
    assert report.passed is not bool(mutation.official)


@pytest.mark.full
@pytest.mark.parametrize("offline", [Offline.ELECTED, Offline.DEDICATED])
def test_runs_of_seconds_against_an_echo_server_fail_there_for_samples_and_here_for_what_they_are(
    programs: Path, tmp_path: Path, offline: Offline
):
    """The recorded runs of the real client: 3 s, 64 samples, no commit, an echo server, negative TPOT."""
    setups = {
        number: replace(
            setup_of(number), span_s=3.0, git_sha=None, started_at=0, is_echo=True,
            accuracy_samples=64 if number in (1, 4, 12, 64) else 0, score=1.0,
        )
        for number in NUMBERS
    }  # fmt: skip
    points = measured(tmp_path / "runs", setups)
    if offline is Offline.DEDICATED:
        burst = Setup(concurrency=128, samples=128, is_offline=True, is_echo=True, git_sha=None, accuracy_samples=64)
        points += measured(tmp_path / "burst", {128: burst})
    submission = write_tree(tmp_path / "tree", declaration(offline=offline), points)
    report = check_officially(programs / "endpoints-submission-cli", submission.parent)
    is_dedicated = offline is Offline.DEDICATED
    assert Counter(one.rule for one in report.errors) == {"accuracy-sample-count": 5 if is_dedicated else 4}
    ours = {one.rule for one in check_tree(submission.parent, read_edition()).errors}
    assert ours == {"E12", "E13", "E17"}


@pytest.mark.full
def test_the_viewer_shows_a_run_for_each_point(programs: Path, passing: Path, tmp_path: Path):
    assert export_view(programs / "mlperf-viz", passing.parent, tmp_path / "bundle.json") == len(NUMBERS)
    assert str(tmp_path.parent) not in (tmp_path / "bundle.json").read_text()
    build_site(programs / "mlperf-viz", passing.parent, tmp_path / "site")
    assert (tmp_path / "site" / "index.html").is_file()
    assert all(str(passing.parent) not in one.read_text() for one in (tmp_path / "site").glob("*.json"))
