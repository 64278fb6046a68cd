"""What the client is asked for, and how a call of it ends."""

import os
import sys
import time
from pathlib import Path

import pytest
from curve_builder import SCORED, typed

from crowdperf.curves.client import Load, call_client, config_of
from crowdperf.curves.request import read_request
from crowdperf.endpoints.clientfiles import read_config


def test_the_client_reads_what_was_asked_for(tmp_path: Path) -> None:
    import yaml

    request = read_request(typed(tmp_path, "http://host:8000/v1", **SCORED), tmp_path)
    load = Load(concurrency=12, samples=704, least_s=600, has_accuracy=True)
    content = config_of(request.settings, load, tmp_path / "run", 30)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
    config = read_config(tmp_path / "config.yaml")
    assert (config.kind, config.load_pattern, config.concurrency, config.samples) == ("online", "concurrency", 12, 704)
    assert config.streaming == "on" and config.stream_all_chunks
    assert config.min_duration_ms == 600_000
    assert (config.scheduler_seed, config.sample_seed) == (10487924139932647040, 586478644936801402)
    assert [(one.name, one.kind) for one in config.datasets] == [("data", "performance"), ("data_accuracy", "accuracy")]
    assert content["datasets"][1]["accuracy_config"] == {
        "eval_method": "string_match", "extractor": "identity_extractor", "ground_truth": "ground_truth",
        "num_repeats": 1,
    }  # fmt: skip
    assert config.endpoints == ("http://host:8000",)


def test_a_dedicated_offline_run_and_a_calibration(tmp_path: Path) -> None:
    settings = read_request(typed(tmp_path, "http://host:8000"), tmp_path).settings
    offline = config_of(settings, Load(concurrency=0, samples=64, least_s=0), tmp_path, 30)
    assert offline["type"] == "offline" and offline["settings"]["load_pattern"] == {"type": "max_throughput"}
    timed = config_of(settings, Load(concurrency=4, samples=None, least_s=20, most_s=20), tmp_path, 30)
    assert timed["settings"]["runtime"]["max_duration_ms"] == 20_000 and len(timed["datasets"]) == 1


def test_a_key_is_named_and_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "open sesame")
    settings = read_request(typed(tmp_path, "http://host:8000", api_key_variable="MY_KEY"), tmp_path).settings
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho $MY_KEY | cut -c1-4; echo "$@"; echo python=$PYTHONPATH\n')
    program.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", "/ours")
    config = config_of(settings, Load(concurrency=1, samples=8, least_s=1), tmp_path / "run", 30)
    ended = call_client([str(program)], config, tmp_path / "run", with_accuracy=False)
    assert ended.code == 0
    assert ended.why == f"open\nbenchmark from-config --config {tmp_path / 'run.yaml'} --mode perf\npython="
    assert "${MY_KEY}" in (tmp_path / "run.yaml").read_text()
    assert not any("sesame" in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_whoever_ends_the_call_ends_the_clients_processes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.write_text(
        f"#!/bin/sh\nsleep 60 &\necho $! > {tmp_path}/child\nsleep 0.3\nkill -TERM {os.getpid()}\nwait\n"
    )
    program.chmod(0o755)

    def stop(number: int, _: object) -> None:
        raise SystemExit(number)

    import signal

    former = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(SystemExit):
            call_client([str(program)], {}, tmp_path / "run", with_accuracy=False)
    finally:
        signal.signal(signal.SIGTERM, former)
    child = int((tmp_path / "child").read_text())
    until = time.monotonic() + 5
    while Path(f"/proc/{child}").exists() and time.monotonic() < until:
        if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.02)
    else:
        assert not Path(f"/proc/{child}").exists(), sys.exc_info()
