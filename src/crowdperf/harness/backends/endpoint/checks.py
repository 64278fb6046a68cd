"""Requirements for the answers of a probe, and the notes on them. Pure."""

from collections.abc import Collection

from crowdperf.call.model_server import model_word
from crowdperf.harness.backends.endpoint.answers import AnswerError, Collector
from crowdperf.harness.backends.endpoint.request_body import CHAT, TOKENS, Form
from crowdperf.harness.backends.endpoint.token_count import (
    count_of,
    counted,
    has_special,
    require_length,
    require_text,
    unsent,
)
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.text.engine import Prompt
from crowdperf.harness.text.tokenizer import Tokenizer
from crowdperf.rules.record import Sampling


def probe_error(asked: str, found: str, hint: str) -> HarnessError:
    """Return the error of a probe: the request, the response, the suggested fix."""
    return HarnessError(f"the endpoint cannot be used: request {asked}: {found}", hint)


def check_answer(
    answer: Collector, form: Form, prompt: Prompt, vocabulary: Tokenizer | None, names: Collection[str]
) -> list[str]:
    """Return notes on the first answer. Raises HarnessError if model, tokens or counts are not the requested ones."""
    if answer.model is not None and not any(answer.model == one or answer.model.startswith(f"{one}-") for one in names):
        raise probe_error(
            f"for the model {form.model!r}", f"the server answered as {answer.model!r}",
            f"check which model the server runs. To measure that model: {model_word(answer.model)}",
        )  # fmt: skip
    if answer.skipped:
        raise probe_error(
            "for a stream of events", f"{answer.skipped} pieces of the answer could not be read",
            "check the server's response: curl -N URL/completions",
        )  # fmt: skip
    if not answer.pieces and not answer.ids:
        found, hint = "the answer has no text and no token", "check that the server has loaded the benchmark's model"
        if hidden := unsent(answer):
            found = f"the answer has no text, and its {hidden} tokens of reasoning are not sent"
            hint = "switch reasoning off in the server, or let it send the text of its reasoning"
        raise probe_error(f"for up to {form.max_tokens} tokens", found, hint)
    notes = _check_prompt(answer, form, prompt, vocabulary)
    _check_count(answer, form, vocabulary)
    return notes


def _check_prompt(answer: Collector, form: Form, prompt: Prompt, vocabulary: Tokenizer | None) -> list[str]:
    """Compare the prompt's tokens, and its text, with the server's count and the tokenizer."""
    notes = []
    if vocabulary is not None and prompt.tokens is not None and form.prompt == TOKENS and prompt.text is not None:
        made = vocabulary.encode(prompt.text, with_special=False)
        if len(made) != len(prompt.tokens) and abs(len(made) - len(prompt.tokens)) > 1:  # a start token may be missing
            notes.append(
                f"the text of a prompt is {len(made)} tokens with the run's tokenizer, its tokens are "
                f"{len(prompt.tokens)}"
            )
    counted = answer.usage.prompt_tokens
    if counted is None:
        return [*notes, "the server does not report the number of prompt tokens (usage.prompt_tokens)"]
    if prompt.tokens is None or counted == len(prompt.tokens):
        return notes
    why = {
        TOKENS: "it adds a start token, or drops part of the prompt",
        CHAT: "its chat template is not the benchmark's",
    }.get(form.prompt, "its tokenizer is not the benchmark's, or it adds a start token")
    raise probe_error(
        f"with a prompt of {len(prompt.tokens)} tokens, sent as {form.prompt}",
        f"the server counts {counted} (usage.prompt_tokens): {why}",
        "serve the benchmark's own model folder, with its tokenizer and chat template",
    )


def _check_count(answer: Collector, form: Form, vocabulary: Tokenizer | None) -> None:
    """Check the number of tokens that came, and that they mean the text that came with them."""
    said, text = answer.usage.completion_tokens, answer.text()
    count = len(answer.ids) or answer.pieces
    if said is not None and said > form.max_tokens:
        raise probe_error(
            f"for at most {form.max_tokens} tokens", f"the server made {said}",
            "use a server that keeps to max_tokens",
        )  # fmt: skip
    if answer.ids and said is not None and len(answer.ids) != said:
        raise probe_error(
            f"for {form.max_tokens} tokens", f"the server reports {said} tokens, its stream has {count}",
            "check the server's log, or update the server",
        )  # fmt: skip
    try:
        tokens = len(answer.ids) or count_of(answer)
        if vocabulary is not None:
            require_text(answer.ids, "" if answer.has_reasoning else text, vocabulary)
            tokens = len(answer.ids) or len(vocabulary.encode(text, with_special=False))
        made = counted(answer, tokens).tokens + unsent(answer)
        require_length(answer.ending(needs_done=False), made, form.max_tokens)
    except AnswerError as error:
        hint = "check the server's limit on tokens, and its usage.completion_tokens"
        if vocabulary is not None:
            hint = "serve the benchmark's own model folder with its tokenizer, for your own prompts omit --tokenizer"
        raise probe_error("for tokens and their text", str(error), hint) from None


def require_counter(answer: Collector, vocabulary: Tokenizer | None, *, is_server_believed: bool) -> None:
    """Raise HarnessError for an answer whose tokens cannot be counted. is_server_believed: the server's own count is
    enough, as for prompts of the user."""
    if answer.ids or vocabulary is not None or (is_server_believed and answer.usage.completion_tokens is not None):
        return
    if is_server_believed:
        raise probe_error(
            "for the number of output tokens", "the server returns only text, without usage.completion_tokens",
            "use a server that reports the usage of a request",
        )  # fmt: skip
    raise probe_error(
        "for token ids (return_token_ids)", "the server returns only text, and the model has no tokenizer.json",
        "pass the model's folder with its tokenizer, so that tokens can be counted",
    )  # fmt: skip


def check_special(answer: Collector, vocabulary: Tokenizer | None) -> None:
    """Raise HarnessError for an answer that has text alone and lost its special tokens, which the benchmark's scorer
    reads."""
    if not answer.ids and vocabulary is not None and not has_special(answer.text(), vocabulary):
        raise probe_error(
            "for text with its special tokens (skip_special_tokens false)",
            f"the server omits them from {answer.text()!r}, and returns no token ids (return_token_ids)",
            "the benchmark's score needs them: use a server that returns token ids, such as vLLM's",
        )  # fmt: skip


def repeat_notes(first: Collector, again: Collector, sampling: Sampling) -> list[str]:
    """Return doubts about the second answer to the same prompt."""
    notes = []
    is_same = first.ids == again.ids and first.text() == again.text()
    if sampling.temperature == 0 and not is_same:
        notes.append("the server gave two different answers to the same prompt, although greedy decoding was requested")
    if again.usage.cached_tokens:
        notes.append(
            f"the server reused {again.usage.cached_tokens} tokens of an earlier prompt. MLPerf does not allow that "
            "across queries: start it without prefix caching (vLLM: --no-enable-prefix-caching, "
            "SGLang: --disable-radix-cache)"
        )
    return notes


def answer_notes(answer: Collector, most: int, is_streamed: bool) -> list[str]:
    """Return doubts about the form of an answer."""
    notes = []
    tokens = answer.usage.completion_tokens or len(answer.ids)
    if is_streamed and answer.pieces == 1 and most > 2 and tokens > 2:
        notes.append(
            f"the server sent {tokens} tokens in one piece: the first token cannot be distinguished from the last one"
        )
    if answer.usage.completion_tokens is None:
        notes.append("the server does not report the number of output tokens (usage.completion_tokens): unchecked")
    if answer.has_reasoning:
        notes.append(
            "the server splits thoughts from the answer. They are counted, but the marks between them are lost: "
            "start it without a reasoning parser"
        )
    if hidden := unsent(answer):
        notes.append(
            f"the server does not send {hidden} of its {answer.usage.completion_tokens} tokens (thoughts, "
            "usage.completion_tokens_details.reasoning_tokens): they do not count, and the first token comes after them"
        )
    if not answer.is_done:
        notes.append(
            "the server's streams end without data: [DONE]: only finish_reason shows that an answer is complete"
        )
    return notes


def length_notes(most: object, needed: int) -> list[str]:
    """Return doubts about the length that a server accepts (`max_model_len` of vLLM and SGLang), in tokens."""
    if type(most) is not int or not 0 < most < needed:
        return []
    return [f"the server accepts {most:,} tokens of prompt and answer (max_model_len), the longest may need {needed:,}"]
