"""Cases of the ROUGE scorer. truth: the reference summaries.

GPT-J's vocabulary is not at hand everywhere; here, and in the official script's run, a token is a byte of UTF-8 and
256 the end of the text, which decoding skips.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scores.case import Case, Responses

from crowdperf.harness.base.score import Score
from crowdperf.harness.metrics import rouge

END = 256
_TEXT = (
    "police officers said the running runners were happily walking away from houses near Mr. Smith and Dr. Jones in "
    "the U.S. on Jan. 5 with 3.5 million dollars e.g. gold i.e. coins café naïve 东京 it's well-known"
)
_WORDS = _TEXT.split()
_ENDS = [".", ".", ".", "!", "?", "...", '."', "?!", ".'", ":", ".\n"]


def decode(ids: list[int]) -> str:
    """Return the text of byte tokens, without ends."""
    return bytes(token for token in ids if token < END).decode("utf-8", "replace")


def _ids(text: str, dtype: str, *, padding: int = 0) -> bytes:
    return np.array([*text.encode("utf-8"), *([END] * padding)], dtype=dtype).tobytes()


def _summary(random: np.random.RandomState, sentence_count: int, gaps: list[str]) -> str:
    parts = []
    for _ in range(sentence_count):
        words = [_WORDS[i] for i in random.randint(0, len(_WORDS), random.randint(2, 14))]
        if random.rand() < 0.7:
            words[0] = words[0].capitalize()
        parts += [" ".join(words) + _ENDS[random.randint(len(_ENDS))], gaps[random.randint(len(gaps))]]
    return "".join(parts)


def _near(random: np.random.RandomState, text: str) -> str:
    """Words lost, changed and moved."""
    words = text.split(" ")
    words = [w if random.rand() < 0.8 else _WORDS[random.randint(len(_WORDS))] for w in words if random.rand() < 0.85]
    cut = random.randint(len(words) + 1)
    return " ".join(words[cut:] + words[:cut]) if random.rand() < 0.3 else " ".join(words)


def _case(seed: int, count: int = 60, *, gaps: tuple[str, ...] = (" ",), dtype: str = "int64") -> Case:
    random = np.random.RandomState(seed)
    truth = [_summary(random, random.randint(1, 6), list(gaps)) for _ in range(count)]
    responses: Responses = [
        (index, _ids(_near(random, text), dtype, padding=random.randint(5))) for index, text in enumerate(truth)
    ]
    options = {} if dtype == "int64" else {"dtype": dtype}
    return Case([responses[i] for i in random.permutation(count)], truth, options)


def _texts(truth: list[str], heard: list[str]) -> Case:
    return Case([(index, _ids(text, "int64")) for index, text in enumerate(heard)], truth)


_PUNKT = {
    "abbrev_types.txt": "mr\ndr\nu.s\ne.g\ni.e\n",
    "collocations.tab": "u.s\tcoins\n",
    "sent_starters.txt": "the\nit\n",
    "ortho_context.tab": "the\t46\npolice\t40\ngold\t32\ncoins\t32\ndollars\t36\n",
}


def write_punkt(nltk_data: Path) -> None:
    """Write made parameters of punkt where nltk looks for them."""
    folder = nltk_data / "tokenizers" / "punkt_tab" / "english"
    folder.mkdir(parents=True)
    for name, text in _PUNKT.items():
        (folder / name).write_text(text, encoding="utf-8")


CASES: dict[str, Callable[[], Case]] = {
    "real format": lambda: _case(1, 200),
    "int32 tokens": lambda: _case(2, dtype="int32"),
    "white space of many kinds": lambda: _case(3, gaps=(" ", "  ", "\n", " \n ", "\t", "", "\u00a0", "\u2003")),
    "identical": lambda: _texts(_case(4).truth[:9], _case(4).truth[:9]),
    "empty predictions": lambda: _texts(["A house.", "Two ships. Sank."], ["", " \n "]),
    "nothing but ends": lambda: Case([(0, np.array([END] * 3, np.int64).tobytes())], ["A house."]),
    "empty references": lambda: _texts(["", "A house."], ["Something.", "A house."]),
    "no word characters": lambda: _texts(["东京。大阪。", "...!?"], ["东京。", "!!!"]),
    "bytes that are no text": lambda: Case([(0, np.array([0xFF, 0xC3, 65], np.int64).tobytes())], ["A"]),
    "duplicated indices": lambda: Case([*_case(5).responses, *_case(6).responses[:20]], _case(5).truth),
    "half of the samples": lambda: Case(_case(7).responses[:30], _case(7).truth),
    "cut off": lambda: Case([(0, b"\1\0\0\0")], ["A"]),
}


def ours(case: Case) -> Score:
    """Return the score of this project's scorer."""
    return rouge.score(case.responses, case.truth, decode, **case.options)
