"""The command crowdperf: its words become those of cm, and what it does not know is refused with what it knows."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from crowdperf.call import command

ROOT = Path(__file__).resolve().parents[2]

RUN = ["run", "script", "--tags=run,mlperf,inference"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run", RUN),
        ("run --model=resnet50 -v", [*RUN, "--model=resnet50", "-v"]),
        ("-v run --model=resnet50", [*RUN, "--model=resnet50", "-v"]),
        ("--out=json -v check tree",
         ["run", "script", "--tags=check,mlperf,submission", "--submission_dir=tree", "--out=json", "-v"]),
        ("-v cm show cache", ["show", "cache", "-v"]),
        ("run get,cuda --out=json", ["run", "script", "--tags=get,cuda", "--out=json"]),
        ("run --quiet get,cuda", ["run", "script", "--tags=get,cuda", "--quiet"]),
        ("check --rehearsal tree", ["run", "script", "--tags=check,mlperf,submission", "--submission_dir=tree",
                                    "--rehearsal"]),
        ("run @inputs.yaml", [*RUN, "@inputs.yaml"]),
        ("plan --model=bert-99", ["plan", "script", "--tags=run,mlperf,inference", "--model=bert-99"]),
        ("show", ["run", "script", "--tags=show,mlperf,results"]),
        ("show results/a", ["run", "script", "--tags=show,mlperf,results", "--results_dir=results/a"]),
        ("diff results/a results/b", ["diff", "script", "results/a", "results/b"]),
        ("check tree --version=v6.1",
         ["run", "script", "--tags=check,mlperf,submission", "--submission_dir=tree", "--version=v6.1"]),
        ("sweep s.yaml --plan", ["run", "script", "--tags=run,mlperf,sweep", "--file=s.yaml", "--plan"]),
        ("doctor", ["run", "script", "--tags=doctor"]),
        ("cache --tags=get,python3", ["show", "cache", "--tags=get,python3"]),
        ("cm rm cache --tags=x -f", ["rm", "cache", "--tags=x", "-f"]),
    ],
)  # fmt: skip
def test_a_verb_is_a_command_of_cm(line: str, expected: list[str]) -> None:
    assert command.words_of_cm(line.split()) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rnu", "unknown verb 'rnu'. Did you mean run? Known: run, plan, show"),
        ("-v rnu", "unknown verb 'rnu'. Did you mean run?"),
        (
            "--model=resnet50",
            "no verb, found --model=resnet50. Write: crowdperf run --model=resnet50. Known: run, plan",
        ),
        (
            "bundle run --model=resnet50 --output=r.pyz",
            "one word, in quotes. Write: crowdperf bundle 'run --model=resnet50' --output=r.pyz",
        ),
        ("doctor now", "crowdperf doctor accepts options only, found now"),
        ("check a b", "crowdperf check accepts one word, for --submission_dir, found a b"),
        ("run --model resnet50", "an input and its value are one word: --model=resnet50, found --model resnet50"),
        ("run -m x.gguf -p 512", "an input and its value are one word: --m=x.gguf, found -m x.gguf"),
        ("check tree --version v6.1", "an input and its value are one word: --version=v6.1"),
        ("run model=resnet50", "inputs begin with two dashes: --model=resnet50, found model=resnet50"),
    ],
)
def test_what_is_not_known_is_refused_before_anything_is_written(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert command.main(line.split()) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_help_that_cannot_be_written_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "write_output", lambda text: "the disk is full")
    assert command.main(["--help"]) == 1
    assert capsys.readouterr().err == "crowdperf: the disk is full\n"


def test_a_refusal_is_one_object_where_json_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["doctor", "now", "--out=json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer == {
        "return": 1,
        "error": "crowdperf doctor accepts options only, found now\n  hint: crowdperf --help",
    }


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in command.VERBS if f"\n  {name} " not in shown] == []
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    table = page.partition("## Installed by pip")[2].partition("\n## ")[0]
    told = [name for name in command.VERBS if re.search(rf"`(crowdperf )?{name}\b", table)]
    assert [name for name, verb in command.VERBS.items() if name not in told and is_here(verb)] == []


def is_here(verb: command.Verb) -> bool:
    """Whether the verb's recipe is there: a room that is removed (tools/without_room.py) takes its recipes along."""
    tags = "".join(verb.words[2:]).removeprefix("--tags=")
    return verb.words[:1] != ("run",) or (ROOT / "script" / tags.replace(",", "-")).is_dir()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"HOME": "/h"}, {"CM_REPOS": "/h/.local/share/crowdperf/cm", "CROWDPERF_CACHE": "/h/.cache/crowdperf"}),
        ({"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_CACHE_HOME": "/c"},
         {"CM_REPOS": "/d/crowdperf/cm", "CROWDPERF_CACHE": "/c/crowdperf"}),
        ({"HOME": "/h", "XDG_DATA_HOME": "d", "XDG_CACHE_HOME": ""},
         {"CM_REPOS": "/h/.local/share/crowdperf/cm", "CROWDPERF_CACHE": "/h/.cache/crowdperf"}),
        ({"HOME": "/h", "CM_REPOS": "/cm"}, {}),
        ({"HOME": "/h", "CROWDPERF_CACHE": "/big"}, {"CM_REPOS": "/h/.local/share/crowdperf/cm"}),
        ({"HOME": "/h", "CM_REPOS": "/cm", "CROWDPERF_CM": "mine"}, {"CROWDPERF_CM": "mine", "CROWDPERF_VERBS": ""}),
    ],
)  # fmt: skip
def test_state_is_in_cms_home_or_in_xdg_folders(given: dict[str, str], expected: dict[str, str]) -> None:
    found = {"CROWDPERF_VERBS": "", **given, **command.environment(given)}
    own = {"CROWDPERF_CM": "crowdperf cm", "CROWDPERF_VERBS": command.printed_verbs()}
    assert found == {**given, **own, **expected}


def test_cm_is_started_in_the_home_that_was_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CM_REPOS", "CROWDPERF_CACHE", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(command.os, "environ", {**os.environ, "HOME": str(tmp_path)})
    started: list[list[str]] = []
    monkeypatch.setattr(command.os, "execv", lambda program, words: started.append(words))
    monkeypatch.setattr(command, "make_index", lambda home: None)
    command.main(["cache"])
    assert started[0][3:] == ["show", "cache"] and "cmind.cli" in started[0][2]
    home = tmp_path / ".local/share/crowdperf/cm"
    assert command.os.environ["CM_REPOS"] == str(home)
    assert json.loads((home / "repos.json").read_text()) == [str(ROOT)]


def test_a_python_that_cannot_be_started_again_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CM_REPOS", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    assert command.main(["--version"]) == 1
    assert f"cannot set up its home: [Errno 2] No such file or directory: '{tmp_path}/gone'" in capsys.readouterr().err


def test_the_repository_of_a_checkout_is_the_checkout(tmp_path: Path) -> None:
    assert command.repository(tmp_path) == Path(__file__).resolve().parents[2]
