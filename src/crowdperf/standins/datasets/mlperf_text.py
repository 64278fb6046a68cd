"""Makes data of a benchmark in the form of its published files: a JSON list, a pickled table of pandas, or parquet.

Prompts are random token ids from 3 to 499, which every tokenizer has. News have made summaries; tasks have the
solutions that their kind has (a letter, an integer, a formula), and say in words what is asked. gpt-oss-120b gets its
three tables: for accuracy each question as often as in the published set. The column `made_answer`, which published
tables do not have, is what a scripted backend answers: right four times out of five. No figure got with this is an
MLPerf result.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

from crowdperf.standins.dataset_program import NOTE, Given, MadeSet

LENGTHS = {"small": (8, 48), "real": (200, 1_000)}
"""Tokens of a prompt."""
_FIRST_ID, _END_ID = 3, 500
_WORDS = ["the", "a", "new", "city", "people", "say", "year", "house", "river", "market", "train", "rain", "school",
          "team", "plan", "road", "game", "night", "price", "law"]  # fmt: skip
_LETTERS = "ABCDEFGHIJ"
_KINDS = ("aime", "gpqa", "livecodebench", "math500", "mmlu_pro")
_REPEATS = (("aime25", 8), ("gpqa_diamond", 5), ("livecodebench_v6", 3))
_FACTS = {"is_synthetic": True, "license": "CC0-1.0: made by a program", "note": NOTE}


class Maker:
    """Random prompts, sentences and tasks, all from one seed."""

    def __init__(self, seed: int, lengths: tuple[int, int]) -> None:
        self._source = random.Random(seed)
        self._lengths = lengths

    def ids(self) -> list[int]:
        """The token ids of a prompt."""
        return [self._source.randrange(_FIRST_ID, _END_ID) for _ in range(self._source.randint(*self._lengths))]

    def sentence(self) -> str:
        """Some words with a full stop."""
        return " ".join(self._source.choice(_WORDS) for _ in range(self._source.randint(6, 14))).capitalize() + "."

    def task(self, kind: str) -> tuple[str, Any]:
        """What is asked, and its solution."""
        first, second = self._source.randint(2, 99), self._source.randint(2, 9)
        if "aime" in kind:
            return f"What is {first} + {second}? Answer with a number in \\boxed{{}}.", first + second
        if "math" in kind:
            return f"Write {second}/{first + 100} as a fraction in \\boxed{{}}.", f"\\frac{{{second}}}{{{first + 100}}}"
        if "livecodebench" in kind:
            return f"Write a program that prints {first}.", f"made_{first}_{second}"
        letter = self._source.choice(_LETTERS if kind == "mmlu_pro" else _LETTERS[:4])
        return f"The right letter is {letter}. End with ANSWER: and the letter.", letter

    def answer(self, kind: str, solution: Any) -> str:
        """What to say to a task; wrong one time out of five."""
        is_right = self._source.random() < 0.8
        if "livecodebench" in kind:
            return f"```python\nprint({self._source.randint(0, 9)})\n```"
        if "gpqa" in kind or "mmlu" in kind:
            return f"So it is clear.\nANSWER: {solution if is_right else 'ABCD'['ABCD'.find(solution) - 1]}"
        return f"So it is clear: \\boxed{{{solution if is_right else 1000}}}"

    def news(self) -> dict[str, Any]:
        """A row of cnn_eval.json."""
        summary = f"{self.sentence()}\n{self.sentence()}"
        return {
            "instruction": "Summarize the following news article in 128 tokens. Please output the summary only.",
            "input": " ".join(self.sentence() for _ in range(6)),
            "tok_input": self.ids(),
            "output": summary, "made_answer": summary,
        }  # fmt: skip

    def orca(self, number: int) -> dict[str, Any]:
        """A row of the table of llama2-70b."""
        ids, question, answer = self.ids(), self.sentence(), self.sentence()
        return {
            "id": f"made.{number}", "origin": ("niv", "flan", "t0", "cot")[number % 4], "system_prompt": "",
            "question": question, "output": answer, "input": question, "tok_input": [*ids, 29],
            "tok_output": self.ids(), "tok_input_length": len(ids) + 1, "tok_output_length": len(answer.split()),
            "made_answer": answer,
        }  # fmt: skip

    def reasoning(self, number: int) -> dict[str, Any]:
        """A row of the table of deepseek-r1."""
        kind = _KINDS[number % len(_KINDS)]
        question, solution = self.task(kind)
        row = {"dataset": kind, "question": question, "text_input": question, "ground_truth": str(solution)}
        return {**row, "tok_input": self.ids(), "made_answer": self.answer(kind, solution)}

    def harmony(self, kind: str) -> dict[str, Any]:
        """A row of the tables of gpt-oss-120b."""
        question, solution = self.task(kind)
        row = {"dataset": kind, "question": question, "ground_truth": str(solution), "input_tokens": self.ids()}
        return {**row, "made_answer": self.answer(kind, solution)}


def _write_table(rows: list[dict[str, Any]], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".pkl":
        import pandas  # type: ignore[import-untyped]

        # Texts as objects, as the published tables have them: pandas 3 would keep them as texts of pyarrow.
        columns = pandas.Index(list(rows[0]), dtype=object)
        pandas.DataFrame([list(row.values()) for row in rows], columns=columns, dtype=object).to_pickle(path)
    elif path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def make(given: Given) -> None:
    """Write the files of a benchmark, and made.json, which says that they are made."""
    benchmark, count = given.benchmark, given.count
    maker = Maker(given.seed, LENGTHS[given.lengths])
    tables: dict[str, list[dict[str, Any]]] = {}
    if benchmark.startswith("llama3"):
        name = "sample_cnn_eval_5000.json" if benchmark.endswith("edge") else "cnn_eval.json"
        tables[name] = [maker.news() for _ in range(count)]
    elif benchmark.startswith("llama2"):
        tables["open_orca_gpt4_tokenized_llama.sampled_24576.pkl"] = [maker.orca(number) for number in range(count)]
    elif benchmark.startswith("deepseek"):
        name = "mlperf_deepseek_r1_dataset_4388_fp8_eval.pkl"
        tables[name] = [maker.reasoning(number) for number in range(count)]
    else:
        kinds = [kind for kind, _ in _REPEATS]
        tables["perf/perf_eval_ref.parquet"] = [maker.harmony(kinds[number % 3]) for number in range(count)]
        questions = max(1, count // 32)
        asked = [(maker.harmony(kind), repeats) for kind, repeats in _REPEATS for _ in range(questions)]
        tables["acc/acc_eval_inputs.parquet"] = [row for row, repeats in asked for _ in range(repeats)]
        compliance = [maker.harmony("gpqa_diamond") for _ in range(max(2, count // 6))]
        tables["acc/acc_eval_compliance_gpqa.parquet"] = compliance
    for name, rows in tables.items():
        _write_table(rows, given.output_dir / name)
    text = json.dumps({**_FACTS, "seed": given.seed}, indent=2) + "\n"
    (given.output_dir / "made.json").write_text(text, encoding="utf-8")


MADE = MadeSet(
    name="mlperf-text",
    what="samples",
    make=make,
    options={"--benchmark": {"required": True}, "--lengths": {"choices": sorted(LENGTHS), "required": True}},
)

if __name__ == "__main__":
    sys.exit(MADE.main(__doc__))
