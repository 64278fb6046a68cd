"""Beam search over a batch, with the rules of Hugging Face's `generate` (num_beams, early_stopping=True,
min_new_tokens, max_new_tokens, length_penalty 1). Pure numpy: probabilities in, the next tokens out.

Rules, after transformers' generation/utils.py (_beam_search; recorded pairs of 5.23 are in the tests) and, for lengths,
generation/beam_search.py of 4.33.3 (BeamSearchScorer.process, finalize and BeamHypotheses.add; read on 2026-11-28):

1. Of all continuations of the beams the 2 * beams most likely count, by the sum of their logarithms.
2. A continuation ends with the end token, or when it has the greatest length. Of those that end, the ones among the
   first `beams` of the list become answers, scored by their sum divided by a length. Up to transformers 4.35 it was
   that of the prompt, padding in front included, and the new tokens but for an end token; since 4.36 that of the new
   tokens, the end included. The reference scores are of v3.1 (mid 2023), so of the former.
3. The `beams` best that do not end go on.
4. A sample is done as soon as it has `beams` answers; its best one counts. Later ones are not looked at.

Equal scores are taken in the order of beams and then of tokens; torch leaves that open.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

_NEVER = np.float32(-1e9)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRules:
    """Of one search: end_token ends an answer; it has min_tokens before its end at least, and max_tokens at most.

    prompt_tokens: length of the batch's longest prompt, which counts in an answer's score; None: new tokens only.
    """

    beams: int
    min_tokens: int
    max_tokens: int
    end_token: int
    prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class NextTokens:
    """For each beam the beam of the last call it goes on from, and its newest token; int64[batch, beams]."""

    source: IntArray
    token: IntArray


class BeamSearch:
    """The search of a batch; `step` is called with what the network says until `is_done`."""

    def __init__(self, count: int, rules: SearchRules) -> None:
        shape = (count, rules.beams)
        self.rules = rules
        self._length = 0
        self._scores: FloatArray = np.zeros((count, 1), dtype=np.float32)
        self._tokens: IntArray = np.zeros((count, 1, 0), dtype=np.int64)
        self._answer_scores: FloatArray = np.full(shape, _NEVER)
        self._answers: IntArray = np.zeros((*shape, rules.max_tokens), dtype=np.int64)
        self._answer_lengths: IntArray = np.zeros(shape, dtype=np.int64)

    @property
    def is_done(self) -> bool:
        return self._length == self.rules.max_tokens or bool(self._has_all_answers().all())

    def _has_all_answers(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self._answer_lengths > 0).all(axis=1), dtype=np.bool_)

    def step(self, logprob: FloatArray, token: IntArray) -> NextTokens:
        """Take the most likely next tokens of each beam and return how the beams go on.

        logprob float32[batch, beams of the last call, n] and token int64 of the same shape, n >= 2 * beams + 1 or the
        whole vocabulary; the first call has one beam.
        """
        rules = self.rules
        beams, count = rules.beams, len(logprob)
        scores = logprob + self._scores[:, :, None]
        if self._length < rules.min_tokens:
            scores = np.where(token == rules.end_token, np.float32(-np.inf), scores)
        order = self._best(scores, token, 2 * beams)
        rows = np.arange(count)[:, None]
        best = scores.reshape(count, -1)[rows, order]
        chosen = token.reshape(count, -1)[rows, order]
        source = order // token.shape[2]
        self._length += 1
        tokens = np.concatenate((self._tokens[rows, source], chosen[:, :, None]), axis=2)
        is_end = np.full(chosen.shape, True) if self._length == rules.max_tokens else chosen == rules.end_token
        lengths = self._scored_lengths(chosen[:, :beams])
        self._take_answers(best[:, :beams] / lengths, tokens[:, :beams], is_end[:, :beams])
        going = np.argsort(is_end, axis=1, kind="stable")[:, :beams]  # best first, those that ended last
        self._scores, self._tokens = best[rows, going], tokens[rows, going]
        return NextTokens(source[rows, going], chosen[rows, going])

    @staticmethod
    def _best(scores: FloatArray, token: IntArray, wanted: int) -> IntArray:
        """Return the places of the `wanted` highest scores in the flattened rows, highest first."""
        count, beams, width = scores.shape
        beam = np.broadcast_to(np.arange(beams)[None, :, None], scores.shape)
        flat = [array.reshape(count, beams * width) for array in (token, beam, -scores)]
        order: IntArray = np.lexsort(flat, axis=1)
        return order[:, :wanted]

    def _scored_lengths(self, chosen: IntArray) -> FloatArray:
        """Return what the sum of a continuation that ends with `chosen` is divided by, of its shape."""
        before = self.rules.prompt_tokens
        if before is None:
            return np.full(chosen.shape, self._length, dtype=np.float32)
        lengths: FloatArray = (before + self._length - (chosen == self.rules.end_token)).astype(np.float32)
        return np.maximum(lengths, np.float32(1))

    def _take_answers(self, scores: FloatArray, tokens: IntArray, is_end: npt.NDArray[np.bool_]) -> None:
        """Put ended continuations of those scores among the answers of samples that still need some; `beams` stay."""
        is_taken = is_end & ~self._has_all_answers()[:, None]
        if not is_taken.any():
            return
        new = np.where(is_taken, scores, _NEVER)
        padded = np.zeros((*tokens.shape[:2], self.rules.max_tokens), dtype=np.int64)
        padded[:, :, : self._length] = tokens
        all_scores = np.concatenate((self._answer_scores, new), axis=1)
        all_answers = np.concatenate((self._answers, padded), axis=1)
        lengths = np.concatenate((self._answer_lengths, np.where(is_taken, self._length, 0)), axis=1)
        order = np.argsort(-all_scores, axis=1, kind="stable")[:, : self.rules.beams]
        rows = np.arange(len(order))[:, None]
        self._answer_scores, self._answers = all_scores[rows, order], all_answers[rows, order]
        self._answer_lengths = lengths[rows, order]

    def answers(self) -> list[IntArray]:
        """Return the best answer of each sample, its end token included."""
        return [
            row[:length].copy() for row, length in zip(self._answers[:, 0], self._answer_lengths[:, 0], strict=True)
        ]
