"""The newest round: the gate on a tree of each model, and where it follows the checker, the rules, or LoadGen.

What the newer checker said to the same trees is recorded (data/round_verdicts.json); where the environment names a
checkout, it is asked again.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from disagreements import CASES, CRASH, Case
from gate_support import refusing_rules, verdict
from helpers import with_python_path
from round_trees import MODELS, build_endpoints, build_model, category_of, recorded, scenarios_of
from test_gate_rounds import official_checkout
from tree_builder import DATA

from crowdperf.gate.rulebook import RULES, Severity
from crowdperf.gate.rules_system import power_watts
from crowdperf.logs.score_lines import EXAMPLES, PATTERNS, parse_scores, unplain_scores

VERDICTS = json.loads((DATA / "round_verdicts.json").read_text())
RECORDED = (
    "llama3.1-8b", "llama3.1-8b-edge", "llama2-70b-99.9", "deepseek-r1", "gpt-oss-120b", "stable-diffusion-xl",
    "whisper", "yolo-99", "wan-2.2-t2v-a14b", "qwen3.6-27b", "e2e-rag-qna", "e2e-rag-db",
)  # fmt: skip


def _by_weight(names: Iterator[str], is_quick) -> list:
    return [pytest.param(name, marks=() if is_quick(name) else pytest.mark.full) for name in names]


@pytest.mark.parametrize("model", _by_weight(MODELS, lambda name: name in RECORDED))
def test_a_tree_of_each_model_is_accepted_by_the_gate_and_by_the_checker(model: str, tmp_path: Path):
    found = verdict(build_model(tmp_path, model))
    assert [(one.rule, one.path, one.found) for one in found.findings if one.severity is Severity.ERROR] == []
    assert VERDICTS["loadgen"][model] == "accepts"


@pytest.mark.parametrize("model", RECORDED)
def test_the_runs_of_a_recorded_model_are_its_own_in_every_scenario(model: str, tmp_path: Path):
    table, root = MODELS[model], build_model(tmp_path, model)
    for scenario in scenarios_of(table, category_of(table).replace("datacenter,edge", "both")):
        found = recorded(model, scenario)
        (folder,) = root.glob(f"closed/*/results/*/{model}/{scenario}")
        for name, content in found.items():
            assert (folder / name).read_bytes() == content
        for test in ("performance", *(one for one in table.tests if one in ("TEST01", "TEST04"))):
            run = folder / (test if test == "performance" else f"{test}/performance") / "run_1"
            ended = re.findall(r'"time_ms": ([\d.]+)', (run / "mlperf_log_detail.txt").read_text())[-1]
            assert "Result is : VALID" in (run / "mlperf_log_summary.txt").read_text()
            assert float(ended) > 660_000


@pytest.mark.parametrize("model", [name for name, table in MODELS.items() if table.may_be_endpoints])
def test_a_tree_of_an_endpoint_is_accepted_by_the_gate_and_by_the_checker(model: str, tmp_path: Path):
    found = verdict(build_endpoints(tmp_path, model))
    assert [(one.rule, one.path, one.found) for one in found.findings] == []
    assert VERDICTS["endpoints"][model] == "accepts"


def test_a_result_of_an_endpoint_is_known_from_v6_1_on_and_without_logs_of_loadgen(tmp_path: Path):
    root = build_endpoints(tmp_path, "qwen3.6-27b")
    assert "RUN-001" in refusing_rules(verdict(root, "v6.0"))
    (folder,) = root.glob("closed/*/results/*/*/*/accuracy")
    (folder / "mlperf_log_detail.txt").write_text("")
    assert "RUN-001" in refusing_rules(verdict(root))


def test_scores_of_a_performance_run_count_for_nothing(tmp_path: Path):
    root = build_endpoints(tmp_path, "qwen3.6-27b")
    (path,) = root.rglob("accuracy_results.json")
    content = json.loads(path.read_text())
    content["accuracy_scores"].append({**content["accuracy_scores"][0], "dataset_type": "performance", "score": 0.0})
    path.write_text(json.dumps(content))
    assert verdict(root).findings == ()
    content["accuracy_scores"][0]["score"], content["accuracy_scores"][1]["score"] = 0.5, 1.0
    path.write_text(json.dumps(content))
    assert refusing_rules(verdict(root)) == {"EP-011"}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory):
    """Trees by what they are made of: each is built once."""
    made: dict[tuple, Path] = {}

    def tree(case: Case, folder: Path) -> Path:
        key = (case.model, case.scenarios, case.is_endpoints, case.category)
        if key not in made:
            made[key] = case.build(tmp_path_factory.mktemp("good"))
        return Path(shutil.copytree(made[key], folder / "tree"))

    return tree


@pytest.mark.parametrize("name", _by_weight(CASES, lambda name: not CASES[name].is_heavy))
def test_a_change_gets_its_rule_whatever_the_checker_says(name: str, good, tmp_path: Path):
    case = CASES[name]
    root = good(case, tmp_path)
    case.change(root)
    found = verdict(root)
    refusing = refusing_rules(found)
    warning = {one.rule for one in found.findings if one.severity is Severity.WARNING}
    assert "GATE-001" not in refusing
    assert VERDICTS["changes"][name] == case.official
    if not case.rule:
        assert case.absent not in refusing if case.absent else not refusing
        return
    assert (case.rule in warning, case.rule in refusing) == (case.is_warning, not case.is_warning)
    sources = {one.source for one in found.findings if one.rule == case.rule}
    assert any(case.follows in one for one in sources), sources


def test_every_case_names_a_rule_and_says_whose_it_is():
    assert all(not one.rule or one.rule in RULES for one in CASES.values())
    assert {one.official for one in CASES.values()} == {"accepts", "refuses", CRASH}


@pytest.mark.parametrize(
    ("metric", "line", "odd"),
    [
        ("GEN_LEN", "{'rouge1': 38.8, 'gen_len': np.int64(8167644)}", "np.int64(8167644)"),
        ("ROUGE1", "{'rouge1': np.float64(44.43), 'gen_num': 1}", "np.float64(44.43)"),
        ("GEN_LEN", "{'gen_len': 8.1e+06}", "8.1e+06"),
        ("acc", "accuracy=nan%", "nan"),
        ("acc", "accuracy=1.2.3", "1.2.3"),
    ],
)
def test_a_number_that_parses_by_luck_is_shown_as_it_stands(metric: str, line: str, odd: str):
    assert unplain_scores(metric, f"chatter\n{line}\n") == ((odd, 2),)


@pytest.mark.parametrize("line", [*EXAMPLES.values(), "accuracy of the model", "accuracy_samples=50000", ""])
def test_a_plain_number_and_chatter_are_nothing_odd(line: str):
    metrics = [metric for metric in EXAMPLES if parse_scores(metric, line)] or ["acc"]
    assert all(unplain_scores(metric, line) == () for metric in metrics)


@pytest.mark.parametrize("unit", ['{"f1": 1', "'rouge1': a(", "'gen_len': np.int64("])
def test_a_long_line_without_an_end_is_read_at_once(unit: str):
    """Without bounds each of these took minutes: the search began again at every place of the line."""
    text = unit * (500_000 // len(unit))
    assert all(unplain_scores(metric, text) == parse_scores(metric, text) == () for metric in PATTERNS)


def test_the_watts_of_a_system_are_those_of_the_supplies_that_it_needs():
    node = {"psus": [{"PowerCapacityWatts": 800}, {"PowerCapacityWatts": 900}], "Min PSUs Needed": 1}
    assert power_watts({"rack": [{"node 1": node}, {"node 2": node}], "note": "text"}) == 1800.0


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nd: &d [*c, *c, *c, *c]\n"
        "e: &e [*d, *d, *d, *d]\nf: &f [*e, *e, *e, *e]\ntype: [*f, *f, *f, *f]\n",
        "type: &a [*a]\n",
        "type: !!python/object:os.system []\n",
        "type: 1\n\tx: 2\n",
        "[]\n",
        "",
    ],
)
def test_a_config_that_is_made_to_hurt_is_a_finding(text: str, tmp_path: Path):
    root = build_endpoints(tmp_path, "qwen3.6-27b")
    (config,) = root.glob("closed/*/results/*/*/*/config.yaml")
    config.write_text(text)
    assert refusing_rules(verdict(root)) == {"EP-002"}


@pytest.mark.full
def test_the_checker_still_says_what_is_recorded():
    checkout = official_checkout()
    script = Path(__file__).with_name("record_round_verdicts.py")
    call = [sys.executable, str(script), f"--inference={checkout}", "--check"]
    assert subprocess.run(call, env=with_python_path("src", "tests/support"), check=False).returncode == 0
