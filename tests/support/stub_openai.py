"""A small server with OpenAI's API on 127.0.0.1, for tests and benchmarks: it answers at once, or badly on purpose.

The first part of a URL's path says how it behaves: `http://127.0.0.1:PORT/stall,after=2/v1` answers two requests for
text well and stops in the middle of the third. Flags and numbers, by comma:

    after=N       behaves badly from request N on (0 is the first), of those to this path; times=N: so many times
    ids=0, notext gives no token ids, or no text    strict     refuses fields it does not know, naming them
    vague         the same, naming none         nocompletions, nochat, nomodels   has no such call
    textonly      takes no token ids            status=S   answers with it; retry_after=T
    die, stall, empty, garbage, noise, error, endless, line, nodone, gzip, json, redirect, other     see `_Answer`
    few=N         says that it made N tokens more than came      many=N   sends N tokens more than asked for
    start         adds a start token to texts, where it is not told not to
    whole, nostream   answers whole whatever is asked for; refuses to stream; nousage: then without counts
    warm          takes no temperature but its own
    always        streams whatever is asked for
    type=T        streams of another content type
    split         every byte of a stream apart  bos        counts one more token in the prompt
    max_model_len=N   the length that it takes
    random        never answers the same        cached     says that it took the prompt from a cache
    filter, ping  begins with an event without a model and choices, or of another name; alien: all have another name
    open          sends comments for ever behind [DONE]
    stale         closes each connection when the next request arrives on it
    once          closes each connection after its answer, without saying so
    metrics=vllm, metrics=hang      has .../metrics as vLLM has, or never answers there
    ttft_ms=T, tpot_ms=T    the pace            tokens=N   length of answers, where it is not max_tokens
    odd=NAME+NAME           an odd but whole stream: odd_answers.py

GET .../v1/ttft gives how long each request since the last such question waited for its first token here, in s.

A token is a word: `word(id)`; the answer's tokens follow from the prompt's. As a program it prints its URL, and ends
after --seconds, or when its standard input is closed.
"""

import argparse
import asyncio
import gzip
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import odd_answers

MODEL = "stub-8b"
WORDS = 500
_SPECIAL = {3: "日本", 4: "naïve", 5: "😀", 6: "ß"}
_KNOWN = {
    "model", "prompt", "messages", "stream", "stream_options", "max_tokens", "temperature", "top_p", "seed", "top_k",
    "min_tokens", "ignore_eos",
}  # fmt: skip


def word(token: int) -> str:
    """The text of a token."""
    return _SPECIAL.get(token, f"w{token}")


def write_tokenizer(folder: Path) -> Path:
    """Write a tokenizer.json whose tokens are the stub's words; returns the folder."""
    vocabulary = {word(token): token for token in range(WORDS)}
    content = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "w0"},
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(content))
    return folder


def answer_tokens(prompt: list[int], count: int) -> list[int]:
    """The tokens of the answer to a prompt."""
    start = sum(prompt) * 31 + len(prompt)
    return [(start + 7 * place) % WORDS for place in range(count)]


@dataclass
class Ask:
    """One request for text, and how to behave."""

    flags: dict[str, str]
    body: dict[str, Any]
    is_chat: bool
    writer: asyncio.StreamWriter

    @property
    def prompt(self) -> list[int]:
        text = " ".join(one["content"] for one in self.body["messages"]) if self.is_chat else self.body["prompt"]
        if isinstance(text, list):
            return text
        known = {word(token): token for token in range(WORDS)}
        return [known.get(part, 0) for part in text.split()]

    def is_set(self, name: str) -> bool:
        return name in self.flags

    def number(self, name: str, otherwise: float = 0.0) -> float:
        return float(self.flags[name]) if self.flags.get(name) else otherwise


def flags_of(part: str) -> dict[str, str]:
    return {name: value for name, _, value in (one.partition("=") for one in part.split(",") if one)}


class Stub:
    """seen: bodies of the requests for text, the latest 1,000; headers, query: of the latest request. pages:
    of metrics that were requested."""

    def __init__(self, keep: bool = True) -> None:
        self.seen: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.query = ""
        self.asked: Counter[str] = Counter()
        self.connections = 0
        self.open_now = self.open_peak = 0
        self.ttfts_s: list[float] = []
        self.pages = 0
        self.keep = keep

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_now += 1
        self.open_peak = max(self.open_peak, self.open_now)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.open_now -= 1
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        start = await reader.readexactly(1)
        if start == b"\x16":  # TLS
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return False
        head = (start + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        path, _, query = path.partition("?")
        self.headers, self.query = (headers, query) if self.keep else ({}, "")
        part, _, call = path.partition("/v1") if "/v1" in path else path.rpartition("/")
        part = part.strip("/")
        flags = flags_of(part)
        if method == "GET":
            await self._get(call, flags, writer)
            return True
        number = self.asked[part]
        self.asked[part] += 1
        if not 0 <= number - float(flags.get("after") or 0) < float(flags.get("times") or "inf"):
            kept = ("ids", "ttft_ms", "tpot_ms", "tokens", "notext")
            flags = {name: value for name, value in flags.items() if name in kept}
        body = json.loads(raw)
        if self.keep and len(self.seen) < 1000:
            self.seen.append(body)
        stays = await self._post(call, Ask(flags, body, call.startswith("/chat"), writer))
        if "stale" in flags:
            await reader.read(1)
            return False
        return stays

    async def _get(self, call: str, flags: dict[str, str], writer: asyncio.StreamWriter) -> None:
        if "noise" in flags and "after" not in flags:
            writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
            return
        if call in ("metrics", "version") and "metrics" in flags:
            self.pages += call == "metrics"
            if flags["metrics"] == "hang":
                await asyncio.sleep(60)
            _respond(writer, 200, self._metrics() if call == "metrics" else b'{"version": "9.9", "api_key": "secret"}')
            return
        status = int(flags.get("status") or 200) if "after" not in flags else 200
        if call == "/ttft":
            found, self.ttfts_s = self.ttfts_s, []
            _respond(writer, 200, json.dumps(found).encode())
            return
        if call != "/models" or "nomodels" in flags:
            status = 404
        names = [MODEL] if "models" not in flags else flags["models"].split("+")
        card = {"object": "model", "owned_by": "stub"}
        if "max_model_len" in flags:
            card["max_model_len"] = int(flags["max_model_len"])
        content = {"object": "list", "data": [{"id": name, **card} for name in names]}
        if status != 200:
            content = {"error": {"message": f"no: {self.headers.get('authorization', '')}", "code": status}}
        if "redirect" in flags and "after" not in flags:
            _respond(writer, 307, b"", {"Location": "http://user:secret@127.0.0.1:1/v1/models?token=secret"})
            return
        _respond(writer, status, json.dumps(content).encode())

    def _metrics(self) -> bytes:
        """A page as vLLM has it."""
        answers = sum(self.asked.values())
        rows = (("kv_cache_usage_perc", 0.25), ("num_requests_running", 2), ("num_requests_waiting", 1),
                ("num_preemptions_total", answers), ("prefix_cache_queries_total", 4 * answers),
                ("prefix_cache_hits_total", 3 * answers))  # fmt: skip
        lines = [f'vllm:{name}{{engine="0",model_name="{MODEL}"}} {value}' for name, value in rows]
        config = 'vllm:cache_config_info{block_size="16",cache_dtype="auto",host="secret"} 1.0'
        return "\n".join(("# HELP", *lines, config, "")).encode()

    async def _post(self, call: str, ask: Ask) -> bool:
        refusal = self._refusal(call, ask)
        if refusal is not None:
            status, message = refusal
            headers = {"Retry-After": ask.flags["retry_after"]} if ask.is_set("retry_after") else {}
            _respond(ask.writer, status, json.dumps({"error": {"message": message, "code": status}}).encode(), headers)
            return True
        if ask.is_set("redirect"):
            _respond(ask.writer, 308, b"", {"Location": "https://elsewhere.example/v1/completions"})
            return True
        if ask.is_set("noise"):
            ask.writer.write(b"\x00\x01 this is not HTTP\r\n\r\n")
            return False
        answer = _Answer(ask)
        stays = await answer.send()
        self.ttfts_s.append(answer.ttft_s)
        return stays

    def _refusal(self, call: str, ask: Ask) -> tuple[int, str] | None:
        if ("nocompletions" in ask.flags and not ask.is_chat) or ("nochat" in ask.flags and ask.is_chat):
            return 404, "Not Found"
        if ask.is_set("status"):
            return int(ask.flags["status"]), f"refused {self.headers.get('authorization', '')}"
        if ask.body.get("model") not in (MODEL, *ask.flags.get("models", "").split("+")):
            return 404, f"The model `{ask.body.get('model')}` does not exist."
        if ask.is_set("textonly") and isinstance(ask.body.get("prompt"), list):
            return 400, "prompt must be a string"
        if ask.is_set("nostream") and ask.body.get("stream"):
            return 400, "streaming is not supported by this deployment"
        if ask.body.get("stream_options") and not ask.body.get("stream"):
            return 400, "stream_options needs stream to be true"
        if ask.is_set("warm") and "temperature" in ask.body:
            return 400, "Unsupported value: 'temperature' does not support 0.0 with this model."
        unknown = sorted(set(ask.body) - _KNOWN)
        if unknown and ask.is_set("strict"):
            return 400, f"Extra inputs are not permitted: {unknown[0]}"
        if unknown and ask.is_set("vague"):
            return 422, "bad request"
        return None


def _respond(writer: asyncio.StreamWriter, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)


class _Answer:
    """One streamed answer, in chunks of HTTP."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.model = "another-70b" if ask.is_set("other") else str(ask.body["model"])
        self._start_s = time.perf_counter()
        self.ttft_s = 0.0
        self.most = int(ask.body.get("max_tokens") or ask.body.get("max_completion_tokens") or 16)

    async def send(self) -> bool:
        """Send it; returns whether the connection stays open."""
        ask = self.ask
        if ask.is_set("json"):
            _respond(ask.writer, 200, json.dumps({"choices": [{"text": " w1"}]}).encode())
            return True
        is_whole = ask.is_set("whole")
        if is_whole and ask.is_set("ttft_ms"):
            await asyncio.sleep(ask.number("ttft_ms") / 1e3)
        if is_whole or (ask.body.get("stream") is False and not ask.is_set("always")):
            self._whole()
            return True
        coding = "Content-Encoding: gzip\r\n" if ask.is_set("gzip") else ""
        kind = ask.flags.get("type", "text/event-stream")
        ask.writer.write(
            f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{coding}Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        special: dict[str, Callable[[], Awaitable[None]]] = {"gzip": self._bomb, "line": self._line}
        for name, send in special.items():
            if ask.is_set(name):
                await send()
                return False
        if ask.is_set("filter"):
            await self._event({"model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]})
        if ask.is_set("ping"):
            await self._raw(b'event: ping\ndata: {"type": "ping"}\n\n')
        if ask.is_set("ttft_ms"):
            await asyncio.sleep(ask.number("ttft_ms") / 1e3)
        if ask.is_set("odd"):
            await self._raw(odd_answers.body(self._said(), ask.flags["odd"].split("+")))
            ask.writer.write(b"0\r\n\r\n")
            return True
        if not ask.is_set("empty") and await self._tokens():
            return False
        if ask.is_set("endless"):
            return False
        await self._raw(b"" if ask.is_set("nodone") else b"data: [DONE]\n\n")
        for _ in range(100_000 if ask.is_set("open") else 0):
            await self._raw(b": ping\n\n")
            await asyncio.sleep(0.005)
        ask.writer.write(b"0\r\n\r\n")
        await ask.writer.drain()
        return not ask.is_set("once")

    def _whole(self) -> None:
        """Send the answer as one JSON object."""
        said = self._said()
        event = odd_answers.piece(said, said.tokens, finish="length" if len(said.tokens) == said.most else "stop")
        choice = event["choices"][0]
        if ask_chat := choice.pop("delta", None):
            choice["message"] = ask_chat
        counts = (
            {}
            if self.ask.is_set("nousage")
            else {
                "usage": {
                    "prompt_tokens": said.prompt_tokens,
                    "completion_tokens": len(said.tokens) + int(self.ask.number("few")),
                }
            }
        )
        _respond(self.ask.writer, 200, json.dumps({**event, **counts}).encode())

    def _said(self) -> odd_answers.Said:
        """What the answer is, for an odd stream of it."""
        ask = self.ask
        count = min(self.most, int(ask.number("tokens", self.most)))
        return odd_answers.Said(
            model=self.model, tokens=answer_tokens(ask.prompt, count), prompt_tokens=len(ask.prompt), most=self.most,
            word=word, has_ids=bool(ask.body.get("return_token_ids")) and ask.flags.get("ids") != "0",
            is_chat=ask.is_chat, keeps_special=ask.body.get("skip_special_tokens") is False,
        )  # fmt: skip

    async def _tokens(self) -> bool:
        """Send tokens and usage; returns whether the connection is to be cut."""
        ask = self.ask
        count = min(self.most, int(ask.number("tokens", self.most))) + int(ask.number("many"))
        tokens = answer_tokens(ask.prompt, count)
        if ask.is_set("random"):
            tokens = [random.randrange(WORDS) for _ in tokens]
        is_endless = ask.is_set("endless")
        for place, token in enumerate(tokens if not is_endless else _for_ever()):
            if place and ask.is_set("tpot_ms"):
                await asyncio.sleep(ask.number("tpot_ms") / 1e3)
            self.ttft_s = self.ttft_s or time.perf_counter() - self._start_s
            is_last = not is_endless and place == count - 1
            await self._event(self._piece(token, ("length" if count >= self.most else "stop") if is_last else None))
            if place == 2 and await self._turn_bad():
                return True
        added = ask.is_set("bos") or (ask.is_set("start") and ask.body.get("add_special_tokens") is not False)
        usage = {
            "prompt_tokens": len(ask.prompt) + added,
            "completion_tokens": count + int(ask.number("few")),
        }
        if ask.is_set("cached"):
            usage["prompt_tokens_details"] = {"cached_tokens": len(ask.prompt) - 1}  # type: ignore[assignment]
        if (ask.body.get("stream_options") or {}).get("include_usage"):
            await self._event({"model": self.model, "choices": [], "usage": usage})
        return False

    async def _turn_bad(self) -> bool:
        """Behave badly in the middle of an answer; returns whether the connection is to be cut."""
        ask = self.ask
        if ask.is_set("die"):
            await ask.writer.drain()
            ask.writer.transport.abort()
            return True
        if ask.is_set("stall"):
            await ask.writer.drain()
            await asyncio.sleep(60)
            return True
        if ask.is_set("garbage"):
            await self._raw(
                b'data: {"choices": [{"text": \n\ndata: {"choices": 7}\n\n\xff\xfe\x00rubbish\n\ndata: [1]\n\n'
            )
        if ask.is_set("error"):
            await self._event({"error": {"message": "out of memory", "code": 500}})
        return False

    def _piece(self, token: int, finish: str | None) -> dict[str, Any]:
        text = "" if self.ask.is_set("notext") else " " + word(token)
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
        choice |= {"delta": {"content": text}} if self.ask.is_chat else {"text": text}
        if self.ask.body.get("return_token_ids") and self.ask.flags.get("ids") != "0":
            choice["token_ids"] = [token]
        return {"id": "x", "object": "text_completion", "created": 1, "model": self.model, "choices": [choice]}

    async def _event(self, content: dict[str, Any]) -> None:
        name = b"event: delta\n" if self.ask.is_set("alien") else b""
        await self._raw(name + b"data: " + json.dumps(content, ensure_ascii=False).encode() + b"\n\n")

    async def _raw(self, data: bytes) -> None:
        writer = self.ask.writer
        if writer.transport.is_closing():
            raise ConnectionResetError("the client has gone")
        if self.ask.is_set("split"):
            for place in range(len(data)):
                writer.write(b"1\r\n" + data[place : place + 1] + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0)
            return
        if data:
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        if writer.transport.get_write_buffer_size() > 65536:
            await writer.drain()

    async def _bomb(self) -> None:
        await self._raw(gzip.compress(b"0" * 2_000_000))
        self.ask.writer.write(b"0\r\n\r\n")
        await self.ask.writer.drain()

    async def _line(self) -> None:
        for _ in range(10_000):
            await self._raw(b"data: " + b"x" * 60_000)


def _for_ever() -> Iterator[int]:
    while True:
        yield 7


@contextmanager
def running_stub(port: int = 0) -> Iterator[tuple[Stub, str]]:
    """A stub in a thread of this process, and its URL without a path."""
    stub, loop, ready = Stub(), asyncio.new_event_loop(), threading.Event()
    found: list[int] = []

    async def start() -> None:
        server = await asyncio.start_server(stub.serve, "127.0.0.1", port, backlog=1024)
        found.append(server.sockets[0].getsockname()[1])
        ready.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.create_task(start())
        loop.run_forever()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield stub, f"http://127.0.0.1:{found[0]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


async def _serve(seconds: float, port: int) -> None:
    stub = Stub(keep=False)
    server = await asyncio.start_server(stub.serve, "127.0.0.1", port, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    closed = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await asyncio.wait([asyncio.ensure_future(closed), asyncio.create_task(asyncio.sleep(seconds))],
                       return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
    server.close()


def main() -> None:
    """Serve until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    try:
        asyncio.run(asyncio.wait_for(_serve(arguments.seconds, arguments.port), arguments.seconds + 5))
    finally:
        sys.stdout.flush()
        import os

        os._exit(0)  # a thread may still wait for standard input


if __name__ == "__main__":
    main()
