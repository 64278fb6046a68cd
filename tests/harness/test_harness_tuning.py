"""harness.tuning: which shapes are tried and which one is taken. The clock is real, the networks sleep."""

import contextlib
import time

import pytest
from harness_support import need

need("numpy")

import numpy as np  # noqa: E402
from harness import tuning  # noqa: E402
from harness.cores import share_out  # noqa: E402
from harness.failures import Failures  # noqa: E402
from harness.qsl import DenseLibrary  # noqa: E402
from harness.sut import ResponseSink, Work  # noqa: E402
from harness.tensors import TensorSpec  # noqa: E402
from harness.tuning import Layout, Search, cpu_layouts, find_shape, gpu_layouts  # noqa: E402
from harness.watch.progress import Counts  # noqa: E402
from mlperf_results.names import Scenario  # noqa: E402

pytestmark = pytest.mark.alone
SPEC = TensorSpec(name="y", dtype="float32", shape=())


class Numbers:
    count = 64

    def load(self, indices):
        return {"x": np.asarray(indices, dtype=np.float32)}


class Place:
    """Opens work whose batches take as long as `cost(layout, batch size)` says, in ms."""

    def __init__(self, cost) -> None:
        self.cost, self.opened, self.closed = cost, [], []

    def open(self, layout: Layout) -> Work:
        def predict(inputs):
            time.sleep(self.cost(layout, len(inputs["x"])) / 1000)
            return inputs["x"]

        library = DenseLibrary(Numbers())
        library.load(range(16))
        work = Work(
            library=library,
            predicts=[predict] * layout.instances,
            response=SPEC,
            failures=Failures(),
            sink=ResponseSink(
                lambda identifier, address, size: type("R", (), {"id": identifier})(), lambda responses: None
            ),
            at_core=lambda number: contextlib.nullcontext(),
            counts=Counts(layout.instances),
        )
        self.opened.append(work)
        return work

    def close(self, work: Work) -> None:
        self.closed.append(work)


def search(scenario: Scenario, layouts: tuple[Layout, ...], **changes) -> Search:
    given = {"batch_size": 4, "largest_batch_size": 32, "limit_ms": 100.0, "budget_s": 20.0, **changes}
    return Search(scenario=scenario, layouts=layouts, **given)


TWO, ONE = Layout(2, 1), Layout(1, 2)


@pytest.mark.parametrize(
    ("cost", "layout", "batch_size"),
    [
        (lambda layout, batch: 20.0 * batch + 2.0 * (batch - 4) ** 2, TWO, 4),  # two instances do twice as much
        (lambda layout, batch: 5.0 * batch * layout.instances**2 + (batch - 4) ** 2, ONE, 4),  # ... hinder each other
        (lambda layout, batch: 10.0, TWO, 32),  # a batch costs what a sample costs
        (lambda layout, batch: 2.0 * batch * batch, TWO, 1),  # large batches are bad
    ],
)
def test_offline_takes_the_fastest_layout_and_batch(cost, layout: Layout, batch_size: int) -> None:
    place = Place(cost)
    found = find_shape(search(Scenario.OFFLINE, (TWO, ONE)), place.open, place.close)
    assert (found.layout, found.batch_size) == (layout, batch_size)
    assert [work for work in place.opened if work not in place.closed] == [found.work]
    seconds = cost(layout, batch_size) / 1000
    assert found.warm_up.samples_per_second == pytest.approx(batch_size * layout.instances / seconds, rel=0.5)


def test_streams_take_the_layout_with_the_lowest_latency_and_keep_the_batch() -> None:
    place = Place(lambda layout, batch: 20.0 / layout.threads)
    found = find_shape(search(Scenario.SINGLE_STREAM, cpu_layouts(Scenario.SINGLE_STREAM, 4, None, None)), place.open,
                       place.close)  # fmt: skip
    assert found.layout.threads == 4
    assert found.warm_up.query_latency_ms == pytest.approx(5.0, rel=0.5)


@pytest.mark.parametrize("scenario", [Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM])
def test_a_stream_is_measured_once_for_each_layout(scenario: Scenario, monkeypatch) -> None:
    measured = []
    real = tuning.query_latency
    monkeypatch.setattr(tuning, "query_latency", lambda *given: measured.append(1) or real(*given))
    place = Place(lambda layout, batch: 2.0)
    found = find_shape(search(scenario, (ONE, TWO)), place.open, place.close)
    assert len(found.candidates) == len(measured) == 2
    assert len(find_shape(search(scenario, (ONE,)), place.open, place.close).candidates) == 1
    assert len(measured) == 3


def test_a_multistream_query_is_split_where_that_is_faster() -> None:
    place = Place(lambda layout, batch: 4.0 * batch)
    found = find_shape(search(Scenario.MULTI_STREAM, (Layout(1, 1), TWO)), place.open, place.close)
    assert found.layout == TWO


def test_a_server_batch_takes_no_more_than_a_quarter_of_the_limit() -> None:
    place = Place(lambda layout, batch: 10.0)
    found = find_shape(search(Scenario.SERVER, (ONE,), limit_ms=20.0), place.open, place.close)
    assert found.batch_size < 32
    assert found.warm_up.query_latency_ms == pytest.approx(10.0, rel=0.5)


def test_nothing_more_is_tried_when_the_time_is_up() -> None:
    place = Place(lambda layout, batch: 5.0)
    found = find_shape(search(Scenario.OFFLINE, (TWO, ONE), budget_s=0.0), place.open, place.close)
    assert (found.layout, found.batch_size, len(found.candidates)) == (TWO, 4, 1)


def test_a_given_batch_size_is_kept() -> None:
    place = Place(lambda layout, batch: 5.0)
    found = find_shape(search(Scenario.OFFLINE, (TWO,), largest_batch_size=4), place.open, place.close)
    assert (found.batch_size, len(found.candidates)) == (4, 1)


@pytest.mark.parametrize(
    ("scenario", "cores", "instances", "threads", "layouts"),
    [
        (Scenario.OFFLINE, 1, None, None, (Layout(1, 1),)),
        (Scenario.OFFLINE, 2, None, None, (TWO, ONE)),
        (Scenario.OFFLINE, 16, None, None, (Layout(16, 1), Layout(4, 4), Layout(1, 16))),
        (Scenario.OFFLINE, 16, 2, None, (Layout(2, 8),)),
        (Scenario.OFFLINE, 16, 2, 4, (Layout(2, 2),)),
        (Scenario.SERVER, 2, None, 1, (Layout(1, 1),)),
        (Scenario.SINGLE_STREAM, 1, None, None, (Layout(1, 1),)),
        (Scenario.SINGLE_STREAM, 2, None, None, (Layout(1, 1), ONE, Layout(1, 2, True))),
        (Scenario.SINGLE_STREAM, 2, None, 2, (ONE, Layout(1, 2, True))),
        (Scenario.MULTI_STREAM, 2, None, None, (Layout(1, 1), ONE, Layout(1, 2, True), TWO)),
    ],
)
def test_the_layouts_that_are_tried(scenario, cores: int, instances, threads, layouts: tuple[Layout, ...]) -> None:
    assert cpu_layouts(scenario, cores, instances, threads) == layouts


def test_gpus_get_one_or_two_instances_each() -> None:
    assert gpu_layouts(2, None) == (Layout(2, 1), Layout(4, 1))
    assert gpu_layouts(2, 3) == (Layout(3, 1),)


@pytest.mark.parametrize(
    ("cores", "instances", "threads", "shares"),
    [
        ((0, 1, 2, 3), 2, 2, ((0, 1), (2, 3))),
        ((4, 6), 2, 1, ((4,), (6,))),
        ((0, 1), 1, 2, ()),
        ((0, 1), 2, 2, ()),
    ],
)
def test_instances_share_no_core(cores, instances: int, threads: int, shares) -> None:
    assert share_out(cores, instances, threads) == shares
