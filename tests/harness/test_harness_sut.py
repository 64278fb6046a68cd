"""crowdperf.harness.runner.sut, qsl, failures: every sample is answered once with its own bytes, whatever the shape,
whatever fails."""

import contextlib
import ctypes
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.failures import Failures
from crowdperf.harness.base.responses import ResponseSink
from crowdperf.harness.base.tensors import NetworkSpec, Rows, TensorSpec
from crowdperf.harness.runner import qsl
from crowdperf.harness.runner.qsl import DenseLibrary, PinnedLibrary, RaggedLibrary
from crowdperf.harness.runner.sut import Work, chunked, multi_inline, queued, single_inline, split
from crowdperf.harness.watch.progress import Counts

COUNT = 50
SPEC = TensorSpec(name="y", dtype="float32", shape=(2,))
NETWORK = NetworkSpec(name="model", inputs=(TensorSpec(name="x", dtype="float32", shape=()),), outputs=(SPEC,))


class Numbers:
    """Sample i is the number i."""

    def __init__(self, count: int = COUNT) -> None:
        self.count = count

    def load(self, indices):
        return {"x": np.asarray(indices, dtype=np.float32)}


class Pieces:
    """Sample i is i % 7 + 1 times the number i."""

    count = COUNT

    def load(self, indices):
        return [{"x": np.full(index % 7 + 1, index, np.float32)} for index in indices]


class PiecesModel:
    """Pads with -1."""

    def length(self, sample):
        return len(sample["x"])

    def collate(self, samples):
        longest = max(len(sample["x"]) for sample in samples)
        rows = [np.pad(sample["x"], (0, longest - len(sample["x"])), constant_values=-1) for sample in samples]
        return {"x": np.stack(rows)}


class FakeResponse:
    def __init__(self, identifier: int, address: int, size_bytes: int) -> None:
        self.id, self.data, self.size_bytes = identifier, address, size_bytes


class FakeLoadGen:
    """Copies the bytes of completed responses at once, as LoadGen does."""

    def __init__(self) -> None:
        self.answers: dict[int, np.ndarray] = {}
        self.completions = 0
        self.lock = threading.Lock()
        self.sink = ResponseSink(FakeResponse, self.complete)

    def complete(self, responses) -> None:
        with self.lock:
            self.completions += 1
            for response in responses:
                assert response.id not in self.answers, "a sample was answered twice"
                data = ctypes.string_at(response.data, response.size_bytes)
                self.answers[response.id] = np.frombuffer(data, np.float32)


def respond(inputs):
    return np.stack([inputs["x"], inputs["x"] * 2], axis=1)


LIBRARIES = {
    "arrays": DenseLibrary,
    "pinned": lambda source: PinnedLibrary(source, np.empty, [NETWORK]),
    "ragged": lambda source: RaggedLibrary(Pieces(), PiecesModel()),
}


def make(loadgen: FakeLoadGen, answer=respond, loaded=range(COUNT), instances: int = 1, kind: str = "arrays") -> Work:
    library = LIBRARIES[kind](Numbers())
    library.load(loaded)
    return work_on(loadgen, library, answer, SPEC, instances)


def work_on(loadgen: FakeLoadGen, library, answer, spec, instances: int = 1) -> Work:
    return Work(
        library=library,
        predict=lambda networks, inputs: answer(inputs),
        networks=[{}] * instances,
        response=spec,
        failures=Failures(grace_s=1000.0),
        sink=loadgen.sink,
        at_core=lambda number: contextlib.nullcontext(),
        counts=Counts(instances),
    )


def ragged(loadgen: FakeLoadGen, loaded=range(COUNT), instances: int = 1) -> Work:
    """Work whose responses are the number of a sample, as often as the sample has it."""

    def answer(inputs):
        return [row[row >= 0].copy() for row in inputs["x"]]

    library = RaggedLibrary(Pieces(), PiecesModel())
    library.load(loaded)
    return work_on(loadgen, library, answer, None, instances)


SHAPES = {
    "single": (lambda work: single_inline(work), 1, 1),
    "multi": (lambda work: multi_inline(work), 8, 1),
    "multi, fewer at the end": (lambda work: multi_inline(work), 7, 1),
    "split": (lambda work: split(work), 8, 3),
    "split, fewer samples than instances": (lambda work: split(work), 2, 3),
    "chunked": (lambda work: chunked(work, 8), 50, 1),
    "chunked, one batch": (lambda work: chunked(work, 64), 50, 1),
    "chunked on instances": (lambda work: chunked(work, 4), 50, 3),
    "queued": (lambda work: queued(work, 16), 1, 1),
    "queued on instances": (lambda work: queued(work, 4), 1, 3),
    "queued one by one": (lambda work: queued(work, 1), 1, 1),
    "queued, waiting to fill": (lambda work: queued(work, 16, 0.01), 1, 2),
}


def issue_all(shape, per_query: int, order: list[int]) -> None:
    for start in range(0, len(order), per_query):
        indices = order[start : start + per_query]
        shape.issue([1000 + index for index in indices], indices)
    shape.close()


@pytest.mark.parametrize("kind", ["arrays", "pinned"])
@pytest.mark.parametrize("name", SHAPES)
def test_every_sample_gets_its_own_bytes_once(name: str, kind: str) -> None:
    make_shape, per_query, instances = SHAPES[name]
    loadgen, seen = FakeLoadGen(), set()

    def answer(inputs):
        seen.add(type(inputs["x"]))
        return respond(inputs)

    order = list(np.random.default_rng(3).permutation(COUNT).tolist())
    issue_all(make_shape(make(loadgen, answer, instances=instances, kind=kind)), per_query, order)
    assert seen == {Rows if kind == "pinned" else np.ndarray}
    assert sorted(loadgen.answers) == [1000 + index for index in range(COUNT)]
    for identifier, row in loadgen.answers.items():
        assert row.tolist() == [identifier - 1000, 2 * (identifier - 1000)]


@pytest.mark.parametrize("is_ragged", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_a_query_is_open_until_it_is_answered_so_that_a_network_that_hangs_is_noticed(name: str, is_ragged) -> None:
    make_shape, per_query, instances = SHAPES[name]
    loadgen, seen, signs = FakeLoadGen(), [], []
    work = ragged(loadgen, instances=instances) if is_ragged else make(loadgen, instances=instances)
    real = work.predict

    def predict(networks, inputs):
        seen.append(work.counts.open)
        signs.append(work.counts.signs)
        return real(networks, inputs)

    work = replace(work, predict=predict)
    work.require_response_form(0)
    assert (seen, work.counts.open, work.counts.done) == ([1], 0, 1)
    shape = make_shape(work)
    for first in (0, 100):
        shape.issue(list(range(first, first + per_query)), list(range(per_query)))
        if not name.startswith("queued"):
            assert work.counts.open == 0
    shape.close()
    assert (work.counts.open, work.counts.done) == (0, 1 + 2 * per_query)
    assert min(seen) >= 1 and max(seen) <= 2 * per_query and len(set(signs)) > 1


def test_where_the_system_starts_no_further_thread_that_is_the_error_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, work = threading.Thread.start, make(FakeLoadGen(), instances=3)

    def limited(thread: threading.Thread) -> None:
        if thread.name == "instance-2":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    shape = chunked(work, 4)
    shape.issue(list(range(50)), list(range(50)))
    shape.close()
    assert "can't start new thread" in str(work.failures.first), "closing it joins only threads that ran"


@pytest.mark.parametrize("name", ["single", "multi"])
def test_a_query_whose_completion_failed_stays_open(name: str) -> None:
    make_shape, per_query, _ = SHAPES[name]
    work = make(FakeLoadGen())
    work = replace(work, sink=ResponseSink(FakeResponse, lambda responses: 1 / 0))
    make_shape(work).issue(list(range(per_query)), list(range(per_query)))
    work.failures.settle()
    assert (work.counts.open, work.counts.done) == (per_query, 0)
    assert isinstance(work.failures.first, ZeroDivisionError)


@pytest.mark.parametrize("name", SHAPES)
def test_responses_of_differing_sizes_keep_their_samples(name: str) -> None:
    make_shape, per_query, instances = SHAPES[name]
    loadgen = FakeLoadGen()
    work = ragged(loadgen, instances=instances)
    issue_all(make_shape(work), per_query, np.random.default_rng(5).permutation(COUNT).tolist())
    assert {key: row.tolist() for key, row in loadgen.answers.items()} == {
        1000 + index: [float(index)] * (index % 7 + 1) for index in range(COUNT)
    }
    assert work.counts.done == COUNT


@pytest.mark.parametrize("name", ["single", "multi", "chunked"])
def test_an_array_that_a_network_fills_again_is_read_in_its_place_and_any_other_is_copied(name: str) -> None:
    make_shape, per_query, _ = SHAPES[name]
    loadgen, own, seen = FakeLoadGen(), np.zeros((per_query, 2), np.float32), []

    def answer(inputs):
        rows = respond(inputs)
        if len(rows) != per_query or len(seen) % 5 == 4:  # now and then an array of its own
            seen.append(rows)
            return rows
        own[...] = rows
        seen.append(own)
        return own

    issue_all(make_shape(make(loadgen, answer=answer)), per_query, list(range(COUNT)))
    assert {key: row.tolist() for key, row in loadgen.answers.items()} == {1000 + i: [i, 2 * i] for i in range(COUNT)}


def test_a_network_that_answers_in_one_array_is_not_copied() -> None:
    loadgen, own, addresses = FakeLoadGen(), np.ones((1, 2), np.float32), []
    work = make(loadgen, answer=lambda inputs: own)
    work = replace(work, sink=ResponseSink(FakeResponse, lambda responses: addresses.append(responses[0].data)))
    issue_all(single_inline(work), 1, list(range(4)))
    assert addresses[1:] == [own.ctypes.data] * 3
    assert addresses[0] != addresses[1]


def test_offline_puts_the_longest_samples_first() -> None:
    order = ragged(FakeLoadGen()).library.by_length([0, 6, 3, 13])
    assert order.tolist() == [1, 3, 2, 0]


def test_offline_never_sorts_across_a_repetition_of_the_samples() -> None:
    """The rules of MLPerf forbid it; a query holds the loaded samples as often as its length asks for."""
    library = ragged(FakeLoadGen()).library
    passes = [np.random.default_rng(seed).permutation(COUNT) for seed in range(3)]
    indices = np.concatenate([*passes, passes[0][:10]]).tolist()
    order = library.by_length(indices)
    lengths = [index % 7 + 1 for index in np.asarray(indices)[order]]
    for start, end, sign in ((0, 50, 1), (50, 100, -1), (100, 150, 1), (150, 160, -1)):  # 1: ascending
        assert sorted(order[start:end].tolist()) == list(range(start, end))
        part = [sign * length for length in lengths[start:end]]
        assert part == sorted(part)


@pytest.mark.parametrize("rows", [[np.zeros(4, np.float32)[::2]], [[1.0]], []])
def test_responses_that_loadgen_cannot_read_are_an_error(rows) -> None:
    library = RaggedLibrary(Pieces(), PiecesModel())
    library.load([0])
    work = work_on(FakeLoadGen(), library, lambda inputs: rows, None)
    with pytest.raises(HarnessError, match=r"contiguous|got 0"):
        work.require_response_form(0)


@pytest.mark.parametrize("name", SHAPES)
def test_a_part_of_the_samples_loaded_in_any_order_is_found_again(name: str) -> None:
    make_shape, per_query, instances = SHAPES[name]
    loadgen = FakeLoadGen()
    loaded = [41, 7, 3, 22, 9, 30, 15, 2]
    issue_all(make_shape(make(loadgen, loaded=loaded, instances=instances)), per_query, loaded)
    assert {identifier: row[0] for identifier, row in loadgen.answers.items()} == {1000 + i: i for i in loaded}


@pytest.mark.parametrize("name", SHAPES)
def test_after_an_error_every_query_is_still_answered_and_the_first_error_is_kept(name: str) -> None:
    make_shape, per_query, instances = SHAPES[name]
    loadgen = FakeLoadGen()
    calls = []

    def fail(inputs):
        calls.append(1)
        raise MemoryError(f"call {len(calls)}")

    work = make(loadgen, fail, instances=instances)
    issue_all(make_shape(work), per_query, list(range(COUNT)))
    work.failures.settle()
    assert len(loadgen.answers) == COUNT
    assert isinstance(work.failures.first, MemoryError)


def test_too_few_responses_are_an_error_not_foreign_bytes() -> None:
    loadgen = FakeLoadGen()
    work = make(loadgen, lambda inputs: respond(inputs)[:-1])
    chunked(work, 8).issue(list(range(16)), list(range(16)))
    work.failures.settle()
    assert "8 samples got 7 responses" in str(work.failures.first)


@pytest.mark.parametrize(
    "answer",
    [
        lambda inputs: respond(inputs).astype(np.float64),
        lambda inputs: respond(inputs)[:, :1],
        lambda inputs: respond(inputs)[0],
    ],
)
def test_a_response_of_another_form_than_declared_is_refused_before_the_run(answer) -> None:
    with pytest.raises(HarnessError, match=r"declares float32\[1, 2\]"):
        make(FakeLoadGen(), answer).require_response_form(0)


def test_the_samples_expected_of_an_accuracy_run_are_those_of_the_whole_data_set() -> None:
    work = make(FakeLoadGen())
    work.counts.expected = COUNT  # known before an accuracy run, which LoadGen asks for one part after another
    shape = chunked(work, 8)
    for start in (0, 20):
        shape.issue(list(range(start, start + 20)), list(range(start, start + 20)))
        assert work.counts.expected == COUNT


def test_offline_completes_batch_by_batch() -> None:
    loadgen = FakeLoadGen()
    chunked(make(loadgen), 20).issue(list(range(COUNT)), list(range(COUNT)))
    assert loadgen.completions == 3


@pytest.mark.parametrize(
    ("loaded", "missing"),
    [
        ([4, 2], 3),
        (list(range(6)), 7),  # rows need no translation
        ([*range(9), *range(7)], 9),  # for MultiStream: more rows than the data set has samples
    ],
)
@pytest.mark.parametrize("asked_for", ["one", "a few", "a batch of one size", "as an array", "at once"])
@pytest.mark.parametrize("kind", LIBRARIES)
def test_a_sample_that_is_not_loaded_is_named_and_no_other_is_given(kind, asked_for, loaded, missing) -> None:
    library = LIBRARIES[kind](Numbers(10))
    library.load(loaded)
    fixed, indices = library.fixed_gather(3), [loaded[0], missing, loaded[0]]
    ways = {
        "one": lambda: library.single[missing]["x"],
        "a few": lambda: library.gather(indices),
        "a batch of one size": lambda: fixed(indices),
        "as an array": lambda: fixed(np.asarray(indices)),
        "at once": lambda: library.gather(np.asarray(indices * 40)),
    }
    there = f"{len(set(loaded))} samples from {min(loaded)} to {max(loaded)}"
    with pytest.raises(
        HarnessError, match=f"sample {missing} was requested but is not among the samples in memory: {there}"
    ):
        ways[asked_for]()
    library.unload(loaded)
    with pytest.raises(HarnessError, match=f"sample {loaded[0]} was requested .* in memory: none"):
        library.gather([loaded[0]])
    assert library.loaded == [] and library.neighbours == []


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("indices", [[3], [5, 3], np.array([4, 4, 5])])
def test_fewer_samples_than_a_batch_are_gathered_into_the_memory_of_a_large_one(monkeypatch, is_large, indices) -> None:
    monkeypatch.setattr(qsl, "_LARGEST_KEPT_BY_MALLOC", 0 if is_large else 1 << 20)
    library = qsl.DenseLibrary(Numbers(10))
    library.load([5, 4, 3])
    gather = library.fixed_gather(4)
    batch = gather([3, 4, 5, 3])["x"]
    fewer = gather(indices)["x"]
    assert np.array_equal(fewer, library.gather(indices)["x"]) and np.shares_memory(fewer, batch) == is_large
    with pytest.raises(HarnessError, match="sample 7 was requested"):
        gather([7, 3])


def test_pinned_samples_are_copied_once_and_only_the_networks_inputs_lie_there() -> None:
    given: list[np.ndarray] = []

    class Pictures(Numbers):
        def load(self, indices):
            return {**super().load(indices), "image_index": np.asarray(indices)}

    def memory(shape, dtype):
        given.append(np.empty(shape, dtype))
        return given[-1]

    library = PinnedLibrary(Pictures(), memory, [NETWORK])
    library.load([7, 3, 9])
    batch, one = library.gather([9, 9, 3]), library.single[7]
    assert len(given) == 1 and given[0].tolist() == [3, 7, 9]
    for inputs, wanted in ((batch, [9, 9, 3]), (one, [7])):
        assert inputs["x"].array is given[0] and np.asarray(inputs["x"]).tolist() == wanted
        assert isinstance(inputs["image_index"], np.ndarray) and inputs["image_index"].tolist() == wanted


def test_numpy_computes_with_rows_as_with_the_array_of_them() -> None:
    array = np.arange(10, dtype=np.float32)
    rows = Rows(array, np.array([7, 0, 3]))
    assert (rows != 0).tolist() == [True, False, True]
    assert (2 * rows + 1).tolist() == [15, 1, 7] and np.sqrt(rows)[1] == 0
    assert rows[1:3].array is array and np.asarray(rows[1:3]).tolist() == [0, 3]


def test_a_query_of_multistream_is_a_view_of_the_samples_as_loadgen_loaded_them() -> None:
    loadgen = FakeLoadGen()
    shuffled = [41, 7, 3, 22, 9, 30, 15, 2, 11, 40]
    inputs = []

    def answer(batch):
        inputs.append(batch["x"])
        return respond(batch)

    work = make(loadgen, answer, loaded=[*shuffled, *shuffled[:7]])  # as LoadGen's GenerateLoadableSets does
    issue = multi_inline(work).issue
    for start in range(10):
        issue(list(range(8 * start, 8 * start + 8)), (shuffled * 2)[start : start + 8])
    assert [row[0] for row in loadgen.answers.values()] == [
        (shuffled * 2)[start + offset] for start in range(10) for offset in range(8)
    ]
    whole = inputs[0].base
    assert all(batch.base is whole for batch in inputs)
    issue(list(range(100, 108)), sorted(shuffled)[:8])
    assert [loadgen.answers[100 + n][0] for n in range(8)] == sorted(shuffled)[:8]
    assert inputs[-1].base is not whole
    assert work.counts.done == 88
    assert work.failures.first is None


def slow_range(*limits: int):
    """A range whose steps are long and refuse to run twice at once, as a generator does."""
    for number in range(*limits):
        time.sleep(0.001)
        yield number


def test_offline_threads_live_until_loadgen_has_ended() -> None:
    """LoadGen crashed in some of a hundred runs (SIGSEGV, 6.0.17) where a thread that had answered ended before it."""
    answering = set()

    def answer(inputs):
        answering.add(threading.current_thread())
        time.sleep(0.001)
        return respond(inputs)

    shape = chunked(make(FakeLoadGen(), answer, instances=3), 1)
    shape.issue(list(range(COUNT)), list(range(COUNT)))
    helpers = answering - {threading.current_thread()}
    assert len(helpers) == 2
    assert all(helper.is_alive() for helper in helpers)
    shape.close()
    assert not any(helper.is_alive() for helper in helpers)


def test_offline_shares_the_batches_between_threads_without_the_gil(monkeypatch) -> None:
    monkeypatch.setattr("crowdperf.harness.runner.sut.range", slow_range, raising=False)
    loadgen = FakeLoadGen()
    shape = chunked(make(loadgen, instances=8), 1)
    shape.issue(list(range(COUNT)), list(range(COUNT)))
    shape.close()
    assert sorted(loadgen.answers) == list(range(COUNT))
