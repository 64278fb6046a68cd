"""Tokens per second of prompts and answers, as llama-bench names them."""

from crowdperf.harness.text.engine import AnswerTimes
from crowdperf.harness.text.phases import Phases
from crowdperf.logs.text_metrics import phases_text


def times(began_s: float, first_s: float, ended_s: float, pieces: int) -> AnswerTimes:
    return AnswerTimes(began_s=began_s, first_s=first_s, ended_s=ended_s, gaps_s=[0.0] * (pieces - 1))


def test_rates_are_those_of_each_answer() -> None:
    phases = Phases()
    phases.add(512, 1, 129, times(0.0, 1.0, 5.0, pieces=129))  # 512 tokens/s, 128 tokens in 4 s
    phases.add(512, 1, 129, times(10.0, 12.0, 14.0, pieces=129))  # 256 tokens/s, 128 tokens in 2 s
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
    phases.add(0, 1, 9, times(0.0, 1.0, 2.0, pieces=9))
    phases.add(0, 3, 11, times(0.0, 1.0, 2.0, pieces=11))
    (only,) = phases.record()
    assert (only["name"], only["tokens"], only["mean"]) == ("tg", 10.0, 8.0)
    assert phases_text({}) == "" and Phases().record() == []


def test_answers_whose_tokens_came_together_have_no_rates() -> None:
    phases = Phases()
    phases.add(64, 32, 32, times(0.0, 0.5, 0.5, pieces=1))
    phases.add(64, 1, 32, times(0.0, 0.5, 0.501, pieces=9))
    assert phases.record() == []


def test_one_answer_has_no_spread() -> None:
    phases = Phases()
    phases.add(64, 1, 9, times(0.0, 0.5, 1.0, pieces=9))
    prompt, generation = phases.record()
    assert (prompt["name"], prompt["mean"], prompt["stddev"]) == ("pp64", 128.0, None)
    assert phases_text({"phases": [prompt, generation]}) == "pp64 128, tg9 16 tokens/s (mean of 1 answer)"
