"""The number of tokens of an answer that count, and whether the answer is complete. Pure.

Token ids count as they are. A text is tokenized again, which is bounded by the server's usage.completion_tokens, or,
without it, by the pieces of its stream (one for each token). The lower number counts, max_tokens is a bound, and a
larger difference is an error: the server has another tokenizer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from crowdperf.harness.backends.endpoint.answers import AnswerError, Collector
from crowdperf.harness.text.engine import Finish
from crowdperf.harness.text.tokenizer import Tokenizer

_PART, _FEW = 0.1, 4
"""Text that is tokenized again may differ from the server's count by a tenth, or by four tokens (an end token
without text, words made of other parts): this project's choice."""
_UNKNOWN = "\ufffd"
_BYTES_OF_UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class Count:
    """tokens: those that count. difference: how many more the answer has here than the server counted. Below 0:
    fewer. None: the server did not report a number."""

    tokens: int
    difference: int | None


def tolerance(tokens: int) -> int:
    """Return by how many tokens an answer of `tokens` may differ."""
    return max(_FEW, int(_PART * tokens))


def unsent(answer: Collector) -> int:
    """Return the number of reported tokens that the server did not send: of thoughts that it keeps back
    (usage.completion_tokens_details.reasoning_tokens)."""
    said, thought = answer.usage.completion_tokens or 0, answer.usage.reasoning_tokens or 0
    is_sent = answer.has_reasoning or bool(answer.ids) or answer.pieces > said - thought
    return 0 if is_sent else min(thought, said)


def count_of(answer: Collector) -> int:
    """Return the number of tokens of an answer that arrived: as the server reports it, else that of the pieces."""
    said = answer.usage.completion_tokens
    return answer.pieces if said is None else said - unsent(answer)


def counted(answer: Collector, tokens: int) -> Count:
    """Return the count of an answer whose ids, or whose text, are that many tokens. Raises AnswerError if the
    server's count differs. A broken character, as three bytes, may be up to three tokens too many."""
    said = answer.usage.completion_tokens
    if answer.ids:
        if said is not None and said != tokens:
            raise AnswerError(f"the server reports {said} tokens (usage.completion_tokens), but {tokens} arrived")
        return Count(tokens, None if said is None else 0)
    basis = count_of(answer)
    if said is not None and abs(tokens - said) <= tolerance(said):
        basis = said
    broken = sum(one.count(_UNKNOWN) for one in answer.texts)
    if abs(tokens - basis) > tolerance(basis) + _BYTES_OF_UNKNOWN * broken:
        source = (
            f"the server sent {basis} pieces and does not report the number of output tokens (usage.completion_tokens)"
            if said is None
            else f"the server reports {basis} tokens (usage.completion_tokens)"
        )
        raise AnswerError(
            f"{source}, but the text has {tokens} tokens with the run's tokenizer: tokens are missing, or the "
            "server uses another tokenizer"
        )
    return Count(min(tokens, basis, answer.most_tokens), None if said is None else tokens - basis)


def require_length(finish: Finish, tokens: int, most: int) -> None:
    """Raise AnswerError for an answer that was ended by its length before it had that length. tokens: with those that
    were not sent."""
    if finish is Finish.LENGTH and tokens < most - tolerance(most):
        raise AnswerError(
            f"the server stopped at its length limit (finish_reason length) after {tokens} of the {most} requested "
            "tokens: its own limit is lower, or its count is wrong (usage.completion_tokens)"
        )


def require_text(ids: list[int], text: str, vocabulary: Tokenizer) -> None:
    """Raise AnswerError for token ids that the model does not have, or that do not mean the text next to them.

    Spaces are not compared, since streamed text and text that is decoded at once differ in them, nor broken characters.
    """
    largest = max(ids, default=0)
    if largest >= vocabulary.size:
        raise AnswerError(f"the server sent the token id {largest}, but the model has {vocabulary.size} tokens")
    if not text or not ids:
        return
    said = "".join(text.split())
    if any(_is_alike("".join(vocabulary.decode(ids, with_special=one).split()), said) for one in (False, True)):
        return
    decoded = _start(vocabulary.decode(ids))
    raise AnswerError(f"the text is {_start(text)}, but the run's tokenizer decodes the tokens as {decoded}")


def _is_alike(one: str, other: str) -> bool:
    """Whether two texts are the same but for broken characters, of which one may have more than the other."""
    if _UNKNOWN not in one + other:
        return one == other
    return _has_in_order(one.split(_UNKNOWN), other) or _has_in_order(other.split(_UNKNOWN), one)


def _has_in_order(parts: Sequence[str], text: str) -> bool:
    place = 0
    for part in parts:
        found = text.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True


def _start(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:80]} ...")


def has_special(text: str, vocabulary: Tokenizer) -> bool:
    """Return whether a text contains a special token of the tokenizer."""
    tokens = vocabulary.encode(text, with_special=False)
    return vocabulary.decode(tokens) != vocabulary.decode(tokens, with_special=True)
