"""The ROUGE scorer agrees with evaluation.py of GPT-J."""

import ast
import re

import pytest
from harness_support import need
from scores import rouge_cases
from scores.agreement import check
from scores.case import recorded

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.metrics import rouge

need("rouge_score", "nltk")

_PATTERNS = {  # the checkers'
    "ROUGE1": r".*'rouge1':\s+'?([\d.]+)'?.*",
    "ROUGE2": r".*'rouge2':\s+'?([\d.]+)'?.*",
    "ROUGEL": r".*'rougeL':\s+'?([\d.]+)'?.*",
    "ROUGELSUM": r".*'rougeLsum':\s+'?([\d.]+)'?.*",
    "GEN_LEN": r".*'gen_len':\s([\d.]+).*",
}


@pytest.fixture
def nltk_data(tmp_path, monkeypatch):
    """The only folder that nltk looks for parameters in; empty."""
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    return tmp_path


@pytest.mark.parametrize("name", rouge_cases.CASES)
def test_line_is_the_official_one(name, nltk_data):
    rouge_cases.write_punkt(nltk_data)
    check("rouge", name, rouge_cases.CASES[name](), rouge_cases.ours)


@pytest.mark.parametrize("name", ["real format", "empty references", "no word characters"])
def test_what_the_rules_ask_for_needs_no_parameters(name, nltk_data):
    official = ast.literal_eval(recorded("rouge")[name]["official"])
    own = ast.literal_eval(rouge_cases.ours(rouge_cases.CASES[name]()).line)
    kept = ("rouge1", "rouge2", "rougeL", "gen_num")
    assert {key: own[key] for key in kept} == {key: official[key] for key in kept}


def test_checker_reads_every_number():
    score = rouge_cases.ours(rouge_cases.CASES["half of the samples"]())
    for name, pattern in _PATTERNS.items():
        assert float(re.match(pattern, score.line).group(1)) == score.values[name]


def test_installed_parameters_are_used(nltk_data, caplog):
    rouge_cases.write_punkt(nltk_data)
    assert (len(rouge.installed_splitter()("He met Mr. Smith.")), caplog.text) == (1, "")


def test_without_installed_parameters_the_log_says_what_may_differ(nltk_data, caplog):
    assert len(rouge.installed_splitter()("He met Mr. Smith.")) == 2
    assert "punkt_tab is not installed: rougeLsum and gen_len may differ" in caplog.text


@pytest.mark.parametrize(("responses", "said"), [([], "no response"), ([(0, b"\xff" * 8)], "has the token -1")])
def test_response_that_cannot_be_is_refused(responses, said):
    with pytest.raises(HarnessError, match=said):
        rouge.score(responses, ["A house."], rouge_cases.decode)


LLAMA2 = (
    "{'rouge1': 74.2334, 'rouge2': 50.4804, 'rougeL': 65.9266, 'rougeLsum': 72.8472, 'gen_len': 4282, 'gen_num': 40, "
    "'gen_tok_len': 4491, 'tokens_per_sample': 112.3}"
)
LLAMA3 = (
    "{'rouge1': '74.2334', 'rouge2': '50.4804', 'rougeL': '65.9266', 'rougeLsum': '72.8472', 'gen_len': 4282, "
    "'gen_num': 40}"
)


@pytest.mark.parametrize(("has_token_counts", "line"), [(True, LLAMA2), (False, LLAMA3)])
def test_the_lines_of_llama_are_those_of_their_scripts(nltk_data, has_token_counts, line):
    """evaluate-accuracy.py of language/llama2-70b and evaluation.py of language/llama3.1-8b (mlcommons/inference
    b66003e1) printed them on this case, 2026-11-23, with numpy's own marks, which the checkers cannot read."""
    case = rouge_cases._case(5, 40, dtype="int32")
    rouge_cases.write_punkt(nltk_data)
    score = rouge.score(
        case.responses, case.truth, rouge_cases.decode, dtype="int32", has_token_counts=has_token_counts
    )
    assert score.line == line
