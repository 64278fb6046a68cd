"""What is secret by its key, by its shape or because it was seen; and values written without it."""

from typing import Any

import pytest
from recipe_engine.rules.errors import RequestError
from recipe_engine.rules.secrets import (
    MASK,
    hidden,
    hidden_text,
    hidden_texts,
    holds_secret,
    is_secret,
    known_from,
    known_secrets,
    learn,
    stored,
    without_secret_flags,
    without_secrets,
)


def made(prefix: str, length: int) -> str:
    """A token that no service gave out."""
    return (prefix + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 3)[:length]


NAMES = [
    *("CM_GH_TOKEN", "HF_TOKEN", "token", "MLC_GH_AUTH_TOKEN", "gh-token", "--hf_token", "HF_TOKEN_2", "HF_TOKENS"),
    *("API_TOKENS", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "SSHPASS", "SMTP_PASS", "CM_SSH_PASSPHRASE", "PASSWD"),
    *("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "CM_SECRET_KEY", "OPENAI_API_KEY", "APIKEY", "CM_PRIVATE_KEY"),
    *("KAGGLE_KEY", "JWT_SIGNING_KEY", "MLC_GEEKBENCH_LICENSE_KEY", "AZURE_STORAGE_KEY", "GITHUB_PAT", "AZURE_PAT"),
    *("GOOGLE_CREDENTIALS", "CLIENT_SECRET", "clientSecret", "apiKey", "accessToken", "adr.x.env.MY_PASSWORD"),
    *("HTTP_AUTHORIZATION", "Authorization", "Proxy-Authorization", "X-Api-Key", "NPM_AUTH", "Cookie", "+MY_TOKEN"),
]
ORDINARY = [
    *("CM_TOKENIZER", "CM_MAX_TOKENS", "MAX_NEW_TOKENS", "N_TOKENS", "OUTPUT_TOKENS", "NUM_BATCHED_TOKENS", "tokens"),
    *("maxTokens", "TOKEN_LATENCY", "TIME_PER_TOKEN", "FIRST_TOKEN", "eos_token", "PAD_TOKEN", "CM_TOKEN_PATH"),
    *("CM_VLLM_SERVER_MAX_PROMPT_ADAPTER_TOKEN", "CM_VLLM_SERVER_ALLOW_CREDENTIALS", "with_token", "CM_NOTOKEN"),
    *(
        "CM_KEY",
        "CM_MONKEY",
        "KEYBOARD",
        "CM_TMP_ENV_KEY",
        "PUBLIC_KEY",
        "CACHE_KEY",
        "key_password_file",
        "SSH_KEY_FILE",
    ),
    *("CM_TMP_PASS_COUNT", "PASSES", "FIRST_PASS", "COMPLIANCE_PASS", "pass", "BYPASS", "NOPASSWD", "COMPASS"),
    *(
        "CM_GIT_AUTH",
        "OLDPWD",
        "APPTAINER_PWD",
        "PATH",
        "PATTERN",
        "secrets",
        "CM_MICROCODE",
        "ID",
        "",
        "_",
        "ACCESS_ID",
    ),
]


@pytest.mark.parametrize("key", NAMES)
def test_keys_that_name_secrets_are_known(key: str) -> None:
    assert is_secret(key)
    assert without_secrets({key: "s", "CM_X": "1"}) == {"CM_X": "1"}
    assert hidden({key: "s"}) == {key: MASK}


@pytest.mark.parametrize("key", ORDINARY)
def test_keys_that_only_look_like_secrets_are_ordinary(key: str) -> None:
    assert not is_secret(key)
    assert without_secrets({key: "s"}) == hidden({key: "s"}) == {key: "s"}


SHAPES = [
    ("use " + made("ghp" + "_", 40) + ".", f"use {MASK}."),
    (f"x={made('hf' + '_', 37)}&y", f"x={MASK}&y"),
    ("git clone https://me:q9w8e7@git.org/x", f"git clone https://{MASK}@git.org/x"),
    ("https://me:p@ss:w@git.org/x", f"https://{MASK}@git.org/x"),
    ("http://q9w8e7r6t5q9w8e7@git.org:80/x", f"http://{MASK}@git.org:80/x"),
    ("Authorization: Basic YW5uYTpxOXc4", f"Authorization: {MASK}"),
    ('"authorization": "token q9w8e7r6t5"', f'"authorization": "{MASK}"'),
    ("sent Bearer q9w8e7r6t5y4u3i2o1p0zz now", f"sent Bearer {MASK} now"),
    ("https://x.org/f?a=1&token=sesame&b=2", f"https://x.org/f?a=1&token={MASK}&b=2"),
    ("https://s3.org/f?X-Amz-Signature=0a1b0a1b", f"https://s3.org/f?X-Amz-Signature={MASK}"),
    ("a\n-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE+/=\nabc\n-----END RSA PRIVATE KEY-----\nb", f"a\n{MASK}\nb"),
    ("-----BEGIN " + "PRIVATE KEY-----\nMIIEabc", MASK),
]


@pytest.mark.parametrize(("text", "shown"), SHAPES)
def test_a_text_shows_no_part_with_the_shape_of_a_secret(text: str, shown: str) -> None:
    assert hidden_text(text) == shown
    assert hidden({"a": [{"b": (text,)}]}) == {"a": [{"b": (shown,)}]}
    assert hidden_texts({text: 1}) == {shown: 1}


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:8080/a@b and git@github.com:x/y.git and ssh://git@github.com/x",
        "https://example.org/?q=token&max_tokens=2048&page_token_count=3",
        "authorization is granted: the Authorization: of the License; bearer of this document",
        "-----BEGIN CERTIFICATE-----",
        "nothing here",
    ],
)
def test_a_harmless_text_stays(text: str) -> None:
    assert hidden_text(text) == stored(text) == text


def test_a_stored_address_works_without_its_login() -> None:
    assert stored("https://me:q9w8e7@git.org/x") == "https://git.org/x"
    assert stored({"url": ["https://q9w8e7r6t5q9w8e7@git.org/x"]}) == {"url": ["https://git.org/x"]}


def test_the_value_of_a_secret_is_hidden_wherever_it_was_seen_and_stands() -> None:
    env = {"MY_TOKEN": "s3cr3t-1", "URL": "https://me:s3cr3t-2@x.org", "state": {"x": [{"api_key": "s3cr3t-3"}]}}
    with known_from(env, ["--a=b", "--my_password=s3cr3t-4"]):
        text = "s3cr3t-1 s3cr3t-2 xs3cr3t-3x s3cr3t-4"
        assert hidden_text(text) == stored(text) == f"{MASK} {MASK} x{MASK}x {MASK}"
        assert RequestError(f"bad {text}").message == f"bad {hidden_text(text)}"
        assert RequestError("bad", hint=text).describe() == f"bad\n  hint: {hidden_text(text)}"
    assert known_secrets() == ()
    assert hidden_text(text) == text


def test_what_an_inner_call_sees_is_hidden_until_the_outer_one_ends() -> None:
    with known_from() as is_outer:
        with known_from({"MY_TOKEN": "s3cr3t-1"}) as is_inner_outer:
            pass
        assert (is_outer, is_inner_outer, hidden_text("s3cr3t-1")) == (True, False, MASK)


@pytest.mark.parametrize(
    ("value", "shown", "kept"),
    [
        ("yes", "yes", "yes"),  # short: under its own key only
        ("ubuntu", MASK, "ubuntu"),  # a word is not searched for in what later runs work with
        ("24576000", MASK, "24576000"),
        ("correcthorse", MASK, MASK),
        ("hunter22", MASK, MASK),
        ("<<<CM_X>>>", "<<<CM_X>>>", "<<<CM_X>>>"),
        ("line-one-of-it\nline-two-of-it", MASK, MASK),
    ],
)
def test_a_weak_value_is_hidden_where_that_does_no_harm(value: str, shown: str, kept: str) -> None:
    with known_from({"MY_TOKEN": value}):
        assert hidden({"MY_TOKEN": value, "other": value}) == {"MY_TOKEN": MASK, "other": shown}
        assert stored({"other": value}) == {"other": kept}


def test_blanks_around_a_secret_are_no_part_of_it() -> None:
    with known_from({"MY_TOKEN": " s3cr3t-1\t"}):
        assert hidden_text("it is s3cr3t-1.") == f"it is {MASK}."


def test_a_line_of_a_long_secret_and_the_path_of_credentials() -> None:
    with known_from({"SSH_PRIVATE_KEY": "head-of-the-key\nline-two-of-it", "GOOGLE_CREDENTIALS": "/home/me/key.json"}):
        assert hidden_text("is line-two-of-it in /home/me/key.json") == f"is {MASK} in /home/me/key.json"


def test_secrets_leave_an_env_and_a_state_at_every_depth() -> None:
    state = {"a": {"b_token": "x", "c": [{"api_key": "y"}, "https://u:p@h/"]}, "MY_TOKEN": "z", "n": 1}
    assert without_secrets(state) == {"a": {"c": [{"api_key": MASK}, "https://h/"]}, "n": 1}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("hf_token", "x", True),
        ("gh-token", "x", True),
        ("env.CM_API_KEY", "x", True),
        ("adr.x.env.MY_PASSWORD", "x", True),
        ("url", "https://user:pass@host/x", True),
        ("url,", ["https://host/x", "https://u:p@host/x"], True),
        ("unparsed_cmd", ["--a", "--hf_token=x"], True),
        ("unparsed_cmd", ["--a", "token"], False),
        ("deps", [{"env": {"MY_TOKEN": "x"}}], True),
        ("url", "https://host:8080/x@y", False),
        ("tags", "get,token", False),
        ("env.CM_TOKENIZER", "x", False),
        ("endpoint_key_variable", "MY_KEY", False),
        ("endpoint_key_variable", "my-own-key", True),
        ("env.CM_API_KEY_VARIABLE", "ab+c/d==", True),
    ],
)
def test_a_flag_is_secret_by_its_name_or_its_value(name: str, value: Any, expected: bool) -> None:
    assert holds_secret(name, value) is expected


def test_secret_flags_are_left_out_at_every_depth() -> None:
    assert without_secret_flags({"a": 1, "b": {"c_token": 2, "d": 3}}) == {"a": 1, "b": {"d": 3}}


def test_learning_changes_nothing() -> None:
    value = {"a": [1, None, {"b": "x"}], "c": ("d",)}
    learn(value)
    assert value == {"a": [1, None, {"b": "x"}], "c": ("d",)} and hidden(value) == value
