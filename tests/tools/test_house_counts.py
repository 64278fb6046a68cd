"""tools/house_counts.py: what it counts in a made house, with packages in recipes and with one below src/."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from helpers import CHECKOUT

META = """input_description:
  size: {type: whole, desc: a}
  kind: {choices: [a, b], env: CM_KIND, desc: b}
  name: {desc: c}
input_mapping: {name: CM_NAME}
default_env: {CM_KIND: a, CM_SIZE: 1}
deps:
- tags: get,mlperf,results-lib
- tags: get,generic-python-lib,_package.numpy
variations:
  fast: {post_deps: [{tags: "get,machine-lib"}]}
"""
FILES = {
    "pyproject.toml": 'mypy_path = "a:b"\n',
    "script/get-mlperf-results-lib/_cm.yaml": "alias: get-mlperf-results-lib\n",
    "script/run-it/_cm.yaml": META,
    "script/run-too/_cm.yaml": "_base: script::run-it\ninput_description:\n  size: {desc: of this one}\n"
    "  kind: {type: text, desc: d}\nvariations:\n  fast:\n    default_env: {CM_KIND: b}\n",
    "script/run-it/customize.py": 'if __name__ == "customize":\n    raise ImportError\nTRUE = ("yes", "on", "1")\n',
    "tests/test_it.py": 'import sys\n{0}.append("x")\n{0}[:0] = ["y"]\nprint({0})\n'.format("sys.path"),
    "automation/engine.py": "a = 1\n",
}
PACKAGE = {
    "__init__.py": "",
    "config.py": "from .text import parts\n\ndef parse_detail_log(): ...\n",
    "text/__init__.py": "",
    "text/parts.py": "from ..errors import A\nfrom .. import config\nimport json\njson.loads('name')\n",
    "errors.py": "class A:\n    def text(self): ...\n    def number(self): ...\n",
    "watch/__init__.py": "from ..errors import A\n",
}


def test_the_counts_of_a_made_house(tmp_path: Path) -> None:
    for name, text in {**FILES, **{f"src/crowdperf/harness/{name}": text for name, text in PACKAGE.items()}}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, str(CHECKOUT / "tools" / "house_counts.py"), f"--checkout={tmp_path}"]
    command += ["--json", "--input=name"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    where = found.pop("where")
    assert found == {
        "roots on a path (folders that contain a package)": 1,
        "roots of mypy_path": 2,
        "*-lib recipes": 1,
        "dependency entries of *-lib recipes": 2,
        "sys.path edits in tests": 2,
        "guards against CM's engine in customize.py": 1,
        "tables of words for yes and no": 1,
        "public functions of one name in several modules": 0,
        "functions parse_detail_log": 1,
        **dict.fromkeys([f"functions {name}" for name in ("text_of", "_text", "failure", "write_json")], 0),
        "classes that read single values (of JSON, YAML, inputs)": 1,
        "modules that parse JSON or YAML": 1,
        "inputs": 5,
        "inputs with a type": 3,
        "inputs without a type": 2,
        "env keys that inputs describe with several types": 1,
        "default_env entries for a key of another recipe's default_env": 1,
        "inputs in input_mapping": 1,
        "files that name name": 2,
        "files of tests that name name": 0,
        "pairs of rooms of harness that import each other": 1,
        "pairs of rooms of crowdperf that import each other": 0,
        "lines of Python in script and src": 14,
        "lines of _cm.yaml": 19,
        "lines of Python in tests": 4,
        "lines of Python in automation": 1,
    }
    assert where["harness"] == {"core <-> text": [1, 2]}
    assert where["keys of several default_env"] == {"CM_KIND": ["run-it", "run-too"]}
    assert where["tables"] == ["script/run-it/customize.py:3"]


A_FILE = (
    '"""What a does.\n\nMore."""\n\nimport os\n\nX = (\n    os,\n)\n\n\n'
    'def f(\n    a,\n):\n    """F."""\n    a()\n    raise a\n'
)


def test_a_file_is_listed_with_the_kinds_of_its_lines_and_its_purpose_and_its_room(tmp_path: Path) -> None:
    for name, text in {"a": A_FILE, "b": "X = 1\n"}.items():
        (tmp_path / "src" / "crowdperf" / "kit").mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / "crowdperf" / "kit" / f"{name}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, str(CHECKOUT / "tools" / "house_counts.py"), f"--checkout={tmp_path}", "--files"]
    done = subprocess.run([*command, "--above=1"], capture_output=True, text=True, timeout=240, check=True)
    kinds = ["lines", "blank", "docs", "import", "heads", "tables", "raise", "code"]
    assert [line.split() for line in done.stdout.splitlines()] == [
        [*kinds, "file:", "purpose"],
        ["17", "4", "4", "1", "3", "3", "1", "1", "src/crowdperf/kit/a.py:", "What", "a", "does."],
        [],
        ["18", "4", "4", "1", "3", "3", "1", "2", "src/crowdperf/kit:", "2", "files"],
    ]


def test_a_count_is_shown_with_its_limit_and_whether_it_is_met(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, str(CHECKOUT / "tools" / "house_counts.py"), f"--checkout={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    rows = {line.partition("  ")[0]: " ".join(line.split()[-4:]) for line in done.stdout.splitlines()}
    assert rows["*-lib recipes"] == "at most 1 met"
    assert rows["inputs without a type"] == "most 0 NOT MET"
    assert rows["files that name max_batch_size"] == "at most 5 met"
