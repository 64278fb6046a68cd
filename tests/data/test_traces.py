"""crowdperf.data.traces: traces of requests in the forms of Mooncake and Azure."""

import json
from pathlib import Path

import pytest

from crowdperf.data import traces
from crowdperf.data.errors import DataError
from crowdperf.data.traces import Arrival, read_trace, trace_rows

MOONCAKE = '{"timestamp": 1500, "input_length": 600, "output_length": 9, "hash_ids": [0, 7]}\n'
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "trace"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_mooncake_trace_is_read_in_the_order_of_its_times(tmp_path: Path) -> None:
    other = '\n{"timestamp": 1000.5, "input_length": 3, "output_length": 1}\n'
    found = read_trace(written(tmp_path, MOONCAKE + other))
    assert found.form == "mooncake"
    assert found.arrivals == (Arrival(0.0, 3, 1), Arrival(0.4995, 600, 9, (0, 7)))
    assert found.facts() == {
        "form": "mooncake", "requests": 2, "duration_s": 0.4995, "longest_gap_s": 0.4995, "has_prefixes": True
    }  # fmt: skip


def test_an_azure_trace_is_read_with_seven_digits_and_time_zones(tmp_path: Path) -> None:
    rows = "2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04,12,3\n2024-05-10T00:00:00.5+00:00,5,6\n"
    found = read_trace(written(tmp_path, AZURE + rows))
    assert found.form == "azure" and [one.tokens_in for one in found.arrivals] == [4808, 12, 5]
    assert round(found.arrivals[1].at_s, 6) == 0.02004 and found.arrivals[2].at_s > 86400 * 170
    assert not found.facts()["has_prefixes"]
    spaced = "\n" + AZURE.replace(",", " , ") + rows
    assert read_trace(written(tmp_path, spaced)) == found


def test_prompts_share_prefixes_where_the_trace_does(tmp_path: Path) -> None:
    lengths = ((600, 9, [0, 7]), (600, 1, [0, 8]), (40, 5, []), (40, 5, []), (30, 5, [0, 1]))
    rows = [
        {"timestamp": 0, "input_length": one, "output_length": other, "hash_ids": ids} for one, other, ids in lengths
    ]
    trace = read_trace(written(tmp_path, "\n".join(map(json.dumps, rows))))
    found = list(trace_rows(trace, 3))
    words = [row["text"].split() for row in found]
    assert [len(one) for one in words] == [600, 600, 40, 40, 30]
    assert words[0][:512] == words[1][:512] and words[0][512:] != words[1][512:] and words[4] == words[0][:30]
    assert words[2] != words[3] and found == list(trace_rows(trace, 3)) != list(trace_rows(trace, 4))
    assert [row["max_tokens"] for row in found] == [9, 2, 5, 5, 5]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "has no requests"),
        ("\n\n", "has no requests"),
        (AZURE, "has no requests"),
        ("a,b\n1,2\n", "line 1: found 'a,b'"),
        (MOONCAKE + "{x\n", "line 2: Expecting"),
        (MOONCAKE + "[]\n", "line 2: found list, not an object"),
        (MOONCAKE + "{}\n", "line 2: timestamp is missing; allowed: milliseconds from 0"),
        (MOONCAKE.replace("1500", "-1"), "line 1: timestamp is -1"),
        (MOONCAKE.replace("1500", "NaN"), "line 1: timestamp is nan"),
        (MOONCAKE.replace("1500", "true"), "line 1: timestamp is True"),
        (MOONCAKE.replace("600", "0"), "line 1: input_length is 0; allowed: a whole number from 1"),
        (MOONCAKE.replace("600", "1e3"), "line 1: input_length is 1000.0"),
        (MOONCAKE.replace('"output_length": 9, ', ""), "line 1: output_length is missing"),
        (MOONCAKE.replace("[0, 7]", '"x"'), "line 1: hash_ids is not a list"),
        (MOONCAKE.replace("[0, 7]", "[0, -7]"), "line 1: hash_ids is not a list"),
        (AZURE + "yesterday,1,2\n", "line 2: TIMESTAMP is 'yesterday'; allowed: such as 2023-11-16"),
        (AZURE + "2023-11-16 25:17:03,1,2\n", "line 2: hour must be in"),
        (AZURE + "2023-11-16 18:17:03,1,2\n2023-11-16 18:17:04,,2\n", "line 3: ContextTokens is ''"),
        (AZURE + "2023-11-16 18:17:03,1\n", "line 2: GeneratedTokens is ''"),
        ("\n\n" + AZURE + "\nyesterday,1,2\n", "line 5: TIMESTAMP"),
        (AZURE.replace("Tokens", "Token"), "line 1: found 'TIMESTAMP,ContextToken,"),
    ],
)
def test_a_wrong_trace_is_refused_with_its_line(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(DataError) as caught:
        read_trace(written(tmp_path, text))
    assert why in str(caught.value) and "--trace" in str(caught.value)
    assert "TIMESTAMP,ContextTokens,GeneratedTokens" in caught.value.hint


def test_a_trace_that_does_not_fit_in_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MAX_TOKENS_IN", 1000)
    with pytest.raises(DataError, match="1,200 input tokens; allowed: 1,000") as caught:
        read_trace(written(tmp_path, MOONCAKE * 2))
    assert "head -n" in caught.value.hint
    with pytest.raises(DataError, match="cannot read"):
        read_trace(tmp_path)
