"""ROUGE of texts; agrees with evaluation.py of mlcommons/inference (language/gpt-j, language/llama3.1-8b) and with
evaluate-accuracy.py (language/llama2-70b), whose line has the numbers without quotes, and token counts behind them.

The official script prints a Python dictionary: `{'rouge1': '42.9865', 'rouge2': '20.1235', 'rougeL': '29.9881',
'rougeLsum': '40.1', 'gen_len': 4016878, 'gen_num': 13368}` (the numbers without quotes up to v4.1; with numpy 2 it
prints np.int64(4016878), which the official checkers do not read). gen_len counts the characters of the stripped
summaries with one newline between two sentences.

Sentences. The script splits with nltk's punkt and its English parameters, which it downloads. rouge1, rouge2 and
rougeL, which the rules ask for, read words only and do not depend on it; rougeLsum compares sentence by sentence, and
gen_len changes where something else than one space stands between two sentences. With the same parameters installed
both agree to the last digit. Without them `split_sentences` is nltk's punkt with no parameters: it takes "Mr. Smith"
for two sentences.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.libraries import import_library
from crowdperf.harness.base.score import Score

_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")
_HINT = "score the log with the model and the data set that made it"
_LOG = logging.getLogger(__name__)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of `text` as nltk's punkt finds them without any parameters."""
    punkt = import_library("nltk.tokenize.punkt", "nltk")
    sentences: list[str] = punkt.PunktSentenceTokenizer().tokenize(text)
    return sentences


def installed_splitter() -> Callable[[str], list[str]]:
    """Return what nltk.sent_tokenize does, or `split_sentences`, and say so, where its parameters are not installed."""
    punkt = import_library("nltk.tokenize.punkt", "nltk")
    try:
        splitter: Callable[[str], list[str]] = punkt.PunktTokenizer("english").tokenize
    except LookupError:
        _LOG.warning(
            "nltk's punkt_tab is not installed: rougeLsum and gen_len may differ a little from the official script's "
            "(rouge1, rouge2 and rougeL do not). python3 -m nltk.downloader punkt_tab installs it"
        )
        return split_sentences
    return splitter


def token_ids(index: int, data: bytes, dtype: str) -> list[int]:
    """Return the tokens of a response; raises HarnessError for bytes that are no whole numbers, or below 0."""
    if len(data) % np.dtype(dtype).itemsize:
        raise HarnessError(
            f"the response of sample {index} has {len(data)} bytes, which is not a whole number of {dtype} values",
            _HINT,
        )
    ids: list[int] = np.frombuffer(data, dtype=dtype).tolist()
    if ids and min(ids) < 0:
        raise HarnessError(f"the response of sample {index} has the token {min(ids)}; allowed: 0 and above", _HINT)
    return ids


def _line(values: dict[str, Any], character_count: int, text_count: int, token_count: int | None) -> str:
    if token_count is None:
        shown = {name: str(value) for name, value in values.items()}
        return str({**shown, "gen_len": character_count, "gen_num": text_count})
    counts = {"gen_len": character_count, "gen_num": text_count, "gen_tok_len": token_count}
    rouges = {name: float(value) for name, value in values.items()}
    return str({**rouges, **counts, "tokens_per_sample": round(token_count / text_count, 1)})


def score(
    responses: Iterable[tuple[int, bytes]],
    references: Sequence[str],
    decode: Callable[[list[int]], str],
    *,
    dtype: str = "int64",
    has_token_counts: bool = False,
) -> Score:
    """Return "ROUGE1", "ROUGE2", "ROUGEL", "ROUGELSUM" (F-measure x 100, four digits), "GEN_LEN" (characters) and
    "GEN_NUM"; with `has_token_counts` "TOKENS_PER_SAMPLE" (one digit), too.

    A response is `dtype`[n] of the new tokens, which `decode` turns into text without special tokens, as the
    tokenizer's batch_decode does; n may be 0. references: by sample index. Of a sample that comes twice
    the first counts. Raises HarnessError for another size and a negative token.
    """
    rouge = import_library("rouge_score.rouge_scorer", "rouge-score").RougeScorer(list(_TYPES), use_stemmer=True)
    sentences = installed_splitter()
    seen: set[int] = set()
    measures: dict[str, list[float]] = {name: [] for name in _TYPES}
    character_count = token_count = 0
    for index, data in responses:
        if index in seen:
            continue
        seen.add(index)
        tokens = token_ids(index, data, dtype)
        prediction = "\n".join(sentences(decode(tokens).strip()))
        token_count += len(tokens)
        reference = "\n".join(sentences(references[index].strip()))
        character_count += len(prediction)
        for name, result in rouge.score(reference, prediction).items():
            measures[name].append(result.fmeasure)
    if not seen:
        raise HarnessError("no responses to score", "score the log of an accuracy run")
    # round() of a numpy number is numpy's, which the official script prints, not Python's.
    rounded = {name: round(np.mean(values) * 100, 4) for name, values in measures.items()}
    values = {name.upper(): float(value) for name, value in rounded.items()}
    counts: dict[str, float] = {"GEN_LEN": character_count, "GEN_NUM": len(seen)}
    if has_token_counts:
        counts["TOKENS_PER_SAMPLE"] = round(token_count / len(seen), 1)
    line = _line(rounded, character_count, len(seen), token_count if has_token_counts else None)
    return Score(values={**values, **counts}, line=line)
