"""The bare onnxruntime under a model that does more than to call one network: clips become features and tokens, boxes
are suppressed, neighbours are drawn. A process of its own, started by model_speed.py (command `work`).

    bare_work.py MODEL MODEL_JSON DATASET SECONDS find BATCH[,BATCH...]
    bare_work.py MODEL MODEL_JSON DATASET SECONDS WORKERS,THREADS,SPIN,BATCH

The loop does what an Offline run does: the model's own functions, on batches of the whole data set in the same order
(the longest first), and onnxruntime's sessions called directly. There is no LoadGen, no backend, and nothing is
answered or logged. Ways of calling are those of bare_model.py; only whole passes over the data set are counted.
"""

import itertools
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from bare_model import Way, ways

from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.harness.base.tensors import Infer, NetworkSpec
from crowdperf.harness.runner import registry

_TRY_S = 1.5
Batch = Callable[[], Any]


def _call(path: Path, spec: NetworkSpec, way: Way) -> Infer:
    """Return the quickest direct call: states of a network stay onnxruntime's."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = way.threads, 1, 3
    options.add_session_config_entry("session.intra_op.allow_spinning", str(way.spin))
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in spec.outputs]
    if not any(one.is_state for one in (*spec.inputs, *spec.outputs)):
        return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))
    of_numpy = onnxruntime.OrtValue.ortvalue_from_numpy

    def with_states(inputs: Any) -> Any:
        given = {name: of_numpy(one) if isinstance(one, np.ndarray) else one for name, one in inputs.items()}
        answers = session.run_with_ort_values(names, given)
        return {one.name: got if one.is_state else got.numpy() for one, got in zip(spec.outputs, answers, strict=True)}

    return with_states


class Bare:
    """The model and its samples, ready to be worked on."""

    def __init__(self, name: str, model_info: Path, dataset: Path) -> None:
        self._facts = read_model_facts(None, model_info)
        self._model = registry.load_model(name).open_model(self._facts)
        opened = registry.load_dataset_of(name).open_dataset(dataset)
        self._samples = self._model.preprocess(opened.load(range(opened.count)))
        self._order = np.arange(opened.count)
        if self._model.is_ragged:
            self._order = np.argsort([-self._model.length(one) for one in self._samples], kind="stable")

    def _inputs(self, rows: Any) -> Any:
        if self._model.is_ragged:
            return self._model.collate([self._samples[row] for row in rows])
        return {name: array[rows] for name, array in self._samples.items()}

    def rate(self, way: Way, seconds: float) -> float:
        """Return samples per second of `way` over whole passes that take `seconds` at least, after one pass."""
        files = {one.name: self._facts.files[one.name].path for one in self._model.networks}
        calls = {one.name: _call(files[one.name], one, way) for one in self._model.networks}
        parts = [self._order[start : start + way.batch] for start in range(0, len(self._order), way.batch)]

        def one_pass() -> None:
            left, lock = iter(parts), threading.Lock()

            def drain() -> None:
                while True:
                    with lock:
                        rows = next(left, None)
                    if rows is None:
                        return
                    self._model.predict(calls, self._inputs(rows))

            helpers = [threading.Thread(target=drain) for _ in range(1, way.workers)]
            for helper in helpers:
                helper.start()
            drain()
            for helper in helpers:
                helper.join()

        one_pass()
        start = time.perf_counter()
        for passes in itertools.count(1):
            one_pass()
            if (taken := time.perf_counter() - start) >= seconds:
                return passes * len(self._order) / taken
        raise AssertionError


def main(name: str, model_info: str, dataset: str, seconds: float, what: str, batches: str = "") -> None:
    """Print one JSON object."""
    bare = Bare(name, Path(model_info), Path(dataset))
    if what == "find":
        tried = {way: bare.rate(way, _TRY_S) for way in ways([int(one) for one in batches.split(",")], is_stream=False)}
        best = max(tried, key=tried.__getitem__)
        print(json.dumps([best.workers, best.threads, best.spin, best.batch]))
        return
    print(json.dumps(bare.rate(Way(*map(int, what.split(","))), seconds)))


if __name__ == "__main__":
    main(*sys.argv[1:4], float(sys.argv[4]), *sys.argv[5:])
