"""Awkward texts, a vocabulary for them and data sets in SQuAD's format, all seeded.

The digests in test_tokenization_squad.py were recorded with these functions: a change here needs them recorded again.
"""

import random

LETTERS = "abcdefghijklmnopqrstuvwxyz"
NOT_ASSIGNED = "\ue000\U000f0000\u0378\ud7a4"
"""Private and unassigned characters: transformers drops them, the package tokenizers does not."""
POOLS = (
    LETTERS,
    LETTERS.upper(),
    "0123456789",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    " \t\n\r",
    "\u00a0\u2003\u202f\u3000\u2028\u2029\u1680",
    "\u0000\u0001\u001f\u007f\u0085\u200b\u200d\ufeff\ufffd\u00ad",
    "áéíóúñçüöäßøåÅÉÎŞİıĞœÆ",
    "e\u0301a\u0308\u0323o\u0302\u0334\u20d7",
    "ΑΒΓΣςσΩάέΰ",
    "БГДЁйѐЖ",
    "中文字漢\u3400\u4dbf\U00020000\uf900\U0002f800",
    "あいカタガが한글각",
    "אבשׁ\u05b0عربي\u0650",
    "हिन्दीกำ",
    "–—‘’“”…«»·¿¡§¶†°€£¥™½²ﬁℵⅣ",
    "😀🏳\ufe0f👍🏽",
    NOT_ASSIGNED,
)
MARKED = ("[SEP]", "[UNK]", "[CLS]x", "a[MASK]b", "[PAD] ", "[sep]", "[SE P]")


def text(rng: random.Random, pools: tuple[str, ...] = POOLS) -> str:
    """A text of up to 14 parts: words, long words, special tokens, characters of some pools."""
    parts = []
    for _ in range(rng.randint(0, 14)):
        chance = rng.random()
        if chance < 0.45:
            parts.append("".join(rng.choice(LETTERS) for _ in range(rng.randint(1, 12))))
        elif chance < 0.5:
            parts.append(rng.choice(MARKED))
        elif chance < 0.52:
            parts.append(rng.choice("abé中") * rng.choice((99, 100, 101, 230)))
        else:
            chosen = rng.sample(pools, rng.randint(1, 3))
            parts.append("".join(rng.choice(rng.choice(chosen)) for _ in range(rng.randint(1, 9))))
        if rng.random() < 0.6:
            parts.append(rng.choice((" ", ". ", ", ", "  ", "\n")))
    return "".join(parts)


def vocabulary() -> list[str]:
    """Word pieces: the special ones where BERT has them, each character of the pools, made pieces."""
    rng = random.Random(5)
    rows = ["[PAD]", *(f"[unused{number}]" for number in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    singles = sorted({char for pool in POOLS for char in pool.lower() if char.strip() and char.isprintable()})
    rows += [*singles, *(f"##{char}" for char in singles)]
    rows += sorted({"".join(rng.choice(LETTERS) for _ in range(rng.randint(2, 5))) for _ in range(2000)})
    rows += sorted({"##" + "".join(rng.choice(LETTERS) for _ in range(rng.randint(2, 3))) for _ in range(1500)})
    return list(dict.fromkeys(rows))


def articles(rng: random.Random, count: int) -> list[dict]:
    """Articles of awkward text: empty paragraphs and questions, very long ones, answers from anywhere."""
    made = []
    for number in range(count):
        wanted = rng.choice((0, 1, 5, 20, 60, 150, 300))
        context = " ".join(text(rng) for _ in range(wanted // 6 + 1))[: wanted * 8]
        if number % 7 == 0:
            context = rng.choice(("", " ", "\u202f\n", "\u200b", "\u00a0"))
        entries = []
        for place in range(rng.randint(1, 3)):
            start = rng.randrange(len(context) + 1)
            answer = {"text": context[start : start + rng.randint(0, 20)], "answer_start": start}
            question = " ".join(text(rng) for _ in range(rng.choice((0, 1, 3, 20))))
            entries.append({"id": f"{number}-{place}", "question": question, "answers": [answer]})
        made.append({"title": str(number), "paragraphs": [{"context": context, "qas": entries}]})
    return made
