"""Folders of runs become results: every figure from the logs, the facts from what lies beside them, and no name."""

import concurrent.futures
import dataclasses
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from curve_tree import write_curve
from made_results import all_rows
from made_summary import csv_of, rows
from shared_results import OFFLINE, SERVER, bundle_of, change_json, result_folder

from crowdperf.store import facts, imports, result_folders
from crowdperf.store.exports import write_export
from crowdperf.store.facts import Documents, RunPlace
from crowdperf.store.imports import import_loaded, load
from crowdperf.store.keys import configuration_key
from crowdperf.store.model import NewResult
from crowdperf.store.query import Filter
from crowdperf.store.result_folders import LeftOut, results_below
from crowdperf.store.result_json import result_object
from crowdperf.store.store import Store

LOGS = Path(__file__).resolve().parents[1] / "logs" / "fixtures"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return result_folder(tmp_path_factory.mktemp("results"))


def results(root: Path) -> dict[str, NewResult]:
    """The results of a folder by scenario."""
    return {one[0].configuration.scenario: one[0] for one in results_below(root) if isinstance(one, tuple)}


def test_a_call_of_eight_runs_is_four_results_with_figures_of_the_logs(folder: Path) -> None:
    found = results(folder.parent)
    assert sorted(found) == ["MultiStream", "Offline", "Server", "SingleStream"]
    for scenario, result in found.items():
        said = json.loads((folder / f"digits/{scenario}/performance/run_1/result.json").read_text())
        assert (result.value, result.unit) == (said["metric"]["value"], said["metric"]["unit"])
        assert result.higher_is_better == said["metric"]["higher_is_better"]
        assert result.valid is said["valid"]
        assert [score.value for score in result.accuracy] == [99.332]
        assert {"unofficial", "test run"} <= set(result.labels)


def test_a_result_says_what_it_was_measured_with(folder: Path) -> None:
    result = results(folder)["Offline"]
    place, said = result.configuration, json.loads((folder / OFFLINE / "result.json").read_text())
    assert (place.benchmark, place.precision, place.stack, place.device) == ("digits", "fp32", "onnxruntime", "cpu")
    assert (place.data_kind, place.run_class, place.settings) == ("real", "test", {})
    assert place.model_digest == said["model_sha256"]["model"]
    assert result.stack_version.startswith(f"onnxruntime {said['versions']['onnxruntime']}, ")
    assert (place.system.cpu, place.system.cores) == (said["machine"]["processor"], 2)
    assert (place.system.nodes, place.system.sockets, place.system.accelerator) == (1, 1, "")
    assert result.made_utc == said["started_utc"][:16] + ":00Z"
    assert result.command.startswith("cm run script --tags=run,mlperf,inference ")


def test_nothing_of_a_result_names_a_host_a_user_or_a_folder(folder: Path) -> None:
    for result in results(folder).values():
        text = json.dumps(result_object(result))
        assert not any(name in text for name in ("anna", "/home", "/mnt", str(folder)))


def test_a_figure_comes_from_the_log_whatever_the_other_files_say(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / folder.name)
    change_json(copy / "results.json", lambda c: c["scenarios"][0]["performance"]["metric"].update(value=1e9))
    for scenario in (OFFLINE, SERVER):
        change_json(copy / scenario / "result.json", lambda c: c["metric"].update(value=1e9))
        change_json(copy / scenario / "result.json", lambda c: c.update(label="", valid=True))
    before, after = results(folder), results(copy)
    assert {name: one.value for name, one in before.items()} == {name: one.value for name, one in after.items()}
    assert all("test run" in one.labels for one in after.values())


def test_runs_of_a_folder_are_judged_by_the_rules_of_a_bundle(folder: Path) -> None:
    for result in results(folder.parent).values():
        assert (result.verification, result.notes) == ("logs consistent", ())


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        (f"{OFFLINE}/result.json", {"query_count": 7}, "V13 digits/Offline/performance/run_1/result.json: query_count"),
        (f"{OFFLINE}/result.json", {"label": ""}, "V12 digits/Offline/performance/run_1/result.json: label = ''"),
        (f"{OFFLINE}/record.json", {"settings": {}}, "the seal of settings is"),
        ("digits/Offline/accuracy/accuracy.json", {"passed": None, "metrics": [{"name": "acc", "value": 12.0}]},
         "V13 digits/Offline/accuracy/accuracy.json: acc = 12.0"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_imported_and_says_why(
    folder: Path, tmp_path: Path, file: str, change: dict[str, object], said: str
) -> None:
    copy = shutil.copytree(folder, tmp_path / folder.name)
    change_json(copy / file, lambda content: content.update(change))
    found = results(tmp_path)
    assert found["Offline"].verification == "not consistent"
    assert any(note.startswith("not consistent: ") and said in note for note in found["Offline"].notes)
    assert {one.verification for name, one in found.items() if name != "Offline"} == {"logs consistent"}


def test_the_table_of_a_call_is_judged_for_each_of_its_results(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / folder.name)
    change_json(copy / "results.json", lambda c: c["scenarios"][0]["performance"].update(query_count=3))
    changed = json.loads((copy / "results.json").read_text())["scenarios"][0]["scenario"]
    found = results(copy)
    assert {name for name, one in found.items() if one.verification == "not consistent"} == {changed}
    assert "V13 results.json: query_count = 3" in " ".join(found[changed].notes)
    (copy / "results.json").unlink()
    assert {one.verification for one in results(copy).values()} == {"logs consistent"}


def test_notes_of_what_does_not_fit_are_the_same_wherever_the_import_begins(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "above" / folder.name)
    change_json(copy / OFFLINE / "result.json", lambda c: c.update(query_count=7, invalid_reasons=["/home/anna/x"]))
    first, second = results(tmp_path)["Offline"], results(copy)["Offline"]
    assert (first.notes, first.verification) == (second.notes, second.verification)
    assert "anna" not in json.dumps(result_object(first))


def test_a_bundle_has_the_key_of_the_folder_it_was_made_of(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "shared.tar.gz").write_bytes(bundle_of(folder).content)
    with Store.open(tmp_path / "a.db") as store:
        own = import_loaded(store, load(folder))
        shared = import_loaded(store, load(tmp_path / "shared.tar.gz"))
        assert (len(own.added), len(shared.added), shared.known, shared.kind) == (
            4,
            0,
            4,
            "bundle",
        )  # one run, one result
        rows = store.find(Filter(chosen={"scenario": ["Offline"]})).rows
        assert [(row.kind, row.verification) for row in rows] == [("own", "logs consistent")]
    with Store.open(tmp_path / "b.db") as store:
        import_loaded(store, load(tmp_path / "shared.tar.gz"))
        assert import_loaded(store, load(folder)).known == 4
        assert store.find(Filter(chosen={"scenario": ["Offline"]})).rows[0].key == rows[0].key
    with Store.open(tmp_path / "a.db") as store:
        again = import_loaded(store, load(folder.parent)), import_loaded(store, load(tmp_path / "shared.tar.gz"))
        assert [(one.added, one.known, one.changed) for one in again] == [([], 4, []), ([], 4, [])]


def test_folder_bundle_tree_and_table_are_exported_to_equal_rows(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "shared.tar.gz").write_bytes(bundle_of(folder).content)
    (tmp_path / "summary.csv").write_text(csv_of(rows()))
    curve = tmp_path / "curve"
    write_curve(curve)
    with Store.open(tmp_path / "a.db") as store:
        for path in (folder, tmp_path / "shared.tar.gz", curve / "tree", tmp_path / "summary.csv"):
            assert import_loaded(store, load(path)).left_out == []
        assert write_export(store, tmp_path / "out").results == 4 + 1 + 60
    with Store.open(tmp_path / "b.db") as store:
        assert len(import_loaded(store, load(tmp_path / "out"), with_trust=True).added) == 65
    assert all_rows(tmp_path / "a.db") == all_rows(tmp_path / "b.db")


def test_two_calls_are_two_results_of_one_configuration(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "20261123T102923Z-digits-onnxruntime-cpu")
    second = shutil.copytree(folder, tmp_path / "20261123T112923Z-digits-onnxruntime-cpu")
    for path in second.rglob("mlperf_log_detail.txt"):
        path.write_text(path.read_text().replace('"pid": ', '"pid": 1'))
    found = [one[0] for one in results_below(tmp_path) if isinstance(one, tuple)]
    assert len(found) == len({one.run_id for one in found}) == 8
    assert len({configuration_key(one.configuration) for one in found}) == 4


def test_what_makes_no_result_is_named_with_the_reason(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / folder.name)
    shutil.rmtree(copy / OFFLINE)
    (copy / SERVER / "mlperf_log_summary.txt").write_text("Scenario : Nowhere\n")
    (copy / SERVER / "mlperf_log_detail.txt").unlink()
    (copy / "mlperf_log_summary.txt").write_text("")
    left_out = {one.place: one.reason for one in results_below(tmp_path) if isinstance(one, LeftOut)}
    assert "only an accuracy run" in left_out[f"{folder.name}/digits/Offline/accuracy"]
    assert "Nowhere" in left_out[f"{folder.name}/digits/Server/accuracy"]
    assert len(left_out) == 3
    assert len(results(tmp_path)) == 2


def submission(root: Path) -> Path:
    """A tree of one result with the system's description."""
    org = root / "closed" / "Northwind"
    run = org / "results" / "ridge8" / "resnet50" / "Offline"
    shutil.copytree(LOGS / "valid-offline", run / "performance" / "run_1")
    (org / "systems").mkdir()
    (org / "systems" / "ridge8.json").write_text(
        json.dumps(
            {
                "system_name": "Ridge 8", "system_type": "datacenter", "number_of_nodes": "2",
                "host_processor_model_name": "Boreal 7", "host_processors_per_node": "2",
                "host_processor_core_count": "64", "host_memory_capacity": "1.5 TB", "framework": "Hurricane 10.1, X 2",
                "accelerator_model_name": "NVIDIA Zephyr", "accelerators_per_node": 8, "operating_system": "Linux",
                "hw_notes": "on host nw-17",
            }
        )
    )  # fmt: skip
    (run / "measurements.json").write_text(json.dumps({"weight_data_types": "int8"}))
    return root


def test_a_submission_tree_is_described_by_its_systems(tmp_path: Path) -> None:
    (result,) = results(submission(tmp_path)).values()
    place = result.configuration
    assert (place.division, place.category, place.benchmark, place.precision) == (
        "closed",
        "datacenter",
        "resnet50",
        "int8",
    )
    assert (place.stack, place.device, place.model_digest) == ("hurricane", "cuda", "mlperf:resnet50")
    assert (place.system.accelerator, place.system.accelerator_count, place.system.nodes) == ("NVIDIA Zephyr", 16, 2)
    assert (place.system.memory_gib, place.system.facts["framework"]) == (1536, "Hurricane 10.1, X 2")
    assert (result.submitter, result.system_name, result.stack_version) == (
        "Northwind",
        "ridge8",
        "Hurricane 10.1, X 2",
    )
    assert "nw-17" not in json.dumps(result_object(result))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"result": {"is_synthetic": {"model": False, "dataset": True}}}, "synthetic"),
        ({"result": {"is_synthetic": True}}, "synthetic"),
        ({"result": {"is_synthetic": {"model": False}}, "results": {"source": "tiny"}}, "tiny"),
        ({"result": {"is_synthetic": {"model": True}}, "results": {"source": "real"}}, "synthetic"),
        ({"results": {"source": "anything"}}, "real"),
        ({}, "real"),
    ],
)
def test_the_kind_of_data_is_the_least_real_one(change: dict[str, dict[str, object]], expected: str) -> None:
    assert facts.data_kind(Documents(**change)) == expected


def test_only_what_the_user_chose_is_a_setting() -> None:
    run = {
        "batch_size": {"value": 4, "origin": "user"},
        "threads": {"value": 2, "origin": "warm-up estimate"},
        "precision": {"value": "int8", "origin": "user"},
        "instances": None,
        "target_qps": "odd",
    }
    found = facts.chosen_settings({"run": run, "user_conf_lines": {"*.Offline.target_qps": "7"}})
    assert found == {"batch_size": "4", "user.conf *.Offline.target_qps": "7"}


@pytest.mark.parametrize("odd", [None, 7, "text", [], [{}], {"value": []}, {"x": {"y": "z"}}])
def test_documents_of_any_shape_make_a_configuration(odd: object) -> None:
    names = ("run", "machine", "model_sha256", "versions", "is_synthetic", "user_conf_lines", "started_utc")
    result = dict.fromkeys(names, odd)
    documents = Documents(result=result, host={"CM_HOST_CPU_SOCKETS": odd}, results={"source": odd}, system=result)
    place = RunPlace(benchmark="bert-99", scenario="Offline", run_class="fast")
    found = facts.configuration_of(place, documents)
    assert (found.benchmark, found.tier) == ("bert", "99")
    assert configuration_key(dataclasses.replace(found, tier="")) != configuration_key(found)
    assert facts.made_utc(documents, "") == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [("512 GB", 512), ("1.5 TB", 1536), ("2,048 GiB", 2048), ("lots", 0), ("", 0), ("1..5 GB", 0),
     ("24 x 64GB DDR5-4800", 1536), ("16x32GB 2Rx4 PC4", 512), ("2× 1.5 TB", 3072)],
)  # fmt: skip
def test_memory_is_read_in_any_unit(text: str, expected: int) -> None:
    assert facts.memory_gib(text) == expected


def test_labels_are_short_words_and_the_rest_is_a_note() -> None:
    configuration = facts.configuration_of(RunPlace(benchmark="x", scenario="Offline", run_class="valid"), Documents())
    label = "synthetic input, not an MLPerf result; stand-in for a backend, not an MLPerf result; anything else"
    found, rest = facts.labels_of(label, configuration, Documents(result={"disturbances": ["other programs"]}))
    assert found == ("unofficial", "synthetic", "stand-in", "origin not recorded", "not exclusive")
    assert rest == "anything else"


def endpoint_result(url: str = "http://127.0.0.1:8000/v1", **changes: object) -> dict[str, object]:
    """Of a run that asked a server."""
    engine = {"endpoint": {"value": url}, "api": {"value": "completions"}, "model": {"value": "my-llm"}}
    machine = {"processor": "Client CPU", "usable_core_count": 2, "memory_bytes": 16 << 30, "gpus": [{"name": "RTX"}]}
    run = {"backend": {"value": "endpoint"}, "device": {"value": "cpu"}}
    return {"run": run, "machine": machine, "text": {"engine": engine}, **changes}


def test_the_machine_of_a_client_is_never_the_system_of_the_server_that_it_asked() -> None:
    place = RunPlace(benchmark="llama3.1-8b", scenario="Offline", run_class="fast")
    host = {"CM_HOST_CPU_MODEL_NAME": "Client CPU", "CM_HOST_CPU_SOCKETS": "2", "CM_HOST_OS_FLAVOR": "debian"}
    documents = Documents(result=endpoint_result(), host=host)
    found = facts.configuration_of(place, documents)
    system = found.system
    assert (system.cpu, system.accelerator, system.nodes) == ("server behind an endpoint", "", 0)
    assert (system.sockets, system.cores, system.memory_gib, found.device) == (0, 0, 0, "")
    assert {name: value for name, value in system.facts.items() if value == "Client CPU"} == {
        "client processor": "Client CPU"
    }
    assert (system.facts["client memory"], system.facts["client cores"]) == ("16 GiB", "2")
    assert found.settings == {
        "endpoint": "http", "endpoint API": "completions", "served model": "my-llm",
    }  # fmt: skip
    assert "server not seen" in facts.labels_of("", found, documents)[0]


def test_no_host_of_a_server_is_kept_and_other_models_are_other_configurations() -> None:
    place = RunPlace(benchmark="llama3.1-8b", scenario="Offline", run_class="fast")
    far = facts.configuration_of(place, Documents(result=endpoint_result("https://gpu7.example.org/v1")))
    assert far.settings["endpoint"] == "https"
    assert "gpu7" not in json.dumps([dict(far.settings), dict(far.system.facts)])
    sent = facts.configuration_of(place, Documents(result=endpoint_result("https://<host>/v1")))
    assert configuration_key(sent) == configuration_key(far), "as a bundle has it"
    other = endpoint_result("https://gpu7.example.org/v1", text={"engine": {"model": {"value": "b"}}})
    assert configuration_key(facts.configuration_of(place, Documents(result=other))) != configuration_key(far)
    own = endpoint_result(run={"backend": {"value": "vllm"}, "device": {"value": "cpu"}})
    assert facts.configuration_of(place, Documents(result=own)).system.cpu == "Client CPU"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that imports have read; files that were just written count as settled."""
    found: list[Path] = []
    read = result_folders._result
    monkeypatch.setattr(result_folders, "_result", lambda folder, *more: found.append(folder) or read(folder, *more))
    monkeypatch.setattr(result_folders, "_SETTLED_S", -60.0)
    return found


def test_folders_that_are_known_are_not_read_again(folder: Path, tmp_path: Path, reads: list[Path]) -> None:
    with Store.open(tmp_path / "a.db") as store:
        added = import_loaded(store, load(folder)).added
        assert (len(added), len(reads)) == (4, 4)
        store.withdraw(added[0], actor="a test")
        again = import_loaded(store, load(folder))
        assert (again.known, again.withdrawn, again.added, again.changed, len(reads)) == (3, 1, [], [], 4)
        assert import_loaded(store, load(folder.parent)).known == 3  # from another root they are read once more
        assert len(reads) == 8


def test_files_that_were_just_written_are_read_again(
    folder: Path, tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_folders, "_SETTLED_S", 3600.0)
    copy = shutil.copytree(folder, tmp_path / folder.name)
    with Store.open(tmp_path / "a.db") as store:
        assert [len(import_loaded(store, load(copy)).added) for _ in range(2)] == [4, 0]
        assert len(reads) == 8 and store.seen() == {}


def _same_size_and_time(path: Path) -> None:
    before = path.stat()
    with path.open("r+b") as file:
        content = file.read()
        file.seek(0)
        file.write(content.replace(b"VALID", b"WALID"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size and path.stat().st_mtime_ns == before.st_mtime_ns


def _replaced(path: Path) -> None:
    (path.parent / "new").write_bytes(path.read_bytes())
    (path.parent / "new").replace(path)


@pytest.mark.parametrize(
    ("change", "place", "read"),
    [
        (_same_size_and_time, f"{OFFLINE}/mlperf_log_summary.txt", 1),
        (_replaced, f"{OFFLINE}/mlperf_log_detail.txt", 1),
        (Path.unlink, f"{OFFLINE}/user.conf", 1),
        (lambda path: path.write_text("{}"), f"{Path(OFFLINE).parents[1]}/measurements.json", 1),
        (_replaced, "environment.json", 4),
        (Path.unlink, "results.json", 4),
    ],
)
def test_a_changed_file_is_read_again(
    folder: Path, tmp_path: Path, reads: list[Path], change: Callable[[Path], object], place: str, read: int
) -> None:
    copy = shutil.copytree(folder, tmp_path / folder.name)
    with Store.open(tmp_path / "a.db") as store:
        import_loaded(store, load(copy))
        reads.clear()
        change(copy / place)
        import_loaded(store, load(copy))
        assert len(reads) == read
        import_loaded(store, load(copy))
        assert len(reads) in (read, 2 * read)  # what is kept with other content, or is none, is read each time


def test_an_import_that_was_interrupted_is_completed(
    folder: Path, tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "_BATCH", 2)
    loaded = load(folder)

    def ended() -> Iterator[object]:
        yield from itertools.islice(loaded.items, 3)
        raise OSError("the disk is gone")

    with Store.open(tmp_path / "a.db") as store:
        with pytest.raises(OSError, match="gone"):
            import_loaded(store, dataclasses.replace(loaded, items=ended()))  # type: ignore[arg-type]
        assert len(store.seen()) == 2  # those of the batch that was kept
        again = import_loaded(store, load(folder))
        assert (again.known, len(again.added), len(store.seen())) == (2, 2, 4)


def test_imports_at_the_same_time_keep_each_result_once(folder: Path, tmp_path: Path, reads: list[Path]) -> None:
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda _: imports.import_path(tmp_path / "a.db", folder), range(4)))
    assert sum(len(one.added) for one in reports) == 4 and sum(one.known for one in reports) == 12
    with Store.open(tmp_path / "a.db") as store:
        assert len(store.seen()) == 4
