"""A small benchmark whose answers are texts, for tests: `parrot` repeats words. Its tokenizer has a token per word."""

import json
from pathlib import Path

from harness_support import copy_harness, request

RECORD = '''
"""parrot: no benchmark of MLPerf."""

from crowdperf.rules.record import Generation, Recipes, Record, Sampling, TokenLimits

RECORD = Record(
    name="parrot",
    title="repeats words",
    loadgen_name="parrot",
    dataset="parrot",
    dataset_count=20,
    performance_sample_count=None,
    offline_min_sample_count=20,
    batch_size=1,
    largest_batch_size=1,
    references=(),
    recipes=Recipes(dataset="get,dataset,parrot", model="get,ml-model,parrot"),
    generation=Generation(
        sampling=Sampling(max_tokens=8, min_tokens=2),
        longest_prompt=16,
        server=TokenLimits(ttft_ms=500.0, tpot_ms=200.0),
        interactive=TokenLimits(ttft_ms=300.0, tpot_ms=100.0),
    ),
)
'''

DATASET = '''
"""Token ids of prompts and answers."""

import json

from crowdperf.harness.base.dataset import read_facts


class Parrot:
    def __init__(self, folder):
        self.files = (folder / "parrot.json",)
        self.samples = json.loads(self.files[0].read_text())
        self.count = len(self.samples)
        self.facts = read_facts(folder)

    def load(self, indices):
        return [self.samples[index] for index in indices]


def open_dataset(folder):
    return Parrot(folder)
'''

TEXT = '''
"""Says what the data set expects."""

import numpy as np

from crowdperf.harness.base.score import Score
from crowdperf.harness.text.engine import Prompt


class ParrotText:
    def prompts(self, raw):
        return [
            Prompt(tokens=np.array(one["prompt"], np.int32), expected=np.array(one["answer"], np.int32)) for one in raw
        ]

    def response(self, answer):
        return answer.tokens

    def score(self, responses, dataset):
        answers = {index: np.frombuffer(data, np.int32).tolist() for index, data in responses}
        right = [dataset.samples[index]["answer"] == answer for index, answer in answers.items()]
        value = 100.0 * sum(right) / len(right)
        return Score(values={"exact_match": value}, line=f"{{'exact_match': {value}}}")


def open_text(facts):
    return ParrotText()
'''

RUDE_RECORD = '''
"""A stand-in that misbehaves."""

from crowdperf.rules.record import BackendRecord

RECORD = BackendRecord(
    framework=None, devices=("cpu",), precisions=("fp32",), is_text=True, stand_in="it misbehaves on purpose"
)
'''

RUDE_ENGINE = '''
"""Tells no first token, or fails every seventh request."""

from crowdperf.harness.backends.scripted.engine import Pace, ScriptedEngine


class Hushed:
    def __init__(self, listener):
        self.listener = listener
        self.done, self.failed = listener.done, listener.failed

    def first(self, number, tokens):
        pass


class Failing(Hushed):
    def __init__(self, listener):
        super().__init__(listener)
        self.first = listener.first
        self.done = self.answer

    def answer(self, number, answer):
        if number % 7 == 6:
            self.listener.failed(number, "HTTP 503: the server is busy")
        else:
            self.listener.done(number, answer)


class Rude(ScriptedEngine):
    starts = 0

    def start(self, listener):  # it behaves in the warm-up
        self.starts += 1
        super().start(listener if self.starts == 1 else KIND(listener))


def open_engine(request):
    return Rude(request.sampling, 8, Pace())
'''

COUNT = 20


def add_parrot(root: Path) -> Path:
    """Copy the harness into `root`, add the benchmark, write its data set; returns the folder for PYTHONPATH."""
    source = root / "source"
    copy_harness(source)
    folder = source / "crowdperf" / "benchmarks" / "parrot"
    folder.mkdir()
    for name, text in (("record", RECORD), ("dataset", DATASET), ("text", TEXT)):
        (folder / f"{name}.py").write_text(text)
    for name, kind in (("hushed", "Hushed"), ("failing", "Failing")):
        folder = source / "crowdperf" / "harness" / "backends" / name
        folder.mkdir()
        (folder / "record.py").write_text(RUDE_RECORD)
        (folder / "engine.py").write_text(RUDE_ENGINE.replace("KIND(", f"{kind}("))
    samples = [
        {"prompt": list(range(number, number + 5)), "answer": list(range(number, number + 2 + number % 7))}
        for number in range(COUNT)
    ]
    (root / "data").mkdir()
    (root / "data" / "parrot.json").write_text(json.dumps(samples))
    return source


def parrot_request(root: Path, **changes: object) -> dict[str, object]:
    """Return the run.json of a run of the benchmark with the backend that says known answers."""
    text = {"endpoint": None, "max_in_flight": None, "kv_cache_bytes": None, "timeout_s": 5.0, "server": None}
    text |= changes.pop("text", {})  # type: ignore[arg-type]
    name = f"{changes.get('scenario', 'Offline')}-{changes.get('mode', 'performance')}"
    values = {
        "model": "parrot", "backend": "scripted", "dataset_path": str(root / "data"),
        "output_dir": str(root / name), **changes,
    }  # fmt: skip
    return {**request(**values), "text": text}
