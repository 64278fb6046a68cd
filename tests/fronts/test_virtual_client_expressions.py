"""The expressions of VirtualClient's profiles: C#'s rules for numbers and texts, and refusals with their column."""

import pytest

from crowdperf.fronts.virtualclient import expressions


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("512 * 4", "2048"),
        ("512 / (4 / 2)", "256"),
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),  # towards zero
        ("-7 % 3", "-1"),  # the sign of the dividend
        ("7 % -3", "1"),
        ("7 / 2.0", "3.5"),
        ("7.5 % 2", "1.5"),
        ("4.0 / 2", "2"),
        ("1 + 2 * 3 - 4", "3"),
        ("2 - 3 - 4", "-5"),
        ("16777216000 * 80 / 100", "13421772800"),  # 64 bits, because the first number needs them
        ("2147483647L + 1", "2147483648"),
        ("-2L * 2000000000", "-4000000000"),  # a long stays one behind its sign
        ("1e3", "1000"),
        ("1e20 * 2", "2E+20"),
        ("4 <= 2", "false"),
        ("4 > 2 && 1 != 2", "true"),
        ("!true || false", "false"),
        ('"linux-x64".StartsWith("linux") ? "libaio" : "windowsaio"', "libaio"),
        ('("win-x64".StartsWith("win") || "x64" == "x64") ? "native" : "armv8-a"', "native"),
        ('"a" + 1 + true', "a1True"),
        ('1 + 2 + "a"', "3a"),
        ('"abc".IndexOf("c")', "2"),
        ('"abc".Contains("x") ? 1 : 2', "2"),
        ('"abc".EndsWith("bc")', "true"),
        ("true ? 1 : false ? 2 : 3", "1"),
        ("8 <= 2 ? 1 : 8 <= 4 ? 2 : 3", "3"),
        (r'"a\"b\\" + @"c\d"', 'a"b\\c\\d'),
        ("1.00:00:00 + 00:00:10", "1.00:00:10"),
        ("00:10:00 - 00:00:30 + 01:00:00", "01:09:30"),
        ("00:00:10 - 00:10:00", "00:00:00"),  # never below zero
        ("0.1 + 0.2", "0.30000000000000004"),
    ],
)
def test_an_expression_comes_to_what_csharp_makes_of_it(text, result):
    assert expressions.evaluate(text) == result


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("2147483647 + 1", "overflows 32 bits. Append L"),
        ("-2147483648 - 1", "overflows 32 bits. Append L"),
        ("9223372036854775807L + 1", "overflows 64 bits"),
        ("99999999999999999999", "overflows"),
        ("1e999", "too large"),
        ("1e308 * 10", "too large"),
        ("1 +", "column 4: a number, a text, true or false is expected, found 'the end'"),
        ("1 2", "column 3: '2' is not expected"),
        ("(1", r"column 3: '\)' is expected"),
        ("", "column 1: a number"),
        ("System.IO.File.Delete(1)", "found 'System'"),
        ('"a".Length', "'Length' is not a known member of a text. Members: StartsWith"),
        ('"a".GetType().Name', "'GetType' is not a known"),
        ("1.ToString()", "'ToString' is not a known"),
        ("a = 1", "column 3: '= 1' is not understood"),
        ("1 & 2", "column 3: '& 2' is not understood"),
        ("'a'", "column 1"),
        ('"a" == 1', "does not apply to"),
        ('"a" < "b"', "does not apply to"),
        ("true + 1", "does not apply to"),
        ("1 ? 2 : 3", "needs true or false"),
        ("1 && true", "needs true or false on both sides"),
        ("-true", "does not apply to True"),
        ('"a".StartsWith(1)', "needs a text"),
        (r'"\x"', "escape"),
        ("(" * 65 + "1" + ")" * 65, "nested more than 64 deep"),
        ("1" * 4097, "column 4097: longer than 4096 characters"),
        ("__import__", "found '__import__'"),
    ],
)
def test_anything_else_is_refused_with_its_column(text, words):
    with pytest.raises(expressions.ExpressionError, match=words):
        expressions.evaluate(text)


def test_a_long_row_of_signs_and_of_joined_texts_ends():
    assert expressions.evaluate("-" * 4000 + "1") == "1"
    assert expressions.evaluate("1" + "+1" * 2000) == "2001"
    long = '"' + "x" * 1000 + '"'
    assert len(expressions.evaluate(f"{long} + {long} + {long}")) == 3000


def test_time_spans_are_printed_as_csharp_prints_them():
    spans = [expressions.span_text(expressions.timedelta(seconds=s)) for s in (0, 61, 90000)]
    assert spans == ["00:00:00", "00:01:01", "1.01:00:00"]
