"""What recipes' inputs say about prompts and their answers, and what is refused."""

from pathlib import Path

import pytest

from crowdperf.rules.backends import default_backend, misfit
from crowdperf.rules.prompt_settings import PROMPT_INPUTS, PromptSettings, parse_header


def test_nothing_given_leaves_everything_to_the_engine() -> None:
    nothing = PromptSettings.of(dict.fromkeys(PROMPT_INPUTS))
    left = dict.fromkeys(("endpoint", "client_processes", "timeout_s", "server"))
    text = {**left, "max_in_flight": None, "kv_cache_bytes": None}
    assert nothing.as_json("scripted") == text
    assert nothing.as_json("onnxruntime") is None
    assert nothing.problems("scripted") == nothing.problems("onnxruntime") == {}


def test_what_is_given_becomes_the_keys_of_run_json() -> None:
    given = PromptSettings(
        endpoint="http://127.0.0.1:8000/v1", endpoint_model="llama", endpoint_api="chat",
        endpoint_key_variable="MY_KEY", client_processes=4, max_in_flight=64, kv_cache_gb=1.5, request_timeout_s=20.0,
    )  # fmt: skip
    endpoint = {"url": given.endpoint, "model": "llama", "api": "chat", "key_variable": "MY_KEY"}
    limits = {"max_in_flight": 64, "client_processes": 4, "kv_cache_bytes": 1_500_000_000, "timeout_s": 20.0}
    assert given.as_json("endpoint", "python3") == {"endpoint": endpoint, **limits, "server": "python3"}
    assert given.problems("endpoint") == {}


@pytest.mark.parametrize(
    ("backend", "given", "variable", "expected"),
    [
        ("endpoint", None, "http://there/v1", "http://there/v1"),
        ("endpoint", "http://here/v1", "http://there/v1", "http://here/v1"),
        ("endpoint", None, " ", None),
        ("endpoint", None, None, None),
        ("vllm", None, "http://there/v1", None),
        ("onnxruntime", None, "http://there/v1", None),
        ("unknown", None, "http://there/v1", None),
    ],
)
def test_a_run_that_asks_a_server_finds_it_where_openais_clients_do(
    backend: str, given: str | None, variable: str | None, expected: str | None
) -> None:
    environment = {} if variable is None else {"OPENAI_BASE_URL": variable}
    assert PromptSettings(endpoint=given).with_default_server(backend, environment).endpoint == expected


URL = {"endpoint": "http://host/v1"}


@pytest.mark.parametrize(
    ("given", "backend", "name", "words"),
    [
        ({}, "endpoint", "endpoint", "give its URL"),
        ({"endpoint": "http://[::::]/v1"}, "endpoint", "endpoint", "allowed: the URL of a server, such as http://HOST"),
        ({"endpoint": "http://host/v1?key=hunter2"}, "endpoint", "endpoint", "has 'key', which may be a secret"),
        ({"endpoint": "http://host/v1?api-version=1&api_key=hunter2"}, "endpoint", "endpoint", "has 'api_key'"),
        ({"endpoint": "http://host/v1#a"}, "endpoint", "endpoint", "expected a URL without #"),
        (URL | {"endpoint_header": ("hunter2",)}, "endpoint", "endpoint_header", "NAME:env:VARIABLE"),
        (URL | {"endpoint_header": ("X: 1", "x: 2")}, "endpoint", "endpoint_header", "x is given twice"),
        (URL | {"endpoint_header": ("Host: a",)}, "endpoint", "endpoint_header", "Host is set by the client"),
        (URL | {"endpoint_header": ("api-key: hunter2",)}, "endpoint", "endpoint_header", "api-key:env:VARIABLE"),
        (URL | {"endpoint_header": ("X-A: Bearer hunter2",)}, "endpoint", "endpoint_header", "looks like a secret"),
        (URL | {"endpoint_header": ("X-A: sk-hunter2",)}, "endpoint", "endpoint_header", "looks like a secret"),
        (URL | {"endpoint_header": (f"X-A: {'hunter2' * 6}",)}, "endpoint", "endpoint_header", "looks like a secret"),
        (URL | {"endpoint_header": ("X-A:env:not a name",)}, "endpoint", "endpoint_header", "X-A: expected NAME:VALUE"),
        (URL | {"endpoint_key_header": "hunter2: x"}, "endpoint", "endpoint_key_header", "such as api-key"),
        (URL | {"endpoint_client_key": Path("k.pem")}, "endpoint", "endpoint_client_key", "--client_certificate"),
        (URL | {"endpoint_ca_file": Path("c.pem")}, "endpoint", "endpoint_ca_file", "only applies to a URL with https"),
        ({"endpoint_ca_file": Path("ca.pem")}, "vllm", "endpoint_ca_file", "only applies to --backend=endpoint"),
        ({"endpoint": "http://h/v1"}, "scripted", "endpoint", "only applies to --backend=endpoint, not to 'scripted'"),
        ({"max_in_flight": 8}, "onnxruntime", "max_in_flight", "only for backends that answer prompts: "),
    ],
)
def test_a_wrong_input_is_named_with_what_is_allowed(given: dict, backend: str, name: str, words: str) -> None:
    problems = PromptSettings(**given).problems(backend)
    assert list(problems) == [name]
    assert words in problems[name] and "hunter2" not in problems[name]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("X-Team: perf", ("X-Team", "value", "perf")),
        ("X-Url:http://a:1/b", ("X-Url", "value", "http://a:1/b")),
        ("api-key:env:AZURE_KEY", ("api-key", "env", "AZURE_KEY")),
        ("Authorization: file:~/key.txt", ("Authorization", "file", "~/key.txt")),
    ],
)
def test_a_header_has_a_value_or_the_source_of_a_secret(text: str, found: tuple[str, str, str]) -> None:
    source = parse_header(text)
    assert (source.name, source.kind, source.text) == found


def test_run_json_has_sources_of_secrets_and_no_key_that_is_not_given() -> None:
    given = PromptSettings(
        endpoint="https://host/v1",
        endpoint_header=("api-key:env:K", "X: 1"),
        endpoint_ca_file=Path("/ca.pem"),
        endpoint_key_header="k",
    )
    written = given.as_json("endpoint")
    assert written is not None
    assert written["endpoint"] == {
        "url": "https://host/v1", "model": None, "api": None, "key_variable": None, "key_header": "k",
        "headers": ["api-key:env:K", "X: 1"], "ca_file": "/ca.pem",
    }  # fmt: skip


def test_a_key_is_never_shown() -> None:
    given = PromptSettings(endpoint="http://me:hunter2@host/v1", endpoint_key_variable="sk-hunter2")
    problems = given.problems("endpoint")
    assert set(problems) == {"endpoint", "endpoint_key_variable"}
    assert "hunter2" not in str(problems)


@pytest.mark.parametrize(
    ("backend", "device", "precision", "is_right"),
    [
        ("pytorch", "cuda", "tf32", True),
        ("onnxruntime", "cuda", "tf32", True),
        ("tensorrt", "cuda", "tf32", True),
        ("onnxruntime_tensorrt", "cuda", "tf32", True),
        ("pytorch", "cpu", "tf32", False),
        ("onnxruntime", "cpu", "tf32", False),
        ("openvino", "cpu", "tf32", False),
        ("pytorch", "cpu", "bf16", True),
        ("pytorch", "cpu", "int8", False),
    ],
)
def test_a_precision_that_a_device_does_not_have_is_refused_with_those_it_has(
    backend: str, device: str, precision: str, is_right: bool
) -> None:
    why = misfit(backend, "resnet50", device, precision)
    assert (why == "") is is_right
    assert is_right or f"backend {backend} cannot run {precision} on {device}: it can: fp32, " in why


def test_backends_that_answer_prompts_do_not_run_networks() -> None:
    assert default_backend("digits") == "onnxruntime"
    assert misfit("onnxruntime", "digits", "cpu") == ""
    why = misfit("scripted", "digits", "cpu")
    assert why.startswith("backend scripted cannot run digits: it answers prompts with texts (supported backends: ")
    assert "onnxruntime" in why
