"""The values in the env of a hook, and in the words of a program, as texts and as yes or no. Pure.

The words for yes and no are those of the engine's flags (recipe_engine.rules.conditions), which a recipe cannot import.
tests/engine/test_call_values.py compares the two.
"""

from collections.abc import Iterable, Mapping

TRUTHS: Mapping[str, bool] = {
    "yes": True,
    "true": True,
    "on": True,
    "1": True,
    "no": False,
    "false": False,
    "off": False,
    "0": False,
}
"""What each word means, in lower case."""


def text_of(env: Mapping[str, object], key: str) -> str:
    """Return the value of an env key as text without surrounding whitespace, "" if it is unset."""
    value = env.get(key)
    return "" if value is None else str(value).strip()


def first_text_of(env: Mapping[str, object], keys: Iterable[str]) -> str:
    """Return the value of the first set key among some env keys, "" if all are unset."""
    return next((text for key in keys if (text := text_of(env, key))), "")


def input_text(value: object) -> str:
    """Return a value as the text that an input gets: yes and no for booleans, a list joined by commas, "" for None."""
    if isinstance(value, tuple):
        return ",".join(map(input_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def truth_of(value: object) -> bool | None:
    """Return the meaning of a value, None if it is neither a word for yes nor for no."""
    return None if value is None else TRUTHS.get(str(value).strip().lower())


def is_yes(value: object) -> bool:
    """Return whether a value is a word for yes."""
    return truth_of(value) is True


def is_no(value: object) -> bool:
    """Return whether a value is a word for no. An unset value is not."""
    return truth_of(value) is False


def is_set(value: object) -> bool:
    """Return whether a value is set and is not a word for no. Any other word switches a feature on."""
    return value is not None and str(value).strip() != "" and not is_no(value)
