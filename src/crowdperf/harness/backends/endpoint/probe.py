"""Sends a few requests to the server before a run, so that problems are reported before and not after it.

The probe finds the models, the accepted form of prompt and fields, and whether the server streams, keeps to max_tokens,
counts the prompt's tokens as the benchmark does, has its tokenizer, and repeats its answers. A problem that makes a run
worthless is a HarnessError, and one that makes it doubtful is a note.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crowdperf.call.model_server import (
    KIND_HINT,
    MODELS,
    NO_LIST,
    START_HINT,
    ServerProblem,
    certificate_words,
    choose_model,
    listed_models,
    refusal_hint,
)
from crowdperf.harness.backends.endpoint.address import Address
from crowdperf.harness.backends.endpoint.answers import Collector, LateAnswer
from crowdperf.harness.backends.endpoint.checks import (
    answer_notes,
    check_answer,
    check_special,
    length_notes,
    probe_error,
    repeat_notes,
    require_counter,
)
from crowdperf.harness.backends.endpoint.client import STREAM, Call, Client
from crowdperf.harness.backends.endpoint.exchange import Reading
from crowdperf.harness.backends.endpoint.faults import (
    FAULTS,
    NoConnection,
    Refused,
    certificate_error,
    is_about_streaming,
    words,
)
from crowdperf.harness.backends.endpoint.request_body import (
    CHAT,
    PATHS,
    TEMPERATURE,
    TEXT,
    BodyMaker,
    Field,
    Form,
    fields_of,
    forms_of,
    named_in,
)
from crowdperf.harness.backends.endpoint.retries import patiently
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.text.engine import Prompt
from crowdperf.harness.text.request import Endpoint
from crowdperf.harness.text.tokenizer import Tokenizer
from crowdperf.kit.server_address import call_url
from crowdperf.rules.prompt_settings import WITH_MESSAGES
from crowdperf.rules.record import Sampling

TOKENS_OF_A_PROBE = 8
LONGEST_PROBE_S = 300.0
_LIST_S = 30.0
NOT_STREAMED = "the server does not stream: only whole answers were measured, without first-token times"
OWN_TEMPERATURE = "the server refuses a temperature: answers were drawn at its default, so their texts and lengths vary"
OTHER_TYPE = "the server sends its streams as {} instead of " + STREAM + ": they were recognized by their first line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The input of a probe. vocabulary: None if the model's folder has no tokenizer. longest_prompt: in tokens.
    needs_first: whether first tokens are measured. Otherwise whole answers suffice if the server cannot stream.
    is_server_believed: the prompts are the user's own or generated: the server counts tokens without a tokenizer, and
    may choose its temperature. is_streamed: streams are preferred to whole
    answers even so.
    """

    endpoint: Endpoint
    sampling: Sampling
    prompt: Prompt
    vocabulary: Tokenizer | None
    longest_prompt: int
    needs_first: bool = True
    is_server_believed: bool = False
    is_streamed: bool = False

    def fields(self, form: str) -> tuple[Field, ...]:
        """Return the fields of requests in a form."""
        return fields_of(self.sampling, form, is_own=self.is_server_believed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """The findings of a probe. form: how requests are written, with the accepted fields. refused: the others. first:
    the first answer, which the others must resemble. has_one_id: whether all pieces of an answer had its id. server:
    its name and version if it reports them."""

    form: Form
    refused: tuple[Field, ...]
    first: Collector
    has_one_id: bool
    server: str = ""
    notes: tuple[str, ...] = field(default_factory=tuple)

    def reading(self, vocabulary: Tokenizer | None) -> Reading:
        """Return how the answers of the run are read."""
        return Reading(
            vocabulary=vocabulary,
            has_ids=bool(self.first.ids),
            has_usage=self.first.usage.completion_tokens is not None,
            has_one_id=self.has_one_id,
            ends_with_done=self.first.is_done,
            model=self.first.model,
            is_streamed=self.form.is_streamed,
        )


def hint_for(error: BaseException, address: Address, variable: str | None) -> str:
    """Return what to try next after an error."""
    if is_about_streaming(error):
        return (
            "switch streaming on in the server, and in a gateway before it: first tokens cannot be seen without it. "
            "--scenario=Offline does not need them"
        )
    if isinstance(error, Refused):
        return refusal_hint(error.status, address.url, variable, error.location)
    if isinstance(error, LateAnswer):
        return "the server is slow, or stuck: check its log. --request_timeout_s=SECONDS gives an answer more time"
    if (untrusted := certificate_error(error)) is not None:
        return certificate_words(untrusted, address.shown_host)[1]
    if isinstance(error, NoConnection):
        return START_HINT.format(call_url(address.shown_url, MODELS))
    return KIND_HINT


async def _models(client: Client, endpoint: Endpoint) -> list[dict[str, Any]] | None:
    """Return the models that the server lists, or None if it has no list."""
    try:
        listed = await patiently(lambda: client.get_json(MODELS, min(_LIST_S, client.timeout_s)))
    except FAULTS as error:
        if isinstance(error, Refused) and error.status in NO_LIST and endpoint.model is not None:
            return None
        raise probe_error("for the models (GET /models)", words(error, client.address),
                      hint_for(error, client.address, endpoint.key_variable)) from None  # fmt: skip
    return listed_models(listed)


def _is_fault_of_form(error: BaseException) -> bool:
    return isinstance(error, Refused) and error.status in (400, 404, 405, 415, 422, 501)


class Prober:
    """One probe of a server, in the loop of its client."""

    def __init__(self, client: Client, question: Question) -> None:
        self._client = client
        self._question = question
        self._timeout_s = min(client.timeout_s, LONGEST_PROBE_S)
        self._most = min(TOKENS_OF_A_PROBE, question.sampling.max_tokens)

    async def probe(self) -> Probed:
        """Return the findings. Raises HarnessError with the problem."""
        plain = self._client.address.plain
        try:
            return await self._probe()
        except (HarnessError, ServerProblem) as error:
            raise HarnessError(plain(str(error)), plain(error.hint)) from None

    async def _probe(self) -> Probed:
        endpoint, question = self._question.endpoint, self._question
        entries = await _models(self._client, endpoint)
        model = choose_model(entries, endpoint.model)
        form, first = await self._first_form(model)
        require_counter(first, question.vocabulary, is_server_believed=question.is_server_believed)
        names = self._card(entries, model)
        notes = check_answer(first, form, question.prompt, question.vocabulary, names)
        if question.sampling.keeps_special:
            check_special(first, question.vocabulary)
        notes += [] if form.is_streamed else [NOT_STREAMED]
        if self._client.stream_type != STREAM:
            notes.append(OTHER_TYPE.format(self._client.stream_type))
        used, again = await self._whole(form, first, names) or (form, await self._again(form))
        shown = first if used is form else again
        notes += answer_notes(shown, self._most, used.is_streamed)
        card = next((one for one in entries or () if one["id"] == model), {})
        notes += length_notes(card.get("max_model_len"), question.longest_prompt + question.sampling.max_tokens)
        whole = replace(used, max_tokens=question.sampling.max_tokens)
        taken = {one.name for one in used.sent_fields}
        wanted = replace(used, fields=question.fields(used.prompt)).sent_fields
        refused = tuple(one for one in wanted if one.name not in taken)
        notes += [OWN_TEMPERATURE] if TEMPERATURE not in taken else repeat_notes(first, again, question.sampling)
        return Probed(
            form=whole,
            refused=refused,
            first=shown,
            has_one_id=not (first.has_other_ids or again.has_other_ids),
            server=self._client.address.shown(await self._server(entries)),
            notes=tuple(notes),
        )

    async def _first_form(self, model: str) -> tuple[Form, Collector]:
        """Return the first form of a request that the server accepts, and its answer."""
        endpoint, prompt = self._question.endpoint, self._question.prompt
        forms = forms_of(prompt, endpoint.api)
        if not forms:
            raise HarnessError(
                f"the benchmark gives no {'messages' if endpoint.api == CHAT else 'tokens or text'}, which "
                f"--endpoint_api={endpoint.api} needs",
                f"omit --endpoint_api. {WITH_MESSAGES}",
            )
        error: BaseException | None = None
        for kind in forms:
            fields = self._question.fields(kind)
            form = Form(prompt=kind, model=model, fields=fields, max_tokens=self._most)
            try:
                return await self._with_start_token(*await self._streamed_or_whole(form))
            except FAULTS as caught:
                error = caught
                if not _is_fault_of_form(caught):
                    break
        assert error is not None
        address = self._client.address
        asked = f"for {self._most} tokens of the model {model!r} (POST {PATHS[kind]}, prompt as {kind})"
        hint = hint_for(error, address, endpoint.key_variable)
        if prompt.messages is None and isinstance(error, Refused) and error.status in NO_LIST:
            hint = f"use a server with /completions. {WITH_MESSAGES}"
        raise probe_error(asked, words(error, address), hint) from None

    async def _streamed_or_whole(self, form: Form) -> tuple[Form, Collector]:
        """Return the form and the answer as a stream, or whole if no first tokens are measured. A whole answer must
        have the number of tokens that the server made."""
        try:
            return await self._accepted(form)
        except FAULTS as error:
            if self._question.needs_first or not is_about_streaming(error):
                raise
        form, answer = await self._accepted(replace(form, is_streamed=False))
        if answer.usage.completion_tokens is None:
            raise probe_error(
                "for an answer without streaming", "it has no usage.completion_tokens, so its tokens cannot be checked",
                "switch streaming on in the server, or use one that counts tokens",
            )  # fmt: skip
        return form, answer

    async def _whole(self, form: Form, first: Collector, names: set[str]) -> tuple[Form, Collector] | None:
        """Return the form of whole answers and one of them, if no first tokens are measured and the server counts
        tokens in them as in a stream; None otherwise. A stream costs the client up to 100 times more CPU time."""
        question = self._question
        if question.needs_first or question.is_streamed or not form.is_streamed:
            return None
        whole = replace(form, is_streamed=False)
        try:
            answer = await self._ask(whole)
            check_answer(answer, whole, question.prompt, question.vocabulary, names)
            if question.sampling.keeps_special:
                check_special(answer, question.vocabulary)
        except (*FAULTS, HarnessError):
            return None
        is_counted = answer.usage.completion_tokens is not None and bool(answer.ids) == bool(first.ids)
        return (whole, answer) if is_counted else None

    async def _accepted(self, form: Form) -> tuple[Form, Collector]:
        """Return the form with the fields that the server accepts, and its answer. Raises the error of the last
        request, or HarnessError if a field that the benchmark needs is refused."""
        for _ in range(len(form.fields) + 2):
            try:
                return form, await self._ask(form)
            except Refused as error:
                if error.status not in (400, 422):
                    raise
                if form.limit == "max_tokens" and "max_completion_tokens" in error.text:
                    form = replace(form, limit="max_completion_tokens")
                    continue
                named = named_in(error.text, form.fields)
                spare = tuple(one for one in named if not one.is_needed)  # some servers repeat the whole request
                if not named:
                    return await self._grown(form, error)
                if not spare:
                    raise self._needed(named, error) from None
                form = replace(form, fields=tuple(one for one in form.fields if one not in spare))
        raise AssertionError("each round leaves a field out")

    async def _with_start_token(self, form: Form, answer: Collector) -> tuple[Form, Collector]:
        """Return the form, and its answer, in which the server counts the tokens of a text as the benchmark does:
        with or without the server's own start token."""
        tokens = self._question.prompt.tokens
        if form.prompt != TEXT or tokens is None or answer.usage.prompt_tokens in (None, len(tokens)):
            return form, answer
        other = replace(form, fields=tuple(one for one in form.fields if one.name != "add_special_tokens"))
        found = await self._ask(other)
        return (other, found) if found.usage.prompt_tokens == len(tokens) else (form, answer)

    def _needed(self, named: Sequence[Field], error: Refused) -> HarnessError:
        return probe_error(
            f"with the benchmark's {', '.join(one.name for one in named)}",
            words(error, self._client.address),
            "the benchmark needs this setting: use a server that accepts it",
        )

    async def _grown(self, form: Form, error: Refused) -> tuple[Form, Collector]:
        """Return the form with each optional field tried one by one, if the server does not report which one it
        refuses."""
        fewest = replace(form, fields=tuple(one for one in form.fields if one.is_needed))
        if len(fewest.fields) == len(form.fields):
            raise error
        found, answer = fewest, await self._ask(fewest)
        for one in form.fields:
            if one.is_needed:
                continue
            wider = replace(found, fields=(*found.fields, one))
            try:
                found, answer = wider, await self._ask(wider)
            except Refused as refused:
                if refused.status not in (400, 422):
                    raise
        return found, answer

    async def _ask(self, form: Form) -> Collector:
        """Return the answer to the prompt, whole and not an error."""
        return await patiently(lambda: self._answer(form))

    async def _answer(self, form: Form) -> Collector:
        collector = Collector(most_tokens=self._most)
        body = BodyMaker(form).make(self._question.prompt)
        await self._client.ask(
            Call(
                path=form.path, body=body, collector=collector, first=lambda: None, last=lambda _: None,
                timeout_s=self._timeout_s, is_streamed=form.is_streamed,
            )
        )  # fmt: skip
        collector.ending(needs_done=False)
        return collector

    async def _again(self, form: Form) -> Collector:
        """Return the answer to the same prompt once more. Raises HarnessError if there is none."""
        try:
            return await self._ask(form)
        except FAULTS as error:
            address = self._client.address
            found = words(error, address)
            raise probe_error("the same prompt again", found, hint_for(error, address, None)) from None

    @staticmethod
    def _card(entries: Sequence[dict[str, Any]] | None, model: str) -> set[str]:
        """Return the names under which the server may answer for a model."""
        cards = [one for one in entries or () if one["id"] == model or model in (one.get("aliases") or ())]
        other = {str(one[key]) for one in cards for key in ("id", "root", "parent") if one.get(key)}
        return {model, *other, *(str(alias) for one in cards for alias in one.get("aliases") or ())}

    async def _server(self, entries: Sequence[dict[str, Any]] | None) -> str:
        """Return the server's own name and version, as far as it says them."""
        owner = next((str(one["owned_by"]) for one in entries or () if one.get("owned_by")), "")
        try:
            answer = await self._client.get_json(f"{self._client.address.root}/version", 5.0)
        except FAULTS:
            return owner
        version = answer.get("version") if isinstance(answer, dict) else None
        return f"{owner} {version}".strip() if isinstance(version, str) else owner


def default_prompt(vocabulary: Tokenizer | None, api: str | None) -> Prompt:
    """Return the prompt for the probe if the data set gives none."""
    text = "The capital of France is"
    tokens = None
    if vocabulary is not None and api != CHAT:  # a chat template adds some
        tokens = np.array(vocabulary.encode(text, with_special=False), dtype=np.int32)
    return Prompt(tokens=tokens, text=text, messages=({"role": "user", "content": text},))
