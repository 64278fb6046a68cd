"""Honest variations that no published round refuses are accepted, and forgeries that were accepted are refused."""

import io
import json
import re
import subprocess
import sys
import zipfile
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from changes import (
    C_ACC,
    C_MODEL,
    C_SERVER,
    CLOSED,
    DETAIL,
    O_ACC,
    O_RUN,
    O_STREAM,
    O_SYSTEM,
    OPEN,
    SUMMARY,
    T01,
    Change,
    both,
    edit,
    field,
    put,
    rename,
    replace,
    value,
)
from disagreements import CASES
from forgeries_of_chance import COUNTS, numbers
from gate_support import refusing_rules, verdict
from mutations_of_runs import figures, listed_twice, second_system
from tree_builder import OPEN_MODEL

from crowdperf.gate import rules_clock
from crowdperf.gate.documents import TextFile, read_text
from crowdperf.gate.evidence import EXCEPTIONS, evidence_of, has_ground, published, tried_of
from crowdperf.gate.listing import read_listing
from crowdperf.gate.log_view import log_view
from crowdperf.gate.rulebook import OURS, RULES, Rule, Scope, Severity
from crowdperf.gate.single_run import contradictions
from crowdperf.gate.steps import Step
from crowdperf.rules.names import SYNTHETIC_LABEL

CHECKOUT = Path(__file__).resolve().parents[2]
LOG, STREAM, SERVER = f"{O_RUN}/{DETAIL}", f"{O_STREAM}/{DETAIL}", f"{C_SERVER}/{DETAIL}"
MEASUREMENTS = f"{C_MODEL}/Offline/measurements.json"
O_MEASUREMENTS = f"{OPEN}/results/box-1/{OPEN_MODEL}/Offline/measurements.json"
CONF = f"{C_MODEL}/Offline/user.conf"
GIT = r'(?<="loadgen_git_log_message", "value": ")[0-9a-f]{40}'
NO_TEXT = put(f"{CLOSED}/documentation/calibration.md", " \n")
STAMP = "%m-%d-%Y %H:%M:%S.%f"


def of_revision(name: str, version: str, commit: str = "") -> Change:
    """A log of another revision of LoadGen, with the commit in its git log."""
    changes = [value(name, f"loadgen_build_date_{zone}", "2026-07-25T01:02:03.000004") for zone in ("utc", "local")]
    changes += [edit(name, GIT, commit)] if commit else []
    return both(value(name, "loadgen_version", version), *changes)


def other_source(name: str) -> Change:
    """A log whose results.cc has another digest."""

    def change(root: Path) -> None:
        text = (root / name).read_text()
        changed, count = re.subn(r'(/results\.cc":")[0-9a-f]{40}', rf"\g<1>{'ab' * 20}", text)
        assert count == 1
        replace(root / name, changed)

    return change


def clock_set(name: str, seconds: float) -> Change:
    """The machine's clock was set during the run: the second stamp alone is another one."""

    def change(root: Path) -> None:
        text = (root / name).read_text()
        old = re.search(r'"power_end", "value": "([^"]+)', text)
        stamp = (datetime.strptime(old[1], STAMP) + timedelta(seconds=seconds)).strftime(STAMP)[:-3]
        value(name, "power_end", stamp)(root)

    return change


def dated(name: str, start: str) -> Change:
    """A run at another time of day: test_datetime and both stamps."""

    def change(root: Path) -> None:
        text = (root / name).read_text()
        old = re.search(r'"test_datetime", "value": "([^"]+)', text)[1]
        moved = datetime.strptime(start, "%Y-%m-%dT%H:%M:%SZ") - datetime.strptime(old, "%Y-%m-%dT%H:%M:%SZ")
        for key in ("power_begin", "power_end"):
            stamp = datetime.strptime(re.search(rf'"{key}", "value": "([^"]+)', text)[1], STAMP) + moved
            value(name, key, stamp.strftime(STAMP)[:-3])(root)
        value(name, "test_datetime", start)(root)

    return change


def zipped(content: str) -> bytes:
    """An archive with one file."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("notes.txt", content)
    return target.getvalue()


def twice(name: str, key: str, text: str) -> Change:
    """One name with two values."""
    return edit(name, rf'"{key}":', f'"{key}": {json.dumps(text)}, "{key}":')


def counted_less(responses: int) -> Change:
    """A verdict of TEST01 that counts fewer responses than LoadGen logs."""
    return numbers(f"{C_MODEL}/SingleStream/TEST01/verify_accuracy.txt", COUNTS, lambda found: found - responses)


TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
FULL_WIDTH = str.maketrans("0123456789INT", "０１２３４５６７８９ＩＮＴ")

FORGERIES = {
    "a changed LoadGen of an unknown commit": ("open", "LG-002", both(
        other_source(LOG), of_revision(LOG, "6.0.17 @ eeeeeeeeee", "e" * 40))),
    "a changed LoadGen without a revision": ("open", "LG-002", both(
        other_source(LOG), of_revision(LOG, "6.0.17 @ NA"))),
    "a LoadGen without sources": ("open", "LG-002", edit(LOG, r'(?<="loadgen_file_sha1", "value": )\{[^}]*\}', "{}")),
    "a run in the future": ("open", "TIME-008", dated(LOG, "2031-01-01T00:00:00Z")),
    "no node": ("open", "SYS-014", field(O_SYSTEM, "number_of_nodes", "0")),
    "fewer than no nodes": ("open", "SYS-014", field(O_SYSTEM, "number_of_nodes", -4)),
    "accelerators without a name": ("open", "SYS-014", field(O_SYSTEM, "accelerators_per_node", 8)),
    "a name of blanks": ("open", "SYS-004", field(O_SYSTEM, "host_processor_model_name", "   ")),
    "a name of letters that nobody sees": ("open", "SYS-004", field(O_SYSTEM, "system_name", "\u200b\u2060")),
    "two processors in one description": ("open", "SYS-016", twice(O_SYSTEM, "host_processor_model_name", "Other")),
    "another seed in user.conf": ("closed", "SET-016", edit(CONF, r"\Z", "*.*.qsl_rng_seed = 1\n")),
    "measurements with the label of synthetic input": ("open", "SYN-001", field(
        O_MEASUREMENTS, "note", SYNTHETIC_LABEL)),
    "one seed of the accuracy run is 0": ("open", "ACC-017", both(*(
        value(f"{O_ACC}/{DETAIL}", f"{kind}_qsl_rng_seed", 0) for kind in ("requested", "effective")))),
    "retraining true": ("closed", "MEAS-011", field(MEASUREMENTS, "retraining", True)),
    "retraining no... yes": ("closed", "MEAS-007", field(MEASUREMENTS, "retraining", "no... yes")),
    "types in a list": ("closed", "MEAS-011", field(MEASUREMENTS, "weight_data_types", ["fp32"])),
    "full-width INT8 without a calibration": ("closed", "MEAS-008", both(
        field(MEASUREMENTS, "weight_data_types", "INT8".translate(FULL_WIDTH)), NO_TEXT)),
    "eight-bit integers without a calibration": ("closed", "MEAS-008", both(
        field(MEASUREMENTS, "weight_data_types", "eight-bit integers"), NO_TEXT)),
    "posit8 without a calibration": ("closed", "MEAS-008", both(
        field(MEASUREMENTS, "weight_data_types", "posit8"), NO_TEXT)),
    "a sparsified network, with invisible letters": ("closed", "MEAS-010", field(
        MEASUREMENTS, "weight_transformations", "fine\u200b-tu\u00adned")),
    "an accuracy in full-width digits": ("closed", "ACC-022", edit(
        f"{C_ACC}/accuracy.txt", r"accuracy=[0-9.]+", "accuracy=" + "76.46".translate(FULL_WIDTH))),
    "an accuracy with a comma": ("closed", "ACC-022", edit(f"{C_ACC}/accuracy.txt", r"accuracy=86[.]", "accuracy=86,")),
    "results behind a link": ("open", "FILE-003", lambda root: (
        root / OPEN / "results/box-2").symlink_to("box-1", target_is_directory=True)),
    "a link to a folder elsewhere": ("open", "FILE-003", lambda root: (
        root / OPEN / "src/link").symlink_to("../../../..", target_is_directory=True)),
    "one log of two machines": ("closed", "IDENT-001", second_system),
    "a token in an archive": ("open", "PRIV-001", put(f"{OPEN}/src/{OPEN_MODEL}/more.zip", zipped(TOKEN))),
}  # fmt: skip


@pytest.mark.parametrize(("tree", "rule", "change"), FORGERIES.values(), ids=FORGERIES)
def test_a_forgery_is_refused(tree: str, rule: str, change: Change, trees):
    with trees.changed(tree, change) as root:
        assert rule in refusing_rules(verdict(root))


HONEST: dict[str, tuple[str, set[str], Change]] = {
    "a commit of a fork with LoadGen's own sources": ("open", {"IDENT-004"}, of_revision(
        LOG, "6.0.17 @ eeeeeeeeee", "e" * 40)),
    "a LoadGen that is newer than the list": ("open", {"LG-006", "IDENT-004"}, of_revision(
        LOG, "6.7.1 @ eeeeeeeeee", "e" * 40)),
    "NTP set the clock in Offline": ("open", {"TIME-009"}, clock_set(LOG, -0.4)),
    "NTP set the clock ahead in Offline": ("open", {"TIME-009"}, clock_set(LOG, 0.4)),
    "NTP set the clock in SingleStream": ("open", {"TIME-009"}, clock_set(STREAM, -0.4)),
    "NTP set the clock in Server": ("closed", {"TIME-009"}, clock_set(SERVER, -0.4)),
    "daylight saving began": ("open", {"TIME-009"}, clock_set(LOG, 3600)),
    "daylight saving ended": ("open", {"TIME-009"}, clock_set(STREAM, -3600)),
    "daylight saving ended in Server": ("closed", {"TIME-009"}, clock_set(SERVER, -3600)),
    "two runs at the same time": ("open", {"IDENT-013"}, lambda root: dated(STREAM, re.search(
        r'"test_datetime", "value": "([^"]+)', (root / LOG).read_text())[1])(root)),
    "weights that are not quantized": ("closed", set(), both(
        field(MEASUREMENTS, "weight_data_types", "fp32 (not quantized)"), NO_TEXT)),
    "no quantization, no pruning": ("closed", set(), both(
        field(MEASUREMENTS, "weight_transformations", "no quantization, no pruning"),
        NO_TEXT)),
    "bf16 and fp32": ("closed", set(), both(
        field(MEASUREMENTS, "weight_data_types", "BF16/FP32 mixed precision"), NO_TEXT)),
    "types by part of the model": ("closed", set(), field(
        MEASUREMENTS, "weight_data_types", {"unet": "fp16", "vae": "fp32"})),
    "we don't retrain": ("closed", set(), field(MEASUREMENTS, "retraining", "We don\u2019t retrain the model weight.")),
    "one value twice in a description": ("open", set(), twice(O_SYSTEM, "system_type_detail", "")),
    "retraining: No.": ("closed", set(), field(MEASUREMENTS, "retraining", "No.")),
    "one thing twice in the measurements": ("open", {"MEAS-012"}, twice(
        O_MEASUREMENTS, "weight_transformations", "no")),
    "one model twice in the mapping": ("open", {"MAP-001"}, edit(
        f"{OPEN}/model_mapping.json", "{", f'{{"{OPEN_MODEL}": "bert-99", ')),
    "the home folder of a cloud image": ("open", set(), put(f"{OPEN}/src/{OPEN_MODEL}/run.sh", "cd /home/ubuntu/x\n")),
    "the home folder of mlperf": ("open", set(), put(f"{OPEN}/src/{OPEN_MODEL}/run.sh", "cd /home/mlperf/x\n")),
    "a home folder": ("open", {"PRIV-001"}, put(f"{OPEN}/src/{OPEN_MODEL}/run.sh", "cd /home/jane/x\n")),
    "a key in an example": ("open", {"PRIV-001"}, put(f"{OPEN}/src/{OPEN_MODEL}/a.py", "api_key='EMPTY1234'\n")),
    "other samples in memory than user.conf says": ("closed", {"SET-012"}, edit(
        CONF, r"\Z", "*.*.performance_sample_count_override = 1\n")),
    "100 nodes of 8 in the description of one": ("open", {"SYS-015"}, both(
        field(O_SYSTEM, "number_of_nodes", 100), field(O_SYSTEM, "accelerators_per_node", 8),
        field(O_SYSTEM, "accelerator_model_name", "H100"), field(O_SYSTEM, "system_name", "Box (8x H100)"))),
    "Cyrillic letters that look Latin": ("open", {"SYS-015"}, field(O_SYSTEM, "system_name", "NVIDI\u0410 box")),
    "a hyphen that does not break": ("open", set(), field(O_SYSTEM, "system_name", "B200\u2011SXM")),
    "a built-in GPU that nobody counts": ("open", {"SYS-015"}, field(O_SYSTEM, "accelerator_model_name", "Arc 140T")),
    "a whole log in a copy of the accuracy run": ("closed", set(), put(
        f"{C_ACC}/SAVE/mlperf_log_accuracy.json", "[\n" + "x" * 2_000_000)),
    "a link to a folder of sources": ("open", {"FILE-003"}, lambda root: (
        root / OPEN / "src/link").symlink_to(OPEN_MODEL, target_is_directory=True)),
    "a folder beside the divisions": ("open", {"TREE-004"}, put("notes/README.md", "Ours.\n")),
    "sources of the model under another name": ("open", {"CODE-002"}, rename(
        f"{OPEN}/src/{OPEN_MODEL}", f"{OPEN}/src/shared")),
    "every tenth response is logged": ("open", {"SET-011"}, both(
        value(LOG, "requested_accuracy_log_probability", 0.1), value(LOG, "effective_accuracy_log_probability", 0.1),
        edit(f"{O_RUN}/{SUMMARY}", r"(?<=^accuracy_log_probability : ).*", "0.1"))),
    "measurements that say that all is real": ("open", set(), field(O_MEASUREMENTS, "crowdperf", {
        "format": 1, "is_synthetic": {"model": False, "dataset": False, "backend": False}})),
    "one machine under two names": ("closed", {"IDENT-001"}, listed_twice),
    "one machine in two categories": ("closed", {"IDENT-001"}, both(
        listed_twice, field(f"{CLOSED}/systems/box-2.json", "system_type_detail", "edge server"))),
    "TEST01 counts one response fewer than its log": ("closed", {"TEST-023"}, counted_less(1)),
    "TEST01 was compared with a run before": ("closed", {"TEST-009"}, figures(T01, 30.5, 30.1)),
    "two hashes, of which the checkers take one": ("closed", {"ACC-009"}, edit(
        f"{C_ACC}/accuracy.txt", r"\Z", f"hash={'ab' * 32}\n")),
    "an archive of sources": ("open", set(), put(f"{OPEN}/src/{OPEN_MODEL}/more.zip", zipped("x = 1\n"))),
    "something that only begins like an archive": ("open", set(), put(
        f"{OPEN}/src/{OPEN_MODEL}/more.zip", b"PK\x03\x04 no archive")),
}  # fmt: skip


@pytest.mark.parametrize(("tree", "rules", "change"), HONEST.values(), ids=HONEST)
def test_an_honest_variation_is_accepted_at_most_with_a_warning(tree: str, rules: set[str], change: Change, trees):
    with trees.changed(tree, change) as root:
        found = verdict(root)
    assert refusing_rules(found) == set()
    assert {one.rule for one in found.findings} == rules
    assert [one.fix for one in found.findings if "=''" in one.fix] == []


def test_every_rule_that_warns_has_a_variation_that_meets_it():
    warning = {name for name, rule in RULES.items() if rule.severity is Severity.WARNING}
    met = {name for _, rules, _ in HONEST.values() for name in rules} | {case.rule for case in CASES.values()}
    assert warning - met == {"FILE-007", "RUN-022"}  # test_generate_checks.py, test_gate_runs.py


@pytest.mark.parametrize(
    ("path", "is_enough"),
    [
        ("calibration/resnet50/pytorch-cpu/README.md", True),
        ("calibration/resnet50/README.md", True),
        ("calibration/bert-99/README.md", False),
        ("calibration/resnet50/run.sh", False),
    ],
)
def test_a_text_on_the_calibration_may_lie_in_a_folder_of_the_model(path: str, is_enough: bool, trees):
    """As those of two submitters of round v4.1."""
    int8 = both(
        field(MEASUREMENTS, "weight_data_types", "int8"), NO_TEXT, put(f"{CLOSED}/{path}", "By 500 pictures.\n")
    )
    with trees.changed("closed", int8) as root:
        assert ("MEAS-008" not in refusing_rules(verdict(root))) is is_enough


STEPS = {"three seconds of NTP": -3.0, "half an hour": 1800.0, "two hours": 7200.0}


@pytest.mark.parametrize("seconds", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("name", [LOG, STREAM])
def test_a_clock_that_moved_by_anything_else_is_refused(name: str, seconds: float, trees):
    with trees.changed("open", clock_set(name, seconds)) as root:
        found = verdict(root)
    assert refusing_rules(found) & {"FIG-003", "FIG-010", "TIME-002", "TIME-007", "RUN-010"}
    assert "TIME-009" not in {one.rule for one in found.findings}


def test_a_clock_that_was_set_is_named_with_its_cause(trees):
    causes: list[str] = []
    for seconds in (-0.4, 3600):
        with trees.changed("open", clock_set(LOG, seconds)) as root:
            causes += [one.found for one in verdict(root).findings if one.severity is Severity.WARNING]
    assert "-0.399 s: it was set by NTP or by hand" in causes[0] and "+3600.001 s: daylight saving" in causes[1]


def test_the_clock_of_the_check_decides_what_is_the_future(trees):
    with trees.changed("open", dated(LOG, "2031-01-01T00:00:00Z")) as root:
        for day, is_refused in ((30, True), (31, False)):
            now = datetime(2030, 12, day, 0, 0, 1)
            assert ("TIME-008" in refusing_rules(verdict(root, now_utc=now))) is is_refused


def test_what_is_now_is_asked_for_each_tree_and_not_once_for_a_process(trees, monkeypatch):
    """A collector judges runs for months."""

    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime(2031, 1, 2, tzinfo=tz)

    with trees.changed("open", dated(LOG, "2031-01-01T00:00:00Z")) as root:
        source = read_text(read_listing(root), LOG)
        summary = TextFile(path="", is_missing=True)
        judged = [{rule.identity for rule, _ in contradictions("", log_view(source), summary)}]
        monkeypatch.setattr(rules_clock, "datetime", Later)
        judged.append({rule.identity for rule, _ in contradictions("", log_view(source), summary)})
    assert ["TIME-008" in rules for rules in judged] == [True, False]


def test_each_rule_that_refuses_says_what_published_evidence_it_rests_on():
    assert [name for name, rule in RULES.items() if not has_ground(rule)] == []


@pytest.mark.parametrize(
    ("source", "severity", "is_grounded"),
    [(OURS, Severity.ERROR, False), (OURS, Severity.WARNING, True), ("LoadGen", Severity.ERROR, True)],
)
def test_a_rule_of_ours_that_was_never_tried_may_only_warn(source: str, severity: Severity, is_grounded: bool):
    rule = Rule(identity="NEW-001", scope=Scope.RUN, text="x", source=source, step=Step.TREE, severity=severity,
                check=lambda _: iter(()))  # fmt: skip
    assert has_ground(rule) is is_grounded


def test_whatever_a_rule_refused_in_the_published_round_is_explained_and_nothing_else():
    tried = published()[1]
    assert {name for name, row in tried.items() if row.refused} == set(EXCEPTIONS)
    assert set(tried) <= set(RULES)
    assert tried_of(RULES["FIG-001"]).asked > 3000


def test_the_evidence_of_a_rule_is_one_line():
    assert evidence_of(RULES["LG-002"]).startswith("published round v5.1 (965182b0): checked 3,")
    assert "6 refused (one result whose LoadGen had one changed source)" in evidence_of(RULES["LG-002"])
    assert evidence_of(RULES["EP-022"]).startswith("not checked in the published round v5.1")


def test_the_page_of_rules_is_up_to_date():
    done = subprocess.run([sys.executable, CHECKOUT / "tools/make_submission_rules_page.py", "--check"], timeout=60)
    assert done.returncode == 0, "run tools/make_submission_rules_page.py"


def test_of_a_damaged_log_no_other_file_is_blamed(trees):
    with trees.changed("open", edit(LOG, r"(?s)(?<=\n:::MLLOG {\"key\": \"test_datetime).*", "")) as root:
        found = verdict(root).findings
    assert "RUN-003" in {one.rule for one in found}
    assert {one.path for one in found} == {LOG} and not [one for one in found if one.allowed.startswith("missing")]


def test_the_verdict_of_a_summary_is_shown_as_it_is_written(trees):
    name = LOG.replace("detail", "summary")
    with trees.changed("open", edit(name, "Result is : VALID", "Result is : valid")) as root:
        found = {one.rule: one.found for one in verdict(root).findings}
    assert found["RUN-005"] == found["SUM-003"] == "Result is : valid"
