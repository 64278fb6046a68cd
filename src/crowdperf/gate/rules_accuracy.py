"""Rules on an accuracy run: its logs, and that score, log and hash belong together."""

import dataclasses
import functools
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from crowdperf.gate.derivation import at_key, messages, unreadable
from crowdperf.gate.documents import TextFile, digest_of_file
from crowdperf.gate.listing import join
from crowdperf.gate.rulebook import BOTH, NEWER, OLDER, OURS, Scope, Severity, Violation, rule, shown
from crowdperf.gate.steps import Step
from crowdperf.gate.views import ACCURACY, DETAIL, SUMMARY, Options, ScenarioView
from crowdperf.kit.text_documents import parse_json
from crowdperf.logs.score_lines import HashLine, parse_counts, parse_hashes
from crowdperf.logs.truncation import PART_BYTES

NEEDED = (SUMMARY, DETAIL, "accuracy.txt", ACCURACY)
TOLERATED = ("mlperf_log_trace.json", "results.json", ".gitkeep")
MAX_LOG_BYTES = 10 * 1024
CUT = "\n\n...\n\n"
_NUMBERS = re.compile(r'(?:"seq_id"\s*:\s*([0-9]{1,18}),\s*)?"qsl_idx"\s*:\s*([0-9]+)')
"""Between the beginning and the end of a log that was cut."""
_SAMPLE_IDS = (
    "text_to_image/tools/sample_ids.txt of mlcommons/inference b66003e1 (the checker's own list ends with v6.0)"
)
_SHA256 = re.compile(r"[0-9a-f]{64}")


def samples_of(scenario: ScenarioView) -> int | None:
    table = scenario.model.table
    return None if table is None else table.accuracy_samples_in(scenario.scenario or scenario.name)


def _known_samples(scenario: ScenarioView) -> int:
    """The number of samples: some models derive their accuracy from a part of those for performance runs."""
    table = scenario.model.table
    return 0 if table is None else max(table.performance_samples, samples_of(scenario) or 0)


@functools.lru_cache(maxsize=4)
def _shown(text: str) -> tuple[tuple[str, str], ...]:
    """The seq_id, if it is shown, and the sample of each response, for all rules on one log."""
    return tuple(_NUMBERS.findall(text))


def shown_samples(text: str) -> list[str]:
    """The sample of each response that a log shows. Both parts of a short cut log contain its middle, which counts
    once."""
    found = _shown(text)
    if CUT not in text or len(numbers := shown_numbers(text)) == len(set(numbers)):
        return [index for _, index in found]
    return [index for _, index in {pair if pair[0] else number: pair for number, pair in enumerate(found)}.values()]


def shown_numbers(text: str) -> list[int]:
    """The seq_id of each response that a log shows."""
    return [int(number) for number, _ in _shown(text) if number]


def repeated_number(text: str) -> str | None:
    """Return the seq_id of a response that is twice in one part of a log (both parts of a short log contain its
    middle).

    A log of more than two parts is refused (ACC-029), so the others are ignored.
    """
    for part in text.split(CUT, 2)[:2]:
        numbers = [number for number, _ in _shown(part) if number]
        if len(set(numbers)) < len(numbers):
            return next(number for number, count in Counter(numbers).items() if count > 1)
    return None


@rule("ACC-001", Scope.SCENARIO, "An accuracy run has its four files.", source=BOTH)
def has_files(scenario: ScenarioView) -> Iterator[Violation]:
    for name in NEEDED:
        if join(scenario.accuracy_folder, name) not in scenario.tree.listing.sizes:
            yield Violation(path=join(scenario.accuracy_folder, name), found="missing", allowed=", ".join(NEEDED))


@rule("ACC-002", Scope.SCENARIO, "No other files are next to them.", source=OLDER, step=Step.TREE)
def has_only_files(scenario: ScenarioView) -> Iterator[Violation]:
    for name in scenario.tree.listing.files_in(scenario.accuracy_folder):
        if name not in (*NEEDED, *TOLERATED):
            path = join(scenario.accuracy_folder, name)
            yield Violation(path=path, found="a stray file", allowed=", ".join((*NEEDED, *TOLERATED)))


@rule("ACC-003", Scope.SCENARIO, "The detail log can be read to its end.", source=BOTH)
def log_is_readable(scenario: ScenarioView) -> Iterator[Violation]:
    yield from unreadable(scenario.accuracy_detail)


@rule("ACC-004", Scope.SCENARIO, "LoadGen logged no error.", source=BOTH)
def has_no_errors(scenario: ScenarioView) -> Iterator[Violation]:
    yield from messages(scenario.accuracy_detail, scenario.accuracy_detail.errors, "no message with is_error")


@rule("ACC-005", Scope.SCENARIO, "The run covers the whole data set.", source=BOTH)
def covers_data_set(scenario: ScenarioView) -> Iterator[Violation]:
    wanted, log = samples_of(scenario), scenario.accuracy_detail
    if wanted is None or not log.is_usable:
        return
    key = "effective_accuracy_sample_count"
    if key not in log.values:  # LoadGen before 6.0
        key = "qsl_reported_total_count"
    if log.number(key) != wanted:
        yield at_key(log, key, f"exactly {wanted}")


@rule("ACC-009", Scope.SCENARIO, "accuracy.txt has the hash of the whole log.", source=BOTH, step=Step.TREE)
def has_hash(scenario: ScenarioView) -> Iterator[Violation]:
    source = scenario.accuracy_text
    hashes = parse_hashes(source.text)
    if not source.is_usable:
        return
    if len({one.value for one in hashes}) != 1:
        found = "no hash line" if not hashes else f"{len(hashes)} different hashes"
        severity = Severity.WARNING if hashes else None  # the checkers take one of them
        allowed = "one line: hash=SHA256 OF THE WHOLE LOG"
        yield Violation(path=source.path, found=found, allowed=allowed, severity=severity)
    elif not _SHA256.fullmatch(hashes[0].value):
        allowed = "64 hexadecimal digits in lower case"
        yield Violation(path=source.path, found=shown(hashes[0].value), allowed=allowed, line=hashes[0].line)


@rule("ACC-010", Scope.SCENARIO, "The hash is that of the whole log.", source=OURS, step=Step.TREE)
def hash_belongs(scenario: ScenarioView) -> Iterator[Violation]:
    yield from hash_problems(scenario.accuracy_text, scenario.accuracy_log, scenario.tree.options)


def hash_problems(score: TextFile, log: TextFile, options: Options) -> Iterator[Violation]:
    """Yield each accuracy.txt whose hash differs from that of the log next to it, before that was cut."""
    hashes = parse_hashes(score.text)
    if not hashes or not log.is_usable:
        return
    is_cut = CUT in log.text
    own = hashlib.sha256(log.text.encode()).hexdigest()
    if is_cut and hashes[0].value == own:
        allowed = "the hash of the log before it was cut"
        yield Violation(path=score.path, found="the hash of the cut log", allowed=allowed, line=hashes[0].line)
    elif not is_cut and hashes[0].value != own:
        found = f"{hashes[0].value[:12]}..., the whole log has {own[:12]}..."
        yield Violation(path=score.path, found=found, allowed="the hash of the log", line=hashes[0].line)
    elif is_cut and options.backup_folder is not None:
        yield from _against_backup(score, log, hashes[0], options)


def _backups(log: TextFile, digest: str, folder: Path) -> tuple[Path, ...]:
    """Return the possible paths of the whole log: a second one has its digest in its name."""
    path = Path(log.path)
    names = (f"{path.stem}-{digest[:16]}{path.suffix}", path.name)
    return tuple(folder / path.parent / name for name in names)


def _against_backup(score: TextFile, log: TextFile, wanted: HashLine, options: Options) -> Iterator[Violation]:
    if options.backup_folder is None:
        return
    digests = [digest for digest in map(digest_of_file, _backups(log, wanted.value, options.backup_folder)) if digest]
    if not digests and options.is_backup_complete:
        allowed = f"the whole log at this path below {options.backup_folder.name}"
        yield Violation(path=log.path, found="no backup that can be read", allowed=allowed)
    elif digests and wanted.value not in digests:
        found = f"{wanted.value[:12]}..., the backup has {digests[-1][:12]}..."
        yield Violation(path=score.path, found=found, allowed="the backup's hash", line=wanted.line)


def whole_lines(score: TextFile, log: TextFile, options: Options) -> Iterator[str] | None:
    """Return the lines of a log before it was cut, or None if they are not available here."""
    if CUT not in log.text:
        return iter(log.text.split("\n"))
    hashes = parse_hashes(score.text)
    if options.backup_folder is None or not hashes:
        return None
    for path in _backups(log, hashes[0].value, options.backup_folder):
        if digest_of_file(path) == hashes[0].value:
            return lines_of(path)
    return None


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file one by one, with bytes that are not UTF-8 replaced."""
    with path.open(encoding="utf-8", errors="replace") as stream:
        yield from stream


@rule("ACC-011", Scope.SCENARIO, "The accuracy log is cut to at most 10,240 bytes.", source=BOTH, step=Step.TREE)
def is_truncated(scenario: ScenarioView) -> Iterator[Violation]:
    path = join(scenario.accuracy_folder, ACCURACY)
    size = scenario.tree.listing.sizes.get(path, 0)
    if size > MAX_LOG_BYTES:
        yield Violation(path=path, found=f"{size} bytes", allowed=f"at most {MAX_LOG_BYTES} bytes")


@rule("ACC-029", Scope.SCENARIO, "A log that was cut is its first and last 4,096 bytes.", source=BOTH, step=Step.TREE)
def is_cut_as_by_tool(scenario: ScenarioView) -> Iterator[Violation]:
    yield from cut_problems(scenario.accuracy_log)


def cut_problems(log: TextFile) -> Iterator[Violation]:
    """Yield cut logs whose parts differ from the output of the official tool. (Each of the 1,696 cut logs of round
    v5.1 has them.)"""
    sizes = [len(part.encode()) for part in log.text.split(CUT, 3)]
    if len(sizes) > 1 and sizes != [PART_BYTES, PART_BYTES]:
        found = f"parts of {', '.join(f'{size:,}' for size in sizes[:3])} bytes"
        yield Violation(path=log.path, found=found, allowed=f"two of {PART_BYTES:,}")


@rule("ACC-012", Scope.SCENARIO, "The accuracy log contains responses of this data set.", source=OURS)
def log_is_of_data_set(scenario: ScenarioView) -> Iterator[Violation]:
    log, wanted = scenario.accuracy_log, samples_of(scenario)
    if log.is_missing or wanted is None:
        return
    if log.problem:
        yield Violation(path=log.path, found=log.problem, allowed="LoadGen's JSON")
        return
    indexes = {int(index[:20]) for index in {index for _, index in _shown(log.text)}}
    if not indexes:
        yield Violation(path=log.path, found="no response", allowed=f"the responses of {wanted} samples")
    elif max(indexes) >= _known_samples(scenario):
        allowed = f"samples 0 to {_known_samples(scenario) - 1}"
        yield Violation(path=log.path, found=f"sample {max(indexes)}", allowed=allowed)
    elif CUT not in log.text:
        is_rehearsal = scenario.tree.options.is_rehearsal  # which may be of a few made samples
        yield from _whole_log(log.path, log.text, 1 if is_rehearsal else wanted)


def _whole_log(path: str, text: str, wanted: int) -> Iterator[Violation]:
    try:
        entries = parse_json(text)
    except ValueError as error:
        yield Violation(path=path, found=f"no JSON ({error})", allowed="a whole log, or one cut by the tree's step")
        return
    rows = entries if isinstance(entries, list) else []
    count = len({row["qsl_idx"] for row in rows if isinstance(row, dict) and isinstance(row.get("qsl_idx"), int)})
    if count < wanted:
        yield Violation(path=path, found=f"responses of {count} samples", allowed=f"those of {wanted} samples")


@rule("ACC-013", Scope.SCENARIO, "The counts next to a score agree with it and with the data set.", source=OURS)
def counts_agree(scenario: ScenarioView) -> Iterator[Violation]:
    wanted, source = samples_of(scenario), scenario.accuracy_text
    for counts in parse_counts(source.text):
        if wanted is not None and counts.total != wanted:
            found = f"total={counts.total}"
            yield Violation(path=source.path, found=found, allowed=f"total={wanted}", line=counts.line)
        elif not abs(100.0 * counts.good / counts.total - counts.percent) < 0.01:
            found = f"accuracy={counts.percent:g}%, good={counts.good}, total={counts.total}"
            yield Violation(path=source.path, found=found, allowed="a score that is good/total", line=counts.line)


@rule("ACC-014", Scope.SCENARIO, "The log is of an accuracy run in the scenario of its folder.", source=OURS)
def is_accuracy_run(scenario: ScenarioView) -> Iterator[Violation]:
    log = scenario.accuracy_detail
    if not log.is_usable:
        return
    expected = {"effective_test_mode": "AccuracyOnly"}
    may_differ = scenario.tree.options.infer_scenarios or scenario.scenario == "Interactive"
    if scenario.scenario is not None and not may_differ:
        expected["effective_scenario"] = scenario.scenario
    for key, wanted in expected.items():
        if log.values.get(key) != wanted:
            yield at_key(log, key, wanted)


@rule("ACC-015", Scope.SCENARIO, "The pictures or films that a model's rules name are there.", source=NEWER)
def has_extra_files(scenario: ScenarioView) -> Iterator[Violation]:
    table = scenario.model.table
    yield from _without(scenario, table.extra_accuracy_files if table else {})
    for found in _without(scenario, table.expected_files if table else {}):
        yield dataclasses.replace(found, source=_SAMPLE_IDS, severity=Severity.WARNING)


def _without(scenario: ScenarioView, wanted: Mapping[str, tuple[str, ...]]) -> Iterator[Violation]:
    for folder, names in wanted.items():
        path = join(scenario.accuracy_folder, folder)
        present = {name.split(".")[0] for name in scenario.tree.listing.files_in(path)}
        missing = sorted(set(names) - present)
        if missing:
            yield Violation(path=path, found=f"without {', '.join(missing)}", allowed=", ".join(names))


@rule("ACC-016", Scope.SCENARIO, "No setting is logged twice with two values.", source=OURS)
def has_no_conflicts(scenario: ScenarioView) -> Iterator[Violation]:
    yield from messages(scenario.accuracy_detail, scenario.accuracy_detail.conflicts, "one value")
