"""A real Triton server, installed from the package index: runs through it, faults, and serving until a signal comes.

About five minutes; nothing of this is in the ordinary ./test.sh, which may not install Triton.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import CHECKOUT, cm_command

from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_requests import read_request

SHARED_MEMORY = Path("/dev/shm")
APP = "--tags=app,mlperf,inference,_digits,_cpu"
INSTALL_S, RUN_S, FAULT_S = 1800, 600, 30

pytestmark = pytest.mark.full


class User:
    """Somebody with an empty CM home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "CM").mkdir(parents=True)
        (folder / "CM" / "repos.json").write_text(json.dumps([str(CHECKOUT)]), encoding="utf-8")
        kept = {key: os.environ[key] for key in os.environ if key.startswith(("PIP_", "LANG", "LC_"))}
        path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        self.environment = {**kept, "PATH": path, "HOME": str(folder), "CM_REPOS": str(folder / "CM")}

    def begin(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            cm_command(["run", "script", *words, "--quiet"]),
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, timeout_s: float = RUN_S) -> tuple[int, str]:
        process = self.begin(*words)
        output = process.communicate(timeout=timeout_s)[0]
        return process.returncode, output

    def result(self, name: str, *words: str) -> dict:
        """The result.json of one run that ended well."""
        code, output = self.run(*words, f"--output_dir={self.folder / name}")
        assert code == 0, output[-3000:]
        return json.loads((self.folder / name / "result.json").read_text())


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    one = User(tmp_path_factory.mktemp("triton") / "user")
    code, output = one.run("--tags=get,triton,server", timeout_s=INSTALL_S)
    assert code == 0, output[-3000:]
    yield one
    assert left() == []


def left() -> list[str]:
    """The shared memory of our servers that is there some seconds later."""
    end_s = time.monotonic() + 15
    while True:
        found = [path.name for path in SHARED_MEMORY.glob("crowdperf_triton_*")]
        if not found or time.monotonic() > end_s:
            return found
        time.sleep(0.1)


def wait_for(process: subprocess.Popen[str], words: str) -> str:
    """What a process printed until a line with `words`."""
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if words in line:
            return seen
    raise AssertionError(seen[-3000:])


def process_of(program: str, owner: Path) -> int:
    """The process whose command begins with `program` and names the folder of `owner`."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[0].endswith(program) and any(str(owner) in word for word in words):
            return int(path.parent.name)
    raise AssertionError(f"no {program}")


def test_triton_answers_what_onnxruntime_answers(user: User) -> None:
    logs = []
    for backend in ("onnxruntime", "triton"):
        found = user.result(backend, f"{APP},_{backend},_offline,_accuracy")
        assert found["valid"], found["invalid_reasons"]
        logs.append(json.loads((user.folder / backend / "mlperf_log_accuracy.json").read_text()))
    assert found["served"]["server_version"] == "2.51.0"
    assert found["served"]["inference_count"] == found["served"]["samples"] == 599
    numbers = [{row["qsl_idx"]: row["data"] for row in log} for log in logs]
    assert len(numbers[0]) == 599 and numbers[0] == numbers[1]


@pytest.mark.parametrize("transport", ["grpc", "http", "shm"])
def test_the_servers_batcher_joins_requests(user: User, transport: str) -> None:
    found = user.result(
        f"server-{transport}", f"{APP},_triton,_server,_performance", "--batching=server", "--instance_count=2",
        "--max_queue_delay_us=2000", "--preferred_batch_size=8", "--target_qps=600", f"--transport={transport}",
    )  # fmt: skip
    assert found["served"]["average_batch"] > 1
    assert found["run"]["serving"]["max_queue_delay_us"] == {"value": 2000, "origin": "user"}
    config = (user.folder / f"server-{transport}/triton/repository/digits/config.pbtxt").read_text()
    assert "preferred_batch_size: [ 8 ]" in config and "max_queue_delay_microseconds: 2000" in config


@pytest.mark.parametrize("victim", ["tritonserver", "triton_python_backend_stub"])
def test_a_server_that_dies_ends_the_run(user: User, victim: str) -> None:
    folder = user.folder / f"dies-{victim}"
    run = user.begin(f"{APP},_triton,_offline,_performance", "--min_duration_ms=60000", f"--output_dir={folder}")
    wait_for(run, "performance: measuring")
    server = process_of("tritonserver", folder)
    if victim != "tritonserver":
        children = Path(f"/proc/{server}/task").glob("*/children")
        server = int(next(text for path in children if (text := path.read_text())).split()[0])
    os.kill(server, signal.SIGKILL)
    output = run.communicate(timeout=2 * FAULT_S)[0]
    assert run.returncode != 0 and "Triton did not answer a request" in output, output[-2000:]
    assert not (folder / "result.json").exists() and left() == []


def test_a_killed_run_leaves_no_server(user: User) -> None:
    folder = user.folder / "killed"
    run = user.begin(f"{APP},_triton,_offline,_performance", "--min_duration_ms=60000", f"--output_dir={folder}")
    wait_for(run, "performance: measuring")
    server = process_of("tritonserver", folder)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate(timeout=FAULT_S)
    assert left() == []
    end_s = time.monotonic() + FAULT_S
    while Path(f"/proc/{server}").exists() and time.monotonic() < end_s:
        time.sleep(0.1)
    assert not Path(f"/proc/{server}").exists()


def test_a_network_with_another_output_is_refused(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", user.environment["HOME"])  # run.json names it by a sign
    found = read_request(RunPaths(user.folder / "triton"))
    config = user.folder / "triton/triton/repository/digits/config.pbtxt"
    assert re.search(r"dims: \[ 10 \]", config.read_text())
    folder = user.folder / "wrong"
    folder.mkdir()
    content = json.loads(Path(found["serving"]["server"]).read_text())
    backends = folder / "backends"
    subprocess.run(["cp", "-r", content["backends"], str(backends)], check=True)
    model = backends / "onnxruntime" / "model.py"
    text = model.read_text().replace("numpy.ascontiguousarray(array)", "numpy.ascontiguousarray(array[:, :9])")
    assert text != model.read_text()
    model.write_text(text)
    (folder / "server.json").write_text(json.dumps({**content, "backends": str(backends)}))
    serving = {**found["serving"], "server": str(folder / "server.json")}
    wrong = {**found, "output_dir": str(folder), "serving": serving}
    (folder / "run.json").write_text(json.dumps(wrong))
    python = next((user.folder / "CM").rglob("mlperf-inference/bin/python3"))
    done = subprocess.run(
        [str(python), "-m", "crowdperf.harness", str(folder / "run.json")],
        capture_output=True, text=True, timeout=RUN_S,
        env={**user.environment, "PYTHONPATH": str(CHECKOUT / "src")},
    )  # fmt: skip
    assert done.returncode == 1
    assert "for the output logits, expected float32[" in done.stderr, done.stderr


def test_a_served_model_answers_until_a_signal_comes(user: User) -> None:
    run = user.begin("--tags=serve,mlperf,model", "--model=digits")
    told = wait_for(run, "  log:")
    address = re.search(r"HTTP: (http://127\.0\.0\.1:\d+)", told)[1]
    image = {"name": "image", "shape": [1, 1, 8, 8], "datatype": "FP32", "data": [0.0] * 64}
    asked = urllib.request.Request(f"{address}/v2/models/digits/infer", json.dumps({"inputs": [image]}).encode())
    with urllib.request.urlopen(asked, timeout=30) as response:
        assert json.load(response)["outputs"][0]["shape"] == [1, 10]
    os.killpg(run.pid, signal.SIGINT)
    output = run.communicate(timeout=FAULT_S)[0]
    assert "interrupted by SIGINT" in output and left() == []
    with pytest.raises(OSError):
        urllib.request.urlopen(address, timeout=5)
