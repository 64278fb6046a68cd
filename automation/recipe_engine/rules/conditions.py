"""Conditions of dependencies (``enable_if_env``, ``skip_if_env``, their any-forms), also on values not known yet.

Each wanted value list is compared with an env value; the tables of true and false words are CM's
(reference engine, cm4mlops e1d5c7cf0, ``is_dep_tobe_skipped``). A key that a step still to run may set makes the
answer ``unknown``, so that a plan can say what it waits for.

A symbol is a text that stands for "whatever KEY will be once STEP has run" and flows through env, tags and cache keys
like a real value. Two equal symbols are the same unknown value, so a plan can tell that two steps will use the same
entry without knowing which. Symbols are framed by two characters of Unicode's private use area, which no recipe uses. A
real run never makes one.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Literal

from .env import Env, is_glob, key_matcher
from .frozen import Frozen

START, END, COMMA = "\ue000", "\ue001", "\ue002"
"""``COMMA`` stands for a comma in the name of a step: a symbol among tags is one word."""
_SYMBOL = f"{START}([^{START}{END}|]*)\\|([^{START}{END}]*){END}"


def symbol(key: str, source: str) -> Any:
    """The unknown value of an env key that ``source`` will give; a list of one for a ``+KEY``."""
    text = f"{START}{key}|{source.replace(',', COMMA)}{END}"
    return [text] if key.startswith("+") else text


def has_symbol(value: Any) -> bool:
    """Whether a value, or an item of a list or mapping, is not known yet."""
    if isinstance(value, str):
        return START in value
    if isinstance(value, Mapping):
        return any(has_symbol(item) for item in value.values())
    return isinstance(value, list | tuple) and any(has_symbol(item) for item in value)


def shown(value: Any) -> Any:
    """A value with its symbols in words, for people: ``<CM_CUDA_VERSION from get-cuda>``."""
    if isinstance(value, str):
        return re.sub(_SYMBOL, r"<\1 from \2>", value).replace(COMMA, ",")
    if isinstance(value, Mapping):
        return {key: shown(item) for key, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, list | tuple) else value


def sources(value: Any) -> tuple[str, ...]:
    """What a value waits for: ``CM_CUDA_VERSION from get-cuda`` for each symbol in it."""
    texts = value if isinstance(value, list | tuple) else [value]
    found = (re.findall(_SYMBOL, str(text)) for text in texts)
    return tuple(dict.fromkeys(f"{key} from {source}".replace(COMMA, ",") for pairs in found for key, source in pairs))


class Unknown(Frozen):
    """Keys that are not in the env now, but that a step may have set by the time it matters.

    ``rules`` are pairs of a key or glob and the step that may set it. Keys that match ``hidden`` and not ``shown`` are
    surely not there.
    """

    rules: tuple[tuple[str, str], ...] = ()
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    def source(self, key: str) -> str:
        """The step that may set ``key``; an empty text when none may."""
        is_shown = self.shown and key_matcher(self.shown)(key)
        if self.hidden and not is_shown and key_matcher(self.hidden)(key):
            return ""
        return next((source for pattern, source in self.rules if key_matcher((pattern,))(key)), "")

    def hiding(self, hidden: tuple[str, ...], shown: tuple[str, ...] = ()) -> Unknown:
        """What is unknown to a step that sees no ``hidden`` keys except those that are ``shown``."""
        return self._replace(hidden=hidden, shown=shown) if self.rules else self

    def outside(self, env: Mapping[str, Any]) -> Container[str]:
        """The keys that are not in ``env`` now but may be set before it matters."""
        return _Outside(self, env) if self.rules else ()

    def with_rules(self, rules: Iterable[tuple[str, str]]) -> Unknown:
        """These keys and more; who is known to set a key already stays its source."""
        patterns = {pattern for pattern, _ in self.rules}
        return self._replace(rules=(*self.rules, *(rule for rule in rules if rule[0] not in patterns)))


class _Outside(Container[str]):
    """See ``Unknown.outside``."""

    def __init__(self, unknown: Unknown, env: Mapping[str, Any]) -> None:
        self._unknown = unknown
        self._env = env

    def __contains__(self, key: object) -> bool:
        return key not in self._env and self._unknown.source(str(key)) != ""


NOTHING_UNKNOWN = Unknown()


def with_unknown(env: Env, names: Iterable[str], unknown: Unknown) -> Env:
    """``env`` with those of ``names`` as unknown values that it lacks and that a step may have set."""
    absent = sorted(set(names).difference(env)) if unknown.rules else ()
    return {**env, **{key: symbol(key, source) for key in absent if (source := unknown.source(key))}}


def overlap(patterns: Iterable[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """The keys and globs for what both ``patterns`` and ``allowed`` may match; rather one too many than one too few."""
    found: dict[str, None] = {}
    for pattern in patterns:
        for other in allowed:
            if not is_glob(pattern):
                if key_matcher((other,))(pattern):
                    found[pattern] = None
            elif not is_glob(other):
                if key_matcher((pattern,))(other):
                    found[other] = None
            elif _may_meet(pattern, other):
                found[max(pattern, other, key=len)] = None
    return tuple(found)


def _may_meet(first: str, second: str) -> bool:
    """Whether two globs can match one name, judged by what stands before their first wildcard."""
    left, right = (re.split(r"[*?[]", glob, maxsplit=1)[0] for glob in (first, second))
    return left.startswith(right) or right.startswith(left)


Answer = Literal["yes", "no", "unknown"]
Kind = Literal["enable_if_env", "skip_if_env", "enable_if_any_env", "skip_if_any_env"]

KINDS: tuple[Kind, ...] = ("enable_if_env", "skip_if_env", "enable_if_any_env", "skip_if_any_env")
TRUE_WORDS = frozenset({"yes", "on", "true", "1"})
FALSE_WORDS = frozenset({"no", "off", "false", "0"})


class Condition(Frozen):
    """One condition block: ``wanted`` maps an env key to its accepted values, lower case."""

    kind: Kind
    wanted: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def text(self) -> str:
        """The block in words, for logs and plans."""
        pairs = [f"{key} in [{', '.join(values)}]" for key, values in self.wanted]
        return f"{self.kind}: " + ("; ".join(pairs) or "(empty)")


class Verdict(Frozen):
    """Whether a dependency runs, with the condition that decided and the keys that are not known yet."""

    answer: Answer
    reason: str = ""
    waiting_for: tuple[str, ...] = ()


def key_matches(accepted: tuple[str, ...], value: object, *, is_any: bool) -> bool:
    """Whether an env value (None = the key is missing) is one of ``accepted``, by CM's rules.

    A true-word accepts every value that is not a false-word or empty. A false-word accepts false-words and the empty
    value, and in an all-condition also a missing key. The empty text accepts the empty value, in an all-condition also
    a missing key, in an any-condition also false-words. Otherwise the texts must be equal but for case and whitespace.
    """
    text = "" if value is None else str(value).strip().lower()
    if value is None:
        return not is_any and ("" in accepted or not FALSE_WORDS.isdisjoint(accepted))
    if not TRUE_WORDS.isdisjoint(accepted):
        return text != "" and text not in FALSE_WORDS
    if not FALSE_WORDS.isdisjoint(accepted):
        return text == "" or text in FALSE_WORDS or text in accepted
    if text in accepted:
        return True
    return is_any and "" in accepted and text in FALSE_WORDS


def holds(condition: Condition, env: Mapping[str, object], unknown: Container[str] = ()) -> Answer:
    """Whether the block's pairs hold in ``env`` (all of them, or one for an any-block).

    ``unknown`` are keys whose value is not decided yet. An empty all-block holds, an empty any-block does not.
    """
    is_any = condition.kind.endswith("_any_env")
    open_question = False
    for key, accepted in condition.wanted:
        if _is_open(key, env, unknown):
            open_question = True
        elif key_matches(accepted, env.get(key), is_any=is_any) is is_any:
            return "yes" if is_any else "no"
    if open_question:
        return "unknown"
    return "no" if is_any else "yes"


def _is_open(key: str, env: Mapping[str, object], unknown: Container[str]) -> bool:
    """Whether the value of a key is not decided yet: a step to come may set it, or it is a symbol already."""
    return key in unknown or has_symbol(env.get(key))


def decide(conditions: tuple[Condition, ...], env: Mapping[str, object], unknown: Container[str] = ()) -> Verdict:
    """Whether something guarded by ``conditions`` happens; any single block can veto it."""
    waiting: list[str] = []
    for condition in conditions:
        answer = holds(condition, env, unknown)
        if answer == "unknown":
            waiting += [key for key, _ in condition.wanted if _is_open(key, env, unknown)]
        elif (answer == "yes") is condition.kind.startswith("skip"):
            return Verdict("no", condition.text)
    if waiting:
        return Verdict("unknown", waiting_for=tuple(dict.fromkeys(waiting)))
    return Verdict("yes")
