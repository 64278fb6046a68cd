"""Nothing that can lie on a disk makes the gate fail: every problem is a finding that refuses."""

import json
import os
import random
from pathlib import Path

import pytest
from changes import O_ACC, O_MODEL, O_RUN, SUMMARY, both, drop, edit, replace
from gate_support import refusing_rules, verdict
from tree_builder import LOG_ROUND, OPEN_MODEL, SUBMITTER, SYSTEM

from crowdperf.gate import command, gate, report, rules_honesty
from crowdperf.gate.documents import TextFile, limit_of
from crowdperf.gate.listing import read_listing
from crowdperf.gate.log_view import Message, log_view
from crowdperf.gate.views import Options, TreeView
from crowdperf.kit import privacy
from crowdperf.logs.round_tables import load_round

OFFLINE = f"open/{SUBMITTER}/results/{SYSTEM}/{OPEN_MODEL}/Offline"
JUNK = {
    "nothing": b"",
    "a NUL": b"\0",
    "every byte": bytes(range(256)),
    "null": b"null",
    "a number beyond all bounds": b'{"a": 1e999, "b": ' + b"9" * 5000 + b"}",
    "deep brackets": b"[" * 100_000,
    "half a line of a log": b':::MLLOG {"key": "effective_scenario", "value": "Off',
    "a log of other types": b':::MLLOG {"key": ["x"], "value": {}, "metadata": {"is_error": 1}}\n',
    "a log with odd values": b"".join(
        b':::MLLOG {"key": "%s", "value": %s, "metadata": {"is_error": false}}\n' % (key, value)
        for key, value in (
            (b"effective_scenario", b"[1]"), (b"effective_min_duration_ms", b"NaN"), (b"power_begin", b"{}"),
            (b"power_end", b'"yesterday"'), (b"num_errors", b'"none"'), (b"result_validity", b"null"),
            (b"effective_qsl_rng_seed", b"true"), (b"result_samples_per_second", b"-Infinity"),
        )
    ),
}  # fmt: skip
FILES = (
    f"{OFFLINE}/performance/run_1/mlperf_log_detail.txt",
    f"{OFFLINE}/performance/run_1/mlperf_log_summary.txt",
    f"{OFFLINE}/accuracy/mlperf_log_detail.txt",
    f"{OFFLINE}/accuracy/mlperf_log_accuracy.json",
    f"{OFFLINE}/accuracy/accuracy.txt",
    f"{OFFLINE}/measurements.json",
    f"open/{SUBMITTER}/systems/{SYSTEM}.json",
    f"open/{SUBMITTER}/model_mapping.json",
)

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def put(root: Path, name: str, content: bytes) -> None:
    (root / name).unlink()
    (root / name).write_bytes(content)


@pytest.mark.parametrize("kind", JUNK)
def test_junk_in_any_file_is_a_finding(kind: str, trees):
    for name in FILES:
        with trees.changed("open", lambda root, name=name: put(root, name, JUNK[kind])) as root:
            found = verdict(root)
        assert not found.is_accepted, name
        assert "GATE-001" not in refusing_rules(found), (name, found.findings)


@pytest.mark.parametrize("name", FILES)
def test_a_folder_a_pipe_or_a_link_to_itself_in_place_of_a_file_is_a_finding(name: str, trees):
    def folder(path: Path) -> None:
        (path / "inside").mkdir(parents=True)

    for make in (folder, os.mkfifo, lambda path: path.symlink_to(path.name)):
        with trees.changed("open") as root:
            (root / name).unlink()
            make(root / name)
            found = verdict(root)
        assert not found.is_accepted
        assert "GATE-001" not in refusing_rules(found)


def test_a_file_in_place_of_a_folder_is_a_finding(trees):
    for name in (f"open/{SUBMITTER}/results", f"{OFFLINE}/performance", f"{OFFLINE}/accuracy", OFFLINE):
        with trees.changed("open") as root:
            (root / name).rename(root / "aside")
            (root / name).write_text("a file\n")
            os.unlink(root / name)
            (root / name).write_text("a file\n")
            found = verdict(root)
        assert not found.is_accepted
        assert "GATE-001" not in refusing_rules(found)


def test_names_that_are_no_text_are_a_finding_and_can_be_printed(trees):
    with trees.changed("open") as root:
        os.close(os.open(os.fsencode(root / f"open/{SUBMITTER}/src") + b"/bad\xff\nname", os.O_CREAT | os.O_WRONLY))
        found = verdict(root)
    assert "NAME-003" in refusing_rules(found)
    for finding in found.findings:
        finding.path.encode()


EVIL_NAMES = (
    b"x\x1b]0;title\x07",
    b"x\x1b[2J\x1b[31m",
    b"x\nverdict: accepted",
    "x\u202egpj".encode(),
    "x\u200b".encode(),
    b"x\x9b\xff",
)


@pytest.mark.parametrize("name", EVIL_NAMES, ids=ascii)
def test_names_of_others_are_shown_without_escapes_and_forge_no_line(name, trees):
    with trees.changed("open") as root:
        for folder in ("src", "systems", "results", f"results/{SYSTEM}", f"results/{SYSTEM}/{OPEN_MODEL}"):
            place = os.fsencode(root / "open" / SUBMITTER / folder) + b"/" + name
            os.mkdir(place)
            Path(os.fsdecode(place + b"/" + name)).write_text("/home/annab/secret\n")
        os.symlink(name, os.fsencode(root / "open" / SUBMITTER / "src") + b"/link")
        found = verdict(root)
        text = report.as_text(found, str(root))
    assert found.is_accepted is False
    assert all(line.isprintable() for line in text.splitlines())
    assert [line for line in text.splitlines() if line.startswith("verdict:")] == [f"verdict: {found.text}"]
    json.dumps(report.as_json(found, str(root))).encode()


def test_leaks_are_found_though_a_submitter_has_a_name_that_is_no_utf_8(trees):
    with trees.changed("open") as root:
        os.mkdir(os.fsencode(root / "open") + b"/Org\xff")
        os.mkdir(os.fsencode(root / "open" / SUBMITTER / "results") + b"/sys\xe9")
        (root / "open" / SUBMITTER / "src" / "leak.py").write_text(
            "x = 'ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'\n"
        )
        known = privacy.known_here(public=command.public_names(root))
        found = verdict(root, known=known)
    assert "PRIV-001" in refusing_rules(found)
    assert not any("PRIV-001" in finding.found for finding in found.findings if finding.rule == "GATE-001")


def test_of_the_leaks_of_one_file_some_are_shown_and_the_others_counted(trees):
    with trees.changed("open") as root:
        folder = root / "open" / SUBMITTER / "src"
        (folder / "few.txt").write_text("/home/annab/x\n" * 5)
        (folder / "many.txt").write_text("/home/annab/x\n" * 5000)
        found = [one for one in verdict(root).findings if one.rule == "PRIV-001"]
    assert [one.line for one in found] == [1, 2, 3, 1, 2, 3]
    assert found[2].found.endswith("(and 2 more in this file)")
    assert found[5].found.endswith("(and at least 997 more in this file)")


def test_the_text_shows_a_thousand_findings_and_counts_the_others(trees):
    with trees.changed("open") as root:
        for number in range(1005):
            (root / "open" / SUBMITTER / "src" / f"a {number}").write_text("x")
        found = verdict(root)
    lines = report.as_text(found, str(root)).splitlines()
    assert f"and {len(found.findings) - 1000} more findings (--format=json shows all of them)" in lines
    assert len(report.as_json(found, "x")["findings"]) == len(found.findings) > 1000


def test_a_file_larger_than_memory_is_not_read(trees):
    with trees.changed("open") as root:
        with (root / FILES[0]).open("r+b") as stream:
            os.unlink(root / FILES[0])
        with (root / FILES[0]).open("wb") as stream:
            stream.truncate(1 << 40)
        found = verdict(root)
    assert {"FILE-002", "RUN-003"} <= refusing_rules(found)


@pytest.mark.parametrize(
    ("name", "size", "rule"),
    [
        ("performance/run_1/mlperf_log_detail.txt", 17, "RUN-003"),
        ("performance/run_1/mlperf_log_summary.txt", 2, "RUN-005"),
        ("accuracy/accuracy.txt", 1, "ACC-006"),
        ("measurements.json", 2, "MEAS-002"),
    ],
)
def test_a_file_too_large_for_its_kind_is_a_finding_and_not_parsed(name: str, size: int, rule: str, trees):
    with trees.changed("open") as root:
        (root / OFFLINE / name).unlink()
        (root / OFFLINE / name).write_bytes(b"hash=0\n" * (size * 1024 * 1024 // 7 + 1))
        assert {"SIZE-001", rule} <= refusing_rules(verdict(root))


def test_only_the_log_that_is_never_cut_may_be_as_long_as_a_hundred_answers():
    logs = [f"closed/a/results/b/deepseek-r1/Offline/{folder}accuracy/mlperf_log_accuracy.json"
            for folder in ("", "TEST01/", "TEST06/")]  # fmt: skip
    assert [limit_of(log) for log in logs] == [1 << 20, 1 << 20, 8 << 20]


def test_a_log_of_very_many_lines_is_not_read_to_its_end():
    line = ':::MLLOG {"key": "x", "value": 1, "metadata": {"is_error": false}}\n'
    log = log_view(TextFile(path="x", text=line * 30_001))
    assert log.problem == Message("more than 30000 lines, so the rest was not read", 30_001)


def test_files_made_to_keep_the_search_for_secrets_busy_end_it(trees, monkeypatch):
    monkeypatch.setattr(rules_honesty, "FOLDER_PLACES", 10_000)
    with trees.changed("open") as root:
        (root / "open" / SUBMITTER / "src" / "busy.txt").write_bytes(b"token= " * 20_000)
        found = [one for one in verdict(root).findings if one.rule == "PRIV-001"]
    assert [one.found.partition(": ")[2] for one in found] == [
        "more than 10000 places that could be secrets, so the search ended here"
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_a_finding(trees):
    with trees.changed("open") as root:
        (root / OFFLINE).chmod(0)
        found = verdict(root)
        (root / OFFLINE).chmod(0o755)
    assert "FILE-004" in refusing_rules(found)


def test_a_pipe_anywhere_is_a_finding(trees):
    with trees.changed("open") as root:
        os.mkfifo(root / f"open/{SUBMITTER}/pipe")
        assert "FILE-004" in refusing_rules(verdict(root))


def test_trees_of_random_names_are_refused(tmp_path):
    chance = random.Random(6)
    words = (
        "open",
        "closed",
        "results",
        "systems",
        "accuracy",
        "performance",
        "run_1",
        "Offline",
        "x.json",
        "..x",
        "é",
    )
    for number in range(20):
        root = tmp_path / str(number)
        for _ in range(10):
            folder = root.joinpath(*(chance.choice(words) for _ in range(chance.randint(1, 7))))
            if not any(parent.is_file() for parent in (folder, *folder.parents)):
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "file").write_bytes(chance.randbytes(50))
        found = verdict(root)
        assert not found.is_accepted
        assert "GATE-001" not in refusing_rules(found)


@pytest.mark.parametrize(
    ("name", "line", "rule"),
    [
        (f"{O_RUN}/{SUMMARY}", "Samples per second : 1\n", "SUM-002"),
        (f"{O_ACC}/accuracy.txt", "accuracy=176.8%, good=1, total=7\n", "ACC-013"),
    ],
)
def test_a_file_with_one_thing_wrong_a_thousand_times_has_a_few_findings(name: str, line: str, rule: str, trees):
    """Summaries of 60 MB once took 2.4 GB: a finding for each of their lines."""
    with trees.changed("open", edit(name, r"\Z", line * 1000)) as root:
        found = [one for one in verdict(root).findings if one.rule == rule]
    assert 1 <= len(found) <= 100
    assert len(found) < 100 or found[-1].found.endswith("(and more, not listed)")


def test_copies_of_a_run_are_not_each_compared_with_each(trees):
    log = "performance/run_1/mlperf_log_detail.txt"
    with trees.changed("open") as root:
        for number in range(30):
            replace(
                root / O_MODEL.replace(SYSTEM, f"box{number}") / "Offline" / log, (root / OFFLINE / log).read_bytes()
            )
        register = TreeView(listing=read_listing(root), round=load_round(LOG_ROUND), options=Options()).register
        mark = next(one for one in register.runs if one.place.system == "box3")
        groups = {name: len(register.runs_with(name, getattr(mark, name))) for name in ("clock", "build", "digest")}
    assert groups == {"clock": 1, "build": 1, "digest": 31}


def test_what_is_kept_of_a_tree_with_more_findings_than_anybody_reads_still_refuses_it(trees, monkeypatch):
    monkeypatch.setattr(gate, "_MOST", 1)
    with trees.changed("open", both(drop(f"{O_RUN}/{SUMMARY}"), drop(f"{O_ACC}/accuracy.txt"))) as root:
        found = verdict(root)
    assert len(found.findings) == 1
    assert not found.is_accepted
    assert [one.is_accepted for one in found.results] == [True, False, True]


def test_an_empty_folder_is_refused(tmp_path):
    assert refusing_rules(verdict(tmp_path)) == {"TREE-001"}


def test_the_home_folder_of_root_is_nobodys(trees):
    """An official script of language models prints where it puts its data: 40 published results have the line."""
    line = "[nltk_data] Downloading package punkt_tab to {}/nltk_data...\n"
    with trees.changed("open", edit(f"{O_ACC}/accuracy.txt", r"\A", line.format("/root"))) as root:
        assert verdict(root).is_accepted
    with trees.changed("open", edit(f"{O_ACC}/accuracy.txt", r"\A", line.format("/home/jane"))) as root:
        found = verdict(root)
    assert found.is_accepted and [one.rule for one in found.findings] == ["PRIV-001"]
