"""Energy of a run: the arithmetic by tables, RAPL on a tree of files, NVML on stand-ins, commands as real processes,
and one whole run with the real LoadGen."""

import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_nvml import FakeCudaDriver, FakePynvml, Gpu
from harness_support import need, request, run_harness

from crowdperf.harness.runner.config import KnownNames, parse_run_config
from crowdperf.harness.runner.loadgen_run import energy_watch
from crowdperf.harness.watch import energy, nvml
from crowdperf.harness.watch.energy import EnergyWatch, NoEnergy, PowerCommand, Sources, energy_between, watts_of
from crowdperf.logs.efficiency import Work
from crowdperf.logs.run_log import read_detail_log

need("mlperf_loadgen")

STEADY = [(float(second), 10.0 * second) for second in range(11)]  # 10 W


@pytest.mark.parametrize(
    ("readings", "begin_s", "end_s", "joules"),
    [
        (STEADY, 2.0, 8.0, 60.0),
        (STEADY, 2.5, 8.25, 57.5),
        (STEADY, -1.0, 11.0, 120.0),  # the first and the last power go on
        ([(0.0, 0.0), (4.0, 4.0), (5.0, 104.0), (6.0, 105.0)], 3.0, 6.0, 102.0),
        ([(1.0, 7.0), (2.0, 9.0)], 1.0, 2.0, 2.0),
    ],
)
def test_energy_is_linear_between_readings(readings, begin_s, end_s, joules) -> None:
    assert energy_between(readings, begin_s, end_s) == pytest.approx(joules)


@pytest.mark.parametrize(
    ("readings", "end_s", "words"),
    [
        ([], 2.0, "0 readings in 2.0 s, at least 2"),
        ([(1.0, 0.0)], 2.0, "1 reading in 2.0 s"),
        ([(1.0, 0.0), (2.0, 9.0), (40.0, 99.0)], 30.0, "no reading for 38 s, at most 15 s"),
        ([(1.0, 0.0), (2.0, 9.0)], 30.0, "no reading for 28 s"),
    ],
)
def test_too_few_readings_give_no_energy(readings, end_s, words) -> None:
    with pytest.raises(NoEnergy, match=words):
        energy_between(readings, 0.0, end_s)


@pytest.mark.parametrize("line", [b"", b"power: 3 W\n", b"12,5\n", b"nan\n", b"inf\n", b"-1\n", b"\xff\n", b"1 2\n"])
def test_a_line_that_is_not_a_power_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="one number of watts per line, 0 or more"):
        watts_of(line)


def test_a_line_is_a_number_of_watts() -> None:
    assert [watts_of(line) for line in (b"12.5\n", b" 0\r\n", b"1e3")] == [12.5, 0.0, 1000.0]


def powercap(folder: Path, domains: dict[str, str], range_uj: int = 1000) -> Path:
    """A tree of files as below /sys/class/powercap; domains: names by folder."""
    for name, words in domains.items():
        (folder / name).mkdir(parents=True)
        for file, text in (("name", words), ("energy_uj", "900"), ("max_energy_range_uj", str(range_uj))):
            (folder / name / file).write_text(f"{text}\n")
    return folder


TREE = {
    "intel-rapl:0": "package-0",
    "intel-rapl:0:0": "core",
    "intel-rapl:0:1": "dram",
    "intel-rapl:1": "package-1",
    "intel-rapl:2": "psys",
    "intel-rapl-mmio:0": "package-0",
    "dtpm:0": "package",
}


def test_packages_count_once_without_what_they_contain(tmp_path: Path) -> None:
    packages, problems = energy.open_packages(powercap(tmp_path, TREE))
    assert ([one.meter.name for one in packages], problems) == (["package-0", "package-1"], [])


def test_a_counter_that_wraps_goes_on(tmp_path: Path) -> None:
    (package, _), _ = energy.open_packages(powercap(tmp_path, TREE))
    counter = tmp_path / "intel-rapl:0" / "energy_uj"
    found = []
    for raw in (950, 50, 60, 0):
        counter.write_text(str(raw))
        found.append(package.joules())
    assert found == pytest.approx([50e-6, 150e-6, 160e-6, 1100e-6])


@pytest.mark.parametrize("damage", ["unreadable", "empty", "gone"])
def test_a_counter_that_cannot_be_read_is_reported(tmp_path: Path, damage: str, monkeypatch) -> None:
    file = powercap(tmp_path, {"intel-rapl:0": "package-0"}) / "intel-rapl:0" / "energy_uj"
    if damage == "empty":
        file.write_text("")
    elif damage == "gone":
        file.unlink()
    else:  # the tests may run as root, who can read everything
        monkeypatch.setattr(energy, "Package", lambda *args: (_ for _ in ()).throw(PermissionError(13, "denied")))
    packages, problems = energy.open_packages(tmp_path)
    assert packages == [] and len(problems) == 1 and "energy_uj is not usable" in problems[0]
    assert ("readable by root only" in problems[0]) is (damage == "unreadable")


def wait_until(is_so: Callable[[], bool]) -> None:
    """Waits for another process or thread, however busy the machine is."""
    end_s = time.monotonic() + 20
    while not is_so() and time.monotonic() < end_s:
        time.sleep(0.01)
    assert is_so()


def watch(sources: Sources, monkeypatch, tree: Path, is_begun: Callable[[EnergyWatch], bool] | None = None) -> dict:
    """The key `energy` of a block of a quarter second or more, which begins when `is_begun`. By default that is when
    all meters have readings, and they have more before it ends."""
    monkeypatch.setattr(energy, "POWERCAP", tree)
    with EnergyWatch(sources, idle_s=0.3, interval_s=0.02) as watched:

        def has_more(than: int) -> Callable[[], bool]:
            return lambda: all(one.problem or len(one.readings) > than for one in watched.meters)

        wait_until(has_more(2) if is_begun is None else lambda: is_begun(watched))
        seen = max((len(one.readings) for one in watched.meters), default=0)
        begin_s = time.monotonic()
        time.sleep(0.25)
        if is_begun is None:
            wait_until(has_more(seen + 1))
        end_s = time.monotonic()
        watched.stop()
        found = watched.part(begin_s, end_s, Work(10, None))
    assert found is not None
    return found


def plug(monkeypatch, *gpus: Gpu) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakePynvml(gpus))
    monkeypatch.setattr(nvml, "cuda_driver", lambda: FakeCudaDriver(gpus, {}))


def test_the_whole_is_the_sum_of_packages_and_gpus(tmp_path: Path, monkeypatch) -> None:
    plug(monkeypatch, Gpu(0), Gpu(1))
    found = watch(Sources(gpus=(0, 1)), monkeypatch, powercap(tmp_path, TREE))
    meters = {row["name"]: row for row in found["meters"]}
    assert list(meters) == ["package-0", "package-1", "GPU 0", "GPU 1"] and found["problems"] == []
    assert meters["package-0"]["energy_j"] == 0 and meters["GPU 0"]["energy_j"] > 0
    assert found["energy_j"] == pytest.approx(meters["GPU 0"]["energy_j"] + meters["GPU 1"]["energy_j"])
    assert found["mean_w"] == pytest.approx(found["energy_j"] / found["seconds"]) and found["idle_w"] > 0
    assert found["method"].startswith("RAPL of package-0, package-1 and NVML of GPU 0, GPU 1 from power_begin")


def test_a_gpu_without_a_counter_leaves_no_whole(tmp_path: Path, monkeypatch) -> None:
    whole = Gpu(0)
    part = Gpu(1, parent=whole)
    monkeypatch.setitem(sys.modules, "pynvml", FakePynvml([whole, part]))
    driver = FakeCudaDriver([whole, part], {"CUDA_VISIBLE_DEVICES": f"MIG-{part.uuid}"})
    monkeypatch.setattr(nvml, "cuda_driver", lambda: driver)
    found = watch(Sources(gpus=(0,)), monkeypatch, powercap(tmp_path, TREE))
    assert (found["energy_j"], found["mean_w"], found["idle_w"]) == (None, None, None)
    assert found["problems"] == ["GPU 0: the driver has no energy counter for it"]


def test_without_meters_nothing_is_measured_or_waited_for(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(energy, "POWERCAP", tmp_path)
    with EnergyWatch(Sources(), idle_s=1e6) as watched:
        pass
    assert watched.part(0.0, 1.0, Work(0, None)) is None


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-uc", f"import time, sys, os\n{code}")


STEADY_METER = python("while True: print(42.0); time.sleep(0.02)")


def test_the_power_of_a_command_is_the_whole(tmp_path: Path, monkeypatch) -> None:
    found = watch(Sources(command=STEADY_METER), monkeypatch, powercap(tmp_path, TREE))
    assert (found["mean_w"], found["idle_w"]) == (pytest.approx(42.0), pytest.approx(42.0))
    assert found["energy_j"] == pytest.approx(42.0 * found["seconds"])
    assert found["method"].startswith("Power printed by python") and found["is_requested"] is True
    assert [row["kind"] for row in found["meters"]] == ["RAPL", "RAPL", "command"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print(5)\nprint('12 W')\ntime.sleep(60)", "printed '12 W'; allowed: one number of watts per line"),
        ("print(5); sys.exit('no meter')", "ended with code 1 before the run: no meter"),
        ("print('x' * 10000, flush=True); time.sleep(60)", "printed 'xxxx"),
        ("time.sleep(60)", "0 readings in"),
        ("print(5); time.sleep(60)", "0 readings in"),
    ],
)
def test_a_command_that_fails_is_reported_and_gives_no_energy(tmp_path, monkeypatch, capfd, code, words) -> None:
    is_silent = "readings" in words
    found = watch(
        Sources(command=python(code)), monkeypatch, tmp_path,
        lambda watched: is_silent or bool(watched.meters[-1].problem),
    )  # fmt: skip
    assert found["energy_j"] is None and words in found["problems"][0], found["problems"]
    assert is_silent or words in capfd.readouterr().err


def test_a_command_that_is_not_there_is_reported(tmp_path: Path, monkeypatch) -> None:
    found = watch(Sources(command=("/no/such/meter", "-x")), monkeypatch, tmp_path)
    assert found["problems"][0].startswith("--power_command=meter cannot be started: No such file")


def test_no_word_of_a_command_reaches_a_shell(tmp_path: Path, monkeypatch) -> None:
    words = python("print(sys.argv[1:]); time.sleep(60)")
    sources = Sources(command=(*words, "$(touch x)", ";", "a b"))
    found = watch(sources, monkeypatch, tmp_path, lambda watched: bool(watched.meters[-1].problem))
    assert "printed \"['$(touch x)', ';', 'a b']\"" in found["problems"][0]
    assert not Path("x").exists()


@pytest.mark.parametrize("is_deaf", [False, True])
def test_a_command_and_what_it_started_is_ended(tmp_path: Path, is_deaf: bool, monkeypatch) -> None:
    monkeypatch.setattr(energy, "_STOP_S", 0.3)
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" if is_deaf else ""
    note = tmp_path / "pids"
    forked = f"child = os.fork()\nopen({str(note)!r}, 'a').write(f'{{os.getpid()}} ')\n"
    code = f"{deaf}{forked}while True: print(1); time.sleep(.02)"
    command = PowerCommand(python(code))
    end_s = time.monotonic() + 20
    while time.monotonic() < end_s and (not note.exists() or len(note.read_text().split()) < 2):
        time.sleep(0.01)
    command.stop()
    pids = [int(word) for word in note.read_text().split()]
    assert len(pids) == 2
    for pid in pids:
        end_s = time.monotonic() + 20
        while time.monotonic() < end_s and alive(pid):
            time.sleep(0.01)
        assert not alive(pid)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = (
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] if Path(f"/proc/{pid}").exists() else "X"
    )
    return state not in "ZX"


CONFIG = KnownNames(models=("digits", "own-prompts"), backends=("null", "endpoint"))
REMOTE = {"url": "http://192.0.2.1:1/v1", "model": None, "api": None, "key_variable": None}
TEXT = {"endpoint": REMOTE, "max_in_flight": None, "kv_cache_bytes": None, "timeout_s": None, "server": None}


@pytest.mark.parametrize(
    ("changes", "is_local", "command"),
    [
        ({}, True, ()),
        ({"mode": "accuracy"}, False, ()),
        ({"find": True}, False, ()),
        ({"text": TEXT, "model": "own-prompts", "backend": "endpoint", "power_command": ["x"]}, False, ("x",)),
        ({"text": {**TEXT, "endpoint": {**REMOTE, "url": "http://127.0.0.1:1/v1"}}}, True, ()),
    ],
)
def test_the_counters_of_this_machine_count_where_it_is_what_is_measured(changes, is_local, command) -> None:
    watched = energy_watch(parse_run_config(json.dumps({**request(), **changes}), "run.json", CONFIG))
    assert (watched._sources.is_local, watched._sources.command) == (is_local, command)


def test_a_run_has_energy_and_cost_per_sample(tmp_path: Path) -> None:
    dataset = tmp_path / "digits"
    content = request(dataset_path=str(dataset), output_dir=str(tmp_path / "out"), min_duration_ms=400,
                      scenario="SingleStream")  # fmt: skip  # has no rate that a busy machine misses
    content |= {"power_command": list(STEADY_METER), "price_per_hour": 3.6}
    write_digits(dataset)
    ended = run_harness(tmp_path, content)
    assert ended.code == 0, ended.stderr
    result = ended.result
    found, cost = result["energy"], result["cost"]
    assert result["valid"] and found["problems"] == []
    assert found["mean_w"] == pytest.approx(42.0) and found["seconds"] == pytest.approx(result["duration_s"])
    samples = result["query_count"] * result["samples_per_query"]
    assert found["j_per_sample"] == pytest.approx(42.0 * result["duration_s"] / samples)
    assert cost["per_million_samples"] == pytest.approx(3.6 / 3600 * result["duration_s"] / samples * 1e6)
    assert (found["j_per_output_token"], cost["per_million_output_tokens"]) == (None, None)
    detail = read_detail_log(tmp_path / "out" / "mlperf_log_detail.txt")
    assert detail.values.has("power_begin")
    assert shlex.join(STEADY_METER) not in json.dumps(result), "arguments of the command may be secrets"


def write_digits(folder: Path) -> None:
    import numpy as np

    folder.mkdir()
    np.save(folder / "validation_images.npy", np.zeros((50, 8, 8), np.uint8))
    np.save(folder / "validation_labels.npy", np.zeros(50, np.uint8))
