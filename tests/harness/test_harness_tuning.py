"""crowdperf.harness.runner.shape_search: which shapes are tried and which one is taken, by what a call is said to
take."""

import contextlib
import itertools
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from crowdperf.harness.base.cores import Core, physical_cores, share_out
from crowdperf.harness.base.errors import ConfigError, OutOfDeviceMemory
from crowdperf.harness.base.failures import Failures
from crowdperf.harness.base.responses import ResponseSink
from crowdperf.harness.base.tensors import TensorSpec
from crowdperf.harness.runner import shape_search, warmup
from crowdperf.harness.runner.components import search_of
from crowdperf.harness.runner.qsl import DenseLibrary
from crowdperf.harness.runner.shape_search import BestShape, Layout, Search, cpu_layouts, find_shape, gpu_layouts
from crowdperf.harness.runner.sut import Work
from crowdperf.harness.runner.warmup import Latency, Rate, samples_per_second
from crowdperf.harness.watch.progress import Counts
from crowdperf.rules.benchmarks import RECORDS
from crowdperf.rules.names import Scenario

SPEC = TensorSpec(name="y", dtype="float32", shape=())


def plain(count: int) -> tuple[Core, ...]:
    """Cores without hyper-threads on one node."""
    return tuple(Core(0, (number,)) for number in range(count))


def threaded(count: int, nodes: int = 1) -> tuple[Core, ...]:
    """Cores with two hyper-threads, of which the second ones count from 4."""
    return tuple(Core(number * nodes // count, (number, number + 4)) for number in range(count))


def rate(samples_per_second: float) -> Rate:
    """A measurement of 1 s in which every slice was equally fast."""
    return Rate(fastest=samples_per_second, samples=round(samples_per_second), duration_s=1.0)


class Numbers:
    count = 64

    def load(self, indices):
        return {"x": np.asarray(indices, dtype=np.float32)}


class Place:
    """Opens work whose batches take as long as `cost(layout, batch size)` says, in ms; with `sleeps` they really do."""

    def __init__(self, cost, sleeps: bool = False) -> None:
        self.cost, self.sleeps, self.opened, self.closed = cost, sleeps, [], []
        self.calls_ms: list[float] = []

    def open(self, layout: Layout) -> Work:
        def predict(networks, inputs):
            self.calls_ms.append(self.cost(layout, len(inputs["x"])))
            if self.sleeps:
                time.sleep(self.calls_ms[-1] / 1000)
            return inputs["x"]

        library = DenseLibrary(Numbers())
        library.load(range(16))
        work = Work(
            library=library,
            predict=predict,
            networks=[{}] * layout.instances,
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

    def query_ms(self, issue, samples: int, loaded) -> float:
        """How long one query takes: as its longest call, because instances work side by side."""
        self.calls_ms.clear()
        issue(list(range(samples)), [loaded[number % len(loaded)] for number in range(samples)])
        return max(self.calls_ms, default=1.0)


@pytest.fixture
def place_of(monkeypatch):
    """Makes a Place of which everything is known after one query, without waiting."""

    def made(cost, **options) -> Place:
        place = Place(cost, **options)
        query_ms = place.query_ms
        monkeypatch.setattr(shape_search, "samples_per_second", lambda *query: rate(1000 * query[1] / query_ms(*query)))
        monkeypatch.setattr(shape_search, "query_latency", lambda *query: Latency(*[query_ms(*query)] * 2))
        return place

    return made


def search(scenario: Scenario, layouts: tuple[Layout, ...], **changes) -> Search:
    given = {"batch_size": 4, "smallest_batch_size": 1, "largest_batch_size": 32, "limit_ms": 100.0, "budget_s": 20.0}
    given |= changes
    return Search(scenario=scenario, layouts=layouts, **given)


TWO, ONE = Layout(2, 1), Layout(1, 2)


@pytest.mark.parametrize("scenario", list(Scenario)[:4])
def test_a_network_that_hangs_before_the_test_ends_the_run(scenario: Scenario, place_of) -> None:
    calls = itertools.count()
    place = place_of(lambda layout, batch: 600.0 if next(calls) == 0 else 1.0, sleeps=True)
    found = find_shape(search(scenario, (ONE,), silence_s=0.1), place.open, place.close)
    found.work.failures.settle()
    assert "no response for 0.1 s while" in str(found.work.failures.first)


@pytest.mark.parametrize(
    ("cost", "layout", "batch_size"),
    [
        (lambda layout, batch: 20.0 * batch + 2.0 * (batch - 4) ** 2, TWO, 4),  # two instances do twice as much
        (lambda layout, batch: 5.0 * batch * layout.instances**2 + (batch - 4) ** 2, ONE, 4),  # ... hinder each other
        (lambda layout, batch: 10.0, TWO, 32),  # a batch costs what a sample costs
        (lambda layout, batch: 2.0 * batch * batch, TWO, 1),  # large batches are bad
    ],
)
def test_offline_takes_the_fastest_layout_and_batch(cost, layout: Layout, batch_size: int, place_of) -> None:
    place = place_of(cost)
    found = find_shape(search(Scenario.OFFLINE, (TWO, ONE)), place.open, place.close)
    assert (found.layout, found.batch_size) == (layout, batch_size)
    assert [work for work in place.opened if work not in place.closed] == [found.work]
    seconds = cost(layout, batch_size) / 1000
    assert found.warm_up.samples_per_second == pytest.approx(batch_size * layout.instances / seconds)


@pytest.mark.alone
def test_the_rate_and_the_latency_are_those_of_the_clock() -> None:
    place = Place(lambda layout, batch: 10.0, sleeps=True)
    offline = search(Scenario.OFFLINE, (TWO,), smallest_batch_size=4, largest_batch_size=4)
    found = find_shape(offline, place.open, place.close)
    assert found.warm_up.samples_per_second == pytest.approx(800.0, rel=0.5)
    found = find_shape(search(Scenario.SINGLE_STREAM, (ONE,)), place.open, place.close)
    assert found.warm_up.query_latency_ms == pytest.approx(10.0, rel=0.5)


def test_streams_take_the_layout_with_the_lowest_latency_and_keep_the_batch(place_of) -> None:
    place = place_of(lambda layout, batch: 20.0 / layout.threads)
    layouts = cpu_layouts(Scenario.SINGLE_STREAM, plain(4), None, None)
    found = find_shape(search(Scenario.SINGLE_STREAM, layouts), place.open, place.close)
    assert found.layout.threads == 4
    assert found.warm_up.query_latency_ms == 5.0


@pytest.mark.parametrize("scenario", [Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM])
@pytest.mark.parametrize(("ratio", "count"), [(3.0, 2), (1.0, 6)])
def test_a_stream_is_measured_once_for_each_layout_and_again_in_turn_where_two_are_near(
    scenario: Scenario, ratio: float, count: int, monkeypatch
) -> None:
    figures = itertools.cycle([3.0, 3.0 * ratio])
    monkeypatch.setattr(shape_search, "query_latency", lambda *given: Latency(figure := next(figures), figure))
    place = Place(lambda layout, batch: 0.0)
    found = find_shape(search(scenario, (ONE, Layout(1, 1))), place.open, place.close)
    assert (len(found.candidates), found.layout) == (count, ONE)
    assert len(find_shape(search(scenario, (ONE,)), place.open, place.close).candidates) == 1


@pytest.mark.parametrize(
    ("rates", "layout"),
    [
        ([100.0, 120.0, 145.0, 130.0, 140.0, 110.0], TWO),  # the first one was measured in a slow moment
        ([140.0, 110.0, 100.0, 200.0], ONE),  # the second one was
        ([100.0, 60.0], TWO),  # nothing of a moment
        ([100.0, 160.0], ONE),
    ],
)
def test_a_slow_moment_of_the_machine_decides_nothing(rates: list[float], layout: Layout, monkeypatch) -> None:
    left = list(rates)
    monkeypatch.setattr(shape_search, "samples_per_second", lambda *given: rate(left.pop(0)))
    place = Place(lambda layout, batch: 0.0)
    given = {"batch_size": 4, "smallest_batch_size": 4, "largest_batch_size": 4}
    found = find_shape(search(Scenario.OFFLINE, (TWO, ONE), **given), place.open, place.close)
    assert (found.layout, left) == (layout, [])
    of_it = rates[::2] if layout == TWO else rates[1::2]
    assert found.warm_up.samples_per_second == max(of_it)
    assert found.warm_up.sustained_samples_per_second == sum(of_it) / len(of_it)


def test_of_two_near_batch_sizes_both_are_measured_again(monkeypatch) -> None:
    rates = [100.0, 110.0, 130.0, 120.0, 125.0, 115.0, 50.0]
    monkeypatch.setattr(shape_search, "samples_per_second", lambda *given: rate(rates.pop(0)))
    place = Place(lambda layout, batch: 0.0)
    found = find_shape(search(Scenario.OFFLINE, (ONE,)), place.open, place.close)
    assert sizes_tried(found) == [(1, 4), (1, 8), (1, 4), (1, 8), (1, 4), (1, 8), (1, 2)]
    assert (found.batch_size, found.warm_up.samples_per_second) == (4, 130.0)


def measured_on(monkeypatch, *slices: tuple[int, float]) -> Rate:
    """The rate of slices, each with the expected number of samples and its duration."""
    left, now_s = list(slices), 0.0

    def issue(ids: list[int], indices: list[int]) -> None:
        nonlocal now_s
        samples, took_s = left.pop(0)
        assert len(ids) == len(indices) == samples
        now_s += took_s

    monkeypatch.setattr(warmup, "time", SimpleNamespace(perf_counter=lambda: now_s))
    found = samples_per_second(issue, 8, range(3))
    assert not left
    return found


def test_the_first_slice_is_not_part_of_the_sustained_rate(monkeypatch) -> None:
    assert measured_on(monkeypatch, (8, 1.0), (8, 0.5)) == Rate(fastest=16.0, samples=8, duration_s=0.5)
    assert measured_on(monkeypatch, (8, 3.0)) == Rate(fastest=8 / 3.0, samples=8, duration_s=3.0)
    found = measured_on(monkeypatch, (8, 0.015625), (24, 0.0625), (24, 0.25), (24, 0.125))
    assert (found.fastest, found.sustained) == (384.0, 128.0)


def test_slices_grow_again_if_the_first_one_took_long_only_because_of_other_programs(monkeypatch) -> None:
    """A slice of some us is no measurement of a run of millions."""
    found = measured_on(monkeypatch, (8, 0.25), (8, 0.00390625), (96, 0.0625), (96, 0.0625), (96, 0.125))
    assert found == Rate(fastest=1536.0, samples=192, duration_s=0.1875)


def test_a_multistream_query_is_split_where_that_is_faster(place_of) -> None:
    place = place_of(lambda layout, batch: 4.0 * batch)
    found = find_shape(search(Scenario.MULTI_STREAM, (Layout(1, 1), TWO)), place.open, place.close)
    assert found.layout == TWO


def test_a_server_batch_takes_no_more_than_a_quarter_of_the_limit(place_of) -> None:
    place = place_of(lambda layout, batch: 10.0)
    found = find_shape(search(Scenario.SERVER, (ONE,), limit_ms=20.0), place.open, place.close)
    assert found.batch_size < 32
    assert found.warm_up.query_latency_ms == 10.0


def sizes_tried(found: BestShape) -> list[tuple[int, int]]:
    return [(one.instances, one.batch_size) for one in found.candidates]


@pytest.mark.parametrize("scenario", [Scenario.OFFLINE, Scenario.SERVER])
def test_nothing_more_than_one_doubling_is_tried_when_the_time_is_up(scenario: Scenario, place_of) -> None:
    place = place_of(lambda layout, batch: 5.0)
    found = find_shape(search(scenario, (TWO, ONE), budget_s=0.0), place.open, place.close)
    assert (found.layout, found.batch_size) == (TWO, 8)
    assert sizes_tried(found) == [(2, 4), (2, 8)]


def test_the_time_that_opening_takes_is_not_taken_from_the_search(monkeypatch, place_of) -> None:
    """A GPU takes longer to open a network than the whole search may last; it answers any batch in the same time."""
    late_s = 0.0
    monkeypatch.setattr(shape_search, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + late_s))

    def open_slowly(layout: Layout) -> Work:
        nonlocal late_s
        late_s += 60.0
        return place.open(layout)

    place = place_of(lambda layout, batch: 10.0)
    found = find_shape(search(Scenario.OFFLINE, gpu_layouts(1, None)), open_slowly, place.close)
    assert sizes_tried(found) == [(1, 4), (2, 4), (2, 8), (2, 16), (2, 32)]
    assert (found.layout, found.batch_size) == (Layout(2, 1), 32)


@pytest.mark.parametrize(
    ("cost", "tried", "batch_size"),
    [
        (lambda layout, batch: 10.0, [32, 16], 32),  # a call costs what a sample costs
        (lambda layout, batch: 0.2 * batch * batch, [32, 16, 8, 4, 2, 1], 1),
    ],
)
def test_a_search_that_begins_at_the_largest_batch_halves(cost, tried: list[int], batch_size: int, place_of) -> None:
    place = place_of(cost)
    found = find_shape(search(Scenario.OFFLINE, (Layout(1, 1),), batch_size=32), place.open, place.close)
    assert ([one.batch_size for one in found.candidates], found.batch_size) == (tried, batch_size)


def test_a_batch_that_does_not_fit_into_the_devices_memory_is_halved(place_of) -> None:
    def cost(layout: Layout, batch: int) -> float:
        if batch > 8:
            raise OutOfDeviceMemory("a batch of this size needs more memory than GPU 0 has")
        return 10.0

    place = place_of(cost)
    found = find_shape(search(Scenario.OFFLINE, gpu_layouts(1, None), batch_size=32), place.open, place.close)
    assert (found.batch_size, found.work.failures.is_set) == (8, False)
    assert sizes_tried(found) == [(1, 8), (2, 8), (2, 4)]


def test_a_sample_that_does_not_fit_into_the_devices_memory_ends_the_search(place_of) -> None:
    def cost(layout: Layout, batch: int) -> float:
        raise OutOfDeviceMemory("no memory")

    place = place_of(cost)
    found = find_shape(search(Scenario.OFFLINE, (Layout(1, 1),), batch_size=4), place.open, place.close)
    assert isinstance(found.work.failures.first, OutOfDeviceMemory)
    found.work.failures.settle()


def test_the_first_call_of_a_batch_size_is_not_measured_where_it_sets_libraries_up(place_of) -> None:
    """cuDNN looks for its fastest convolutions in the first call of each shape."""
    seen = set()

    def cost(layout: Layout, batch: int) -> float:
        is_first = batch not in seen
        seen.add(batch)
        return 2500.0 if is_first else 10.0

    place = place_of(cost)
    given = {"smallest_batch_size": 4, "largest_batch_size": 4, "is_cold_at_first": True}
    found = find_shape(search(Scenario.OFFLINE, (Layout(1, 1),), **given), place.open, place.close)
    assert found.warm_up.samples_per_second == 400.0  # 1.6 with the first call


def test_a_given_batch_size_is_kept(place_of) -> None:
    place = place_of(lambda layout, batch: 5.0)
    asked = search(Scenario.OFFLINE, (TWO,), smallest_batch_size=4, largest_batch_size=4)
    found = find_shape(asked, place.open, place.close)
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
    assert cpu_layouts(scenario, plain(cores), instances, threads) == layouts


def test_gpus_get_one_or_two_instances_each() -> None:
    assert gpu_layouts(2, None) == (Layout(2, 1), Layout(4, 1))
    assert gpu_layouts(2, 3) == (Layout(3, 1),)


@pytest.mark.parametrize(
    ("cores", "instances", "threads", "shares"),
    [
        (plain(4), 2, 2, ((0, 1), (2, 3))),
        ((Core(0, (4,)), Core(0, (6,))), 2, 1, ((4,), (6,))),
        (plain(2), 1, 2, ()),
        (plain(2), 2, 2, ()),
        (threaded(2), 2, 1, ((0,), (1,))),  # a core each, not two hyper-threads of one
        (threaded(2), 4, 1, ((0,), (4,), (1,), (5,))),
        (threaded(2), 2, 2, ((0, 4), (1, 5))),  # both threads of a core to the same instance
        (threaded(4, nodes=2), 2, 2, ((0, 1), (2, 3))),  # each on a node
        (threaded(4, nodes=2), 2, 1, ((0,), (2,))),  # one on each node
        (threaded(4, nodes=2), 4, 1, ((0,), (2,), (1,), (3,))),
        ((Core(0, (0,)), Core(0, (1,)), Core(0, (2,)), Core(1, (3,))), 2, 2, ((0, 1), (2, 3))),  # one must straddle
    ],
)
def test_instances_share_no_core(cores, instances: int, threads: int, shares) -> None:
    assert share_out(cores, instances, threads) == shares


def write_system(folder: Path, siblings: dict[int, str], nodes: dict[int, str]) -> Path:
    for number, text in siblings.items():
        topology = folder / "cpu" / f"cpu{number}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(text + "\n")
    for number, text in nodes.items():
        (folder / "node" / f"node{number}").mkdir(parents=True)
        (folder / "node" / f"node{number}" / "cpulist").write_text(text + "\n")
    return folder


def test_hyper_threads_and_nodes_are_read_from_the_kernel(tmp_path: Path) -> None:
    """Two sockets with two cores of two threads each, as Linux numbers them; processor 5 may not be used."""
    siblings = {number: f"{number % 4},{number % 4 + 4}" for number in range(8)}
    system = write_system(tmp_path, siblings, {0: "0-1,4-5", 1: "2-3,6-7"})
    cores = (Core(0, (0, 4)), Core(0, (1,)), Core(1, (2, 6)), Core(1, (3, 7)))
    assert physical_cores((0, 1, 2, 3, 4, 6, 7), system) == cores


@pytest.mark.parametrize("text", ["", "x", "0-"])
def test_where_the_system_does_not_say_each_processor_is_a_core(tmp_path: Path, text: str) -> None:
    assert physical_cores((0, 3), tmp_path / "nothing") == (Core(0, (0,)), Core(0, (3,)))
    assert physical_cores((0, 3), write_system(tmp_path, {0: text}, {0: text})) == (Core(0, (0,)), Core(0, (3,)))


def test_large_machines_also_try_an_instance_for_each_node_and_each_hyper_thread() -> None:
    layouts = cpu_layouts(Scenario.OFFLINE, threaded(4, nodes=2), None, None)
    assert layouts == (Layout(4, 1), Layout(2, 2), Layout(8, 1), Layout(1, 4))
    assert cpu_layouts(Scenario.OFFLINE, threaded(4, nodes=2), None, 4) == (Layout(4, 1), Layout(1, 4))
    assert cpu_layouts(Scenario.OFFLINE, threaded(1), None, None) == (Layout(2, 1), Layout(1, 1))


def test_server_without_a_limit_of_the_rules_needs_one_of_the_user() -> None:
    rules = RECORDS["yolo"]
    config = SimpleNamespace(scenario=Scenario.SERVER, model="yolo-95", batch_size=None)
    with pytest.raises(ConfigError, match=r"target_latency_ms.* null.*no round has Server for yolo-95"):
        search_of(SimpleNamespace(config=config, rules=rules, can=None), None)


def test_the_latency_of_a_query_is_in_milliseconds_and_without_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, now_s = [], [0.0]

    def issue(ids, indices) -> None:
        asked.append((list(ids), list(indices)))
        now_s[0] += 0.5 if len(asked) == 1 else 0.001 if len(asked) % 5 == 0 else 0.002

    monkeypatch.setattr(warmup, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    found = warmup.query_latency(issue, 3, [4, 5, 6, 7])
    assert len(asked) == 5, "as few as possible, since the first took longer than the least time"
    assert found == Latency(median_ms=pytest.approx(2.0), fast_ms=pytest.approx(1.3))
    assert asked[:3] == [([0, 1, 2], [4, 5, 6]), ([0, 1, 2], [7, 4, 5]), ([0, 1, 2], [6, 7, 4])]
