"""Computes the expressions of profiles, `{calculate(...)}`, by a grammar of this project's own. Pure; no eval.

VirtualClient hands the text to a C# compiler (ProfileExpressionEvaluator.cs, microsoft/VirtualClient, 53e432ad, read
November 2026), so a profile can run any code there. Here there are numbers with C#'s rules (whole numbers divide
towards zero, the remainder has the sign of the dividend, 32 and 64 bits overflow), texts, comparison, `&&`, `||`, `!`,
`?:`, four methods of texts, and sums of time spans. Anything else is refused with its column.
"""

import math
import operator
import re
from collections.abc import Callable
from datetime import timedelta

Value = int | float | str | bool
LONGEST_TEXT, DEEPEST, LONGEST_RESULT = 4096, 64, 32_768
"""Characters of an expression, nested brackets in it, characters of a text that it makes."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[lLdD]?)|(?P<text>@?\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<sign>&&|\|\||[=!<>]=|[-+*/%<>!?:().,]))"
)
_SPANS = re.compile(r"\s*\d{1,2}(?:\.\d{2})?:\d{2}:\d{2}(?:\s*[+-]\s*\d{1,2}(?:\.\d{2})?:\d{2}:\d{2})*\s*")
_SPAN = re.compile(r"([+-]?)\s*(?:(\d{1,2})\.)?(\d{1,2}):(\d{2}):(\d{2})")
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
_BINDING = (("?",), ("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/", "%"))
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_METHODS: dict[str, Callable[[str, str], Value]] = {
    "StartsWith": str.startswith,
    "EndsWith": str.endswith,
    "Contains": str.__contains__,
    "IndexOf": str.find,
}


class ExpressionError(ValueError):
    """The text is no expression of this grammar; the message has the column, counted from 1."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(f"column {column}: {reason}")


def evaluate(text: str) -> str:
    """Return what an expression comes to, as VirtualClient writes it into a parameter. Raises ExpressionError."""
    if len(text) > LONGEST_TEXT:
        raise ExpressionError(LONGEST_TEXT + 1, f"longer than {LONGEST_TEXT} characters")
    return _sum_of_spans(text) if _SPANS.fullmatch(text) else as_text(_Parser(text).whole())


def as_text(value: Value | None) -> str:
    """Return a value as C# prints it; true and false in lower case, as VirtualClient prefers them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.0f}"
    return "" if value is None else str(value).replace("e", "E") if isinstance(value, float) else str(value)


def span_text(span: timedelta) -> str:
    """Return a time span as C# prints it: `[d.]hh:mm:ss`."""
    hours, rest = divmod(span.seconds, 3600)
    return f"{f'{span.days}.' if span.days else ''}{hours:02}:{rest // 60:02}:{rest % 60:02}"


def _sum_of_spans(text: str) -> str:
    total = timedelta()
    for sign, days, hours, minutes, seconds in _SPAN.findall(text):
        span = timedelta(int(days or 0), hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        total += -span if sign == "-" else span
    return span_text(max(total, timedelta()))


class _Parser:
    """Computes while it reads; every branch is read and computed, as C# does with constants."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str, int]] = []
        place = 0
        while text[place:].strip():
            found = _TOKEN.match(text, place)
            if found is None or found.lastgroup is None:
                column = place + len(text[place:]) - len(text[place:].lstrip()) + 1
                raise ExpressionError(column, f"{text[column - 1 : column + 9]!r} is not understood here")
            self._tokens.append((found.lastgroup, found[found.lastgroup], found.start(found.lastgroup) + 1))
            place = found.end()
        self._tokens.append(("end", "the end", len(text) + 1))
        self._place = self._depth = 0

    def whole(self) -> Value:
        value = self._value()
        if self._tokens[self._place][0] != "end":
            raise self._error(f"{self._word!r} is not expected")
        return value

    @property
    def _word(self) -> str:
        return self._tokens[self._place][1]

    def _error(self, reason: str) -> ExpressionError:
        return ExpressionError(self._tokens[self._place][2], reason)

    def _takes(self, *words: str) -> str:
        kind, word, _ = self._tokens[self._place]
        if kind != "sign" or word not in words:
            return ""
        self._place += 1
        return word

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise self._error(f"{word!r} is expected, found {self._word!r}")

    def _value(self, least: int = 0) -> Value:
        """A value with every sign behind it that binds at least so tightly."""
        value = self._unary()
        for binding in range(len(_BINDING) - 1, least - 1, -1):
            while sign := self._takes(*_BINDING[binding]):
                value = self._choice(value) if sign == "?" else self._apply(sign, value, self._value(binding + 1))
        return value

    def _inner(self) -> Value:
        """A whole value within another one."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(f"nested more than {DEEPEST} deep")
        value = self._value()
        self._depth -= 1
        return value

    def _choice(self, condition: Value) -> Value:
        if not isinstance(condition, bool):
            raise self._error("'?' needs true or false before it")
        first = self._inner()
        self._expect(":")
        second = self._inner()
        return first if condition else second

    def _unary(self) -> Value:
        signs = []
        while sign := self._takes("-", "+", "!"):
            signs.append(sign)
        value = self._with_methods(self._plain())
        for sign in reversed(signs):
            if isinstance(value, str) or isinstance(value, bool) is not (sign == "!"):
                raise self._error(f"{sign!r} does not apply to {value!r}")
            value = not value if sign == "!" else self._negative(value) if sign == "-" else value
        return value

    def _negative(self, value: int | float) -> int | float:
        """A long stays one, but for the least number of 32 bits, which C# reads together with its sign."""
        return _Long(-value) if isinstance(value, _Long) and value != 2**31 else -value

    def _plain(self) -> Value:
        kind, word, _ = self._tokens[self._place]
        if self._takes("("):
            value = self._inner()
            self._expect(")")
            return value
        if kind == "number":
            value = self._literal(word)
        elif kind == "text":
            value = word[2:-1] if word[0] == "@" else re.sub(r"\\(.)", self._escaped, word[1:-1])
        elif kind == "name" and word.lower() in ("true", "false"):
            value = word.lower() == "true"
        else:
            raise self._error(f"a number, a text, true or false is expected, found {word!r}")
        self._place += 1
        return value

    def _literal(self, word: str) -> int | float:
        if re.fullmatch(r"\d+[lL]?", word):
            return self._within_bits(int(word.rstrip("lL")), is_long=word[-1] in "lL")
        value = float(word.rstrip("dD"))
        if math.isinf(value):
            raise self._error(f"{word} is too large")
        return value

    def _escaped(self, found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            raise self._error(f"the escape \\{found[1]} is not known")
        return _ESCAPES[found[1]]

    def _within_bits(self, value: int, *, is_long: bool) -> int:
        """Checks the range: 64 bits for a long, 32 else. A value beyond 32 bits is a long from there on."""
        if not -(2**63) <= value < 2**63 or (not is_long and not -(2**31) <= value < 2**63):
            raise self._error(f"{_short(value)} overflows {64 if is_long else 32} bits")
        return _Long(value) if is_long or value >= 2**31 else value

    def _with_methods(self, value: Value) -> Value:
        while self._takes("."):
            name = self._word
            if not isinstance(value, str) or name not in _METHODS:
                raise self._error(f"{name!r} is not a known member of a text. Members: {', '.join(_METHODS)}")
            self._place += 1
            self._expect("(")
            argument = self._inner()
            self._expect(")")
            if not isinstance(argument, str):
                raise self._error(f"{name} needs a text")
            value = _METHODS[name](value, argument)
        return value

    def _apply(self, sign: str, left: Value, right: Value) -> Value:
        if sign in ("&&", "||"):
            if not (isinstance(left, bool) and isinstance(right, bool)):
                raise self._error(f"{sign!r} needs true or false on both sides")
            return (left and right) if sign == "&&" else (left or right)
        if sign == "+" and (isinstance(left, str) or isinstance(right, str)):
            joined = _joined(left) + _joined(right)
            if len(joined) > LONGEST_RESULT:
                raise self._error(f"the text grows beyond {LONGEST_RESULT} characters")
            return joined
        kinds = {type(value) if isinstance(value, (bool, str)) else float for value in (left, right)}
        if sign in ("==", "!=") and len(kinds) == 1:
            return (left == right) is (sign == "==")
        if kinds != {float}:
            raise self._error(f"{sign!r} does not apply to {left!r} and {right!r}")
        assert isinstance(left, (int, float)) and isinstance(right, (int, float))
        return _COMPARE[sign](left, right) if sign in _COMPARE else self._calculated(sign, left, right)

    def _calculated(self, sign: str, left: int | float, right: int | float) -> int | float:
        if sign in "/%" and right == 0:
            raise self._error("division by zero")
        is_whole = isinstance(left, int) and isinstance(right, int)
        if sign in "+-*":
            value = {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign](left, right)
        elif not is_whole:
            value = left / right if sign == "/" else math.fmod(left, right)
        else:
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            value = quotient if sign == "/" else left - quotient * right
        if not is_whole:
            if math.isinf(value):
                raise self._error("the result is too large")
            return float(value)
        is_long = isinstance(left, _Long) or isinstance(right, _Long)
        if not is_long and not -(2**31) <= value < 2**31:
            raise self._error(f"{_short(value)} overflows 32 bits. Append L to a number for 64 bits")
        return self._within_bits(int(value), is_long=is_long)


class _Long(int):
    """A whole number of 64 bits."""


def _short(value: int) -> str:
    """A whole number, a long one by its ends."""
    text = str(value)
    return text if len(text) <= 40 else f"{text[:3]}...{text[-3:]} ({len(text)} digits)"


def _joined(value: Value) -> str:
    """A value within a longer text: here C# writes True and False."""
    return str(value) if isinstance(value, bool) else as_text(value)
