"""Builds a closed tree of v6.1 for each of its 21 models from logs of real LoadGen runs.

Twelve models have runs of their own (data/paced_logs.tar.xz), and their trees are as recorded. The others have those of
resnet50 (data/logs.tar.xz) with the model's own counts: numbers of samples, what follows from them (rates, the samples
that were loaded), and target rates are exchanged. Nothing here is an MLPerf result.
"""

import functools
import hashlib
import json
import math
import random
import re
import struct
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import tree_builder
from tree_builder import DATA, MEASUREMENTS, SUBMITTER, SYSTEM, system_fields

from crowdperf.compliance.verification import RunScore, compare_scores
from crowdperf.gate import rules_summary
from crowdperf.gate.documents import TextFile
from crowdperf.gate.loadgen_random import log_value
from crowdperf.gate.log_view import log_view
from crowdperf.gate.rules_testlogs import sampled_share
from crowdperf.logs.round_tables import ModelTable, load_round
from crowdperf.logs.score_lines import EXAMPLES
from crowdperf.logs.seeds import SEEDS
from crowdperf.logs.tree import ScenarioPlace, SubmissionTree
from crowdperf.logs.truncation import GAP, PART_BYTES
from crowdperf.rules.names import FIGURE_KEYS, Mode, Scenario

ROUND = "v6.1"
MODELS = load_round(ROUND).models
KINDS = ("requested", "effective")
SHOWN = 80
"""So many rows, at each end of a log, are more than the 4,096 bytes that are left of it."""
_LOG_SEED = "effective_accuracy_log_rng_seed"

_LINE = re.compile(rb'^(:::MLLOG \{"key": "(\w[\w.]*)", "value": )(.*)(, "time_ms".*\n)', re.M)
_LABELS = {
    **rules_summary._PARAMETERS,
    "target_latency (ns)": "effective_target_latency_ns",
    "ttft_latency (ns)": "requested_server_ttft_latency",
    "tpot_latency (ns)": "requested_server_tpot_latency",
}
for _rates in rules_summary._LEADING.values():
    _LABELS |= _rates

SCORES: Mapping[str, str] = {
    "acc": "accuracy=76.456%, good=38228, total=50000",
    "rgat": "accuracy=72.860%, good=574413, total=788379",
    "F1": '{"exact_match": 83.1, "f1": 90.88}',
    "DICE": "Accuracy: mean = 0.86200, kidney tumor = 0.93400, tumor = 0.79000",
    "mAP": "mAP=53.400%",
    "DLRM_NE": "metric/lifetime_ne/rating: 0.8667\n"
    "metric/lifetime_accuracy/rating: 0.69651\nmetric/lifetime_gauc/rating: 0.78663",
}
"""By model, or by the first of its metrics where that is enough: lines of accuracy.txt; else scorelines.EXAMPLES."""


@functools.cache
def logs() -> dict[str, bytes]:
    """Every file of both archives; those of a recorded model by MODEL/SCENARIO/... as in a submission."""
    with tarfile.open(DATA / "paced_logs.tar.xz") as archive:
        found = {one.name.removeprefix("./"): archive.extractfile(one).read() for one in archive if one.isfile()}
    return found | tree_builder.logs()


@functools.cache
def recorded(model: str, scenario: str) -> Mapping[str, bytes]:
    """The files of a result that was recorded, by their paths below its folder; none where it was not."""
    folder = f"{model}/{scenario}/"
    return {name.removeprefix(folder): content for name, content in logs().items() if name.startswith(folder)}


def scenarios_of(table: ModelTable, category: str) -> tuple[str, ...]:
    """Every scenario that a closed system of a category can have."""
    sets = table.scenarios[category]
    return tuple(sorted(sets.required | sets.optional))


def category_of(table: ModelTable) -> str:
    """The category with most scenarios, by its name in a description."""
    most = max(table.scenarios, key=lambda name: len(scenarios_of(table, name)))
    return {"both": "datacenter,edge"}.get(most, most)


def retold(text: bytes, values: Mapping[str, object]) -> bytes:
    """A detail log with other values of some keys; samples are loaded once."""
    seen: set[bytes] = set()

    def line(match: re.Match[bytes]) -> bytes:
        key = match[2].decode()
        if key not in values:
            return match[0]
        if key == "loaded_qsl_set" and match[2] in seen:
            return b""
        seen.add(match[2])
        return match[1] + json.dumps(values[key]).encode() + match[4]

    return _LINE.sub(line, text)


def values_of(text: bytes) -> dict[str, object]:
    """The first value of each key of a detail log."""
    found: dict[str, object] = {}
    for match in _LINE.finditer(text):
        if match[2] != b"loaded_qsl_set":
            found.setdefault(match[2].decode(), json.loads(match[3]))
    return found


def summary_of(text: bytes, values: Mapping[str, object]) -> bytes:
    """A summary with the values of the detail log beside it."""
    lines = []
    for line in text.decode().split("\n"):
        name, separator, rest = line.partition(":")
        key = _LABELS.get(name.strip())
        is_number = key in values and not isinstance(values[key], bool) and re.fullmatch(r"\s*[\d.e+-]+\s*", rest)
        lines.append(f"{name}{separator} {values[key]}" if is_number else line)
    return "\n".join(lines).encode()


@functools.cache
def in_memory(count: int) -> list[int]:
    """The first samples in random order, as LoadGen loads them for a performance run since 6.0.6."""
    return random.Random(count).sample(range(count), count)


def counts(table: ModelTable, scenario: str, is_accuracy: bool) -> dict[str, object]:
    """What a model's numbers of samples put into a log."""
    data_set = max(table.accuracy_samples_in(scenario), table.performance_samples)
    held = max(table.performance_samples, table.conf.performance_samples)
    scored = table.accuracy_samples_in(scenario)
    return {
        "qsl_reported_total_count": data_set,
        "qsl_reported_performance_count": held,
        "requested_performance_sample_count_override": held,
        "effective_performance_sample_count": held,
        "requested_accuracy_sample_count_override": scored if scored != data_set else 0,
        "effective_accuracy_sample_count": scored,
        "loaded_qsl_set": list(range(scored)) if is_accuracy else in_memory(held),
    }


def generated(table: ModelTable, scenario: str, detail: bytes) -> dict[str, object]:
    """What LoadGen generates for an accuracy run that loads all samples at once, with the target rate of a log."""
    samples = table.accuracy_samples_in(scenario)
    in_query = {"Offline": samples, "MultiStream": 8}.get(scenario, 1)
    queries = samples // in_query
    found: dict[str, object] = {"generated_query_count": queries, "generated_samples_per_query": in_query}
    if scenario in ("SingleStream", "MultiStream"):  # at fixed intervals
        found["generated_query_duration"] = round(queries * 1e9 / float(values_of(detail)["effective_target_qps"]))
    return found


def performance(table: ModelTable, scenario: str) -> tuple[bytes, bytes]:
    """Detail log and summary of a performance run, with the counts and rates of the model."""
    source = f"closed/{scenario}".replace("Interactive", "Server")
    detail, summary = (logs()[f"{source}/mlperf_log_{kind}.txt"] for kind in ("detail", "summary"))
    return resized(table, scenario, detail, summary)


def resized(table: ModelTable, scenario: str, detail: bytes, summary: bytes) -> tuple[bytes, bytes]:
    """Both logs with the model's counts and what follows from them."""
    values = values_of(detail)
    changed = counts(table, scenario, is_accuracy=False)
    equal = table.conf.equal_issue and scenario not in ("Server", "Interactive")  # 12,098 queries are no multiple
    changed |= {f"{kind}_sample_concatenate_permutation": equal for kind in KINDS}
    if scenario == "Offline":
        samples = max(table.offline_min_samples, int(changed["effective_performance_sample_count"]) if equal else 0)
        rate = float(f"{samples * 1e9 / float(values['result_max_latency_ns']):.6g}")
        asked = float(f"{samples / 800:.6g}")
        changed |= {
            "requested_min_query_count": samples, "effective_samples_per_query": samples,
            "effective_min_sample_count": samples, "generated_samples_per_query": samples,
            "result_samples_per_second": rate, "requested_offline_expected_qps": asked, "effective_target_qps": asked,
            "generated_query_duration": int(1e9 / asked),
        }  # fmt: skip
    if scenario == "SingleStream" and equal:  # a multiple of all samples
        queries, held = int(values["generated_query_count"]), int(changed["effective_performance_sample_count"])
        interval_ns, padded = float(values["generated_query_duration"]) / queries, -(-queries // held) * held
        changed |= {"generated_query_count": padded, "generated_query_duration": round(padded * interval_ns)}
    limit = int(table.conf.latency_ns.get(scenario) or table.latency_ns.get(scenario) or 0)
    if limit and limit != values["effective_target_latency_ns"]:
        late = int(int(values["result_max_latency_ns"]) > limit)
        changed |= {"effective_target_latency_ns": limit, "requested_server_target_latency_ns": limit,
                    "result_overlatency_query_count": late}  # fmt: skip
    if scenario == "Interactive":  # made of the run in Server
        detail = of_next_process(detail)
        latencies = [key for key in values if re.fullmatch(r"result_\S*latency_ns", key)]
        changed |= {key: a_little_more(int(values[key])) for key in latencies}
        summary = re.sub(
            rb"(?<=latency \(ns\))(\s*: )(\d+)", lambda found: found[1] + b"%d" % a_little_more(int(found[2])), summary
        )
    return retold(detail, changed), summary_of(summary, {**values, **changed})


def a_little_more(latency_ns: int) -> int:
    """A latency of another run: in other proportions to its others."""
    return latency_ns + math.isqrt(latency_ns)


def of_next_process(detail: bytes) -> bytes:
    """A detail log that is made of another one, whose process and clock it must not have."""
    later = re.sub(rb'(?<="time_ms": )[\d.]+', lambda found: b"%.6f" % (float(found[0]) * 1.00001), detail)
    return re.sub(rb'"pid": (\d+)', lambda found: b'"pid": %d' % (int(found[1]) + 1), later)


def score_lines(table: ModelTable, scenario: str) -> str:
    """The lines of accuracy.txt that a model needs."""
    metrics = [one.metric for one in table.targets_in(scenario)]
    own = SCORES.get(table.name) or SCORES.get(metrics[0])
    return own or "\n".join(EXAMPLES[metric] for metric in metrics)


def answers(numbers: Sequence[int], samples: Sequence[int], first: int = 0) -> bytes:
    """An accuracy log with known answers to numbered samples, from the one at `first` on: whole where it is short, else
    its first and last 4,096 bytes. samples: those that are issued, again and again."""
    count, is_whole = len(numbers), len(numbers) <= 2 * SHOWN
    shown = [*range(min(count, SHOWN)), *range(max(SHOWN, count - SHOWN), count)]
    rows = [_row(numbers[(one + first) % count], samples) for one in shown]
    if is_whole:
        return b"[\n" + b",\n".join(rows) + b"\n]\n"
    begin, end = b"[\n" + b",\n".join(rows[:SHOWN]), b",\n".join(rows[SHOWN:]) + b"\n]\n"
    return begin[:PART_BYTES] + GAP + end[-PART_BYTES:]


def _row(number: int, samples: Sequence[int]) -> bytes:
    index = samples[number % len(samples)]
    data = struct.pack("<i", index * 31 % 100_000 + 1).hex().upper()
    return f'{{ "seq_id" : {number}, "qsl_idx" : {index}, "data" : "{data}" }}'.encode()


def digest_of(log: bytes) -> str:
    """The digest of a log; where only its beginning and end are there, one that no cut log has."""
    return hashlib.sha256(log + (b"whole" if GAP in log else b"")).hexdigest()


class TreeWriter:
    """Writes the tree of one model."""

    def __init__(self, root: Path, model: str, category: str = "", scenarios: tuple[str, ...] = ()) -> None:
        self.table = MODELS[model]
        self.category = category or category_of(self.table)
        self.tree = SubmissionTree(root=root, division="closed", submitter=SUBMITTER, round_name=ROUND)
        key = {"datacenter,edge": "both"}.get(self.category, self.category)
        self.scenarios = scenarios or scenarios_of(self.table, key)

    def put(self, path: Path, content: str | bytes) -> None:
        """Write a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def write(self) -> Path:
        """Write everything; returns the root."""
        tree, model = self.tree, self.table.name
        description = system_fields("closed", self.category)
        self.put(tree.system_json(SYSTEM), json.dumps(description, indent=2) + "\n")
        self.put(tree.code_folder / model / "README.md", "The code that ran.\n")
        self.put(tree.calibration_text, "No weights were quantised.\n")
        for scenario in self.scenarios:
            self.scenario(ScenarioPlace(system=SYSTEM, model=model, scenario=scenario))
        return tree.root

    def scenario(self, place: ScenarioPlace) -> None:
        """Write one result with its tests."""
        folder, scenario, table = self.tree.scenario_folder(place), place.scenario, self.table
        self.put(folder / "measurements.json", json.dumps(MEASUREMENTS, indent=2) + "\n")
        self.put(folder / "README.md", f"# {table.name} in {scenario}\n\nHow to run it again.\n")
        for name, content in recorded(table.name, scenario).items():
            self.put(folder / name, content)
        if not recorded(table.name, scenario):
            self.exchanged(place)
        self.films(folder / "accuracy")

    def exchanged(self, place: ScenarioPlace) -> None:
        """Write the runs of another model with this one's counts."""
        scenario, table = place.scenario, self.table
        self.put(self.tree.scenario_folder(place) / "user.conf", f"*.{scenario}.min_duration = 600000\n")
        run = self.tree.run(place, Mode.PERFORMANCE).folder
        self.logs(run, *performance(table, scenario))
        self.accuracy(self.tree.run(place, Mode.ACCURACY).folder, scenario)
        for test in table.tests:
            self.test(self.tree.compliance_folder(place, test), test, scenario)

    def logs(self, folder: Path, detail: bytes, summary: bytes) -> None:
        """Write both logs of a run."""
        self.put(folder / "mlperf_log_detail.txt", detail)
        self.put(folder / "mlperf_log_summary.txt", summary)

    def accuracy(self, folder: Path, scenario: str) -> None:
        """Write an accuracy run."""
        table, score = self.table, score_lines(self.table, scenario)
        source = f"accuracy/{scenario}".replace("Interactive", "Server")
        detail, summary = (logs()[f"{source}/mlperf_log_{kind}.txt"] for kind in ("detail", "summary"))
        detail, summary = (one.replace(b"PyFastSUT", b"PySUT") for one in (detail, summary))
        if scenario == "Interactive":
            detail = of_next_process(detail)
        values = counts(table, scenario, is_accuracy=True) | generated(table, scenario, detail)
        detail, summary = retold(detail, values), summary_of(summary, values)
        samples = table.accuracy_samples_in(scenario)
        log = answers(range(samples), range(samples))
        digest = digest_of(log)
        self.logs(folder, detail, summary)
        self.put(folder / "mlperf_log_accuracy.json", log)
        self.put(folder / "accuracy.txt", f"{score}\nhash={digest}\n")

    def films(self, folder: Path) -> None:
        """What the model's rules name beside the score."""
        for name, files in self.table.extra_accuracy_files.items():
            for file in files:
                self.put(folder / name / f"{file}.mp4", b"not a film\n")

    def test(self, folder: Path, test: str, scenario: str) -> None:
        """Write a compliance test's files."""
        if test in ("TEST01", "TEST04"):
            self.performance_test(folder, test, scenario)
        elif test == "TEST08":
            self.put(folder / "verify_accuracy.txt", test08(self.table))

    def performance_test(self, folder: Path, test: str, scenario: str) -> None:
        """TEST01 and TEST04 with the recorded logs of resnet50."""
        table, source = self.table, f"closed/{scenario}/{test}/performance/run_1/mlperf_log"
        submitted, _ = performance(table, scenario)
        detail, summary = resized(table, scenario, logs()[f"{source}_detail.txt"], logs()[f"{source}_summary.txt"])
        if test == "TEST01":
            log = {"rng_seed": 720381539243781796, "sampling_target": table.sampling_target}
            values = {f"{kind}_accuracy_log_{key}": one for kind in KINDS for key, one in log.items()}
            detail, summary = retold(detail, values), summary_of(summary, {**values_of(detail), **values})
            self.responses(folder, scenario, detail)
        self.logs(folder / "performance/run_1", detail, summary)
        scores = [score_of(scenario, one) for one in (submitted, detail)]
        verdict = compare_scores(test, *scores)
        assert verdict.is_passed, verdict.text
        self.put(folder / "verify_performance.txt", verdict.text)

    def responses(self, folder: Path, scenario: str, detail: bytes) -> None:
        """What TEST01 logged of the answers of the accuracy run, and its verdict."""
        table, run = self.table, log_view(TextFile(path="", text=detail.decode()))
        total, share, seed = table.accuracy_samples_in(scenario), sampled_share(run), run.values[_LOG_SEED]
        issued = int(run.values["result_query_count"]) * int(run.values["generated_samples_per_query"])
        numbers = [one for one in range(issued) if log_value(one, seed) <= share]
        log = answers(
            numbers, run.values["loaded_qsl_set"], 1 + list(Scenario).index(Scenario(scenario))
        )  # each in an order
        self.put(folder / "accuracy/mlperf_log_accuracy.json", log)
        self.put(folder / "accuracy/accuracy.txt", f"{score_lines(table, scenario)}\nhash={digest_of(log)}\n")
        self.put(folder / "verify_accuracy.txt", test01(total, len(numbers)))


def score_of(scenario: str, detail: bytes) -> RunScore:
    """What a test compares of a run."""
    kind, values = Scenario(scenario), values_of(detail)
    limit = float(values["effective_target_latency_ns"])
    return RunScore(scenario=kind, score=float(values[FIGURE_KEYS[kind]]), target_latency_ns=limit)


def test01(total: int, count: int) -> str:
    """What TEST01's script prints of equal answers."""
    names = {"num_acc_log_entries": total, "num_acc_log_duplicate_keys": 0, "num_acc_log_data_mismatch": 0,
             "num_perf_log_entries": count, "num_perf_log_qsl_idx_match": count, "num_perf_log_data_mismatch": 0,
             "num_missing_qsl_idxs": 0}  # fmt: skip
    return "".join(f"{name} = {number}\n" for name, number in names.items()) + "TEST PASS\n"


def test08(table: ModelTable) -> str:
    """What TEST08's script prints."""
    return (
        f"num_acc_log_entries = {table.accuracy_samples_in('Offline')}\nnum_perf_log_entries = 4096\n"
        "num_matched = 4096\nnum_unmatched = 0\nnum_ne_mismatch = 0\ntolerance = 0.10%\n\nTEST PASS\n"
    )


def build_model(root: Path, model: str, category: str = "", scenarios: tuple[str, ...] = ()) -> Path:
    """Write the closed tree of a model; returns the root."""
    return TreeWriter(root, model, category, scenarios).write()


# -- the layout of MLPerf Endpoints

PERCENTILES = {"50": 60e6, "90": 80e6, "95": 85e6, "99": 90e6, "99.9": 99e6}


def endpoints_config(scenario: str, **runtime: object) -> dict[str, object]:
    """config.yaml of the client, as far as the checker reads it."""
    seeds = SEEDS[ROUND]
    own = {"min_duration_ms": 600000, "max_duration_ms": 0, "n_samples_to_issue": None,
           "dataloader_random_seed": seeds.sample_index, "scheduler_random_seed": seeds.schedule}  # fmt: skip
    return {
        "type": "offline" if scenario == "Offline" else "online",
        "version": "1.0",
        "model_params": {"streaming": "on"},
        "settings": {"runtime": own | runtime, "load_pattern": {"type": "poisson", "target_qps": 20}},
    }


def endpoints_summary(table: ModelTable, scenario: str) -> dict[str, object]:
    """result_summary.json of a run of 700 s."""
    issued, seconds = max(table.performance_samples, 100), 700.0
    mean = (table.test_limits.get("TEST09", {}).get("least_tokens", 0.0) + 50) or 128.0
    factor = seconds * 1e9 / issued / 60e6 if scenario == "SingleStream" else 1.0  # one answer after the other
    percentiles = {name: value * factor for name, value in PERCENTILES.items()}
    tpot = {name: value / 10 for name, value in percentiles.items()}
    series = {"min": 40e6 * factor, "max": 100e6 * factor, "avg": 60e6 * factor, "percentiles": percentiles}
    short = {name: series[name] / 10 for name in ("min", "max", "avg")}
    return {
        "version": "1.0", "git_sha": "ea332753", "test_started_at": 1, "state": "complete", "complete": True,
        "n_samples_issued": issued, "n_samples_completed": issued, "n_samples_failed": 0, "duration_ns": seconds * 1e9,
        "qps": issued / seconds, "tps": issued * mean / seconds,
        "latency": {**series, "early_stopping_percentiles": percentiles},
        "ttft": {**series, "early_stopping_percentiles": percentiles},
        "tpot": {**short, "percentiles": tpot, "early_stopping_percentiles": tpot},
        "output_sequence_lengths": {"min": 2, "max": 2000, "avg": mean},
    }  # fmt: skip


ENDPOINTS_SCORES: Mapping[str, object] = {
    "qwen3-vl-235b-a22b": 0.79, "qwen3.6-27b": 0.8723, "gpt-oss-120b": 83.13, "wan-2.2-t2v-a14b": 70.48,
    "deepseek-r1": {"exact_match": 81.4, "tokens_per_sample": 3886.2},
    "llama3.1-8b": {"rouge1": 38.8, "rouge2": 15.95, "rougeL": 24.5, "rougeLsum": 35.8},
    "llama3.1-8b-edge": {"rouge1": 39.06, "rouge2": 16.2, "rougeL": 24.7, "rougeLsum": 36.2},
}  # fmt: skip


def build_endpoints(root: Path, model: str, category: str = "", scenarios: tuple[str, ...] = ()) -> Path:
    """Write the closed tree of a model whose results came from an endpoint; returns the root."""
    import yaml

    writer = TreeWriter(root, model, category, scenarios)
    table = writer.table
    for scenario in writer.scenarios:
        folder = writer.tree.scenario_folder(ScenarioPlace(system=SYSTEM, model=model, scenario=scenario))
        entry = {"dataset_name": "data", "dataset_type": "accuracy", "score": ENDPOINTS_SCORES.get(model, 99.0),
                 "total_samples": table.accuracy_samples_in(scenario)}  # fmt: skip
        writer.put(folder / "measurements.json", json.dumps(MEASUREMENTS, indent=2) + "\n")
        writer.put(folder / "README.md", f"# {model} in {scenario}\n\nHow to run it again.\n")
        writer.put(folder / "config.yaml", yaml.safe_dump(endpoints_config(scenario)))
        summary = json.dumps(endpoints_summary(table, scenario), indent=1)
        writer.put(folder / "performance/result_summary.json", summary + "\n")
        writer.put(folder / "accuracy/accuracy_results.json", json.dumps({"accuracy_scores": [entry]}, indent=1) + "\n")
        writer.films(folder / "accuracy")
        if "TEST04" in table.tests:
            audit = {"test": "output_caching_test", "passed": True}
            writer.put(folder / "audit/audit_output_caching_test.json", json.dumps(audit, indent=1) + "\n")
    writer.scenarios = ()
    return writer.write()
