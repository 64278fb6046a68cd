"""The GPU kit on a processor: its steps pass or are skipped for want of a GPU; a crash costs one line."""

import importlib
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from harness_support import need

need("numpy", "torch", "safetensors", "mlperf_loadgen")

TOOLS = Path(__file__).resolve().parents[2] / "tools"
gpu_kit = importlib.import_module("gpu_kit")
SHORT = "facts,devices,models,copies,calls,several,llama,quiet"


def run_kit(folder: Path, *words: str, limit_s: float = 600.0) -> tuple[int, str, dict[str, Any]]:
    command = [sys.executable, str(TOOLS / "gpu_kit.py"), "--device=cpu", "--out", str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    return done.returncode, done.stdout + done.stderr, json.loads((folder / "kit.json").read_text())


def test_the_steps_that_need_no_gpu_and_take_seconds_pass(tmp_path: Path) -> None:
    code, said, content = run_kit(tmp_path / "a kit", f"--only={SHORT}")
    verdicts = {row["id"]: row["verdict"] for row in content["rows"]}
    assert (code, content["counts"]["FAIL"]) == (0, 0), said
    assert {name for name, verdict in verdicts.items() if verdict == "SKIP"} >= {"devices", "copies", "quiet"}
    for name in (
        "facts",
        "copies.host",
        "calls.resnet50.fp32.equal",
        "calls.bert.fp32.repeats",
        "calls.rnnt.states",
        "several.whisper.decoder.bf16",
        "several.stable_diffusion_xl.step.bf16",
        "several.unet3d.device_post",
        "llama.tokens",
        "llama.tiny.answers.4",
    ):
        assert verdicts[name] == "PASS", said
    assert "(needs a GPU)" in said and f"{content['counts']['PASS']} PASS" in said.splitlines()[-1]
    with tarfile.open(tmp_path / "a kit" / "logs.tar.gz") as archive:
        assert "logs/calls.txt" in archive.getnames()


@pytest.mark.full
def test_all_steps_pass_on_a_processor(tmp_path: Path) -> None:
    code, said, content = run_kit(tmp_path)
    assert (code, content["counts"]["FAIL"]) == (0, 0), said
    found = {row["id"] for row in content["rows"]}
    assert {"loops.bert.fp32", "harness.resnet50.fp32.Server", "harness.bert.fp32.Offline"} <= found


@pytest.mark.parametrize(
    ("code", "said", "writes_result", "verdict"),
    [
        (2, "harness: error: gpus [99] int8 nowhere tensorrt", False, "PASS"),
        (0, "harness: error: gpus [99] int8 nowhere tensorrt", False, "FAIL"),
        (1, "harness: error: another one", False, "FAIL"),
        (1, "Traceback: error: gpus [99] int8 nowhere tensorrt", False, "FAIL"),
        (2, "harness: error: gpus [99] int8 nowhere tensorrt", True, "FAIL"),
    ],
)
def test_a_refusal_has_words_a_code_and_no_result(
    tmp_path: Path, monkeypatch, code: int, said: str, writes_result: bool, verdict: str
) -> None:
    asked = []

    def run_harness(kit, name: str, **changes: Any) -> tuple[subprocess.CompletedProcess[str], Path]:
        asked.append(changes)
        return subprocess.CompletedProcess([], code, "", said), tmp_path if writes_result else tmp_path / "none"

    runs = importlib.import_module("gpu_kit_runs")
    monkeypatch.setattr(runs, "run_harness", run_harness)
    (tmp_path / "steps").mkdir()
    runs.refusals(gpu_kit.Kit(out=tmp_path, device="cpu", step="refusals"))
    rows = gpu_kit.rows_of(tmp_path / "steps" / "refusals.jsonl")
    assert {row.verdict for row in rows if row.id.split(".")[1] in ("gpu_99", "int8_on_pytorch", "no_model")} == {
        verdict
    }
    assert {"device": "cuda", "gpus": [99]} in asked


def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> Path:
    """A folder as main makes it; the steps are this program."""
    (tmp_path / "steps.py").write_text(program)
    monkeypatch.setattr(gpu_kit, "PROGRAM", tmp_path / "steps.py")
    for name in ("steps", "logs", "lib"):
        (tmp_path / name).mkdir()
    return tmp_path


WRITES_A_ROW = (
    "import json, os, sys, time\n"
    "with open(os.path.join(sys.argv[5], 'steps', sys.argv[1] + '.jsonl'), 'a') as file:\n"
    "    file.write(json.dumps({'id': 'one', 'verdict': 'PASS'}) + '\\n' + '{\"id\": \"cut off')\n"
)


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("os.abort()", "ended with code -6"),
        ("sys.exit('out of memory')", "ended with code 1 after 0 s: out of memory"),
        ("time.sleep(60)", "not done after 1 s"),
    ],
)
def test_a_step_that_crashes_or_hangs_costs_one_line(tmp_path, monkeypatch, end, why) -> None:
    out = prepared(tmp_path, monkeypatch, f"{WRITES_A_ROW}{end}\n")
    monkeypatch.setattr(gpu_kit.time, "monotonic", lambda: 0.0)
    rows = gpu_kit.run_step(gpu_kit.Step("calls", 2, 60.0), out, "cpu", 1.0 if "sleep" in end else 30.0)
    assert [(row.id, row.verdict) for row in rows] == [("one", "PASS"), ("calls", "FAIL")]
    assert rows[1].why.startswith(why)


def test_a_step_that_says_nothing_has_failed_and_one_without_time_is_skipped(tmp_path, monkeypatch) -> None:
    out = prepared(tmp_path, monkeypatch, "")
    (row,) = gpu_kit.run_step(gpu_kit.Step("calls", 2, 60.0), out, "cpu", 30.0)
    assert row.verdict == "FAIL"
    (late,) = gpu_kit.run_steps([gpu_kit.Step("loops", 3, 60.0)], out, "cpu", gpu_kit.time.monotonic() + 1)
    assert (late.verdict, "--minutes" in late.why) == ("SKIP", True)


def test_the_exit_code_is_the_number_of_fails_and_the_wheel_is_on_the_path(tmp_path, monkeypatch, capsys) -> None:
    out = prepared(tmp_path, monkeypatch, "import made_up; print(made_up.__file__); raise SystemExit(3)")
    with zipfile.ZipFile(tmp_path / "made_up-1-py3-none-any.whl", "w") as archive:
        archive.writestr("made_up.py", "")
    words = ["--out", str(out), "--wheel", str(tmp_path / "made_up-1-py3-none-any.whl"), "--only=copies,loops"]
    assert gpu_kit.main(words) == 2
    assert str(out / "lib" / "made_up.py") in (out / "logs" / "loops.txt").read_text()
    assert capsys.readouterr().out.count("\nFAIL  ") == 1


def test_a_wrong_step_is_named_with_those_that_there_are(capsys) -> None:
    with pytest.raises(SystemExit):
        gpu_kit.parse(["--only=coppies"])
    assert "unknown steps coppies; allowed: facts,devices" in capsys.readouterr().err


def test_the_page_compares_the_harness_with_the_bare_loop() -> None:
    rows = [
        gpu_kit.Row("facts", "PASS", "", "", {"gpu": "H100", "torch": "torch 2.11"}),
        gpu_kit.Row("copies.pinned", "PASS", "52.1 GB/s"),
        gpu_kit.Row("loops.resnet50.bf16", "PASS", "", "", {"best": 40000.0, "how": "graph 512", "eager": 21000.0}),
        gpu_kit.Row("harness.resnet50.bf16.Offline", "PASS", "", "", {"measured": 36800.0, "batch": 512, "watts": 612}),
        gpu_kit.Row("harness.resnet50.bf16.SingleStream", "PASS", "", "", {"measured": 0.4213}),
    ]
    first, copies, heads, line = gpu_kit.table(rows)
    assert (first, copies) == ("H100  torch 2.11", "copies   pinned 52.1 GB/s")
    assert heads.split()[:2] == ["bare", "loop/s"]
    assert line.split() == ["resnet50", "bf16", "21,000", "graph", "512", "36,800", "92", "%", "512", "0.421", "612"]
