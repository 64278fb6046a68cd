"""Conditions of dependencies: ``enable_if_env``, ``skip_if_env`` and their any-forms.

Each wanted value list is compared with an env value; the tables of true and false words are CM's
(reference engine, cm4mlops e1d5c7cf0, ``is_dep_tobe_skipped``). A key that a step still to run may set makes the
answer ``unknown``, so that a plan can say what it waits for.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Literal, NamedTuple

from .symbols import has_symbol

Answer = Literal["yes", "no", "unknown"]
Kind = Literal["enable_if_env", "skip_if_env", "enable_if_any_env", "skip_if_any_env"]

KINDS: tuple[Kind, ...] = ("enable_if_env", "skip_if_env", "enable_if_any_env", "skip_if_any_env")
TRUE_WORDS = frozenset({"yes", "on", "true", "1"})
FALSE_WORDS = frozenset({"no", "off", "false", "0"})


class Condition(NamedTuple):
    """One condition block: ``wanted`` maps an env key to its accepted values, lower case."""

    kind: Kind
    wanted: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def text(self) -> str:
        """The block in words, for logs and plans."""
        pairs = [f"{key} in [{', '.join(values)}]" for key, values in self.wanted]
        return f"{self.kind}: " + ("; ".join(pairs) or "(empty)")


class Verdict(NamedTuple):
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
