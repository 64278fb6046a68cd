"""Tokens per second of prompts and answers, as llama-bench names them."""

from crowdperf.harness.text.engine import AnswerTimes
from crowdperf.harness.text.phases import Phases
from crowdperf.logs.text_metrics import phases_text


def test_rates_are_those_of_each_answer() -> None:
    phases = Phases()
    phases.add(512, 1, 129, AnswerTimes(began_s=0.0, first_s=1.0, ended_s=5.0))  # 512 tokens/s, 128 tokens in 4 s
    phases.add(512, 1, 129, AnswerTimes(began_s=10.0, first_s=12.0, ended_s=14.0))  # 256 tokens/s, 128 tokens in 2 s
    prompt, generation = phases.record()
    assert prompt == {
        "name": "pp512", "tokens": 512.0, "answers": 2, "mean": 384.0, "stddev": 128 * 2**0.5, "min": 256.0,
        "max": 512.0,
    }  # fmt: skip
    assert (generation["name"], generation["mean"]) == ("tg129", 48.0)
    assert (
        phases_text({"phases": [prompt, generation]}) == "pp512 384 ± 181, tg129 48 ± 23 tokens/s (mean of 2 answers)"
    )


def test_lengths_that_differ_and_prompts_of_unknown_length_have_no_number() -> None:
    phases = Phases()
    phases.add(0, 1, 9, AnswerTimes(began_s=0.0, first_s=1.0, ended_s=2.0))
    phases.add(0, 3, 11, AnswerTimes(began_s=0.0, first_s=1.0, ended_s=2.0))
    (only,) = phases.record()
    assert (only["name"], only["tokens"], only["mean"]) == ("tg", 10.0, 8.0)
    assert phases_text({}) == "" and Phases().record() == []


def test_an_answer_in_one_piece_has_no_rate_and_one_answer_no_spread() -> None:
    phases = Phases()
    phases.add(64, 32, 32, AnswerTimes(began_s=0.0, first_s=0.5, ended_s=0.5))
    (only,) = phases.record()
    assert (only["name"], only["mean"], only["stddev"]) == ("pp64", 128.0, None)
    assert phases_text({"phases": [only]}) == "pp64 128 tokens/s (mean of 1 answer)"
