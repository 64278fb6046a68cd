"""A table of servers that are odd, and what crowdperf makes of each: the right figure, or none and the reason.

Each row is a server on 127.0.0.1 (stub_openai.py) that is opened, probed and asked four prompts through TextSut, as a
run does it without LoadGen, whose place FakeLoadGen takes. As a program it prints the table in Markdown, which
docs/reference/odd-servers.md shows.
"""

import json
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from odd_answers import END, PAD, SPECIAL
from stub_openai import MODEL, running_stub, word, write_tokenizer

from crowdperf.harness.backends.endpoint.engine import open_engine
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.failures import Failures
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.responses import ResponseSink
from crowdperf.harness.runner.text_sut import PromptLibrary, TextSut, TextWork
from crowdperf.harness.text.engine import EngineRequest, Prompt
from crowdperf.harness.text.request import Endpoint, TextRequest
from crowdperf.rules.end_tokens import end_tokens, padding_token
from crowdperf.rules.record import Sampling

MOST, COUNT = 12, 4
RIGHT, REFUSED, INVALID = "right result", "refused before the run", "INVALID"


@dataclass(frozen=True)
class Odd:
    """A server. flags: of the stub; `after=9`: it turns odd behind the probe. outcome: RIGHT with `tokens` for each
    answer, else REFUSED or INVALID with the words of the reason. says: words of a note that stands beside the figure.
    api, sampling, model, timeout_s: of the request. is_offline: of a run that measures no first tokens."""

    name: str
    flags: str
    outcome: str = RIGHT
    words: str = ""
    tokens: int = MOST
    says: str = ""
    api: str | None = None
    sampling: Sampling = field(default_factory=lambda: Sampling(max_tokens=MOST))
    model: str | None = None
    timeout_s: float = 10.0
    is_offline: bool = False


TEXT = "ids=0,"
SPECIALS = Sampling(max_tokens=MOST, keeps_special=True)
IGNORED = Sampling(max_tokens=MOST, is_end_ignored=True)

STREAMS = (
    Odd("one event for each token, with token ids", "odd=plain"),
    Odd("text alone, with usage", TEXT + "odd=plain"),
    Odd("every byte in a separate packet", "split,odd=plain"),
    Odd("lines end with CR and LF", "odd=crlf"),
    Odd("lines end with CR alone", "odd=cr"),
    Odd("a byte order mark in front", "odd=bom"),
    Odd("no blank behind `data:`", "odd=no_blank"),
    Odd("comments between the events", "odd=comments"),
    Odd("ping events, first and in the middle", "odd=pings"),
    Odd("event, id and retry fields", "odd=fields"),
    Odd("an event in two data lines", "odd=lines"),
    Odd("an empty event in front", "odd=empty_data"),
    Odd("a first event without choices, with an empty model name", "odd=filter"),
    Odd("chat: a first event with a role and no text", "odd=role", api="chat"),
    Odd("chat: thoughts in reasoning_content", TEXT + "odd=thoughts", api="chat", says="thoughts"),
    Odd(
        "chat: thoughts that are counted and not sent",
        TEXT + "odd=kept_thoughts",
        api="chat",
        tokens=8,
        says="thoughts",
    ),
    Odd(
        "chat: thoughts that are not sent, and no text",
        "odd=thoughts_alone",
        REFUSED,
        "8 tokens of reasoning",
        api="chat",
    ),
    Odd("thoughts in the text, counted apart", TEXT + "odd=inline_thoughts"),
    Odd("chat: tool_calls is null", "odd=tool_null", api="chat"),
    Odd("unknown fields in each event", "odd=unknown"),
    Odd("events behind data: [DONE]", "odd=behind"),
    Odd("no data: [DONE] at all", "odd=no_done", says="[DONE]"),
    Odd("events as text/plain", "type=text/plain", says="text/plain"),
    Odd("connections that are closed after each answer", "once"),
    Odd("whole answers instead of a stream, Offline", "whole", says="does not stream", is_offline=True),
    Odd("whole answers, Offline, text alone", TEXT + "whole", says="does not stream", is_offline=True),
    Odd("chat: whole answers, Offline", "whole", says="does not stream", api="chat", is_offline=True),
    Odd("refuses to stream, Offline", "nostream", says="does not stream", is_offline=True),
    Odd("whole answers without usage, Offline", "whole,nousage", REFUSED, "usage.completion_tokens", is_offline=True),
    Odd("whole answers, usage is three too high, Offline", "whole,few=3", REFUSED, "made 11", is_offline=True),
    Odd("whole answers from the test on, Offline", "whole,after=9", is_offline=True),
    Odd("streams, and counts tokens in whole answers, Offline", "odd=plain", is_offline=True),
    Odd("streams, and counts no tokens in whole answers, Offline", "nousage", is_offline=True),
    Odd("streams whatever is requested, Offline", "always", is_offline=True),
    Odd(
        "streams whatever is requested from the test on, Offline",
        "always,after=9",
        INVALID,
        "is not a JSON object",
        is_offline=True,
    ),
    Odd("whole answers, first tokens are measured", "whole", REFUSED, "instead of a stream of events"),
    Odd("refuses to stream, first tokens are measured", "nostream", REFUSED, "streaming is not supported"),
)
COUNTS = (
    Odd("four tokens in one event", "odd=chunks"),
    Odd("four tokens in one event, text alone", TEXT + "odd=chunks"),
    Odd("all tokens in one event", "odd=once", INVALID, "arrived in one piece", says="in one piece"),
    Odd("usage in each event", "odd=usage_each"),
    Odd("usage is null until the end", "odd=usage_null"),
    Odd("no usage, token ids", "odd=no_usage", says="usage.completion_tokens"),
    Odd("no usage, text alone, one event for each token", TEXT + "odd=no_usage", says="usage.completion_tokens"),
    Odd("no usage, text alone, several tokens in an event", TEXT + "odd=chunks+no_usage", REFUSED, "2 pieces"),
    Odd(
        "no usage, text alone, several in an event from the test on",
        TEXT + "odd=chunks+no_usage,after=9",
        INVALID,
        "no usage.completion_tokens",
    ),
    Odd("usage is three too high", "odd=high", REFUSED, "the server made 11"),
    Odd("usage is three too low", "odd=low", REFUSED, "the server reports 5 tokens"),
    Odd("usage is three too high from the test on", "odd=high,after=9", INVALID, "reports 15 tokens"),
    Odd("usage is three too low from the test on", "odd=low,after=9", INVALID, "reports 9 tokens"),
    Odd("usage vanishes in the test", "odd=no_usage,after=9", INVALID, "no usage.completion_tokens"),
    Odd("text alone, another tokenizer: a word is four tokens", TEXT + "odd=wide", REFUSED, "another tokenizer"),
    Odd("the same from the test on", TEXT + "odd=wide,after=9", INVALID, "another tokenizer"),
    Odd("text alone, usage two lower: the lower number counts", TEXT + "odd=fewer_by_2", tokens=10),
    Odd("text alone, the end token is counted but no text", TEXT + "odd=silent_end", tokens=5),
    Odd("usage as a text", "odd=text_count", says="usage.completion_tokens"),
    Odd("usage below zero", "odd=negative", says="usage.completion_tokens"),
    Odd("usage of 10^12 tokens", "odd=huge", says="usage.completion_tokens"),
    Odd("cached_tokens of 4,300 digits", "odd=digits"),
    Odd("one more token in the prompt than was sent", "bos", REFUSED, "usage.prompt_tokens"),
    Odd("ids above the vocabulary", "odd=large_id", REFUSED, "the token id 2147483647"),
    Odd("ids above the vocabulary from the test on", "odd=large_id,after=9", INVALID, "the token id 2147483647"),
    Odd("ids that are not the text", "odd=other_text", REFUSED, "decodes the tokens as"),
    Odd("ids that are not the text from the test on", "odd=other_text,after=9", INVALID, "decodes the tokens as"),
    Odd("ids as texts", "odd=text_id", REFUSED, "could be read"),
    Odd("a second choice in the stream", "odd=two_choices"),
    Odd("pieces of two answers in one stream from the test on", "odd=mixed,after=9", INVALID, "two answers"),
    Odd("each event has its own id", "odd=own_ids"),
)
ENDS = (
    Odd("the end token is the last token", "odd=ends", tokens=6),
    Odd("padding behind the end token", "odd=padded", tokens=6),
    Odd("padding behind the end token, text alone", TEXT + "odd=padded", tokens=6),
    Odd("padding with the padding token, no end token", "odd=pad_token", tokens=5),
    Odd("goes on behind the end token", "odd=goes_on", tokens=6),
    Odd("the same where the benchmark ignores the end", "odd=goes_on", sampling=IGNORED),
    Odd("more tokens than max_tokens", "odd=many", REFUSED, "more than the 8 requested tokens"),
    Odd("more tokens than max_tokens from the test on", "odd=many,after=9", INVALID, "than the 12 requested tokens"),
    Odd("tokens without an end", "endless", REFUSED, "more than the 8 requested tokens"),
    Odd("finish_reason length after 3 tokens", "odd=early", REFUSED, "after 3 of the 8 requested tokens"),
    Odd("finish_reason length after 3 tokens from the test on", "odd=early,after=9", INVALID, "after 3 of the 12"),
    Odd("finish_reason eos_token", "odd=eos"),
    Odd("no finish_reason", "odd=no_finish", REFUSED, "without a finish_reason"),
    Odd("finish_reason content_filter from the test on", "odd=filtered,after=9", INVALID, "'content_filter'"),
    Odd("finish_reason tool_calls from the test on", "odd=tools,after=9", INVALID, "'tool_calls'"),
    Odd("an empty answer from the test on", "empty,after=9", INVALID, "empty stream"),
    Odd("the connection is cut in the middle", "die,after=9", INVALID, "ended the connection in the middle"),
    Odd("data: [DONE] is missing from the test on", "odd=no_done,after=9", INVALID, "without data: [DONE]"),
    Odd("special tokens are part of the text if requested", TEXT + "odd=special", sampling=SPECIALS),
    Odd("text alone that lost its special tokens", TEXT + "odd=special_lost", REFUSED, "its special tokens",
        sampling=SPECIALS),
    Odd("token ids, text that lost its special tokens", "odd=special_lost", sampling=SPECIALS),
)  # fmt: skip
ERRORS = (
    Odd("status 401", "status=401", REFUSED, "requires authentication (401)"),
    Odd("status 404", "status=404", REFUSED, "does not know this path or model (404)"),
    Odd("status 500 from the test on", "status=500,after=9", INVALID, "the server failed (500)"),
    Odd("status 429 three times, then answers", "status=429,retry_after=0,times=3,after=9"),
    Odd("status 429 for ever", "status=429,retry_after=30,after=9", INVALID, "limits the request rate (429)"),
    Odd("an error in the stream", "odd=error,after=9", INVALID, "engine out of memory"),
    Odd("events that are not JSON", "garbage,after=9", INVALID, "could not be read"),
    Odd("silence in the middle", "stall,after=9", INVALID, "its answer had begun", timeout_s=0.6),
    Odd("no HTTP", "noise", REFUSED, "does not speak HTTP"),
    Odd("a packed answer", "gzip", REFUSED, "packed its answer"),
    Odd("accepts only its own temperature", "warm", REFUSED, "temperature"),
    Odd("JSON instead of a stream", "json", REFUSED, "instead of a stream of events"),
    Odd("a redirect", "redirect", REFUSED, "redirects are not followed"),
    Odd("a line without an end", "line", REFUSED, "a line of the stream is longer"),
)
NAMES = (
    Odd("answers as another model", "other", REFUSED, "answered as 'another-70b'"),
    Odd("answers as another model from the test on", "other,after=9", INVALID, "another model"),
    Odd("answers as the dated model", "odd=dated"),
    Odd("answers as org/model", "odd=prefixed", REFUSED, f"answered as 'org/{MODEL}'"),
    Odd("no name in the answers", "odd=null_model"),
    Odd("two models, none requested by name", "models=a+b", REFUSED, "it serves 2 models: a, b"),
    Odd("no list of models, model given", "nomodels", model=MODEL),
    Odd("no list of models, none given", "nomodels", REFUSED, "does not know this path or model (404)"),
)
LIMITS = (
    Odd("refuses fields that it does not know", "strict"),
    Odd("refuses them without saying which", "vague"),
    Odd("accepts texts only", "textonly"),
    Odd("a context that is shorter than the longest prompt", "max_model_len=64", says="max_model_len"),
    Odd("a context of 4,300 digits", f"max_model_len={'9' * 4300}"),
    Odd("a context below zero", "max_model_len=-5"),
    Odd("an earlier prompt's keys and values", "cached", says="prefix caching"),
)
KINDS = {"Streams": STREAMS, "Counts": COUNTS, "Ends": ENDS, "Errors": ERRORS, "Names": NAMES, "Limits": LIMITS}


@dataclass(frozen=True)
class Outcome:
    """What became of a server. tokens: of each answer that counts; notes: what was said before the run."""

    outcome: str
    reason: str = ""
    tokens: tuple[int, ...] = ()
    notes: str = ""


def write_model(folder: Path) -> Path:
    """Write the stub's tokenizer with its special tokens, and the end token; returns the folder."""
    path = write_tokenizer(folder) / "tokenizer.json"
    content = json.loads(path.read_text())
    content["added_tokens"] = [
        {"id": token, "content": text, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False}
        for token, text in SPECIAL.items()
    ]  # fmt: skip
    path.write_text(json.dumps(content))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [END], "pad_token_id": PAD}))
    return folder


def _prompts(rows: Sequence[int]) -> list[Prompt]:
    made = []
    for row in rows:
        text = " ".join(map(word, (row, 2, 3)))
        messages = ({"role": "user", "content": text},)
        made.append(Prompt(tokens=np.array([row, 2, 3], np.int32), text=text, messages=messages))
    return made


class _FakeLoadGen:
    """Keeps the number of tokens of each answer, and waits for all of them."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.ended = threading.Semaphore(0)
        self.sink = ResponseSink(lambda *values: values, self._complete)  # type: ignore[arg-type]

    def _complete(self, responses: Sequence[Any]) -> None:
        for response in responses:
            self.tokens.append(response[3])
            self.ended.release()


def measured(url: str, folder: Path, odd: Odd) -> Outcome:
    """What crowdperf makes of one server; `url`: of the stub."""
    endpoint = Endpoint(url=f"{url}/{odd.flags}/v1", api=odd.api, model=odd.model)
    request = EngineRequest(
        facts=ModelFacts(folder=folder), sampling=odd.sampling, precision="fp32", device="cpu", threads=1, cores=(),
        text=TextRequest(endpoint=endpoint, timeout_s=odd.timeout_s), longest_prompt=100, folder=folder,
        probes=tuple(_prompts([0])), needs_first=not odd.is_offline,
    )  # fmt: skip
    try:
        engine = open_engine(request)
    except HarnessError as error:
        return Outcome(REFUSED, str(error))
    loadgen, library = _FakeLoadGen(), PromptLibrary(SimpleNamespace(count=COUNT, load=list), _prompts)
    library.load(range(COUNT))
    ends = () if odd.sampling.is_end_ignored else end_tokens(folder)
    work = TextWork(
        engine=engine, library=library, response_of=lambda answer: answer.tokens, sink=loadgen.sink,
        has_first=not odd.is_offline,
        ends=ends, padding=padding_token(folder) if ends else None, failures=Failures(grace_s=60.0),
    )  # fmt: skip
    try:
        sut = TextSut(work)
        engine.start(sut)
        # As many requests as the probe leaves until `after=9`, so that those that follow meet the odd server.
        for _ in range(9 if "after=9" in odd.flags else 0):
            sut.issue([0], [0])
            assert loadgen.ended.acquire(timeout=20.0)
        loadgen.tokens.clear()
        sut.issue(list(range(COUNT)), list(range(COUNT)))
        assert all(loadgen.ended.acquire(timeout=20.0) for _ in range(COUNT))
        record = engine.record()
        json.dumps(record)
    finally:
        engine.close()
        work.failures.settle()
    notes = "; ".join(map(str, record["notes"] or ()))  # type: ignore[union-attr]
    if problems := work.tally.problems(has_token_latencies=True):
        return Outcome(INVALID, "; ".join(problems), notes=notes)
    return Outcome(RIGHT, tokens=tuple(loadgen.tokens), notes=notes)


def table(rows: Sequence[tuple[str, Odd]]) -> list[str]:
    """The table in Markdown."""
    lines = ["| | server | outcome |", "|---|---|---|"]
    for kind, odd in rows:
        is_right = odd.outcome == RIGHT
        words = f": {odd.tokens} tokens per answer" if is_right else f": ... {odd.words} ..."
        note = f". Noted: ... {odd.says} ..." if odd.says else ""
        lines.append(f"| {kind} | {odd.name} | {odd.outcome}{words}{note} |")
    return lines


ROWS = [(kind, odd) for kind, odds in KINDS.items() for odd in odds]


def main() -> int:
    """Try every server, print the table; returns how many did not come out as it says."""
    wrong = 0
    with running_stub() as (_, url), tempfile.TemporaryDirectory() as folder:
        model = write_model(Path(folder))
        for _, odd in ROWS:
            found = measured(url, model, odd)
            if found.outcome != odd.outcome:
                wrong += 1
                print(f"{odd.name}: {found}", file=sys.stderr)
    print("\n".join(table(ROWS)))
    return wrong


if __name__ == "__main__":
    sys.exit(main())
