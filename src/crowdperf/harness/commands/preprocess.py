"""`python3 -m crowdperf.harness preprocess`: writes the preprocessed samples of a data set into a store, in parallel.

It can be stopped at any time and resumed: complete chunks are kept when they were made for the same model and from the
same data set, whose files are read for it once more (`identity.py`).
"""

import argparse
import hashlib
import json
import multiprocessing
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path

from crowdperf.harness.base.cores import available_cores
from crowdperf.harness.base.dataset import Dataset
from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.base.identity import DatasetIdentity, identity_of, stamp_of
from crowdperf.harness.base.model import Model
from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.harness.base.store import FORMAT, INDEX_FILE, chunk_name, read_chunk_index, write_chunk
from crowdperf.harness.runner import registry
from crowdperf.kit.records import Problem
from crowdperf.kit.whole_file import write_json, write_whole
from crowdperf.rules.benchmarks import benchmarks_of, model_of

_STEM_FILE = "preprocess.json"
_CHUNK_BYTES = 64 * 1024 * 1024
_LARGEST_CHUNK = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is preprocessed: a benchmark or model name, the data set's folder, model.json where the model needs it."""

    model: str
    dataset: Path
    model_info: Path | None
    output: Path
    chunk_samples: int


def _open(task: Task) -> tuple[Model, Dataset]:
    model = registry.load_model(task.model).open_model(read_model_facts(None, task.model_info))
    return model, registry.load_dataset_of(task.model).open_dataset(task.dataset)


class _Worker:
    """The model and data set of a worker process, opened once."""

    task: Task | None = None
    opened: tuple[Model, Dataset] | None = None


def _make_chunk(task: Task, number: int) -> int:
    """Preprocess one chunk in a worker process and return its number."""
    if _Worker.opened is None or _Worker.task != task:
        _Worker.task, _Worker.opened = task, _open(task)
    model, dataset = _Worker.opened
    start = number * task.chunk_samples
    indices = range(start, min(start + task.chunk_samples, dataset.count))
    write_chunk(task.output, number, model.preprocess(dataset.load(indices)))
    return number


def _chunk_samples(model: Model, dataset: Dataset) -> int:
    """Return how many samples make a chunk of about _CHUNK_BYTES, judged by the first sample."""
    first = model.preprocess(dataset.load([0]))
    tensors = first if not isinstance(first, Sequence) else first[0]
    size = max(1, sum(array.nbytes for array in tensors.values()))
    return max(1, min(_LARGEST_CHUNK, _CHUNK_BYTES // size))


def _stem(task: Task, dataset: Dataset, made_from: DatasetIdentity) -> dict[str, object]:
    """Return what decides whether chunks of an earlier call can be kept."""
    info = None if task.model_info is None else hashlib.sha256(task.model_info.read_bytes()).hexdigest()
    return {
        "format": FORMAT, "model": model_of(task.model), "dataset_sha256": made_from.sha256,
        "count": dataset.count, "chunk_samples": task.chunk_samples, "model_info_sha256": info,
    }  # fmt: skip


def _keep_or_clear(task: Task, stem: dict[str, object]) -> None:
    """Write down what the chunks are made from; those made from anything else are removed."""
    path = task.output / _STEM_FILE
    try:
        is_same = json.loads(path.read_text(encoding="utf-8")) == stem
    except (OSError, ValueError):
        is_same = False
    (task.output / INDEX_FILE).unlink(missing_ok=True)
    if not is_same:
        for stale in (*task.output.glob("*.[0-9][0-9][0-9][0-9][0-9].*"), *task.output.glob(".*.part")):
            stale.unlink()
        write_json(path, stem, indent=1)


def _tell(done: int, chunks: int, start: float, first: int) -> None:
    elapsed_s = time.monotonic() - start
    left_s = elapsed_s / max(1, done - first) * (chunks - done)
    sys.stderr.write(f"preprocess: {done} of {chunks} chunks, {elapsed_s:.0f} s, about {left_s:.0f} s left\n")
    sys.stderr.flush()


def _make_all(task: Task, missing: Sequence[int], chunks: int, workers: int) -> None:
    start, told_s = time.monotonic(), time.monotonic()
    first = done = chunks - len(missing)
    if workers == 1 or len(missing) == 1:
        for number in missing:
            _make_chunk(task, number)
        return
    context = multiprocessing.get_context("spawn")  # threads of a library do not live through a fork
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting: set[Future[int]] = {pool.submit(_make_chunk, task, number) for number in missing}
        while waiting:
            ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ended:
                try:
                    future.result()
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
            done += len(ended)
            if time.monotonic() - told_s > 5.0 or not waiting:
                told_s = time.monotonic()
                _tell(done, chunks, start, first)


def run(arguments: argparse.Namespace) -> str:
    """Fill the store and return one line about it; raises HarnessError."""
    output: Path = arguments.output
    first = Task(
        model=arguments.model, dataset=arguments.dataset, model_info=arguments.model_info, output=output,
        chunk_samples=0,
    )  # fmt: skip
    model, dataset = _open(first)
    if not getattr(model, "is_storable", True):
        raise HarnessError(
            f"{arguments.model} has no preprocessed form: its preprocessing is timed, or done when a sample is read",
            "run it on the data set itself",
        )
    if dataset.count < 1:
        raise HarnessError(f"{arguments.dataset} contains no sample", "look at the data set's recipe")
    task = Task(
        model=first.model, dataset=first.dataset, model_info=first.model_info, output=output,
        chunk_samples=_chunk_samples(model, dataset),
    )  # fmt: skip
    output.mkdir(parents=True, exist_ok=True)
    made_from = identity_of(task.dataset, dataset)
    _keep_or_clear(task, _stem(task, dataset, made_from))
    chunks = -(-dataset.count // task.chunk_samples)
    missing = [number for number in range(chunks) if read_chunk_index(output, number) is None]
    kept = chunks - len(missing)
    try:
        _make_all(task, missing, chunks, arguments.workers or len(available_cores()))
    except OSError as error:
        hint = "finished work is kept: free space and rerun"
        raise HarnessError(f"cannot write the preprocessed samples to {output}: {error}", hint) from error
    if stamp_of(task.dataset, dataset) != made_from.stamp:
        raise HarnessError(f"the files in {task.dataset} changed while they were preprocessed", "call it again")
    _finish(task, dataset, chunks, made_from)
    return f"{dataset.count:,} samples in {chunks} chunks ({kept} kept) in {output}"


def _finish(task: Task, dataset: Dataset, chunks: int, made_from: DatasetIdentity) -> None:
    chunk = read_chunk_index(task.output, 0)
    if chunk is None:
        raise HarnessError(f"{task.output / chunk_name(0)} was not written", "look at the lines above")
    sample_name = getattr(dataset, "sample_name", None)
    if sample_name is not None:
        lines = "".join(f"{sample_name(index)}\n" for index in range(dataset.count))
        write_whole(task.output / "sample_map.txt", lines)
    digest = hashlib.sha256()
    for number in range(chunks):
        digest.update((task.output / chunk_name(number)).read_bytes())
    content = {
        "format": FORMAT, "model": model_of(task.model), "count": dataset.count, "chunks": chunks,
        "chunk_samples": task.chunk_samples, "tensors": chunk["tensors"], "is_ragged": chunk["is_ragged"],
        "dataset": {"folder": str(task.dataset.resolve()), **asdict(made_from)}, "sha256": digest.hexdigest(),
    }  # fmt: skip
    write_json(task.output / INDEX_FILE, content, indent=1)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the command line; a model is asked for by a benchmark's name or by its file's."""
    parser = argparse.ArgumentParser(prog="python3 -m crowdperf.harness preprocess", description=__doc__)
    parser.add_argument("--model", required=True, help="benchmark or model, for example resnet50 or bert-99")
    parser.add_argument("--dataset", type=Path, required=True, help="folder of the raw data set")
    parser.add_argument("--output", type=Path, required=True, help="folder of the store")
    parser.add_argument("--model_info", type=Path, help="model.json, where preprocessing depends on the model's files")
    parser.add_argument("--workers", type=int, default=0, help="processes (default: number of cores)")
    parsed = parser.parse_args(arguments)
    rows = benchmarks_of(parsed.model)
    if parsed.model not in registry.known_names("models") and rows:
        parsed.model = rows[0].name
    if parsed.workers < 0:
        raise ConfigError("the command line", [Problem("--workers", str(parsed.workers), "a whole number from 0")])
    return parsed
