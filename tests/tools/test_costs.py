"""pytest --costs: what the workers counted is added up, beside what the file had."""

import json
import subprocess
import sys
from pathlib import Path

from helpers import CHECKOUT, PATIENCE_S


def test_costs_are_added_to_those_of_the_file(tmp_path: Path) -> None:
    one, other = "tests/rules/test_anchors.py", "tests/rules/test_querycounts.py"
    file = tmp_path / "costs.json"
    file.write_text(json.dumps({one: 100.0, "tests/test_earlier.py": 1.0}))
    command = [sys.executable, "-m", "pytest", "-n1", f"--costs={file}", one, other]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout
    costs = json.loads(file.read_text())
    assert costs.keys() == {one, other, "tests/test_earlier.py"}
    assert costs[one] >= 100.0 and costs["tests/test_earlier.py"] == 1.0
