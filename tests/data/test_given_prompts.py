"""Prompts of the user: the file, the lengths of generated ones, the limits."""

import json
import re
from pathlib import Path
from typing import Any

import model_files
import pytest
from recipe_loader import input_values, load_recipe
from stub_openai import write_tokenizer

from crowdperf.data.errors import DataError
from crowdperf.data.given_prompts import (
    generated_rows,
    parse_lengths,
    parse_slo,
    read_conversations,
    read_prompts,
    tokenizer_file,
)

request = load_recipe("get-own-prompts-request")
writing = load_recipe("get-dataset-own-prompts")
USER = {"role": "user", "content": "Hi"}


def prompts_file(folder: Path, *lines: object) -> Path:
    path = folder / "p.jsonl"
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def test_prompts_are_texts_or_messages(tmp_path: Path) -> None:
    path = prompts_file(tmp_path, {"prompt": "a"}, "", '{"text": "é\u2028\x85"}', {"messages": [USER], "id": 3})
    assert read_prompts(path) == [{"text": "a"}, {"text": "é\u2028\x85"}, {"messages": [USER]}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 2: Expecting"),
        ("[]", "found list, not an object"),
        ({}, "no prompt and no messages among no keys"),
        ({"prompt": ""}, "no prompt and no messages among prompt"),
        ({"prompt": "a\ud83d"}, r"the text has \ud83d, half of a character"),
        ({"messages": []}, "no prompt and no messages among messages"),
        ({"messages": [{"role": "me", "content": "x"}]}, "message 1 has no role of system"),
        ({"messages": [USER, {"role": "user", "content": [1]}]}, "message 2 has no role"),
    ],
)
def test_the_first_wrong_line_is_reported(tmp_path: Path, line: object, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        read_prompts(prompts_file(tmp_path, {"prompt": "good"}, line))
    assert reason in caught.value.message
    assert '{"prompt": "..."}' in caught.value.hint


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9")
    for path, reason in (
        (tmp_path / "none", "No such file"), (tmp_path, "a folder, allowed: a regular file"),
        (tmp_path / "latin", "not UTF-8"), (prompts_file(tmp_path, ""), "has no prompts"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=reason):
            read_prompts(path)


@pytest.mark.parametrize(("text", "lengths"), [("512", (512.0, 0.0)), ("512,64", (512.0, 64.0)), ("1, 0", (1.0, 0.0))])
def test_lengths_have_a_mean_and_may_have_a_deviation(text: str, lengths: tuple[float, float]) -> None:
    assert parse_lengths(text) == lengths


@pytest.mark.parametrize("text", ["", "x", "0", "-5", "5,-1", "5,5,5", "nan", "5,nan", "inf"])
def test_other_lengths_are_refused(text: str) -> None:
    with pytest.raises(DataError, match="--input_tokens: found"):
        parse_lengths(text)


def test_generated_prompts_have_the_length_and_come_from_the_seed() -> None:
    rows = generated_rows(20.0, 0.0, 8, 1)
    assert [len(row["text"].split()) for row in rows] == [20] * 8
    assert rows == generated_rows(20.0, 0.0, 8, 1)
    assert rows != generated_rows(20.0, 0.0, 8, 2)
    lengths = [len(row["text"].split()) for row in generated_rows(100.0, 30.0, 200, 0)]
    assert 90 < sum(lengths) / 200 < 110
    assert min(lengths) < 60 < 140 < max(lengths)
    assert min(len(row["text"].split()) for row in generated_rows(1.0, 50.0, 50, 0)) == 1


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("", None),
        ("ttft:500ms,tpot:50ms", {"ttft_ms": 500.0, "tpot_ms": 50.0}),
        ("tpot=0.05s, ttft=2s", {"ttft_ms": 2000.0, "tpot_ms": 50.0}),
    ],
)
def test_limits_have_units(text: str, limits: dict[str, float] | None) -> None:
    assert parse_slo(text) == limits


@pytest.mark.parametrize("text", ["ttft:500ms", "ttft:500,tpot:50", "ttft:0ms,tpot:1ms", "ttft:1s,ttft:1s", "e2e:1s"])
def test_other_limits_are_refused(text: str) -> None:
    with pytest.raises(DataError, match="--slo: found"):
        parse_slo(text)


def described(**env: str) -> dict[str, str]:
    found: dict[str, str] = request.request_environment(input_values("get-own-prompts-request", env))
    return found


def test_a_trace_is_synthetic_input_whose_answers_are_as_long_as_it_says(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    rows = [{"timestamp": at, "input_length": 6, "output_length": length} for at, length in ((0, 9), (500, 30))]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    env = {"CM_MLPERF_OWN_TRACE_PATH": str(path), "CM_MLPERF_OWN_SEED": "7"}
    values = described(**env)
    asked = json.loads(values["CM_OWN_PROMPTS_REQUEST"])
    assert (asked["is_synthetic"], asked["has_fixed_length"], asked["max_tokens"]) == (True, True, 30)
    assert (asked["trace"]["requests"], asked["limits"], values["CM_OWN_PROMPTS_FILE"]) == (2, None, str(path))
    path.write_text(path.read_text().replace("500", "600"))
    assert described(**env)["CM_OWN_PROMPTS_IDENTITY"] != values["CM_OWN_PROMPTS_IDENTITY"]
    for name in ("PROMPTS_PATH", "INPUT_TOKENS", "OUTPUT_TOKENS"):
        with pytest.raises(DataError, match="cannot be combined: a trace has its own lengths"):
            described(**env, **{f"CM_MLPERF_OWN_{name}": "8"})


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("net.onnx", "{}", "net.onnx; allowed: a file tokenizer.json, or a folder with one"),
        ("", None, "has no tokenizer.json"),
        ("tokenizer.json", None, "has no tokenizer.json"),
        ("tokenizer.json", "{", "cannot read"),
        ("tokenizer.json", "[]", "is not a tokenizer: it has no object 'model'"),
        ("tokenizer.json", '{"model": 3}', "is not a tokenizer: it has no object 'model'"),
    ],
)
def test_other_tokenizers_are_refused(tmp_path: Path, name: str, content: str | None, reason: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=re.escape(reason)) as caught:
        tokenizer_file(tmp_path / name)
    assert str(caught.value).startswith("--tokenizer: ")


def test_a_tokenizer_is_a_file_or_a_folder_with_it(tmp_path: Path) -> None:
    file = write_tokenizer(tmp_path) / "tokenizer.json"
    assert tokenizer_file(tmp_path) == tokenizer_file(file) == file


def test_the_recipes_write_what_was_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = prompts_file(tmp_path, {"prompt": "a"}, {"messages": [USER]})
    env: dict[str, Any] = described(CM_MLPERF_OWN_PROMPTS_PATH=str(path), CM_MLPERF_OWN_OUTPUT_TOKENS="9")
    entry = tmp_path / "entry"
    entry.mkdir()
    monkeypatch.chdir(entry)
    assert writing.postprocess({"env": env}) == {"return": 0, "files": ["samples.jsonl", "dataset.json"]}
    assert [json.loads(line) for line in (entry / "samples.jsonl").read_text().splitlines()] == [
        {"text": "a"}, {"messages": [USER]},
    ]  # fmt: skip
    facts = json.loads((entry / "dataset.json").read_text())
    assert facts == {"is_synthetic": False, "max_tokens": 9, "has_fixed_length": False, "limits": None}


def test_another_content_length_or_limit_is_another_data_set(tmp_path: Path) -> None:
    path = prompts_file(tmp_path, {"prompt": "a"})
    first = described(CM_MLPERF_OWN_PROMPTS_PATH=str(path))["CM_OWN_PROMPTS_IDENTITY"]
    prompts_file(tmp_path, {"prompt": "b"})
    identities = {
        first,
        described(CM_MLPERF_OWN_PROMPTS_PATH=str(path))["CM_OWN_PROMPTS_IDENTITY"],
        described(CM_MLPERF_OWN_INPUT_TOKENS="8")["CM_OWN_PROMPTS_IDENTITY"],
        described(CM_MLPERF_OWN_INPUT_TOKENS="9")["CM_OWN_PROMPTS_IDENTITY"],
        described(CM_MLPERF_OWN_INPUT_TOKENS="9", CM_MLPERF_OWN_SLO="ttft:1s,tpot:1s")["CM_OWN_PROMPTS_IDENTITY"],
    }
    assert len(identities) == 5


def test_either_prompts_or_lengths_are_needed(tmp_path: Path) -> None:
    both = {
        "CM_MLPERF_OWN_PROMPTS_PATH": str(prompts_file(tmp_path, {"prompt": "a"})),
        "CM_MLPERF_OWN_INPUT_TOKENS": "8",
    }
    for env in ({}, both):
        with pytest.raises(DataError, match=r"the prompts are missing|cannot be combined"):
            described(**env)


def test_a_trace_is_described_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,3,2\n2023-11-16 18:17:05.5,4,9\n")
    env: dict[str, Any] = described(CM_MLPERF_OWN_TRACE_PATH=str(path), CM_MLPERF_OWN_SLO="ttft:1s,tpot:1s")
    entry = tmp_path / "entry"
    entry.mkdir()
    monkeypatch.chdir(entry)
    assert writing.postprocess({"env": env})["return"] == 0
    rows = [json.loads(line) for line in (entry / "samples.jsonl").read_text().splitlines()]
    assert [(len(row["text"].split()), row["at_s"], row["max_tokens"]) for row in rows] == [(3, 0.0, 2), (4, 2.5, 9)]
    facts = json.loads((entry / "dataset.json").read_text())
    assert (facts["max_tokens"], facts["has_fixed_length"], facts["is_synthetic"]) == (9, True, True)
    assert facts["trace"]["requests"] == 2 and facts["trace"]["longest_gap_s"] == 2.5
    path.write_text(path.read_text().replace(",9", ",8"))
    other = described(CM_MLPERF_OWN_TRACE_PATH=str(path), CM_MLPERF_OWN_SLO="ttft:1s,tpot:1s")
    assert other["CM_OWN_PROMPTS_IDENTITY"] != env["CM_OWN_PROMPTS_IDENTITY"]
    with pytest.raises(DataError, match="--trace and --input_tokens cannot be combined"):
        described(CM_MLPERF_OWN_TRACE_PATH=str(path), CM_MLPERF_OWN_INPUT_TOKENS="8")


def test_answers_to_generated_prompts_may_have_varying_lengths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = described(CM_MLPERF_OWN_INPUT_TOKENS="5", CM_MLPERF_OWN_OUTPUT_TOKENS="20,6", CM_OWN_PROMPTS_COUNT="16")
    monkeypatch.chdir(tmp_path)
    assert writing.postprocess({"env": env})["return"] == 0
    rows = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    lengths = [row["max_tokens"] for row in rows]
    facts = json.loads((tmp_path / "dataset.json").read_text())
    assert len(set(lengths)) > 5 and min(lengths) >= 2 and 15 < sum(lengths) / 16 < 25
    assert facts["max_tokens"] == max(lengths) and facts["has_fixed_length"] is True
    same = described(CM_MLPERF_OWN_INPUT_TOKENS="5", CM_MLPERF_OWN_OUTPUT_TOKENS="20")
    assert "answer_lengths" not in same["CM_OWN_PROMPTS_REQUEST"]
    with pytest.raises(DataError, match="--output_tokens: found '9,2', but lengths vary only for generated prompts"):
        path = str(prompts_file(tmp_path, {"prompt": "a"}))
        described(CM_MLPERF_OWN_PROMPTS_PATH=path, CM_MLPERF_OWN_OUTPUT_TOKENS="9,2")


@pytest.mark.parametrize(("backend", "is_server"), [("llama_cpp", True), ("torch_llm", False)])
def test_a_model_of_the_user_has_varying_lengths_behind_a_server_only(
    tmp_path: Path, backend: str, is_server: bool
) -> None:
    file = str(model_files.gguf(tmp_path / "m.gguf"))
    env = {"CM_MLPERF_OWN_MODEL_PATH": file, "CM_MLPERF_OWN_OUTPUT_TOKENS": "20,6", "CM_MLPERF_BACKEND": backend}
    if is_server:
        assert "answer_lengths" in described(**env, CM_MLPERF_OWN_INPUT_TOKENS="8")["CM_OWN_PROMPTS_REQUEST"]
        return
    with pytest.raises(DataError, match="but this backend gives all answers the same length") as caught:
        described(**env, CM_MLPERF_OWN_INPUT_TOKENS="8")
    assert "llama_cpp, vllm" in str(caught.value)


@pytest.mark.parametrize("most", [1, "9", 2.5, True])
def test_a_wrong_length_of_an_answer_is_refused(tmp_path: Path, most: Any) -> None:
    with pytest.raises(DataError, match=r"line 1: max_tokens is .*; allowed: a whole number from 2"):
        read_prompts(prompts_file(tmp_path, {"prompt": "a", "max_tokens": most}))
    path = prompts_file(tmp_path, {"prompt": "a", "max_tokens": 5}, {"messages": [USER], "max_tokens": 7})
    assert [row["max_tokens"] for row in read_prompts(path)] == [5, 7]


def test_conversations_are_turns_with_a_message_each(tmp_path: Path) -> None:
    system, answer = {"role": "system", "content": "Be brief"}, {"role": "assistant", "content": "No"}
    path = prompts_file(tmp_path, {"turns": ["a", "b"], "max_tokens": 5}, {"messages": [system, USER, answer, USER]},
                        {"prompt": "c"})  # fmt: skip
    user = [[{"role": "user", "content": content}] for content in "abc"]
    assert read_conversations(path) == [
        {"messages": user[0], "max_tokens": 5, "conversation": 0, "turn": 0},
        {"messages": user[1], "max_tokens": 5, "conversation": 0, "turn": 1},
        {"messages": [system, USER], "conversation": 1, "turn": 0},
        {"messages": [USER], "conversation": 1, "turn": 1},
        {"messages": user[2], "conversation": 2, "turn": 0},
    ]
    values = described(CM_MLPERF_OWN_PROMPTS_PATH=str(path), CM_MLPERF_OWN_CONVERSATIONS="yes")
    assert json.loads(values["CM_OWN_PROMPTS_REQUEST"])["conversations"] == {"conversations": 3, "requests": 5}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ({"turns": []}, "line 2: turns is not a list of texts"),
        ({"turns": "a"}, "line 2: turns is not a list of texts"),
        ({"turns": ["a", 3]}, "line 2: turns is not a list of texts"),
        ({"turns": ["a", ""]}, "line 2: turns is not a list of texts"),
        ([], "line 2: found list, not an object"),
        ({"messages": [{"role": "system", "content": "a"}]}, "line 2: no message of the user"),
        ({"messages": [{"role": "me", "content": "a"}]}, "line 2: message 1 has no role"),
    ],
)
def test_wrong_conversations_are_refused_with_their_line(tmp_path: Path, line: Any, why: str) -> None:
    with pytest.raises(DataError) as caught:
        read_conversations(prompts_file(tmp_path, {"turns": ["a", "b"]}, line))
    assert why in str(caught.value) and '{"turns": ["...", "..."]}' in caught.value.hint


def test_turns_and_the_input_belong_together(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="add --conversations=yes"):
        read_prompts(prompts_file(tmp_path, {"turns": ["a", "b"]}))
    with pytest.raises(DataError, match="no conversation of several turns"):
        read_conversations(prompts_file(tmp_path, {"turns": ["a"]}))
