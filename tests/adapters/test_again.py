"""The ``again:`` line of a failure is the command that was given, and it fails in the same way."""

import re
import shlex
import subprocess
from pathlib import Path

import cmind.cli
import pytest
from helpers import TemporaryHome, cm_command
from recipe_engine.actions.adapter import Home, answer_cm
from recipe_engine.actions.run import run_action
from recipe_engine.disk.files import working_folder

FAILURES = """
install,python-venv --version=3.10.99
get,python3 --version_min=3.99
get,dataset,imagenet,validation --path=/no/such/folder
get,dataset,imagenet,validation,_size.32 '--path=/no such folder/it'"'"'s'
get,dataset,squad --path=/no/such/file
get,ml-model,resnet50 --path=/no/such/file
get,cuda,_prebuilt --run_file=/no/such/file
get,cudnn --tar_file=/no/such/file
get,tensorrt --tar_file=/no/such/file
download,file --url=https://127.0.0.1:1/x --from=/no/such/file
extract,file --input=/no/such/file.tar
extract,file
print,mlperf,results --input=/no/such/folder
check,mlperf,submission --submission_dir=/no/such/folder
report,mlperf,submission --input=/no/such/folder
generate,mlperf,inference,user-conf --model=bert-99 --scenario=MultiStream
get,mlperf,inference,sut,configs --model=nosuch --scenario=Offline --target_qps=5
truncate,mlperf,accuracy-log --submission_dir=/no/such/folder
run,mlperf,compliance --results_dir=/no/such/folder
generate,inference,submission --results_dir=/no/such/folder --submission_dir=tree
run,mlperf,inference --scenario=Offline --batch_timeout_us=5
run,mlperf,inference --model=digits --scenario=Offline --target_latency_ms=5 --env.CM_NOTE='a $b "c" `d`'
app,mlperf,inference,_digits,_offline,_performance --adr.python.version=3.99
generate-run-cmds,inference --model=bert-99 --scenario=Server
get,scratch,disk --filter=Foo:1
get,mlperf,scratch,space --path=/proc/no
doctor --python=/no/such/python
run,in,container,mlperf,_plan --machine=nosuch --recipe_tags=detect,os
calibrate,ml-model --model=nosuch
update,mlperf,results --input=/no/such/folder --output=there
show,mlperf,benchmarks --model=nosuch
get,sys-utils-cm --tools=nosuch
"""
COMMANDS = [f"cm run script -v --quiet --tags={line}" for line in FAILURES.strip().splitlines()]


def failure(ours: Home, command: str) -> str:
    """What the console would say of a command that fails."""
    i = cmind.cli.parse(shlex.split(command)[1:])["cm_input"]
    answer = answer_cm(lambda i: run_action(i, ours, None), i, None)
    assert answer["return"] > 0, command
    return str(answer["error"])


def comparable(text: str) -> str:
    """The first line of an error without the names of cache entries."""
    return re.sub(r"\b[0-9a-f]{16}\b", "<entry>", text.splitlines()[0])


def test_there_are_more_than_thirty_failures() -> None:
    assert len(COMMANDS) > 30


@pytest.mark.parametrize("command", COMMANDS)
def test_the_printed_command_is_the_one_that_was_given_and_fails_in_the_same_way(
    ours: Home, tmp_path: Path, command: str
) -> None:
    with working_folder(tmp_path):
        first = failure(ours, command)
        again = next(line for line in first.splitlines() if line.startswith("  again: ")).removeprefix("  again: ")
        assert sorted(shlex.split(again)) == sorted(shlex.split(command))
        assert comparable(failure(ours, again)) == comparable(first)


# --- on the console ---

DEEP = {
    "get-data": ({"cache": True, "input_mapping": {"from": "CM_DATA_FROM"}}, 'cp "$CM_DATA_FROM" data'),
    "get-model": ({"deps": [{"tags": "get,data", "names": ["data"]}], "input_mapping": {"seed": "CM_SEED"}}, ""),
    "run-all": ({"deps": [{"tags": "get,model"}], "input_mapping": {"size": "CM_SIZE"}}, ""),
}


@pytest.fixture
def deep(home: TemporaryHome) -> TemporaryHome:
    """Three recipes below each other; the deepest fails."""
    for alias, (meta, run_sh) in DEEP.items():
        home.recipe(alias, meta, run_sh=run_sh)
    return home


def test_a_shell_repeats_the_command_of_a_failure_two_steps_below(deep: TemporaryHome) -> None:
    done = deep.cm("run", "script", "run all", "--size=a b;c", "--adr.data.from=/no/it's")
    assert "step alone" not in done.stderr and "again:" not in done.stderr, "one command comes next: resume"
    done = deep.cm("run", "script", "run all", "--size=a b;c", "--adr.data.from=/no/it's", "-v")
    again = next(line for line in done.stderr.splitlines() if line.startswith("  again: ")).removeprefix("  again: ")
    assert again.startswith("cm run script 'run all' ")
    shell = "cm() { " + shlex.join(cm_command([])) + ' "$@"; }; ' + again
    repeated = subprocess.run(
        ["bash", "-c", shell], cwd=deep.work, env=deep.process_env(), capture_output=True, text=True, timeout=60
    )
    first = [next(line for line in text.splitlines() if "CM error" in line) for text in (done.stderr, repeated.stderr)]
    assert first[0] == first[1] == "CM error: get-data: run.sh failed with exit code 1"
    assert again in repeated.stderr


def test_with_v_the_line_of_the_failed_step_is_there_too(deep: TemporaryHome) -> None:
    done = deep.cm("run", "script", "run all", "--adr.data.from=/no", "-v")
    assert "  again: cm run script 'run all' --adr.data.from=/no -v\n" in done.stderr
    assert "  step alone: cm run script --tags=get,data --from=/no" in done.stderr


def test_a_secret_is_named_and_not_printed(deep: TemporaryHome) -> None:
    done = deep.cm("run", "script", "run all", "--adr.data.from=/no", "--hf_token=hf_0123456789abcdefghij")
    assert "hf_0123456789" not in done.stderr
    assert "    not included: --hf_token (a secret)\n" in done.stderr


def test_a_hint_names_the_input_as_the_given_command_takes_it(home: TemporaryHome) -> None:
    hook = (
        "def preprocess(i):\n    return {'return': 1, 'error': 'no data\\nhint: --from=FILE, or --seed=1 and --zz'}\n"
    )
    home.recipe("get-data", {"input_mapping": {"from": "CM_FROM", "seed": "CM_SEED"}}, customize=hook)
    home.recipe("get-model", DEEP["get-model"][0])
    home.recipe("run-all", DEEP["run-all"][0])
    assert "  hint: --from=FILE, or --seed=1 and --zz\n" in home.cm("run", "script", "get data").stderr
    assert "  hint: --adr.data.from=FILE, or --seed=1 and --zz\n" in home.cm("run", "script", "get model").stderr
    told = home.cm("run", "script", "run all").stderr
    assert "  hint: --adr.data.from=FILE, or --env.CM_SEED=1 and --zz\n" in told
