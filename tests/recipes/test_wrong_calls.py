"""Wrong calls of run,mlperf,inference as a user types them: each ends with a clear error before anything is installed.

A row is the words of the call and what the error must have: the input, the value found, what is allowed or the next
step. Add a row for each new input.
"""

import json
import re
import shlex
from collections.abc import Iterator

import pytest
from helpers import CHECKOUT, TemporaryHome, write_indexes
from made_records import row
from onnx_bytes import network
from recipe_engine.actions.adapter import Home
from recipe_engine.actions.run import run_action
from recipe_engine.disk.repos import RepoInfo
from recipe_engine.provenance.record import sealed
from recipe_engine.rules.errors import RecipeError
from stub_openai import running_stub

CLOSED = "http://127.0.0.1:9/v1"
"""The port discard: nothing listens there."""


FILES = {
    "net.onnx": network("n", 4),
    "open.onnx": network("n", "k"),
    "empty.onnx": b"",
    "text.onnx": b"hello, this is not a network",
    "net.pt": b"PK",
    "prompts.jsonl": b'{"prompt": "Hello"}\n{"prompt": "How are you?"}\n',
    "bad.jsonl": b'{"prompt": "Hello"}\n{"question": "x"}\n',
    "broken.jsonl": b'{"prompt": "Hello"\n',
    "empty.jsonl": b"",
    "turns.jsonl": b'{"turns": ["Hello", "And now?"]}\n',
    "bad_turns.jsonl": b'{"turns": ["Hello", "And now?"]}\n{"turns": "Hello"}\n',
    "trace.jsonl": b'{"timestamp": 0, "input_length": 3, "output_length": 2}\n',
    "bad_trace.jsonl": b'{"timestamp": 0, "input_length": 3, "output_length": 2}\n{"timestamp": 0, "input_length": 3}',
    "bad_trace.csv": b"TIMESTAMP,ContextTokens,GeneratedTokens\nnow,3,2\n",
    "meter.txt": b"3\n",
    'it\'s "open" $(exit 3).onnx': network("n", "k"),
    "--help": b"",
    "line\nbreak.onnx": b"x",
    "; exit 3; .jsonl": b'{"prompt": "Hello"}\n{"question": "x"}\n',
    **dict.fromkeys(("json.py", "yaml.py", "numpy.py", "crowdperf.py"), b"raise SystemExit('imported')\n"),
    "user.conf": b"digits.Offline.target_qps = fast\n",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TemporaryHome, Home]]:
    """A home with this checkout and nothing installed, and a user's folder with FILES and a baseline."""
    home = TemporaryHome(tmp_path_factory.mktemp("wrong"))
    write_indexes(home.path)
    for name, content in FILES.items():
        (home.work / name).write_bytes(content)
    (home.work / "folder").mkdir()
    for name in ("with_gguf/tiny.gguf", "openvino/openvino_model.xml"):
        (home.work / name).parent.mkdir()
        (home.work / name).touch()
    record = home.work / "base" / "record.json"
    record.parent.mkdir()
    within = {"throughput": {"value": 1.0, "unit": "samples/s", "higher_is_better": True}}
    outcome = {"exact": {"valid": True}, "within": within}
    record.write_text(json.dumps(sealed(row(name="digits/Server/performance", outcome=outcome))))
    checkout = RepoInfo(CHECKOUT, "crowdperf", "49f3fd96f011aa42", "literal", True, "src")
    yield home, Home([checkout], home.path, home.path / "repos" / "local")
    home.close()


CALLS = [
    # benchmark, scenario, mode
    ("--model=resnet51", "--model=resnet51 is not one of its values", "resnet50"),
    (
        "--model=digits,resnet50",
        "--model: only one benchmark per run, found 'digits,resnet50'",
        "--target=run --run_args=--benchmarks=digits,resnet50",
    ),
    ("--scenario=Ofline", "--scenario=Ofline is not one of its values", "Offline"),
    ("--model=digits --scenario=Interactive", "--scenario: digits has no Interactive, only"),
    ("--mode=speed", "--mode=speed is not one of its values", "performance"),
    ("--modle=digits", "--modle", "--model"),
    ("--backend=onyx", "--backend=onyx is not one of its values", "onnxruntime"),
    ("--device=gpu", "--device=gpu: write --device=cuda for a GPU"),
    ("--device=cuda", "--device=cuda: ", "--device=cpu runs without one"),
    ("--precision=fp8", "--precision=fp8 is not one of its values", "int8"),
    ("--source=fake", "--source=fake is not one of its values", "synthetic"),
    ("--execution_mode=quick", "--execution_mode=quick is not one of its values", "test"),
    ("--threads=0", "--threads: found '0'; allowed: a whole number from 1"),
    ("--threads=two", "--threads: found 'two'; allowed: a whole number"),
    ("--instances=2 --threads=3", "--threads: found '3'; allowed: a multiple of 2"),
    ("--batch_size=1.5", "--batch_size: found '1.5'; allowed: a whole number"),
    ("--gpus=0", "--gpus: found '0'", "--device=cuda"),
    ("--offline_target_qps=fast", "--offline_target_qps: found 'fast'; allowed: a number above 0"),
    (
        "--scenario=Offline --server_target_qps=4",
        "--server_target_qps: only Server has this target",
        "--offline_target_qps",
    ),
    ("--scenario=Offline --batch_timeout_us=5", "--batch_timeout_us: only Server batches wait to fill"),
    (
        "--scenario=SingleStream --target_qps=5",
        "--target_qps: only Offline, Server, Interactive has this target",
        "requested: SingleStream, whose target is --singlestream_target_latency_ms",
    ),
    (
        "--model=llama3.1-8b --backend=torch_llm --scenario=Interactive --server_target_qps=5",
        "requested: Interactive, whose target is --interactive_target_qps",
    ),
    ("--scenario=' , '", "--scenario", "allowed: "),
    ("--mode=' , '", "--mode", "allowed: "),
    ("--model=' , '", "--model", "allowed: "),
    ("--device=cuda --gpus=0,0", "numbers from 0, separated by commas, none twice"),
    ("--model=digits --source=tiny", "digits and tiny cannot be combined"),
    ("--model=resnet50 --source=tiny --model_path=folder", "but --source=tiny generates its own data and model"),
    (
        "--dataset_path=folder",
        "--dataset_path: found 'folder', but digits generates its own data and model: your own copy is only supported "
        "for a benchmark such as resnet50. Your own model runs without --model: --model_path=FILE.gguf",
    ),
    ("--min_duration_ms=-5", "--min_duration_ms: found '-5'; allowed: a whole number from 1"),
    ("--user_conf=none.conf", "--user_conf: ", "none.conf is not a file"),
    ("--run_id=../up", "--run_id: found '../up'; allowed: letters, digits"),
    ("--resume=some", "--resume=some is not one of its values", "failed"),
    ("--run_id=a --resume=failed", "--resume: found 'failed', but runs with --run_id resume automatically"),
    ("--rerun=yes", "--rerun: only allowed with --run_id"),
    ("--transport=tcp", "--transport=tcp is not one of its values", "grpc"),
    ("--transport=grpc", "--transport: backend onnxruntime does not use a server"),
    ("--find=maybe", "--find=maybe is not one of its values (allowed: yes, no, rate, concurrency)"),
    ("--find=concurrency", "--find=concurrency: only supported for your own prompts", "or use --find=yes"),
    ("--results_dir=net.onnx", "--results_dir", "net.onnx"),
    # a file of one's own
    ("--model_path=none.onnx", "--model_path: ", "none.onnx does not exist"),
    ("--model_path=empty.onnx", "empty.onnx", "the file is empty"),
    ("--model_path=text.onnx", "text.onnx", "not a message of ONNX"),
    ("--model_path=net.pt", "--model_path: found ", "net.pt. Without --model", "FILE.onnx"),
    ("--model_path=folder", "folder cannot be measured: config.json is missing"),
    ("--model_path=with_gguf", "with_gguf cannot be measured: config.json is missing", "/with_gguf/tiny.gguf"),
    ("--model_path=openvino", "config.json is missing", "OpenVINO's format are not read: give the GGUF file"),
    ("--model_path=open.onnx", "sizes are missing: x float32[n,k]", "--shape='x:1,k'"),
    ("--model_path=net.onnx --shape=y:1,4", "--shape has y, which is not an input. Its inputs: x float32[n,4]"),
    ("--model_path=net.onnx --shape=x:1,5", "shape", "4"),
    ("--model_path=net.onnx --shape=x-1,4", "shape", "NAME:"),
    ("--model_path=net.onnx --shape=x:a,4", "--shape: found 'x:a,4'", "sizes from 1"),
    ("--model_path=net.onnx --inputs=none.npz", "--inputs: ", "none.npz does not exist"),
    ("--model_path=net.onnx --inputs=text.onnx", "text.onnx", ".npz"),
    (
        "--model_path=net.onnx --mode=accuracy",
        "--mode: an accuracy run needs --inputs=FILE.npz and --expected=FILE.npz",
    ),
    ("--model_path=net.onnx --source=tiny", "--source=tiny: your own model has no synthetic one"),
    ("--model_path=net.onnx --dataset_path=folder", "--dataset_path: your own model"),
    ("--model_path=none.pt", "none.pt (it does not exist). Without --model, allowed: model_path=FILE.gguf"),
    ("--model=digits --shape=x:1,4", "--shape: only supported for"),
    ("--model=resnet50 --inputs=none.npz", "--inputs: only supported for"),
    ("--model=own-onnx", "--model=own-onnx: an input is missing, add --model_path=FILE.onnx"),
    ("--model=resnet50 --model_path=none", "--model_path: ", "none does not exist"),
    ("--model=resnet50 --dataset_path=none", "--dataset_path: ", "none does not exist"),
    ("--model=digits --model_path=folder", "--model_path: found 'folder', but digits generates its own data and model"),
    # a server
    (f"--endpoint={CLOSED} --prompts=prompts.jsonl", "127.0.0.1:9", "onnection refused"),
    ("--endpoint=server:8000 --prompts=prompts.jsonl", "--endpoint: found 'server:8000'; allowed: "),
    ("--endpoint=ftp://host/v1 --prompts=prompts.jsonl", "--endpoint", "http://HOST"),
    ("--endpoint=http://me:pw@host/v1 --prompts=prompts.jsonl", "--endpoint", "a user or a password"),
    ("--prompts=prompts.jsonl", "--endpoint", "http://HOST:PORT/v1"),
    ("--endpoint={stub} --prompts=none.jsonl", "--prompts: ", "none.jsonl does not exist"),
    ("--endpoint={stub} --prompts=empty.jsonl", "empty.jsonl", "empty"),
    ("--endpoint={stub} --prompts=bad.jsonl", "bad.jsonl", "line 2"),
    ("--endpoint={stub} --prompts=broken.jsonl", "broken.jsonl", "line 1"),
    ("--endpoint={stub} --prompts=prompts.jsonl --endpoint_model=other", "other", "stub-8b"),
    ("--endpoint={stub} --prompts=turns.jsonl", "turns.jsonl, line 1: it has turns", "--conversations=yes"),
    ("--endpoint={stub} --prompts=bad_turns.jsonl --conversations=yes", "bad_turns.jsonl, line 2: turns is not a list"),
    ("--endpoint={stub} --prompts=prompts.jsonl --conversations=yes", "no conversation of several turns"),
    ("--endpoint={stub} --prompts=turns.jsonl --conversations=maybe", "--conversations=maybe is not", "yes"),
    ("--endpoint={stub} --input_tokens=9 --conversations=yes", "--conversations", "prompts"),
    ("--endpoint={stub} --prompts=turns.jsonl --conversations=yes --rate=2", "--conversations: decides", "omit --rate"),
    ("--endpoint={stub} --prompts=turns.jsonl --conversations=yes --concurrency=1,2", "--conversations: has one"),
    ("--endpoint={stub} --prompts=prompts.jsonl --output_tokens=9,2", "--output_tokens: found '9,2'", "max_tokens on"),
    ("--endpoint={stub} --input_tokens=9 --tokenizer=none", "--tokenizer: ", "none does not exist"),
    ("--endpoint={stub} --input_tokens=9 --tokenizer=prompts.jsonl", "prompts.jsonl; allowed: a file tokenizer.json"),
    ("--endpoint={stub} --model=smollm2 --tokenizer=.", "--tokenizer: only supported for your own prompts"),
    ("--endpoint={stub} --input_tokens=9 --find=yes", "--find: requires the limits", "--slo=ttft:500ms,tpot:50ms"),
    ("--endpoint={stub} --input_tokens=9 --find=yes --slo=ttft:1s,tpot:1s --rate=3", "--find: ", "omit --rate"),
    (
        "--endpoint={stub} --input_tokens=9 --find=concurrency",
        "--find: requires the limits that the highest concurrency",
    ),
    (
        "--endpoint={stub} --input_tokens=9 --find=concurrency --slo=ttft:1s,tpot:1s --concurrency=3",
        "--find: searches for",
        "omit --concurrency",
    ),
    (
        "--endpoint={stub} --input_tokens=9 --find=concurrency --slo=ttft:1s,tpot:1s --server_target_qps=3",
        "--server_target_qps: only Server",
    ),
    ("--endpoint={stub} --trace=none.jsonl", "--trace: ", "none.jsonl does not exist"),
    ("--endpoint={stub} --trace=empty.jsonl", "empty.jsonl has no requests", "ContextTokens"),
    ("--endpoint={stub} --trace=prompts.jsonl", "prompts.jsonl, line 1: timestamp is missing; allowed: milliseconds"),
    ("--endpoint={stub} --trace=bad_trace.jsonl", "bad_trace.jsonl, line 2: output_length is missing", "from 1"),
    ("--endpoint={stub} --trace=bad_trace.csv", "bad_trace.csv, line 2: TIMESTAMP is 'now'", "such as 2023-11-16"),
    ("--endpoint={stub} --trace=trace.jsonl --scenario=Server", "--trace: sets --scenario itself (Offline)"),
    ("--endpoint={stub} --trace=trace.jsonl --rate=2", "--trace: decides lengths, times and duration", "omit --rate"),
    ("--endpoint={stub} --trace=trace.jsonl --output_tokens=9", "--trace: decides lengths", "omit --output_tokens"),
    ("--trace=trace.jsonl", "--endpoint", "http://HOST:PORT/v1"),
    ("--endpoint={stub} --input_tokens=0", "--input_tokens", "'0'"),
    ("--endpoint={stub} --input_tokens=ten", "--input_tokens", "'ten'"),
    (
        "--endpoint={stub} --input_tokens=10 --output_tokens=1",
        "--output_tokens: found '1'",
        "allowed: N, or N,STDDEV, with N from 2",
    ),
    (
        "--endpoint={stub} --input_tokens=10 --prompts=prompts.jsonl",
        "--prompts=prompts.jsonl and --input_tokens=10 cannot be combined",
    ),
    ("--endpoint={stub} --input_tokens=10 --slo=ttft500", "--slo", "ttft:500ms"),
    ("--endpoint={stub} --input_tokens=10 --slo=speed:5ms", "--slo", "'speed"),
    ("--endpoint={stub} --input_tokens=10 --concurrency=0", "--concurrency: found '0'; allowed: "),
    ("--endpoint={stub} --input_tokens=10 --concurrency=4 --rate=2", "--rate: cannot be combined with --concurrency"),
    ("--endpoint={stub} --input_tokens=10 --rate=fast", "--rate: found 'fast'; allowed: "),
    ("--endpoint={stub} --input_tokens=10 --endpoint_api=grpc", "--endpoint_api=grpc is not one of its values", "chat"),
    (
        "--endpoint={stub} --input_tokens=10 --endpoint_key_variable=sk-123",
        "--endpoint_key_variable",
        "environment variable",
    ),
    ("--endpoint={stub} --input_tokens=10 --max_in_flight=many", "--max_in_flight: found 'many'; allowed: a whole"),
    (
        "--endpoint={stub} --input_tokens=10 --request_timeout_s=0",
        "--request_timeout_s: found '0'; allowed: a number above 0",
    ),
    ("--endpoint={stub} --input_tokens=10 --mode=accuracy", "--mode: an accuracy run needs"),
    ("--endpoint={stub} --model=digits", "digits", "endpoint"),
    # comparing, energy, cost
    ("--baseline=none", "--baseline: ", "none"),
    ("--baseline=folder", "--baseline: ", "no record.json"),
    (
        "--scenario=Offline --baseline=base",
        "--baseline: ",
        "has no result of the same name: found digits/Server/performance",
    ),
    (
        "--scenario=Server --mode=performance --baseline=base --max_slowdown=slow",
        "cannot run this request: --max_slowdown: found 'slow'; allowed: a number of percent",
    ),
    ("--max_slowdown=5%", "--max_slowdown", "--baseline"),
    ("--scenario=Server --mode=performance --baseline=base --max_slowdown=-5", "-5'; allowed: a number of percent"),
    (
        "--scenario=Server --mode=performance --baseline=base --junit=m --markdown=m",
        "--junit and --markdown: found the same file twice",
    ),
    ("--repeats=2 --baseline_with=batch_size=2", "--baseline_with: the runs are compared by their spread: add --rep"),
    ("--repeats=3 --baseline_with=threads", "--baseline_with: found 'threads'; allowed: NAME=VALUE"),
    ("--repeats=3 --baseline_with=speed=1", "--baseline_with: found 'speed'; allowed: NAME=VALUE"),
    ("--repeats=3 --baseline_with=run_id=1", "--baseline_with: found 'run_id'; allowed: NAME=VALUE"),
    ("--repeats=3 --baseline_with=batch_size=2 --find=yes", "--baseline_with: is for runs at one load"),
    ("--junit=a.xml", "--junit", "--baseline"),
    ("--repeats=0", "--repeats: found '0'; allowed: a whole number from 1 to 30"),
    ("--repeats=31", "--repeats: found '31'; allowed: a whole number from 1 to 30"),
    ("--power_command=./none.sh", "--power_command: the program ./none.sh was not found"),
    ("--power_command=./meter.txt", "--power_command: the program ./meter.txt is not executable. Run: chmod +x"),
    ("--power_command='sh | cat'", "--power_command: ", "not run by a shell", "script"),
    ('--power_command="sh \'a"', "--power_command: ", "Close the quotation"),
    ("--power_command=sh --mode=accuracy", "--power_command: only performance runs have it"),
    ("--power_command=sh --find=yes", "--power_command: not supported with --find"),
    ("--price_per_hour=0", "--price_per_hour: found '0'; allowed: a number above 0"),
    # names that a shell, a parser of options or Python could read otherwise
    ("--model_path='it'\"'s\"' \"open\" $(exit 3).onnx'", "sizes are missing: x float32[n,k]", "--shape='x:1,k'"),
    ("--model_path=--help", "--model_path: found ", "/--help. Without --model"),
    ("--model_path='line\nbreak.onnx'", "break.onnx cannot be used as an ONNX file: the file ends early"),
    ("--model_path=json.py", "--model_path: found ", "/json.py. Without --model"),
    ("--endpoint={stub} --prompts='; exit 3; .jsonl'", "; exit 3; .jsonl, line 2: no prompt and no messages"),
    ("--endpoint={stub} --input_tokens=9 --tokenizer=--help", "/--help; allowed: a file tokenizer.json"),
    # an input without its value, words that nothing reads, numbers beyond all machines
    ("--results_dir", "--results_dir has no value; allowed: a path"),
    ("--model_path=", "--model_path has no value; allowed: a path"),
    ("--endpoint", "--endpoint has no value; allowed: the URL of a server, such as http://HOST:8000/v1"),
    ("--run_id", "--run_id has no value; allowed: any text that is not empty"),
    ("--power_command", "--power_command has no value; allowed: any text that is not empty"),
    ("--repeats", "--repeats has no value; allowed: a whole number from 1 to 30"),
    (
        "--model=folder/x.gguf",
        "--model=folder/x.gguf is not one of its values, did you mean --model_path=folder/x.gguf?",
    ),
    (
        "--model_path=https://h/x.gguf",
        "--model_path: found 'https://h/x.gguf'; allowed: a path of this machine. Download",
    ),
    ("--device=gpu --backend=trt", "--device=gpu: write --device=cuda", "--backend=trt: write --backend=tensorrt"),
    ("--device", "--device has no value; allowed: cpu, cuda"),
    ("--power_command=", "--power_command has no value; allowed: any text that is not empty"),
    ("--scenario= --threads=''", "--scenario has no value", "--threads has no value; allowed: a whole number"),
    ("-- --help", "unknown words after --: --help"),
    (f"--run_id={'x' * 300}", "--run_id: found a name of 300 characters; allowed: at most 200"),
    ("--threads=1000000", "--threads: found '1000000'; allowed: a whole number from 1 to 4096"),
    ("--instances=99999", "--instances: found '99999'; allowed: a whole number from 1 to 4096"),
    ("--model_path=net.onnx --shape=x:1,4,", "--shape: found 'x:1,4,'", "allowed: NAME:1,3,224,224"),
    ("--model_path=net.onnx --shape=x:99999999999,4", "--shape: found 'x:99999999999,4'", "sizes from 1 to 2147483647"),
    ("--endpoint={stub} --input_tokens=10 --concurrency=1,,4", "--concurrency: found '1,,4'; allowed: a comma list"),
    ("--endpoint={stub} --input_tokens=10 --concurrency=99999999999", "--concurrency: found '99999999999'; allowed: "),
    ("--endpoint={stub} --input_tokens=99999999999", "--input_tokens: found '99999999999'", "N from 1 to 10000000"),
    (
        "--endpoint={stub} --input_tokens=10 --concurrency=1,2 --results_dir=net.onnx",
        "cannot create a folder in ",
        "net.onnx",
        "choose another folder with --results_dir",
    ),
    ("--scenario=Server --mode=performance --baseline=base --junit=none/a.xml", "--junit: found ", "existing folder"),
    ("--scenario=Server --mode=performance --baseline=base --markdown=folder", "--markdown: found ", "allowed: a file"),
    ("--price_per_hour=$2.5", "--price_per_hour: found '$2.5'; allowed: a number above 0"),
]
"""The words, and what the error has."""
SLO = "--slo=ttft:1s,tpot:1s"
LOADS = [
    ("--concurrency=4,4", "--concurrency: found '4,4'; allowed: each value once"),
    ("--concurrency=4 --max_in_flight=8", "--concurrency: sets --max_in_flight itself (Offline)"),
    ("--concurrency=4 --scenario=Server", "--concurrency: sets --scenario itself (Offline)"),
    ("--rate=2 --server_target_qps=3", "--rate: sets --server_target_qps itself (Server)"),
    (f"--find=yes {SLO} --repeats=3", "--find: searches for the highest rate itself: omit --repeats"),
    (f"--find=yes {SLO} --scenario=Offline", "--find: with your own prompts sets --scenario itself"),
    (f"--find=yes {SLO} --model=smollm2", "--find: of backends that answer prompts, only for an"),
    (f"--find=concurrency {SLO} --rate=2", "--find: searches for the highest concurrency itself: omit --rate"),
    (f"--find=concurrency {SLO} --scenario=Server", "--find: with your own prompts sets --scenario itself (Offline)"),
    (f"--find=rate {SLO} --model=smollm2", "--find=rate: only supported for your own prompts"),
    ("--concurrency=4 --model=smollm2", "--concurrency: only supported for your own prompts"),
]
"""The same of calls that send prompts of 9 tokens to a server."""
CALLS += [(f"--endpoint={{stub}} --input_tokens=9 {words}", said) for words, said in LOADS]


class Refusing:
    """In the place of cmind: a call that was not refused begins its first run here."""

    def access(self, request: dict[str, object]) -> dict[str, object]:
        raise AssertionError(f"not refused before {request.get('tags')}")


def refusal(place: tuple[TemporaryHome, Home], words: str) -> str:
    """The text of the error of a call, with its hint. Raises AssertionError where it is not refused."""
    home, engine_home = place
    given, _, rest = words.partition("-- ")
    parts = [word.removeprefix("--").partition("=") for word in shlex.split(given)]
    inputs = {name: value if has_value else True for name, has_value, value in parts}
    if rest:
        inputs["unparsed_cmd"] = shlex.split(rest)  # as cmind's command line
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home.work)
        for key in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "CM_RECORDED_MACHINE"):
            patch.delenv(key, raising=False)
        try:
            answer = run_action({"tags": "run,mlperf,inference", "quiet": True, **inputs}, engine_home, Refusing())
        except RecipeError as error:
            return f"{error.message}\n{error.hint or ''}"
    assert answer["return"], f"accepted: {words}"
    return str(answer.get("error"))


@pytest.fixture(scope="module")
def stub() -> Iterator[str]:
    with running_stub() as (_, url):
        yield f"{url}/v1"


@pytest.mark.parametrize("call", CALLS, ids=[one[0].replace("{stub}", "URL") for one in CALLS])
def test_a_wrong_call_is_refused_with_what_to_change(place, stub: str, call: tuple[str, ...]) -> None:
    home, _ = place
    before = sorted(path.relative_to(home.work) for path in home.work.rglob("*"))
    text = refusal(place, call[0].replace("{stub}", stub))
    print(f"{call[0]}\n   => {text}")
    assert all(words in text for words in call[1:]), text
    assert "Traceback" not in text and not re.search(r"\b(None|KeyError|TypeError)\b", text), text
    assert [path for path in home.store.glob("*") if (path / "_cm.json").is_file()] == [], "something was installed"
    assert sorted(path.relative_to(home.work) for path in home.work.rglob("*")) == before, "the user's folder changed"


def test_the_table_has_sixty_calls_and_more() -> None:
    assert len({one[0] for one in CALLS}) == len(CALLS) >= 60
