"""Writes the data set smollm2: prompts in the model's chat template, tokenised, with greedy float32 answers.

    python3 make_dataset.py --model_info MODEL_JSON --output_dir FOLDER [--without_answers]

Run by run.sh in the benchmark's virtual environment with src on PYTHONPATH; needs tokenizers and jinja2, and
for answers torch and safetensors. Everything is checked before the first answer is made; dataset.json is written last.
"""

import argparse
import hashlib
import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jinja2.sandbox import ImmutableSandboxedEnvironment

from crowdperf.benchmarks.smollm2.record import RECORD
from crowdperf.harness.base.cores import available_cores, physical_cores
from crowdperf.harness.base.errors import HarnessError, program
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.text.engine import EngineRequest, Prompt, Request
from crowdperf.harness.text.request import TextRequest
from crowdperf.harness.text.tokenizer import open_tokenizer
from crowdperf.kit.whole_file import file_sha256, write_json

PROMPTS_FILE = Path(__file__).parent / "prompts.txt"
SAMPLES_FILE = "samples.jsonl"
SILENCE_S = 300.0
SHOWN_S = 10.0


def read_prompts(path: Path = PROMPTS_FILE) -> list[str]:
    """The prompts, one on each line; raises HarnessError where one is there twice or their number is another one."""
    prompts = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if len(set(prompts)) != len(prompts) or len(prompts) != RECORD.dataset_count:
        raise HarnessError(
            f"{path} should contain {RECORD.dataset_count} prompts without duplicates, but it contains {len(prompts)}"
        )
    return prompts


def with_template(folder: Path, messages: list[dict[str, str]]) -> str:
    """The messages as the chat template in tokenizer_config.json writes them, up to where the answer begins."""
    template = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))["chat_template"]
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(messages=messages, add_generation_prompt=True)


class Answers:
    """A listener that collects the answers and says how far they are."""

    def __init__(self, count: int) -> None:
        self.tokens: dict[int, list[int]] = {}
        self.problems: list[str] = []
        self.is_over = threading.Event()
        self._count, self._said_s = count, time.monotonic()

    def first(self, number, tokens):
        """Nothing: whole answers are wanted."""

    def done(self, number, answer):
        """Keep an answer."""
        self.tokens[number] = answer.tokens.tolist()
        if time.monotonic() - self._said_s > SHOWN_S:
            self._said_s = time.monotonic()
            print(f"smollm2: {len(self.tokens)} of {self._count} answers", flush=True)
        if len(self.tokens) == self._count:
            self.is_over.set()

    def failed(self, number, why):
        """Stop at the first prompt without an answer."""
        self.problems.append(f"prompt {number}: {why}")
        self.is_over.set()

    def broken(self, error):
        """Stop with what went wrong."""
        self.problems.append(repr(error))
        self.is_over.set()


def reference_answers(request: EngineRequest, prompts: list[list[int]]) -> list[list[int]]:
    """The greedy float32 answers; raises HarnessError where one cannot be made."""
    from crowdperf.harness.backends.torch_llm.engine import open_engine  # needs torch

    told = Answers(len(prompts))
    engine = open_engine(request)
    try:
        engine.start(told)
        asked = [Prompt(tokens=np.array(tokens, dtype=np.int32)) for tokens in prompts]
        engine.submit([Request(number=number, prompt=prompt) for number, prompt in enumerate(asked)])
        made = -1
        while not told.is_over.wait(SILENCE_S):
            if len(told.tokens) == made:
                raise HarnessError(f"no answer within {SILENCE_S:g} s", "try again when the machine is less busy")
            made = len(told.tokens)
    finally:
        engine.close()
    if told.problems:
        raise HarnessError("; ".join(told.problems))
    return [told.tokens[number] for number in range(len(prompts))]


def answered(
    rows: list[dict], facts: ModelFacts, longest: int, output_dir: Path
) -> tuple[list[dict], dict[str, object]]:
    """The rows with their answers, and what dataset.json says of these. longest: tokens of a prompt."""
    request = EngineRequest(
        facts=facts, sampling=RECORD.generation.sampling, text=TextRequest(max_in_flight=16), precision="fp32",
        device="cpu", threads=len(physical_cores(available_cores())), cores=(), longest_prompt=longest,
        folder=output_dir,
    )  # fmt: skip
    start_s = time.monotonic()
    answers = reference_answers(request, [row["tokens"] for row in rows])
    said = {
        "answer_tokens": sum(map(len, answers)),
        "seconds_for_answers": round(time.monotonic() - start_s, 1),
    }
    return [{**row, "answer": answer} for row, answer in zip(rows, answers, strict=True)], said


def make_dataset(model_info: Path, output_dir: Path, has_answers: bool = True) -> dict:
    """Write samples.jsonl and, last, dataset.json into `output_dir`; gives what dataset.json holds."""
    facts, asked = read_model_facts(None, model_info), RECORD.generation
    tokenizer = open_tokenizer(facts.folder)
    chats = [[{"role": "user", "content": prompt}] for prompt in read_prompts()]
    texts = [with_template(facts.folder, messages) for messages in chats]
    tokens = [tokenizer.encode(text) for text in texts]
    longest = max(map(len, tokens))
    if longest > asked.longest_prompt:
        raise HarnessError(f"the longest prompt has {longest} tokens; allowed: {asked.longest_prompt}")
    rows = [
        {"messages": messages, "text": text, "tokens": ids}
        for messages, text, ids in zip(chats, texts, tokens, strict=True)
    ]
    said: dict[str, object] = {}
    if has_answers:
        rows, said = answered(rows, facts, longest, output_dir)
    path = output_dir / SAMPLES_FILE
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    description = {
        "name": "smollm2",
        "source": "prompts written for crowdperf" + (", answers by torch_llm, float32, greedy" if has_answers else ""),
        "source_license": "Apache-2.0",
        "count": len(rows),
        "is_synthetic": False,
        "longest_prompt_tokens": longest,
        "has_answers": has_answers,
        **said,
        "model_sha256": facts.files["model"].sha256,
        "prompts_sha256": hashlib.sha256(PROMPTS_FILE.read_bytes()).hexdigest(),
        "sha256": {SAMPLES_FILE: file_sha256(path)},
    }
    write_json(output_dir / "dataset.json", description)
    return description


@program("make_dataset.py")
def main(words: Sequence[str] | None) -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model_info", type=Path, required=True, help="model.json of get,ml-model,smollm2,_huggingface"
    )
    parser.add_argument("--output_dir", type=Path, required=True, help="existing folder to write to")
    parser.add_argument("--without_answers", action="store_true", help="prompts only: enough for a performance run")
    given = parser.parse_args(words)
    made = make_dataset(given.model_info, given.output_dir, not given.without_answers)
    answers = "no answers"
    if made["has_answers"]:
        answers = f"{made['answer_tokens']} tokens of answers, {made['seconds_for_answers']} s"
    print(f"smollm2: {made['count']} prompts, {answers}")


if __name__ == "__main__":
    sys.exit(main())
