"""The backend triton without Triton: how a server is started and ended (with a stand-in program), what is written for
it, and what the settings of run.json become."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import pytest
from harness_support import SOURCE, need, request

from crowdperf.harness.backends.triton import repository, serve, server
from crowdperf.harness.base import server_supervisor, supervised_server
from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.base.tensors import NetworkSpec, TensorSpec
from crowdperf.harness.runner.config import KnownNames, parse_run_config
from crowdperf.harness.runner.server_layouts import largest_request, resolve_serving, served_layouts
from crowdperf.harness.runner.shape_search import Layout
from crowdperf.rules.backends import misfit
from crowdperf.rules.names import Scenario
from crowdperf.rules.server_settings import ServedModel, ServingRequest

(np,) = need("numpy")

FAKE = Path(__file__).with_name("fake_triton.py")
KNOWN = KnownNames(models=("digits",), backends=("triton",))
SERVING = {
    "server": "server.json", "batching": None, "transport": None, "instance_count": None, "max_queue_delay_us": None,
    "preferred_batch_size": None, "max_batch_size": None,
}  # fmt: skip
IMAGE = TensorSpec(name="image", dtype="float32", shape=(1, 8, 8))
LOGITS = TensorSpec(name="logits", dtype="float32", shape=(10,))
PLAIN = repository.ModelSettings(served=ServedModel(max_batch_size=1), threads=1)


def asked(**changes: object) -> ServingRequest:
    values = {**SERVING, "server": Path("server.json"), **changes}
    return ServingRequest(**values)  # type: ignore[arg-type]


def files(tmp_path: Path, wrong: str = "") -> server.ServerFiles:
    """A server of the stand-in program."""
    program = tmp_path / "tritonserver"
    program.write_text(f'#!/bin/bash\nexec {sys.executable} {FAKE} "$@"\n')
    program.chmod(0o755)
    environment = {"FAKE_TRITON": wrong, "FAKE_TRITON_MARKER": str(tmp_path / "marker")}
    return server.ServerFiles(
        version="0", program=program, backends=tmp_path, environment=environment, served_by="a stand-in", versions={}
    )


def start(tmp_path: Path, wrong: str = "", **changes: object) -> server.Start:
    folder = tmp_path / "work"
    folder.mkdir(exist_ok=True)
    values: dict[str, object] = {"deadline_s": 20.0, **changes}
    return server.Start(files=files(tmp_path, wrong), repository=folder, log=tmp_path / "server.log", **values)  # type: ignore[arg-type]


def model_process(log: Path) -> int:
    """The number of the process that stands for a model's."""
    return int(re.search(r"model process (\d+)", log.read_text())[1])


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def assert_nothing_left(tmp_path: Path, prefix: str) -> None:
    """Nothing in /dev/shm and no process of a model, a moment later at the latest."""
    end_s = time.monotonic() + 10
    pid = model_process(tmp_path / "server.log")
    while time.monotonic() < end_s:
        left = [path.name for path in server_supervisor.SHARED_MEMORY.glob(f"{prefix}*")]
        if not left and not is_running(pid):
            return
        time.sleep(0.05)
    raise AssertionError(f"left: {left}, process {is_running(pid)}")


def test_a_path_that_a_shell_would_split_is_served_by_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "a 'work' $x"
    folder.mkdir()
    one = server.start_server(start(folder))
    links = {word: server_supervisor.SHARED_MEMORY / f"{one.prefix}{word}" for word in ("repository", "backends")}
    try:
        assert {word: link.resolve() for word, link in links.items()} == {
            "repository": folder / "work",
            "backends": folder,
        }
        assert server.shell_word(tmp_path, tmp_path / "link") == tmp_path
    finally:
        one.stop()
    assert folder.is_dir() and not any(link.is_symlink() for link in links.values())


def test_a_server_is_started_on_ports_of_its_own_and_leaves_nothing(tmp_path: Path) -> None:
    first = server.start_server(start(tmp_path))
    beside = tmp_path / "beside"
    beside.mkdir()
    second = server.start_server(start(beside))
    ports = {first.http_port, first.grpc_port, second.http_port, second.grpc_port}
    assert len(ports) == 4 and first.prefix != second.prefix
    assert first.statistics("m")["inference_count"] == 3
    first.stop()
    first.stop()
    assert not first.is_alive and second.is_alive and second.is_ready()
    second.stop()
    assert_nothing_left(tmp_path, first.prefix)
    assert_nothing_left(beside, second.prefix)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("broken", "exited before it was ready: \"failed to load 'm' version 1: no such file\""),
        ("hang", "did not load its models within 4 s"),
        ("other", "is answered by 'somebody'"),
    ],
)
def test_a_server_that_does_not_get_ready_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, words: str
) -> None:
    monkeypatch.setattr(supervised_server, "_GRACE_S", 0.5)
    deadline_s = 4.0 if wrong == "hang" else 20.0
    with pytest.raises(HarnessError) as caught:
        server.start_server(start(tmp_path, wrong, deadline_s=deadline_s))
    assert words in str(caught.value)
    assert_nothing_left(tmp_path, f"crowdperf_triton_{os.getpid()}_")


def test_servers_that_a_failed_run_leaves_open_are_ended_before_it_exits(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    first, second = server.start_server(start(tmp_path)), server.start_server(start(beside))
    first.stop()
    supervised_server.stop_all()
    assert not second.is_alive
    assert_nothing_left(beside, second.prefix)


def test_a_taken_port_is_tried_again_elsewhere_but_not_a_given_one(tmp_path: Path) -> None:
    tried_twice = server.start_server(start(tmp_path, "taken"))
    assert (tmp_path / "marker").exists()
    tried_twice.stop()
    (tmp_path / "marker").unlink()
    with pytest.raises(HarnessError, match="already in use"):
        server.start_server(start(tmp_path, "taken", ports=(18000, 18001)))


def test_a_server_ends_when_its_starter_is_killed(tmp_path: Path) -> None:
    code = (
        "import json, sys, time; from pathlib import Path; from crowdperf.harness.backends.triton import server\n"
        "files = server.ServerFiles(version='0', program=Path(sys.argv[1]), backends=Path('.'), environment={},"
        " served_by='', versions={})\n"
        "folder = Path(sys.argv[2])\n"
        "one = server.start_server(server.Start(files=files, repository=folder / 'work', log=folder / 'server.log'))\n"
        "print(one.prefix, flush=True); time.sleep(300)"
    )
    (tmp_path / "work").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", code, str(files(tmp_path).program), str(tmp_path)]
    starter = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert starter.stdout is not None
    prefix = starter.stdout.readline().strip()
    assert prefix and list(server_supervisor.SHARED_MEMORY.glob(f"{prefix}*"))
    os.killpg(starter.pid, signal.SIGKILL)
    starter.wait(10)
    starter.stdout.close()
    assert_nothing_left(tmp_path, prefix)


def test_a_server_that_dies_is_noticed(tmp_path: Path) -> None:
    one = server.start_server(start(tmp_path))
    os.kill(model_parent(tmp_path / "server.log"), signal.SIGKILL)
    end_s = time.monotonic() + 10
    while one.is_alive and time.monotonic() < end_s:
        time.sleep(0.02)
    with pytest.raises(HarnessError, match="the server has ended"):
        one.statistics("m")
    one.stop()
    assert_nothing_left(tmp_path, one.prefix)


def model_parent(log: Path) -> int:
    """The number of the server's own process."""
    stat = Path(f"/proc/{model_process(log)}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


@pytest.mark.parametrize(("load", "factor"), [(0.0, 1.0), (2.0, 1.0), (5.0, 2.5), (90.0, 4.0)])
def test_a_start_may_take_longer_where_other_programs_use_the_processor(load: float, factor: float) -> None:
    assert server.slowdown(load, 2) == factor


def test_a_repository_has_as_long_to_load_as_its_processes_and_files_need(tmp_path: Path) -> None:
    version = tmp_path / "m" / "1"
    version.mkdir(parents=True)
    (version / "m.onnx").write_bytes(b"")
    (version.parent / "config.pbtxt").write_text("instance_group [ { count: 3 kind: KIND_CPU } ]")
    assert serve.load_deadline_s(tmp_path) == 23.0
    with (version / "m.onnx").open("wb") as file:
        file.truncate(500_000_000)  # takes no space
    assert serve.load_deadline_s(tmp_path) == 53.0


def test_regions_are_removed_by_their_prefix_only(tmp_path: Path) -> None:
    for name in ("mine_1", "mine_2", "other"):
        (tmp_path / name).touch()
    server_supervisor.remove_regions("", tmp_path)
    server_supervisor.remove_regions("mine_", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_server_files_must_be_whole_and_there(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    content = {"format": 1, "version": "2.51.0", "program": str(tmp_path / "gone"), "backends": "b", "environment": {},
               "served_by": "x", "versions": {}}  # fmt: skip
    for text, words in (
        (json.dumps(content), "is missing"),
        ("{}", "KeyError"),
        (json.dumps({**content, "format": 9}), "9"),
    ):
        path.write_text(text)
        with pytest.raises(HarnessError, match=words) as caught:
            server.read_server_files(path)
        assert "--tags=get,triton,server" in caught.value.hint


def test_the_config_is_written_from_the_tensors() -> None:
    network = NetworkSpec(
        name="model",
        inputs=(IMAGE, TensorSpec(name="mask:0", dtype="int64", shape=("tokens",))),
        outputs=(TensorSpec(name="label", dtype="float32", shape=()),),
    )
    by_server = asked(batching="server", instance_count=2, preferred_batch_size=(4, 8), max_queue_delay_us=2000)
    settings = repository.ModelSettings(served=by_server.model(16), threads=3)
    assert repository.config_text("bert", "bert.onnx", network, settings) == (
        'name: "bert"\nbackend: "onnxruntime"\ndefault_model_filename: "bert.onnx"\nmax_batch_size: 16\n'
        'input {\n  name: "image"\n  data_type: TYPE_FP32\n  dims: [ 1, 8, 8 ]\n}\n'
        'input {\n  name: "mask:0"\n  data_type: TYPE_INT64\n  dims: [ -1 ]\n}\n'
        'output {\n  name: "label"\n  data_type: TYPE_FP32\n  dims: [ 1 ]\n}\n'
        "version_policy { specific { versions: [ 1 ] } }\ninstance_group [ { count: 2 kind: KIND_CPU } ]\n"
        "dynamic_batching {\n  preferred_batch_size: [ 4, 8 ]\n  max_queue_delay_microseconds: 2000\n}\n"
        'parameters { key: "intra_op_thread_count" value { string_value: "3" } }\n'
    )
    plain = repository.config_text("m", "m.onnx", network, PLAIN)
    assert "dynamic_batching" not in plain


def test_what_cannot_be_served_is_refused_by_name() -> None:
    state = TensorSpec(name="cache", dtype="float32", shape=(4,), is_state=True)
    stateful = NetworkSpec(name="model", inputs=(IMAGE, state), outputs=(LOGITS, state))
    plain = NetworkSpec(name="model", inputs=(IMAGE,), outputs=(LOGITS,))
    ragged = NetworkSpec(
        name="model", inputs=(TensorSpec(name="ids", dtype="int64", shape=("tokens",)),), outputs=(LOGITS,)
    )
    assert repository.require_servable("digits", [plain]) is plain
    with pytest.raises(HarnessError, match="gptj passes states between calls \\(cache, cache\\)"):
        repository.require_servable("gptj", [stateful])
    with pytest.raises(HarnessError, match="rnnt has 2 networks"):
        repository.require_servable("rnnt", [plain, plain])
    with pytest.raises(HarnessError, match="the inputs ids of bert differ in size"):
        repository.require_fixed_sizes("bert", ragged)
    with pytest.raises(HarnessError, match="no type for complex64"):
        odd = NetworkSpec(name="m", inputs=(TensorSpec(name="c", dtype="complex64", shape=(1,)),), outputs=())
        repository.config_text("m", "m.onnx", odd, PLAIN)


@pytest.mark.parametrize("benchmark", ["rnnt", "gptj-99", "dlrm-99", "dlrm-v2-99.9", "3d-unet-99"])
def test_benchmarks_that_do_not_suit_are_named_with_the_reason(benchmark: str) -> None:
    assert misfit("triton", benchmark, "cpu").startswith(f"backend triton cannot run {benchmark}: ")
    assert misfit("onnxruntime", benchmark, "cpu") == ""


def test_a_gpu_without_a_container_is_refused() -> None:
    assert "_container" in misfit("triton", "bert-99", "cuda")
    assert misfit("triton", "bert-99", "cpu") == ""


@pytest.mark.parametrize(
    ("changes", "scenario", "cores", "instances", "threads", "expected"),
    [
        ({}, Scenario.SINGLE_STREAM, 4, None, None, [(1, 4)]),
        ({}, Scenario.OFFLINE, 4, None, None, [(4, 1), (1, 4)]),
        ({}, Scenario.OFFLINE, 1, None, None, [(1, 1)]),
        ({}, Scenario.SERVER, 64, None, None, [(16, 4), (1, 64)]),
        ({"instance_count": 2}, Scenario.OFFLINE, 8, None, None, [(2, 4)]),
        ({"instance_count": 2}, Scenario.OFFLINE, 8, 6, None, [(6, 4)]),
        ({}, Scenario.OFFLINE, 8, 3, 6, [(3, 2)]),
        ({"batching": "server"}, Scenario.SERVER, 8, None, None, [(32, 4)]),
        ({"batching": "server", "instance_count": 2}, Scenario.SERVER, 8, 100, None, [(100, 4)]),
        ({"batching": "server"}, Scenario.SINGLE_STREAM, 8, None, None, [(1, 8)]),
        ({"batching": "server"}, Scenario.MULTI_STREAM, 2, None, None, [(8, 1)]),
    ],
)
def test_layouts_have_few_processes(changes, scenario, cores, instances, threads, expected) -> None:
    found = served_layouts(asked(**changes), scenario, cores, instances, threads)
    assert [(layout.instances, layout.threads) for layout in found] == expected


def test_requests_of_small_samples_are_larger_than_the_benchmarks_batches() -> None:
    digits = NetworkSpec(name="model", inputs=(IMAGE,), outputs=(LOGITS,))
    picture = TensorSpec(name="image", dtype="float32", shape=(3, 224, 224))
    pictures = NetworkSpec(name="model", inputs=(picture,), outputs=(LOGITS,))
    ragged = NetworkSpec(name="m", inputs=(TensorSpec(name="i", dtype="int64", shape=("tokens",)),), outputs=())
    assert largest_request(digits, Scenario.OFFLINE, 32) == 512
    assert largest_request(digits, Scenario.SINGLE_STREAM, 32) == 32
    assert largest_request(pictures, Scenario.SERVER, 64) == 64
    assert largest_request(ragged, Scenario.OFFLINE, 128) == 128


@pytest.mark.parametrize("cores", range(1, 130))
def test_the_processes_of_a_layout_are_those_that_its_threads_leave_room_for(cores: int) -> None:
    (layout,) = served_layouts(asked(batching="server"), Scenario.SERVER, cores, None, None)
    plan = resolve_serving(asked(batching="server"), Scenario.SERVER, layout, cores, 1)
    assert plan.serving.instance_count == (cores if cores < 8 else cores // 4)


def test_settings_have_origins() -> None:
    request_ = asked(batching="server", max_queue_delay_us=2000, preferred_batch_size=(8,), instance_count=2)
    plan = resolve_serving(request_, Scenario.SERVER, Layout(32, 1), 2, 1)
    assert plan.record() == {
        "batching": {"value": "server", "origin": "user"},
        "transport": {"value": "grpc", "origin": "default"},
        "instance_count": {"value": 2, "origin": "user"},
        "max_queue_delay_us": {"value": 2000, "origin": "user"},
        "preferred_batch_size": {"value": [8], "origin": "user"},
        "max_batch_size": {"value": 16, "origin": "default"},
    }
    alone = resolve_serving(request_, Scenario.SINGLE_STREAM, Layout(1, 2), 2, 1)
    assert alone.record()["max_queue_delay_us"] == {"value": 0, "origin": "rule"}
    by_client = resolve_serving(asked(), Scenario.OFFLINE, Layout(2, 1), 2, 32)
    assert (by_client.serving.instance_count, by_client.serving.max_batch_size) == (2, 32)


@pytest.mark.parametrize(
    ("changes", "scenario", "words"),
    [
        (
            {"max_queue_delay_us": 100},
            "Server",
            "serving.max_queue_delay_us: found 100; allowed: null: only the server",
        ),
        ({"preferred_batch_size": [4]}, "Server", "serving.preferred_batch_size: found [4]; allowed: null"),
        ({"batching": "both"}, "Server", 'serving.batching: found "both"; allowed: client, server, or null'),
        ({"transport": "udp"}, "Server", "serving.transport"),
        ({"instance_count": 0}, "Server", "serving.instance_count"),
        (
            {"batching": "server", "preferred_batch_size": [32], "max_batch_size": 16},
            "Server",
            "up to max_batch_size (16)",
        ),
        ({"max_batch_size": 4}, "MultiStream", "at least 8"),
        ({"colour": "red"}, "Server", "serving.colour"),
        ({"server": ""}, "Server", "serving.server"),
    ],
)
def test_wrong_settings_are_named_with_what_is_allowed(changes: dict, scenario: str, words: str) -> None:
    text = json.dumps({**request(backend="triton", scenario=scenario), "serving": {**SERVING, **changes}})
    with pytest.raises(ConfigError) as caught:
        parse_run_config(text, "run.json", KNOWN)
    assert words in str(caught.value)


def test_run_json_may_hold_the_settings_of_a_server() -> None:
    text = json.dumps(
        {**request(backend="triton"), "serving": {**SERVING, "max_queue_delay_us": 0, "batching": "server"}}
    )
    config = parse_run_config(text, "run.json", KNOWN)
    assert config.serving == asked(batching="server", max_queue_delay_us=0)
    assert parse_run_config(json.dumps(request(backend="triton")), "run.json", KNOWN).serving is None


class LaggingServer:
    """Triton's statistics, in which the last request stands only after the `lag`th reading that follows it.

    Triton's Python backend adds a request to its statistics after it has answered."""

    def __init__(self, lag: int) -> None:
        self.lag, self.answered, self.counted, self.readings = lag, 0, 0, 0
        self.files = server.ServerFiles(
            version="0", program=FAKE, backends=FAKE, environment={}, served_by="a stand-in", versions={}
        )

    def answer(self, samples: int) -> None:
        self.counted, self.answered, self.readings = self.answered, self.answered + samples, 0

    def statistics(self, model: str) -> dict[str, object]:
        self.readings += 1
        if self.readings > self.lag:
            self.counted = self.answered
        return {"inference_count": self.counted, "execution_count": 1}


class LaggingCaller:
    """A connection to it."""

    def __init__(self, target: Any) -> None:
        self._server = target.server

    def ask(self, inputs: dict) -> dict:
        self._server.answer(len(inputs["image"]))
        return {"logits": np.zeros((len(inputs["image"]), 10), np.float32)}

    def close(self) -> None:
        pass


@pytest.fixture
def triton_backend(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module backend.py; tritonclient, which it needs to connect, is a stand-in here."""
    for name, members in (
        ("grpc", ()),
        ("tritonclient", ()),
        ("tritonclient.grpc", ("service_pb2", "service_pb2_grpc")),
    ):
        module = types.ModuleType(name)
        for member in members:
            setattr(module, member, None)
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("client", "backend"):
        monkeypatch.delitem(sys.modules, f"crowdperf.harness.backends.triton.{name}", raising=False)
    module = importlib.import_module("crowdperf.harness.backends.triton.backend")
    monkeypatch.setitem(module.CALLERS, "grpc", LaggingCaller)
    yield module
    for name in ("client", "backend"):
        del sys.modules[f"crowdperf.harness.backends.triton.{name}"]


def lagging_backend(module: Any, lag: int) -> tuple[LaggingServer, Any]:
    stand_in = LaggingServer(lag)
    network = NetworkSpec(name="model", inputs=(IMAGE,), outputs=(LOGITS,))
    target = module.Target(server=stand_in, model="m", network=network, largest_batch=8)
    plan = resolve_serving(asked(), Scenario.OFFLINE, Layout(1, 1), 1, 8)
    served = module.Served(server=stand_in, target=target, serving=plan.serving, instances=1)
    return stand_in, module.TritonBackend(served)


def pictures(count: int) -> dict:
    return {"image": np.zeros((count, 1, 8, 8), np.float32)}


@pytest.mark.parametrize("lag", [0, 1, 3])
def test_a_server_that_counts_a_moment_after_its_answer_is_waited_for(triton_backend: Any, lag: int) -> None:
    _, backend = lagging_backend(triton_backend, lag)
    infer = backend.instance(0)
    infer(pictures(8))  # warm-up
    backend.start_count()
    infer(pictures(8))
    infer(pictures(4))
    found = backend.served(12)
    assert (found["inference_count"], found["warm_up_inference_count"]) == (12, 8)


def test_what_a_server_never_counts_fails_after_a_limit_and_what_it_counts_too_much_at_once(
    triton_backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "COUNT_LIMIT_S", 0.05)
    stand_in, backend = lagging_backend(triton_backend, lag=10**9)
    infer = backend.instance(0)
    infer(pictures(8))
    with pytest.raises(HarnessError, match="Triton counts 0 inferences, but the harness sent 8"):
        backend.start_count()
    stand_in.lag = 0
    backend.start_count()
    stand_in.lag = 10**9
    infer(pictures(8))
    with pytest.raises(HarnessError, match="the harness sent 8, and Triton counts 0 inferences"):
        backend.served(8)
    stand_in.lag = 0
    stand_in.answer(3)  # somebody else's
    with pytest.raises(HarnessError, match="the harness sent 8, and Triton counts 11 inferences"):
        backend.served(8)
    assert stand_in.readings == 1
