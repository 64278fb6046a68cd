"""Changes that tie runs to each other wrongly: copied runs, verdicts written by hand, what a result leaves out.

Official checkers accept nearly all of them.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from changes import (
    C_ACC,
    C_MODEL,
    C_RUN,
    C_SYSTEM,
    CLOSED,
    DETAIL,
    JSON_LOG,
    O_ACC,
    O_MODEL,
    O_RUN,
    OPEN,
    SUMMARY,
    T01,
    T04,
    Change,
    Mutation,
    both,
    drop,
    edit,
    field,
    fields,
    line_without,
    put,
    replace,
    value,
)  # fmt: skip
from tree_builder import OPEN_MODEL, SUBMITTER, SYSTEM

T01_LOG, T04_LOG = f"{T01}/performance/run_1/{DETAIL}", f"{T04}/performance/run_1/{DETAIL}"
T01_RESPONSES = f"{T01}/accuracy/{JSON_LOG}"


def copy(source: str, target: str) -> Change:
    """Put the content of one file in the place of another."""
    return lambda root: replace(root / target, (root / source).read_bytes())


def copy_run(source: str, target: str) -> Change:
    """Put the logs of one run in the place of another's."""
    return both(*(copy(f"{source}/{name}", f"{target}/{name}") for name in (SUMMARY, DETAIL)))


def counts(**changed: int) -> Change:
    """Change counts in TEST01's verify_accuracy.txt."""
    return both(*(edit(f"{T01}/verify_accuracy.txt", rf"^{name} = \d+", f"{name} = {count}")
                  for name, count in changed.items()))  # fmt: skip


def figures(test: str, tested: float, wanted: float) -> Change:
    """Write the figures of a test by hand, as its logs have them."""
    text = f"Verifying performance.\nReference score = {wanted}\nTest score = {tested}\nTEST PASS\n"
    return put(f"{test}/verify_performance.txt", text)


def _samples_of_test(root: Path) -> list[tuple[str, str]]:
    """Samples of the accuracy run that its cut log still shows and that performance runs have, with their responses."""
    text = (root / C_ACC / JSON_LOG).read_text()
    found = re.findall(r'"qsl_idx" : (\d+), "data" : "([0-9A-F]+)"', text)
    return [(index, data) for index, data in found if int(index) < 1024]


def other_answers(root: Path) -> None:
    """A small whole log of TEST01 whose one response is not that of the accuracy run, with all that belongs to it."""
    (index, data), *_ = _samples_of_test(root)
    other = "0000803F" if data != "0000803F" else "00000000"
    text = f'[\n{{ "seq_id" : 5, "qsl_idx" : {index}, "data" : "{other}" }}\n]\n'
    replace(root / T01_RESPONSES, text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    replace(root / f"{T01}/accuracy/accuracy.txt", f"accuracy=100.000%, good=1, total=1\nhash={digest}\n")
    counts(num_perf_log_entries=1, num_perf_log_qsl_idx_match=1)(root)


def compliance_runs() -> Iterator[Mutation]:
    """Runs that are none of their test, and verdicts that do not follow from their logs."""
    speed, first = 40.5341, T01_LOG
    rows = (
        ("TEST04 is the submitted run", "IDENT-001", copy_run(C_RUN, f"{T04}/performance/run_1")),
        ("TEST01 is the submitted run", "IDENT-001", copy_run(C_RUN, f"{T01}/performance/run_1")),
        ("TEST04 is TEST01", "IDENT-001", copy_run(f"{T01}/performance/run_1", f"{T04}/performance/run_1")),
        ("TEST04 is the submitted run with its settings changed", "IDENT-002", both(
            copy_run(C_RUN, f"{T04}/performance/run_1"),
            value(T04_LOG, "effective_performance_issue_same", True),
            value(T04_LOG, "effective_performance_issue_same_index", 3))),
        ("TEST01 logged nothing by its settings", "TEST-007", value(
            first, "effective_accuracy_log_sampling_target", 0)),
        ("TEST01 logged ten responses", "TEST-007", value(first, "effective_accuracy_log_sampling_target", 10)),
        ("TEST01 chose its responses by another seed", "TEST-007", value(
            first, "effective_accuracy_log_rng_seed", 7)),
        ("TEST04 with different samples", "TEST-007", value(T04_LOG, "effective_performance_issue_same", False)),
        ("TEST04 with another sample", "TEST-007", value(T04_LOG, "effective_performance_issue_same_index", 0)),
        ("TEST04 with each sample once", "TEST-007", value(T04_LOG, "effective_performance_issue_unique", True)),
        ("TEST04 twice as fast", "TEST-008", both(
            value(T04_LOG, "result_samples_per_second", 2 * speed), figures(T04, 2 * speed, speed))),
        ("TEST01 a third slower", "TEST-008", value(first, "result_samples_per_second", 0.66 * speed)),
        ("TEST01 of another Server limit", "TEST-008", value(
            f"{C_MODEL}/Server/TEST01/performance/run_1/{DETAIL}", "effective_target_latency_ns", 14000000)),
        ("speed of TEST01 verified by hand", "TEST-009", put(f"{T01}/verify_performance.txt", "TEST PASS\n")),
        ("speed of TEST04 verified by hand", "TEST-009", put(f"{T04}/verify_performance.txt", "TEST PASS\n")),
        ("speed verified of another run", None, figures(T01, 30.5, 30.1)),
        ("responses verified by hand", "TEST-010", put(f"{T01}/verify_accuracy.txt", "TEST PASS\n")),
        ("responses differ and pass", "TEST-010", counts(num_perf_log_data_mismatch=17)),
        ("responses equal and fail", "TEST-010", both(
            edit(f"{T01}/verify_accuracy.txt", "TEST PASS", "TEST FAIL"),
            *(put(f"{T01}/accuracy/{name}_accuracy.txt", "accuracy=86.8%\n") for name in ("baseline", "compliance")))),
        ("responses compared with a part of the accuracy run", "TEST-010", counts(num_acc_log_entries=500)),
        ("fewer responses compared than logged", "TEST-010", counts(
            num_perf_log_entries=5, num_perf_log_qsl_idx_match=5)),
        ("counts that do not add up", "TEST-010", counts(num_perf_log_qsl_idx_match=3)),
        ("TEST01 logged nothing", "TEST-011", put(T01_RESPONSES, "[\n]\n")),
        ("TEST01 logged a sample that was not loaded", "TEST-011", edit(
            T01_RESPONSES, r'("seq_id" : 5, "qsl_idx" : )580', '"seq_id" : 5, "qsl_idx" : 48580')),
        ("TEST01 logged a response behind the last", "TEST-011", edit(
            T01_RESPONSES, r'"seq_id" : 5,', '"seq_id" : 99999999,')),
        ("TEST01 answered otherwise", "TEST-012", other_answers),
        ("TEST01 with the hash of its cut log", "TEST-014", lambda root: edit(
            f"{T01}/accuracy/accuracy.txt", r"^hash=.*$",
            "hash=" + hashlib.sha256((root / T01_RESPONSES).read_bytes()).hexdigest())(root)),
        ("TEST01 with the responses of another scenario", "IDENT-007", copy(
            f"{C_MODEL}/SingleStream/TEST01/accuracy/{JSON_LOG}", T01_RESPONSES)),
        ("TEST01 with the responses of the accuracy run", "IDENT-007", copy(f"{C_ACC}/{JSON_LOG}", T01_RESPONSES)),
    )  # fmt: skip
    yield from (Mutation(name, "closed", rule, change) for name, rule, change in rows)


def second_system(root: Path) -> None:
    """The same logs as those of a second system, with another processor."""
    listed_twice(root)
    field(f"{CLOSED}/systems/box-2.json", "host_processor_model_name", "Other 9999")(root)


def listed_twice(root: Path) -> None:
    """One system under a second name."""
    shutil.copytree(root / CLOSED / "results" / SYSTEM, root / CLOSED / "results/box-2")
    shutil.copyfile(root / C_SYSTEM, root / CLOSED / "systems/box-2.json")


def second_submitter(root: Path) -> None:
    """The same tree as that of another submitter."""
    shutil.copytree(root / OPEN, root / "open/Other")
    path = root / f"open/Other/systems/{SYSTEM}.json"
    replace(path, path.read_text().replace(SUBMITTER, "Other"))


def second_model(root: Path) -> None:
    """The same runs under a second name."""
    shutil.copytree(root / O_MODEL, root / O_MODEL.replace(OPEN_MODEL, "other-net"))
    shutil.copytree(root / OPEN / "src" / OPEN_MODEL, root / OPEN / "src/other-net")
    replace(root / OPEN / "model_mapping.json", json.dumps({OPEN_MODEL: "resnet", "other-net": "resnet"}))


def identities() -> Iterator[Mutation]:
    """One run as several results, and results whose runs are of several systems."""
    accuracy, detail = f"{O_ACC}/{DETAIL}", f"{O_RUN}/{DETAIL}"
    yield Mutation("one system's logs as those of two", "closed", "IDENT-001", second_system)
    rows = (
        ("one submitter's logs as those of two", "IDENT-001", second_submitter),
        ("one model's logs as those of two", "IDENT-001", second_model),
        ("the accuracy run edited into a performance run", "IDENT-002", both(
            copy(accuracy, detail), value(detail, "effective_test_mode", "PerformanceOnly"))),
        ("accuracy run of another SUT", "IDENT-003", value(accuracy, "sut_name", "FastSUT")),
        ("accuracy run of another QSL", "IDENT-003", value(accuracy, "qsl_name", "Images")),
        ("one build with two versions", "IDENT-005", value(accuracy, "loadgen_version", "6.0.17 @ 0123456789")),
        ("one build with two sets of sources", "IDENT-005", edit(
            accuracy, r"012aad77e5206c89d50718c46c119d1f3cb056b2", "0" * 40)),
        ("older than its LoadGen", "IDENT-006", value(detail, "test_datetime", "2023-11-21T13:34:08Z")),
        ("accuracy run with seeds of its own", "ACC-017", value(accuracy, "effective_sample_index_rng_seed", 5)),
        ("no sample loaded", "ACC-018", line_without(accuracy, "loaded_qsl_set")),
        ("an empty set of samples loaded", "ACC-018", edit(
            accuracy, r'(?<="loaded_qsl_set", "value": )\[[^\]]*\]', "[]")),
        ("a data set of 500", "ACC-019", value(accuracy, "qsl_reported_total_count", 500)),
        ("a performance run on a data set of 500", "ACC-019", value(detail, "qsl_reported_total_count", 500)),
        ("parts of a score that do not make it", "ACC-020", edit(
            f"{O_ACC}/accuracy.txt", r"\Z", "Accuracy: mean = 0.90000, kidney = 0.9347, tumor = 0.7887\n")),
        ("a score of a hundred answers", "ACC-020", edit(
            f"{O_ACC}/accuracy.txt", r"\Z", "{'rouge1': 44.5, 'gen_len': 2000, 'gen_num': 100}\n")),
        ("one sample again and again", "ACC-021", edit(
            f"{O_ACC}/{JSON_LOG}", r'"qsl_idx" : \d+,', '"qsl_idx" : 7,')),
        ("one response for all samples", "ACC-021", edit(
            f"{O_ACC}/{JSON_LOG}", r'"data" : "[0-9A-F]{8}"', '"data" : "00000000"')),
    )  # fmt: skip
    yield from (Mutation(name, "open", rule, change) for name, rule, change in rows)


def omissions() -> Iterator[Mutation]:
    """What a result must not be, said in another way or left out."""
    measured, readme = f"{O_MODEL}/Offline/measurements.json", f"{O_MODEL}/Offline/README.md"
    label = "synthetic input, not an MLPerf result"
    rows = (
        ("label with a soft hyphen", "SYN-001", edit(readme, r"\Z", label.replace("thetic", "thet\u00adic") + "\n")),
        ("label with a space of no width", "SYN-001", edit(readme, r"\Z", label.replace(",", "\u200b,") + "\n")),
        ("label in bold letters over two lines", "SYN-001", edit(
            readme, r"\Z", "Synthetic **input**, not an\nMLPerf result\n")),
        ("label in full-width letters", "SYN-001", edit(
            readme, r"\Z", label.replace("MLP", "\uff2d\uff2c\uff30") + "\n")),
        ("label as HTML", "SYN-001", edit(readme, r"\Z", label.replace("thetic", "thet&shy;ic") + "\n")),
        ("a stand-in's row in README", "SYN-004", edit(readme, r"\Z", "| backend | paced 1 |\n")),
        ("a stand-in in the command", "SYN-004", edit(readme, r"\Z", "--backend=neuron --simulate=neuron\n")),
        ("a made data set in the command", "SYN-004", edit(
            readme, r"\Z", "cm run script --tags=run,mlperf,inference --source=synthetic\n")),
        ("weights of a stand-in", "SYN-004", field(
            measured, "starting_weights_filename", "none (the backend computes nothing)")),
        ("our README without our record", "MEAS-009", edit(
            readme, r"\Z", "With crowdperf (a CM repository), from any folder.\n")),
        ("a folder of no test", "SCEN-004", put(f"{O_MODEL}/Offline/TEST99/verify_accuracy.txt", "TEST PASS\n")),
        ("a second performance run", "SCEN-004", both(
            put(f"{O_MODEL}/Offline/performance/run_2/{SUMMARY}", "x"),
            put(f"{O_MODEL}/Offline/performance/run_2/{DETAIL}", "x"))),
    )  # fmt: skip
    yield from (Mutation(name, "open", rule, change) for name, rule, change in rows)
    measured = f"{C_MODEL}/Offline/measurements.json"
    own_list = {"name": "64 samples, seed 0", "sha256": "0" * 64, "is_official": False}
    official = {"name": "imagenet/cal_image_list_option_1.txt", "sha256": "1" * 64, "is_official": True}
    rows = (
        ("retrained in closed", "MEAS-007", field(measured, "retraining", "yes")),
        ("quantised in closed without a text", "MEAS-008", both(
            field(measured, "weight_data_types", "INT8"), drop(f"{CLOSED}/documentation"))),
        ("quantised in closed with a list of one's own", "MEAS-008", _quantised(measured, own_list)),
        ("quantised in closed with a list that no text names", "MEAS-008", _quantised(measured, official)),
        ("quantised in closed with the official list", None, both(
            _quantised(measured, official),
            put(f"{CLOSED}/documentation/calibration.md", f"List of samples: {official['name']} ({'1' * 64})\n"))),
        ("quantised in closed by others, with a text", None, both(
            field(measured, "weight_data_types", "fp8"),
            put(f"{CLOSED}/documentation/calibration.md", "Scales are those of the official samples.\n"))),
        ("an own model in closed", "SYN-006", field(measured, "crowdperf", _own_model())),
        ("README of an own model", "SYN-006", edit(
            f"{C_MODEL}/Offline/README.md", r"\Z", "own model (not the published file)\n")),
        ("not retrained, in other words", None, field(measured, "retraining", "None")),
    )  # fmt: skip
    yield from (Mutation(name, "closed", rule, change) for name, rule, change in rows)


def _own_model() -> dict:
    facts = {"model": "own", "dataset": "given", "sample_count": 50_000, "benchmark_sample_count": 50_000}
    return {"is_synthetic": {"model": False, "dataset": False, "backend": False}, "provenance": facts}


def _quantised(measured: str, listed: dict) -> Change:
    own = {"format": 1, "is_synthetic": {"model": False, "dataset": False, "backend": False}, "calibration": listed}
    return fields(measured, lambda content: content | {"weight_data_types": "int8", "crowdperf": own})
