"""Where the rules, LoadGen's configuration and the newer checker disagree in v6.1: a change of a synthetic tree each.

`official` is what the newer checker says to it (data/round_verdicts.json has what it said); `rule` what the gate gives,
and `follows` a word of whose it is. The trees are those of round_trees.py, mostly of one scenario.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from changes import Change, both, drop, edit, fields, put, rename, replace, value
from round_trees import build_endpoints, build_model
from tree_builder import SUBMITTER, SYSTEM

from crowdperf.logs.truncation import truncated_bytes

ACCEPTS, REFUSES, CRASH = "accepts", "refuses", "crash"
HEAVY = ("dlrm-v3", "rgat", "qwen3-vl-235b-a22b")
"""LoadGen's logs of them list 48,289 to 788,379 samples."""


@dataclass(frozen=True)
class Case:
    """One change. rule: that refuses, or only warns; "" where the gate accepts without a word.

    absent: a rule that does not refuse any more. The gate may find contradictions of the changed log beside it.
    """

    name: str
    model: str
    scenarios: tuple[str, ...]
    change: Change
    official: str
    rule: str = ""
    is_warning: bool = False
    follows: str = ""
    is_endpoints: bool = False
    category: str = ""
    absent: str = ""

    @property
    def is_heavy(self) -> bool:
        """Whether it takes seconds."""
        return not self.is_endpoints and self.model in HEAVY

    def build(self, root: Path) -> Path:
        """Write the tree, without the change."""
        make = build_endpoints if self.is_endpoints else build_model
        return make(root, self.model, self.category, self.scenarios)


def place(model: str, scenario: str) -> str:
    """The folder of a result."""
    return f"closed/{SUBMITTER}/results/{SYSTEM}/{model}/{scenario}"


def detail(model: str, scenario: str, key: str, new: object) -> Change:
    """A value of the performance run's detail log."""
    return value(f"{place(model, scenario)}/performance/run_1/mlperf_log_detail.txt", key, new)


def scores(model: str, scenario: str, lines: str) -> Change:
    """Other lines in accuracy.txt; the hash stays."""
    name = f"{place(model, scenario)}/accuracy/accuracy.txt"

    def change(root: Path) -> None:
        found = re.search(r"^hash=.*$", (root / name).read_text(), re.MULTILINE)
        replace(root / name, f"{lines}\n{found[0]}\n")

    return change


def latency(model: str, scenario: str, which: str, nanoseconds: int) -> Change:
    """A p99 of first tokens or of the time per token, and its 99.9."""
    keys = {
        "ttft": "result_first_token_{}_percentile_latency_ns",
        "tpot": "result_time_per_output_token_{}_percentile_ns",
    }
    return both(*(detail(model, scenario, keys[which].format(at), nanoseconds) for at in ("99.00", "99.90")))


def json_file(model: str, scenario: str, name: str, function: Callable[[dict], object]) -> Change:
    """A change of a JSON file of the client."""
    return fields(f"{place(model, scenario)}/{name}", lambda content: function(content) or content)


def summary(model: str, scenario: str, **new: object) -> Change:
    """Other values in result_summary.json."""
    return json_file(model, scenario, "performance/result_summary.json", lambda content: content.update(new))


def estimate(model: str, scenario: str, metric: str, nanoseconds: float) -> Change:
    """Another early-stopping estimate of p99."""

    def change(content: dict) -> None:
        content[metric]["early_stopping_percentiles"]["99"] = nanoseconds

    return json_file(model, scenario, "performance/result_summary.json", change)


def tenth(content: dict) -> None:
    """Every latency of a run divided by ten; samples and duration as they were."""
    for metric in ("latency", "ttft", "tpot"):
        for name, figure in content[metric].items():
            is_table = isinstance(figure, dict)
            content[metric][name] = {at: one / 10 for at, one in figure.items()} if is_table else figure / 10


def score(model: str, scenario: str, new: object) -> Change:
    """Another score in accuracy_results.json."""
    return json_file(
        model,
        scenario,
        "accuracy/accuracy_results.json",
        lambda content: content["accuracy_scores"][0].update(score=new),
    )


def config(model: str, scenario: str, old: str, new: str) -> Change:
    """Another line in config.yaml."""
    return edit(f"{place(model, scenario)}/config.yaml", old, new)


def without(model: str, scenario: str, name: str) -> Change:
    """A file that is not there."""
    return drop(f"{place(model, scenario)}/{name}")


def submitted_as_test(name: str) -> Change:
    """The log of the submitted Offline run as that of a test."""
    source = f"{place(OSS, 'Offline')}/performance/run_1/mlperf_log_detail.txt"
    return lambda root: replace(root / name, (root / source).read_bytes())


L8, OSS, VL, WAN, Q36 = "llama3.1-8b", "gpt-oss-120b", "qwen3-vl-235b-a22b", "wan-2.2-t2v-a14b", "qwen3.6-27b"
CONF, FOLDER, NEWER, OURS = "mlperf.conf", "folder's scenario", "checker", "this project"
OFF, SRV, INT, SS = ("Offline",), ("Server",), ("Interactive",), ("SingleStream",)
PAIR = ("Offline", "Server")


def _figures() -> Iterator[Case]:
    both_in = ("Offline", "Interactive")
    ne = "metric/lifetime_ne/rating: {}\nmetric/lifetime_accuracy/rating: 0.697\nmetric/lifetime_gauc/rating: 0.787"
    loose = both(detail("dlrm-v3", "Server", "effective_target_latency_ns", 30_000_000_000),
                 detail("dlrm-v3", "Server", "requested_server_target_latency_ns", 30_000_000_000))  # fmt: skip
    yield Case("dlrm-v3 Server at 30 s", "dlrm-v3", PAIR, loose, ACCEPTS, "RUN-023", follows=CONF)
    yield Case("NE of a better model", "dlrm-v3", PAIR, scores("dlrm-v3", "Offline", ne.format("0.80")), REFUSES,
               "ACC-007", follows=NEWER)  # fmt: skip
    yield Case("NE of a bad model", "dlrm-v3", PAIR, scores("dlrm-v3", "Offline", ne.format("0.99")), ACCEPTS,
               "ACC-024", follows="less is better")  # fmt: skip
    yield Case("rgat at 1 %", "rgat", OFF, scores("rgat", "Offline", "accuracy=1.0%"), ACCEPTS, "ACC-024",
               follows="accuracy_igbh.py")  # fmt: skip
    slow = latency(OSS, "Server", "tpot", 78_000_000)
    yield Case("gpt-oss Server at 78 ms per token", OSS, PAIR, slow, ACCEPTS, absent="RUN-019")
    late = latency(L8, "Interactive", "ttft", 1_900_000_000)
    yield Case("Interactive with a first token at 1.9 s", L8, both_in, late, ACCEPTS, "RUN-019", follows=FOLDER)
    slow = latency(OSS, "Interactive", "tpot", 18_000_000)
    yield Case("gpt-oss Interactive at 18 ms per token", OSS, both_in, slow, ACCEPTS, "RUN-019", follows=FOLDER)
    late = latency(L8, "Server", "ttft", 2_000_000_000)
    yield Case("Server with a first token at the limit", L8, PAIR, late, REFUSES, "RUN-019", follows=NEWER)
    p99 = [detail(VL, "Interactive", f"result_{at}_percentile_latency_ns", 5_000_000_000) for at in ("99.00", "99.90")]
    yield Case("qwen3-vl Interactive at 5 s", VL, both_in, both(*p99), ACCEPTS, "RUN-012", follows=FOLDER)
    yield Case("qwen3-vl without Server", VL, both_in, lambda root: None, ACCEPTS, absent="SCEN-002")
    lower = rename(place(VL, "Offline"), place(VL, "offline"))
    yield Case("qwen3-vl in lower case", VL, both_in, lower, REFUSES, "SCEN-005", follows=NEWER)
    few = [detail(WAN, "SingleStream", key, 50) for key in ("effective_performance_sample_count",)]
    yield Case("wan with 50 samples in memory", WAN, ("Offline", "SingleStream"), both(*few), ACCEPTS, "RUN-024",
               is_warning=True, follows=CONF)  # fmt: skip
    unequal = detail(L8, "Server", "effective_sample_concatenate_permutation", False)
    yield Case("8B without equal issue", L8, PAIR, unequal, ACCEPTS, "RUN-024", is_warning=True, follows=CONF)
    yield Case("whisper without token latencies", "whisper", OFF,
               detail("whisper", "Offline", "requested_use_token_latencies", False), ACCEPTS, "RUN-024",
               is_warning=True, follows=CONF)  # fmt: skip
    yield Case("8B without token latencies", L8, PAIR, detail(L8, "Offline", "requested_use_token_latencies", False),
               REFUSES, "RUN-019", follows=NEWER)  # fmt: skip
    yield Case("LoadGen calls the run INVALID", "e2e-rag-qna", OFF,
               detail("e2e-rag-qna", "Offline", "result_validity", "INVALID"), ACCEPTS, "RUN-004")  # fmt: skip


def _scores() -> Iterator[Case]:
    rouge = "{{'rouge1': 38.8, 'rouge2': 15.95, 'rougeL': 24.5, 'rougeLsum': 35.8, 'gen_len': {}}}"
    numpy = scores(L8, "Offline", rouge.format("np.int64(8167644)"))
    yield Case("a score that NumPy 2 printed", L8, PAIR, numpy, REFUSES, "ACC-022", follows=NEWER)
    power = scores(L8, "Offline", rouge.format("8.167644e+06"))
    yield Case("a score with an exponent", L8, PAIR, power, REFUSES, "ACC-022", follows=NEWER)
    two = scores(OSS, "Offline", "{'exact_match': 70.0}\n{'exact_match': 83.13}")
    yield Case("a score of a part before that of the whole", OSS, PAIR, two, REFUSES, "ACC-023", follows=NEWER)
    late = scores(OSS, "Offline", "{'exact_match': 83.13}\n{'exact_match': 90.0}")
    yield Case("two scores above the target", OSS, PAIR, late, ACCEPTS, "ACC-023", follows=NEWER)
    yield Case("qwen3.6 with a weak subset", Q36, SS,
               scores(Q36, "SingleStream", "mAP=86.0\n{'overall': 86.0, 'non_live': 84.0}"), ACCEPTS, "ACC-024",
               follows="edge-agentic/README.md")  # fmt: skip
    yield Case("qwen3.6 above its README's gate", Q36, SS, scores(Q36, "SingleStream", "mAP=84.0"), REFUSES, "ACC-007",
               follows=NEWER)  # fmt: skip
    yield Case("qwen3.6 without the second gate", Q36, SS, scores(Q36, "SingleStream", "mAP=86.23"), ACCEPTS,
               "ACC-024", is_warning=True, follows="edge-agentic/README.md")  # fmt: skip
    yield Case("e2e-rag-db at 98.5 %", "e2e-rag-db", OFF, scores("e2e-rag-db", "Offline", "Accuracy: 98.5"), ACCEPTS,
               "ACC-024", follows="datasetup_accuracy_eval.py")  # fmt: skip
    yield Case("e2e-rag-db in its script's words", "e2e-rag-db", OFF,
               scores("e2e-rag-db", "Offline", "Success rate: 99.80%"), REFUSES, "ACC-006")  # fmt: skip
    yield Case("a short accuracy log that was cut", "3d-unet-99", ("Offline", "SingleStream"), short_log_cut, ACCEPTS)
    yield Case("stable-diffusion-xl without pictures", "stable-diffusion-xl", ("Offline", "SingleStream"),
               lambda root: None, ACCEPTS, "ACC-015", True, "sample_ids.txt", category="edge")  # fmt: skip


def short_log_cut(root: Path) -> None:
    """An accuracy log of 5 kB as the official tool cuts it: its middle is in both parts."""
    answers = [(index * 31 + 1).to_bytes(64, "little").hex().upper() for index in range(43)]
    rows = ",\n".join(f'{{ "seq_id" : {at}, "qsl_idx" : {at}, "data" : "{one}" }}' for at, one in enumerate(answers))
    log = f"[\n{rows}\n]\n".encode()
    folder = root / place("3d-unet-99", "Offline") / "accuracy"
    replace(folder / "mlperf_log_accuracy.json", truncated_bytes(log))
    edit("accuracy.txt", r"^hash=.*$", f"hash={hashlib.sha256(log).hexdigest()}")(folder)


def _tests() -> Iterator[Case]:
    yield Case(
        "TEST06 without its log",
        L8,
        PAIR,
        without(L8, "Offline", "TEST06/accuracy"),
        ACCEPTS,
        "TEST-006",
        is_warning=True,
    )
    text7, text9 = (f"{place(OSS, 'Offline')}/{name}" for name in
                    ("TEST07/verify_accuracy.txt", "TEST09/verify_output_len.txt"))  # fmt: skip
    low = both(edit(text7, r"84\.2424", "50.1"), edit(text7, "60.698", "50"))
    yield Case("TEST07 with a low score", OSS, PAIR, low, ACCEPTS, "TEST-015", follows="audit.config")
    yield Case("TEST07 with another score than its script's", OSS, PAIR, edit(text7, "^Accuracy score: .*",
               "Accuracy score: 70.1"), ACCEPTS, "TEST-015", follows="audit.config")  # fmt: skip
    long = edit(text9, "^Mean output tokens: .*", "Mean output tokens: 3000")
    yield Case("TEST09 with long answers", OSS, PAIR, long, ACCEPTS, "TEST-017", follows="audit.config")
    yield Case("TEST09 of ten samples", OSS, PAIR, edit(text9, "^Total samples: .*", "Total samples: 10"), ACCEPTS,
               "TEST-017", follows="audit.config")  # fmt: skip
    again = f"{place(OSS, 'Offline')}/TEST09/performance/run_1/mlperf_log_detail.txt"
    yield Case("TEST09 of a run that repeats samples", OSS, PAIR, submitted_as_test(again), ACCEPTS, "TEST-019",
               follows="audit.config")  # fmt: skip
    half = value(again, "effective_min_sample_count", 3198)
    yield Case("TEST09 of half of the samples in Offline", OSS, PAIR, half, ACCEPTS, "TEST-019", follows="audit.config")
    few = put(f"{place(OSS, 'Offline')}/TEST09/accuracy/mlperf_log_accuracy.json",
              '[\n{ "seq_id" : 0, "qsl_idx" : 0, "data" : "0100000002000000" }\n]\n')  # fmt: skip
    yield Case("TEST09's log of one answer", OSS, PAIR, few, ACCEPTS, "TEST-018", follows="audit.config")
    text8 = f"{place('dlrm-v3', 'Offline')}/TEST08/verify_accuracy.txt"
    yield Case("TEST08 with a tolerance of 5 %", "dlrm-v3", PAIR, edit(text8, "0.10%", "5.00%"), ACCEPTS, "TEST-016",
               follows="audit.config")  # fmt: skip
    for name, model, scenarios in (("wan", WAN, ("Offline", "SingleStream")), ("e2e-rag", "e2e-rag-qna", OFF)):
        yield Case(f"{name} on a system of both categories", model, scenarios, lambda root: None, CRASH, "MODEL-002",
                   category="datacenter,edge")  # fmt: skip
    yield Case("8B on an edge system", L8, PAIR, lambda root: None, CRASH, "MODEL-002", category="edge")
    supplies = f"closed/{SUBMITTER}/systems/{SYSTEM}_power.yaml"
    yield Case("power supplies that are no YAML", Q36, SS, put(supplies, "PSUs: [\n"), CRASH, "SYS-013")
    tree = "node:\n  PSUs: [{PowerCapacityWatts: 800}, {PowerCapacityWatts: 900}]\n  Min PSUs Needed: 1\n"
    yield Case("power supplies", Q36, SS, put(supplies, tree), ACCEPTS)


def _of_endpoint(name: str, model: str, scenarios: tuple[str, ...], change: Change, official: str, rule: str,
                 is_warning: bool = False) -> Case:  # fmt: skip
    follows = NEWER if official != ACCEPTS else ""
    return Case(name, model, scenarios, change, official, rule, is_warning, follows if rule else "", True)


def _endpoint_latencies() -> Iterator[Case]:
    case = _of_endpoint
    yield case(
        "endpoints: an estimate of a fifth", L8, PAIR, estimate(L8, "Server", "latency", 18e6), ACCEPTS, "EP-020", True
    )
    yield case("endpoints: percentiles below the least", L8, PAIR, json_file(L8, "Server",
               "performance/result_summary.json", lambda one: one["latency"].update(min=7e7)), ACCEPTS,
               "EP-021")  # fmt: skip
    yield case("endpoints: a mean above the greatest", L8, PAIR, json_file(L8, "Server",
               "performance/result_summary.json", lambda one: one["ttft"].update(avg=2e8)), ACCEPTS,
               "EP-021")  # fmt: skip
    yield case("endpoints: latencies of a tenth in a stream", Q36, SS, json_file(Q36, "SingleStream",
               "performance/result_summary.json", tenth), ACCEPTS, "EP-022", True)  # fmt: skip
    yield case("endpoints: an answer longer than the run", L8, PAIR, json_file(L8, "Server",
               "performance/result_summary.json", lambda one: one["latency"].update(max=1e13)), ACCEPTS,
               "EP-022")  # fmt: skip


def _endpoints() -> Iterator[Case]:
    case = _of_endpoint
    yield case("endpoints: good", L8, PAIR, lambda root: None, ACCEPTS, "")
    seed = config(L8, "Server", "dataloader_random_seed: .*", "dataloader_random_seed: 42")
    yield case("endpoints: seed of the examples", L8, PAIR, seed, REFUSES, "EP-003")
    yield case("endpoints: min_duration 0", Q36, SS, config(Q36, "SingleStream", "600000", "0"), REFUSES, "EP-004")
    online = config(L8, "Offline", "type: offline", "type: online")
    yield case("endpoints: online in Offline", L8, PAIR, online, REFUSES, "EP-005")
    yield case("endpoints: 600 ms to the first token in Interactive", L8, ("Offline", "Interactive"),
               estimate(L8, "Interactive", "ttft", 6e8), REFUSES, "EP-006")  # fmt: skip
    yield case("endpoints: no early-stopping percentiles", L8, PAIR, json_file(L8, "Server",
               "performance/result_summary.json", lambda one: one["ttft"].pop("early_stopping_percentiles") and None),
               REFUSES, "EP-006")  # fmt: skip
    yield case("endpoints: bad percentiles beside good ones", L8, PAIR, json_file(L8, "Server",
               "performance/result_summary.json", lambda one: one["ttft"].update(percentiles={"99": 99e6})), ACCEPTS,
               "EP-020", True)  # fmt: skip
    yield case("endpoints: qwen3-vl at 13 s", VL, PAIR, estimate(VL, "Server", "latency", 1.3e10), REFUSES, "EP-007")
    yield case("endpoints: no figure", L8, PAIR, summary(L8, "Server", tps=None), REFUSES, "EP-008")
    half = json_file(L8, "Offline", "accuracy/accuracy_results.json",
                     lambda one: one["accuracy_scores"][0].update(total_samples=5000))  # fmt: skip
    yield case("endpoints: a part of the data set", L8, PAIR, half, REFUSES, "EP-009")
    yield case("endpoints: no score", L8, PAIR, score(L8, "Offline", None), REFUSES, "EP-010")
    yield case("endpoints: score 0 of 8B", L8, PAIR, score(L8, "Offline", {"rouge1": 0.0}), ACCEPTS, "EP-011")
    parts = [("aime", 90.0, 8, 30), ("gpqa", 80.0, 5, 198), ("lcb", 70.0, 3, 1055)]
    sets = [{"dataset_name": name, "dataset_type": "accuracy", "score": one, "unit_samples": count,
             "total_samples": count * repeats} for name, one, repeats, count in parts]  # fmt: skip
    weak = json_file(OSS, "Offline", "accuracy/accuracy_results.json", lambda one: one.update(accuracy_scores=sets))
    yield case("endpoints: gpt-oss's three data sets too low", OSS, PAIR, weak, ACCEPTS, "EP-011")
    yield case("endpoints: qwen3-vl's score too low", VL, PAIR, score(VL, "Offline", 0.5), REFUSES, "EP-011")
    yield case("endpoints: qwen3.6 below its README's gate", Q36, SS, score(Q36, "SingleStream", 0.83), ACCEPTS,
               "EP-011")  # fmt: skip
    wan = ("Offline", "SingleStream")
    yield case(
        "endpoints: wan without its films", WAN, wan, without(WAN, "Offline", "accuracy/videos"), REFUSES, "ACC-015"
    )
    yield case("endpoints: wan without its audit", WAN, wan, without(WAN, "Offline", "audit"), REFUSES, "EP-012")
    audit = "audit/audit_output_caching_test.json"
    failed = json_file(WAN, "Offline", audit, lambda one: one.update(passed=False))
    yield case("endpoints: an audit that failed", WAN, wan, failed, REFUSES, "EP-012")
    lengths = {"min": 2, "max": 9000, "avg": 2000.0}
    long = summary(OSS, "Offline", output_sequence_lengths=lengths, tps=6396 / 700 * 2000)
    yield case("endpoints: long answers of gpt-oss", OSS, PAIR, long, REFUSES, "EP-013")
    short = summary(L8, "Server", duration_ns=6e10, qps=13368 / 60, tps=13368 * 128 / 60)
    yield case("endpoints: a run of 60 s", L8, PAIR, short, ACCEPTS, "EP-014")
    yield case("endpoints: an interrupted run", L8, PAIR, summary(L8, "Server", state="interrupted", complete=False),
               ACCEPTS, "EP-015")  # fmt: skip
    yield case("endpoints: a failed sample", L8, PAIR, summary(L8, "Server", n_samples_failed=1), ACCEPTS, "EP-016")
    ten = summary(L8, "Offline", n_samples_issued=10, n_samples_completed=10, qps=10 / 700, tps=1280 / 700)
    yield case("endpoints: ten samples", L8, PAIR, ten, ACCEPTS, "EP-017")
    yield case("endpoints: forged tokens", L8, PAIR, summary(L8, "Server", tps=1e6), ACCEPTS, "EP-018")
    yield case("endpoints: no provenance", L8, PAIR, summary(L8, "Server", git_sha=None, test_started_at=0), ACCEPTS,
               "EP-019", True)  # fmt: skip
    yield case("endpoints: no config.yaml", L8, PAIR, without(L8, "Server", "config.yaml"), CRASH, "EP-002")
    yield case("endpoints: no README.md", L8, PAIR, without(L8, "Server", "README.md"), REFUSES, "MEAS-005")
    yield case("endpoints: whisper", "whisper", OFF, lambda root: None, REFUSES, "EP-001")
    yield case("endpoints: a folder called online", L8, PAIR, rename(place(L8, "Server"), place(L8, "online")), REFUSES,
               "SCEN-001")  # fmt: skip


CASES: Mapping[str, Case] = {
    one.name: one for part in (_figures, _scores, _tests, _endpoints, _endpoint_latencies) for one in part()
}
