"""Which known name a misspelt one was meant to be: the line that is printed can be pasted, so a guess must be sure.

A misspelling is near (a letter more, less, another, or two that changed places), or the beginning of one name. Names
whose words are all spelt right mean something else: ``max_duration`` is not ``min_duration``.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable

LETTERS_AN_ERROR = 4
"""One error is believed in a name of up to 7 letters, two from 8, three from 12: this project's choice."""
MIN_LETTERS = 3
"""A shorter word is taken for no name: one error makes it any other word of its length."""
OPPOSITES = (
    {"cpu", "gpu"},
    {"first", "last"},
    {"in", "out"},
    {"input", "output"},
    {"max", "min"},
    {"offline", "server"},
    {"on", "off"},
    {"single", "multi"},
)


def errors_between(one: str, other: str) -> int:
    """The errors that lead from one text to another: letters added, left out, exchanged, or two that changed places
    (optimal string alignment distance)."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        now = [row]
        for column, wanted in enumerate(other, start=1):
            cost = min(last[column] + 1, now[-1] + 1, last[column - 1] + (letter != wanted))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == wanted:
                cost = min(cost, before[column - 2] + 1)
            now.append(cost)
        before, last = last, now
    return last[-1]


def meant(word: str, known: Iterable[str]) -> str:
    """The one of ``known`` that a misspelt word surely was to be; empty when none is."""
    names = set(known)
    if len(word) < MIN_LETTERS:
        return ""
    begun = [name for name in names if name.startswith(word) or re.sub("[aeiou]", "", name) == word]
    if len(begun) == 1:
        return begun[0]
    proper = {part for name in names for part in _words(name)}
    near = []
    for name in names:
        errors = errors_between(word.lower(), name.lower())
        most = max(1, min(len(word), len(name)) // LETTERS_AN_ERROR)
        if errors <= most and not _is_another(word, name, proper):
            near.append((errors, _other_letters(word, name), name[:1] != word[:1], name))
    return min(near)[-1] if near else ""


def _other_letters(word: str, name: str) -> int:
    """How many letters one of the two has and the other has not: none where letters only changed places."""
    one, other = Counter(word), Counter(name)
    return (one - other).total() + (other - one).total()


def _words(name: str) -> list[str]:
    return [part for part in re.split(r"[^a-z0-9]+", name.lower()) if part]


def _is_another(word: str, name: str, proper: Collection[str]) -> bool:
    """Whether two names of as many words differ in words that are all spelt right."""
    pairs = list(zip(_words(word), _words(name), strict=False))
    if len(_words(word)) != len(_words(name)):
        return False
    differing = [pair for pair in pairs if pair[0] != pair[1]]
    return any(set(pair) in OPPOSITES or (pair[0] in proper and errors_between(*pair) > 1) for pair in differing)
