"""The GPU kit in a Python without its packages: one error with the commands, and no step."""

import subprocess
import sys
from pathlib import Path

KIT = Path(__file__).resolve().parents[2] / "tools/gpu_kit.py"


def test_a_python_without_torch_is_refused_at_once_with_the_commands_for_another(tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-E", str(KIT), "--out", "a kit", "--device=cpu"]  # no site-packages
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and not done.stdout, done.stderr
    assert "has no torch, numpy, safetensors, mlcommons-loadgen" in done.stderr
    assert "pip install torch numpy safetensors mlcommons-loadgen nvidia-ml-py" in done.stderr
    assert done.stderr.splitlines()[-1].strip() == f"kit-python/bin/python {KIT} --out 'a kit' --device=cpu"
    assert not list(tmp_path.iterdir()), "nothing was begun"
    (tmp_path / "loadgen.whl").write_bytes(b"")
    command += ["--wheel", "loadgen.whl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "has no torch, numpy, safetensors." in done.stderr
