"""docs/howto/compare-in-a-pipeline.md: its pipelines are YAML, and their commands do what the page says."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from made_records import row
from recipe_engine.provenance.record import sealed

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs/howto/compare-in-a-pipeline.md").read_text(encoding="utf-8")
GITHUB, GITLAB = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))

CROWDPERF = """\
#!/bin/bash
# In the place of crowdperf: a run copies $MADE to results/new and is judged by the real `cm diff script`.
mkdir -p results && cp -r "$MADE" results/new
baseline="" extra=()
for word in "$@"; do
  case "$word" in
    --baseline=*) baseline="${word#*=}" ;;
    --junit=*|--markdown=*) extra+=("$word") ;;
  esac
done
[ -z "$baseline" ] || exec "$CM" diff script "$baseline" results/new --max_slowdown=5% "${extra[@]}"
"""


def write(folder: Path, *speeds: float) -> Path:
    for number, speed in enumerate(speeds, start=1):
        within = {"throughput": {"value": speed, "unit": "samples/s", "higher_is_better": True}}
        place = folder / f"repeat-{number}"
        place.mkdir(parents=True)
        content = row(name="digits/Offline/performance", outcome={"exact": {"valid": True}, "within": within})
        (place / "record.json").write_text(json.dumps(sealed(content)))
    return folder


def scripts() -> dict[str, str]:
    """The commands that measure, compare and keep the baseline, of both pipelines."""
    steps = GITHUB["jobs"]["speed"]["steps"]
    measured = next(step["run"] for step in steps if step.get("name") == "measure and compare")
    kept = next(step["run"] for step in steps if "cp -r results/new baseline" in step.get("run", ""))
    lines = [line for line in GITLAB["speed"]["script"] if not line.startswith("pip ")]
    return {"github": f"{measured}\n{kept}", "gitlab": "\n".join(lines)}


@pytest.mark.parametrize("which", ["github", "gitlab"])
def test_a_pipeline_keeps_its_baseline_and_fails_when_it_is_slower(which: str, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "crowdperf"
    program.parent.mkdir()
    program.write_text(CROWDPERF)
    program.chmod(0o755)
    home = {"CM_REPOS": str(tmp_path / "cm"), "HOME": str(tmp_path), "CM": str(CHECKOUT / "cm")}
    branch = {"CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"}
    slow = (80.0, 81.0, 79.0)
    speeds = {"first": (100.0, 101.0, 99.0), "same": (99.0, 100.0, 101.0), "slower": slow, "wanted": slow,
              "after": slow}  # fmt: skip
    codes, throughputs = [], []
    for name, values in speeds.items():
        made = write(tmp_path / name, *values)
        env = {**os.environ, **home, **branch, "MADE": str(made), "PATH": f"{program.parent}:{os.environ['PATH']}"}
        env["NEW_BASELINE"] = "yes" if name == "wanted" else ""
        subprocess.run(["rm", "-rf", "results"], cwd=tmp_path, check=True)
        done = subprocess.run(
            ["bash", "-e", "-c", scripts()[which]], cwd=tmp_path, env=env, capture_output=True, text=True, check=False,
            timeout=100,
        )  # fmt: skip
        codes.append(done.returncode)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        if name == "slower":
            assert "<failure" in (tmp_path / "crowdperf.xml").read_text()
            assert "WORSE" in (tmp_path / "crowdperf.md").read_text()
        kept = json.loads((tmp_path / "baseline/repeat-1/record.json").read_text())
        throughputs.append(kept["outcome"]["within"]["throughput"]["value"])
    assert codes == [0, 0, 1, 0, 0]
    assert throughputs == [100.0, 99.0, 99.0, 80.0, 80.0], "the last result that passed or was wanted"


def test_the_commands_use_inputs_that_exist() -> None:
    recipe = (CHECKOUT / "script/run-mlperf-inference/_cm.yaml").read_text()
    described = yaml.safe_load(recipe)["input_description"]
    base = yaml.safe_load((CHECKOUT / "script/mlperf-run-inputs/_cm.yaml").read_text())["input_description"]
    named = set(re.findall(r"--([a-z_]+)=", "\n".join(scripts().values())))
    assert named <= {*described, *base}, named
