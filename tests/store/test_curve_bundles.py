"""A curve as a bundle: what goes, what is derived again on arrival, and what is refused."""

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from curve_tree import small_curve
from shared_results import ANNA, key

from crowdperf.endpoints.samples import SAMPLES
from crowdperf.kit.path_redaction import KnownFolders
from crowdperf.store import bundle as bundle_module
from crowdperf.store import share
from crowdperf.store.archive import packed
from crowdperf.store.bundle import (
    CURVE_FORMAT,
    MANIFEST,
    SIGNATURE,
    Bundle,
    make_bundle,
    make_curve_bundle,
    read_bundle,
)
from crowdperf.store.consistency import results_of_bundle
from crowdperf.store.curve_bundles import is_allowed
from crowdperf.store.imports import import_loaded, load
from crowdperf.store.model import NewResult
from crowdperf.store.redaction import Sender
from crowdperf.store.refusal import BundleRefused
from crowdperf.store.signatures import canonical
from crowdperf.store.store import Store

START = "results/lab-vm/gpt-oss-120b"
POINT_FILES = ["config.json", "point.json", "result_summary.json", "system_desc.json"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a curve of two points, as run,mlperf,curve leaves it."""
    found = tmp_path_factory.mktemp("curve")
    small_curve(found, (4, 8))
    return found


def made(folder: Path, *, with_events: bool) -> Bundle:
    return make_curve_bundle(folder, key(), "swift otter", Sender(KnownFolders({}), ANNA), with_events=with_events)


def received(bundle: Bundle) -> NewResult:
    (result,) = results_of_bundle(read_bundle(io.BytesIO(bundle.content)))
    return result


def test_the_tree_goes_without_texts_and_names_of_files_are_few(folder: Path):
    bundle = made(folder, with_events=False)
    names = [file.name for file in bundle.manifest.files]
    assert names == [*(f"{START}/r{number}/{name}" for number in (4, 8) for name in sorted(POINT_FILES, key=ORDER)),
                     "docs/provenance.json"]  # fmt: skip
    assert bundle.manifest.made_utc == "2026-11-23T12:13Z"
    assert b"question 1 " not in b"".join(read_bundle(io.BytesIO(bundle.content)).files.values())
    assert made(folder, with_events=False).content == bundle.content


ORDER = ["config.json", "result_summary.json", "point.json", "system_desc.json"].index


def test_without_samples_the_figures_are_claimed_and_with_them_derived(folder: Path):
    claimed, derived = (received(made(folder, with_events=one)) for one in (False, True))
    assert (claimed.verification, derived.verification) == ("summary", "logs consistent")
    assert claimed.notes[0] == "claimed, because there are no samples: the results of r4, r8"
    assert derived.notes[0].startswith("recomputed from the times of each sample")
    assert claimed.curve == derived.curve and claimed.run_id == derived.run_id
    assert (derived.kind, derived.labels) == ("crowd", ("unofficial",))


def test_a_bundle_is_imported_with_its_points_and_kept_files(folder: Path, tmp_path: Path):
    file = tmp_path / "curve.tar.gz"
    file.write_bytes(made(folder, with_events=True).content)
    with Store.open(tmp_path / "a.db") as store:
        added = import_loaded(store, load(file)).added
        found = store.result(added[0]).result
        tree = import_loaded(store, load(folder / "tree"))
    assert [point.concurrency for point in found.curve] == [4, 8]
    assert len(added) == 1 and tree.added != added
    names = {one.name.rpartition("/")[2] for one in found.files}
    assert names == {*POINT_FILES, SAMPLES, "provenance.json"}


def forged(bundle: Bundle, change: Callable[[dict[str, bytes]], object]) -> Bundle:
    """A bundle whose files were changed before it was signed."""
    contents = dict(read_bundle(io.BytesIO(bundle.content)).files)
    change(contents)
    rows = tuple(bundle_module._row(name, content, ())[0] for name, content in contents.items())
    manifest = dataclasses.replace(bundle.manifest, files=rows)
    said = canonical(bundle_module._as_json(manifest))
    return Bundle(content=packed({MANIFEST: said, SIGNATURE: key().sign(said), **contents}), manifest=manifest)


def summary(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, bytes]], None]:
    """Change the summary of r4."""
    name = f"{START}/r4/result_summary.json"

    def changed(contents: dict[str, bytes]) -> None:
        row = json.loads(contents[name])
        change(row)
        contents[name] = json.dumps(row).encode()

    return changed


def scaled(row: dict[str, Any]) -> None:
    """Everything twice as fast, so that the summary agrees with itself."""
    for quantity in ("ttft", "tpot", "latency"):
        for name in ("total", "min", "max", "median", "avg"):
            row[quantity][name] /= 2
        row[quantity]["percentiles"] = {name: one / 2 for name, one in row[quantity]["percentiles"].items()}
    row["duration_ns"] //= 2
    row["qps"] *= 2
    row["tps"] *= 2


def more_tokens(contents: dict[str, bytes]) -> None:
    name = f"{START}/r4/{SAMPLES}"
    rows = contents[name].decode().splitlines()
    cells = rows[1].split(",")
    rows[1] = ",".join([*cells[:-2], str(int(cells[-2]) + 9), cells[-1]])
    contents[name] = ("\n".join(rows) + "\n").encode()


def put(name: str, content: bytes) -> Callable[[dict[str, bytes]], None]:
    return lambda contents: contents.update({f"{START}/r4/{name}": content})


@pytest.mark.parametrize(
    ("change", "rule", "with_events"),
    [
        (summary(lambda row: row.update(qps=9.0)), "E8", False),
        (summary(lambda row: row.update(tps=row["tps"] * 2)), "E8", False),
        (summary(lambda row: row["ttft"]["percentiles"].update({"90.0": 1.0})), "E7", False),
        (summary(lambda row: row["ttft"]["percentiles"].update({"90.0": row["ttft"]["max"]})), "E8", True),
        (summary(scaled), "E8", True),
        (more_tokens, "E8", True),
        (put(SAMPLES, b"nonsense"), "E0", True),
        (put("result_summary.json", b"{}"), "E0", True),
        (put("point.json", b"[]"), "FORM", True),
        (put("config.json", b'{"a": ' + b"[" * 40 + b"]" * 40 + b"}"), "FORM", True),
        (put("events.jsonl", b"{}"), "NAME", True),
        (put("server_configs/x.json", b"{}"), "NAME", True),
        (put("system_desc.json", b'{"system_name": "/home/annamaria/x"}'), "PRIVATE", True),
        (lambda contents: contents.update({"results.json": b"{}"}), "NAME", True),
        (lambda contents: [contents.pop(name) for name in list(contents) if name.startswith("results")], "FORM", True),
    ],
)
def test_what_does_not_fit_is_refused(
    folder: Path, change: Callable[[dict[str, bytes]], object], rule: str, with_events: bool
):
    bundle = made(folder, with_events=with_events)
    with pytest.raises(BundleRefused) as refused:
        received(forged(bundle, change))
    assert rule in {problem.rule for problem in refused.value.problems}


def test_a_summary_scaled_as_a_whole_agrees_with_itself_without_samples(folder: Path):
    """As with a log that was forged as a whole; pages say `summary`."""
    bundle = made(folder, with_events=False)

    def both(contents: dict[str, bytes]) -> None:
        summary(scaled)(contents)
        contents.pop("docs/provenance.json")

    assert received(forged(bundle, both)).verification == "summary"


def test_a_model_that_the_server_calls_otherwise_is_claimed_where_the_curve_says_so(tmp_path: Path):
    tree = small_curve(tmp_path, served_model="/models/tiny")
    config = tree / START / "r4" / "config.yaml"
    config.write_text(config.read_text().replace("name: gpt-oss-120b", "name: /models/tiny"))
    result = received(made(tree, with_events=False))
    assert "claimed: the server's '<path>/tiny' is gpt-oss-120b" in result.notes
    assert result.configuration.benchmark == "gpt-oss-120b"
    config.write_text(config.read_text().replace("/models/tiny", "another"))
    with pytest.raises(BundleRefused, match=r"model_params\.name"):
        received(made(tree, with_events=False))


def test_an_echo_is_synthetic_whatever_its_sender_says(tmp_path: Path):
    tree = small_curve(tmp_path, is_echo=True)
    assert is_allowed(f"{START}/r4/{SAMPLES}") and not is_allowed(f"{START}/r4/point.yaml")
    plain = make_curve_bundle(tree, key())
    assert received(plain).labels == ("unofficial", "synthetic"), "by the provenance, without samples"
    assert received(plain).configuration.data_kind == "synthetic"
    with Store.open(tmp_path / "a.db") as store:
        (added,) = import_loaded(store, load(tmp_path / "tree")).added
        assert "synthetic" in store.result(added).result.labels

    def without_provenance(contents: dict[str, bytes]) -> None:
        del contents["docs/provenance.json"]

    def with_samples(contents: dict[str, bytes]) -> None:
        without_provenance(contents)
        contents[f"{START}/r4/{SAMPLES}"] = next((tmp_path / "points").rglob(SAMPLES)).read_bytes()

    assert received(forged(plain, without_provenance)).labels == ("unofficial",)
    assert received(forged(plain, with_samples)).labels == ("unofficial", "synthetic")


@pytest.mark.parametrize("points", [5, [5], {}, None, [{"id": "r4-x", "concurrency": 999}]])
def test_a_damaged_list_of_points_has_no_samples(tmp_path: Path, points: object) -> None:
    small_curve(tmp_path)
    (tmp_path / "curve.json").write_text(json.dumps({"points": points}))
    with pytest.raises(bundle_module.NothingToShare, match="no samples next to its points"):
        made(tmp_path, with_events=True)


def test_the_bundle_of_a_call_is_no_curves(folder: Path, tmp_path: Path):
    assert made(folder, with_events=False).manifest.format == CURVE_FORMAT
    with pytest.raises(bundle_module.NothingToShare, match="not a submission"):
        make_curve_bundle(tmp_path, key())
    with pytest.raises(bundle_module.NothingToShare, match="no samples next to its points"):
        make_curve_bundle(folder / "tree" / "LabOrg" / "sub-0001", key(), with_events=True)
    (tmp_path / "results").mkdir()
    with pytest.raises(bundle_module.NothingToShare, match="no point of a curve"):
        make_curve_bundle(tmp_path, key())
    with pytest.raises(bundle_module.NothingToShare, match=r"results\.json is missing"):
        make_bundle(folder, key())


def test_a_curve_is_shown_before_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Through the program of share,mlperf,result: what would leave, and why a curve of another model does not."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    tree = small_curve(tmp_path)
    assert share.main([f"--result={tree}", "--dry_run"]) == 0
    told = capsys.readouterr().out
    assert "Not sent: prompts, answers, events (--with_events adds" in told
    assert "gpt-oss-120b Curve: greatest system tokens per second" in told
    config = tree / START / "r4" / "config.yaml"
    config.write_text(config.read_text().replace("name: gpt-oss-120b", "name: tiny"))
    assert share.main([f"--result={tree}", "--dry_run"]) == 1
    refused = capsys.readouterr().err
    assert "E3" in refused and "--served_model" in refused and "make the run again" not in refused
