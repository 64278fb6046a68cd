"""What recipes' inputs say about prompts and their answers, and what is refused."""

import pytest

from crowdperf.rules.backends import default_backend, misfit
from crowdperf.rules.prompt_settings import PROMPT_INPUTS, PromptSettings


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


@pytest.mark.parametrize(
    ("given", "backend", "name", "words"),
    [
        ({}, "endpoint", "endpoint", "give its URL"),
        ({"endpoint": "http://[::::]/v1"}, "endpoint", "endpoint", "allowed: the URL of a server, such as http://HOST"),
        ({"endpoint": "http://host/v1?key=1"}, "endpoint", "endpoint", "without ? and #"),
        ({"endpoint": "http://h/v1"}, "scripted", "endpoint", "only applies to --backend=endpoint, not to 'scripted'"),
        ({"max_in_flight": 8}, "onnxruntime", "max_in_flight", "only for backends that answer prompts: "),
    ],
)
def test_a_wrong_input_is_named_with_what_is_allowed(given: dict, backend: str, name: str, words: str) -> None:
    problems = PromptSettings(**given).problems(backend)
    assert list(problems) == [name]
    assert words in problems[name]


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
