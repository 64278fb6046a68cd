"""Makes the bundle of a result, shows what is in it, asks, and sends it: the program behind share,mlperf,result.

    python -m crowdperf.store.share --result=FOLDER --collector=URL [--alias=NAME] [--dry_run] [--yes] [--public=A,B]
        [--with_events]
    python -m crowdperf.store.share --withdraw=ID --collector=URL

The collector's token comes in the variable CM_MLPERF_COLLECTOR_TOKEN: the token, or the file that holds it; that of a
collector which this user has started on this machine is known. The bundle
stays in FOLDER/share/, with the reason where it was not sent; the same line again sends it.
"""

import argparse
import io
import json
import os
import re
import sys
import textwrap
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

from crowdperf.endpoints.samples import SAMPLES
from crowdperf.kit.path_redaction import HOME, RESULT, KnownFolders
from crowdperf.kit.privacy import known_here
from crowdperf.kit.server_address import server_parts, without_login
from crowdperf.kit.user_paths import expanded, home_folder
from crowdperf.kit.whole_file import write_bytes_whole, write_whole
from crowdperf.rules.names import counted, printable
from crowdperf.store.archive import DEFAULT_LIMITS, Limits
from crowdperf.store.bundle import Bundle, NothingToShare, make_bundle, make_curve_bundle, read_bundle
from crowdperf.store.consistency import results_of_bundle
from crowdperf.store.keys import key_id_of
from crowdperf.store.local_tokens import known_token
from crowdperf.store.model import NewResult, Problem
from crowdperf.store.redaction import OF_CALL, Sender
from crowdperf.store.refusal import BundleRefused
from crowdperf.store.signatures import (
    KeyProblem,
    SigningKey,
    key_folder,
    read_or_make_key,
    sign_withdrawal,
    ssh_public_key,
)

TOKEN_VARIABLE = "CM_MLPERF_COLLECTOR_TOKEN"
ANSWER_FILE = "tmp-share.json"
REASON_FILE = "not-sent.txt"
_TIMEOUT_S = 60
_LONGEST_ANSWER = 1 << 20
_LONGEST_TOKEN = 4096
_CHANGED = "files that were changed after the run (rerun)"
_CONTRADICTS = (
    "see the rules in docs/reference/endpoints-rules.md. If the server uses another name for the model, rerun the "
    "command of the curve: its tree then has the name of --served_model"
)
_NOT_HERE = "check --collector: this is another server, or a collector that only shows results (--read_only)"
_HINTS = {
    401: "give the collector's token: --token=FILE",
    403: "the collector has blocked this key, or the result is another's",
    404: _NOT_HERE,
    405: _NOT_HERE,
    409: "another result with this run id was sent with this key. Start a new run, or withdraw the earlier result",
    410: "it was withdrawn. The result and its log cannot be sent again with any key: start a new run",
    413: "the collector only accepts smaller bundles",
    422: "the collector's rules: docs/howto/share-results.md",
    429: "wait a little, then rerun the command",
    503: "the collector cannot accept it now. Rerun the command later",
}
_UNDECIDED = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
SAME_LOG = "same log"
"""What a collector answers under `reason` with 409, where another result has the log."""

_LOG_HINT = (
    "start a new run, which has its own log. If another person sent your log first, contact the collector's moderator "
    "to free it (on its page /moderation: action free, that result's id, a reason), then rerun the command"
)
_WITHDRAWAL_HINTS = {
    401: _HINTS[401],
    403: "only the key that signed a result can withdraw it",
    404: "the id is the last part of the result's address, https://HOST/r/ID",
}


class NotShared(Exception):
    """Why nothing was sent; the text says what to do. code: the exit code."""

    code = 1


class NoOutcome(NotShared):
    """The collector did not answer, or cannot decide now: the same command later may succeed."""

    code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a collector answered: its status, and the object in its body, empty where there is none."""

    status: int
    content: Mapping[str, Any]


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Every answer is one, whatever its status. A bundle goes to the address that the user named, and nowhere else:
    redirects are not followed."""

    def http_response(self, request: urllib.request.Request, response: Any) -> Any:
        return response

    https_response = http_response


def collector_address(text: str) -> str:
    """Return the address of a collector, with a slash at its end. Raises NotShared for another form."""
    parts = server_parts(text)
    if parts is None or parts.query or parts.fragment or parts.username:
        raise NotShared(f"--collector must be http://HOST:PORT or https://HOST, got {without_login(text)!r}")
    return text.rstrip("/") + "/"


def _token_in(text: str) -> str:
    """The token in a file: alone on its first line, or behind `upload`, as serve,mlperf,results keeps it."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    named = next((words[1] for words in lines if len(words) == 2 and words[0] == "upload"), "")
    return named or " ".join(lines[0] if lines else ())


def _token(environ: Mapping[str, str], collector: str) -> str:
    given = environ.get(TOKEN_VARIABLE, "").strip() or known_token(collector, environ)
    path = os.path.expanduser(given)
    if os.path.isfile(path):  # Path.is_file raises, with the name, where a long token is none
        given = _token_in(Path(path).read_bytes()[:_LONGEST_TOKEN].decode("utf-8-sig", "replace"))
    if re.search(r"[^\x21-\x7e]", given):
        raise NotShared("--token must be a token without whitespace, or a file that contains one")
    return given


def call(method: str, url: str, body: bytes, kind: str, token: str) -> Answer:
    """Send a body and return the answer. Raises NoOutcome where there is none."""
    headers = {"Content-Type": kind, "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, data=body, headers=headers, method=method)
    try:
        with urllib.request.build_opener(_AnyStatus()).open(request, timeout=_TIMEOUT_S) as response:
            status, content = response.status, response.read(_LONGEST_ANSWER)
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise NoOutcome(f"{url} does not answer ({reason})\nhint: check the address, and rerun the command") from None
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = {}
    return Answer(status=status, content=found if isinstance(found, dict) else {})


def _refusal(answer: Answer, hints: Mapping[int, str]) -> NotShared:
    """Why a collector did not do what was asked, with what to do by the answer's status."""
    lines = [f"the collector refused it ({answer.status})"]
    problems = answer.content.get("problems")
    for row in problems[:20] if isinstance(problems, list) else []:
        if isinstance(row, dict):
            fields = (printable(str(row.get(name, "")))[:300] for name in ("rule", "file", "found", "expected"))
            lines.append("  {} {}: {}; expected: {}".format(*fields))
    if answer.content.get("error"):
        lines.append(f"  {printable(str(answer.content['error']))[:300]}")
    hint = _LOG_HINT if answer.content.get("reason") == SAME_LOG else hints.get(answer.status, "")
    is_undecided = answer.status in _UNDECIDED or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return (NoOutcome if is_undecided else NotShared)("\n".join([*lines, f"hint: {hint}" if hint else ""]).rstrip())


def _links(answer: Answer, to: str) -> list[dict[str, str]]:
    """The ids and addresses of the results that a collector kept. Raises NotShared for an answer that has none."""
    rows = answer.content.get("results") or [answer.content]
    named = [row for row in rows if isinstance(row, dict) and row.get("id") and row.get("url")]
    if not named:
        raise NotShared(
            f"{to} answered {answer.status}, but not as a collector: it names no result\nhint: check --collector"
        )
    return [{"id": str(row["id"]), "url": urljoin(to, str(row["url"]))} for row in named]


def _problem_lines(problems: Sequence[Problem]) -> str:
    return "\n".join(f"  {one.rule} {one.file}: {one.found}; expected: {one.expected}" for one in problems[:20])


def _figure(result: NewResult) -> str:
    words = {True: "VALID", False: "INVALID", None: "no verdict"}[result.valid]
    return f"{result.metric} {result.value:,.6g} {result.unit}, {words}"


_FACTS = {"CPU": "processor", "DISK": "disk", "OS": "operating system", "MEMORY": "memory"}
"""What `host.CM_HOST_<word>_...` of an environment.json tells of; detect-os and detect-cpu find some forty of them."""


def _facts_group(place: str) -> str:
    found = re.match(r"host\.CM_HOST_([A-Z]+)_", place)
    return _FACTS.get(found[1], "") if found else ""


def _masked_lines(bundle: Bundle) -> list[str]:
    """Every place where something was taken out, by file name; numbers in lists are not told apart, and of the
    detected facts of one thing only the number is said."""
    places: dict[str, Counter[str]] = {}
    for file in bundle.manifest.files:
        found = places.setdefault(file.name.rpartition("/")[2], Counter())
        found.update(re.sub(r"\.\d+(?=\.|$)", ".*", place) for place in file.masked)
    lines = []
    for name, found in places.items():
        facts = Counter(group for place in found if (group := _facts_group(place)))
        words = [f"{counted(count, 'fact')} of the {group} (host.*)" for group, count in facts.items()]
        words += [
            place + (f" ({count}x)" if count > 1 else "") for place, count in found.items() if not _facts_group(place)
        ]
        lines += textwrap.wrap(f"{name}: {', '.join(words)}", 118, initial_indent="  ", subsequent_indent="    ",
                               break_on_hyphens=False) if words else []  # fmt: skip
    return ["Masked or removed:", *lines] if lines else []


def description(bundle: Bundle, results: Sequence[NewResult], to: str) -> str:
    """Return what leaves the machine and what a page will show, for the eyes of the person who is asked."""
    files = bundle.manifest.files
    total = sum(file.size_bytes for file in files)
    lines = [f"{len(files)} files, {total:,} bytes, packed {len(bundle.content):,}:"]
    width = max(len(file.name) for file in files)
    for file in files:
        masked = f"  {len(file.masked)} masked" if file.masked else ""
        lines.append(f"  {file.name:{width}} {file.size_bytes:>9,}{masked}")
    lines += _masked_lines(bundle)
    lines.append(_not_sent(bundle))
    alias = f" as {bundle.manifest.alias!r}" if bundle.manifest.alias else ", without a name"
    public_key = bundle.manifest.public_key
    lines.append(f"Signed with your key {key_id_of(public_key)}{alias}: {ssh_public_key(public_key)}")
    lines.append("A page will show:")
    for one in results:
        place = f"{one.configuration.benchmark} {one.configuration.scenario}"
        lines.append(f"  {place}: {_figure(one)} [{', '.join(one.labels)}]")
    return "\n".join(filter(None, [*lines, _too_large(bundle), f"It goes to {to}" if to else ""]))


def _not_sent(bundle: Bundle) -> str:
    if not bundle.manifest.is_curve:
        logs = len(bundle.manifest.digests)
        return f"Not sent: console output, responses (only the SHA-256 of {logs} logs of responses)"
    has_samples = any(file.name.endswith(SAMPLES) for file in bundle.manifest.files)
    if has_samples:
        return f"Not sent: prompts, answers, events.jsonl. {SAMPLES} has the times and tokens of each sample"
    return "Not sent: prompts, answers, events (--with_events adds the times and tokens of each sample, no text)"


def _too_large(bundle: Bundle) -> str:
    most = DEFAULT_LIMITS.body_bytes
    if len(bundle.content) <= most:
        return ""
    return f"{len(bundle.content):,} bytes, more than the {most:,} that collectors accept by default"


def _bundle_of(folder: Path, arguments: argparse.Namespace, key: SigningKey, sender: Sender) -> Bundle:
    """The bundle of a call's folder, or of a curve's. Raises NothingToShare, ValueError."""
    if (folder / OF_CALL[0]).is_file():
        if arguments.with_events:
            raise NothingToShare(
                "--with_events is for curves of MLPerf Endpoints. LoadGen's logs are always sent\nhint: omit it"
            )
        return make_bundle(folder, key, arguments.alias, sender)
    return make_curve_bundle(folder, key, arguments.alias, sender, with_events=arguments.with_events)


def _made(folder: Path, arguments: argparse.Namespace) -> tuple[Bundle, tuple[NewResult, ...]]:
    """The bundle of a folder and its results, checked as a collector does. Raises NotShared."""
    public = tuple(filter(None, map(str.strip, arguments.public.split(","))))
    try:
        key, is_new = read_or_make_key(key_folder(os.environ))
        places = KnownFolders({RESULT: str(folder), HOME: str(home_folder())})
        bundle = _bundle_of(folder, arguments, key, Sender(places, known_here(public=public)))
        as_sent = Limits(body_bytes=max(len(bundle.content), DEFAULT_LIMITS.body_bytes))
        results = results_of_bundle(read_bundle(io.BytesIO(bundle.content), as_sent))
    except (NothingToShare, KeyProblem, ValueError) as error:
        raise NotShared(str(error)) from None
    except BundleRefused as error:
        text = f"a collector would reject it:\n{_problem_lines(error.problems)}"
        is_call = (folder / OF_CALL[0]).is_file()
        raise NotShared(f"{text}\nhint: {_CHANGED if is_call else _CONTRADICTS}") from None
    if is_new:
        print(f"created your key in {key_folder(os.environ)}: its owner can withdraw the results that it signed")
    return bundle, results


def share(arguments: argparse.Namespace) -> dict[str, Any]:
    """Make the bundle and send it where that is wanted; returns what became of it. Raises NotShared, OSError."""
    folder = expanded(arguments.result).resolve()
    to = collector_address(arguments.collector) if arguments.collector else ""
    token = _token(os.environ, to)
    bundle, results = _made(folder, arguments)
    print(description(bundle, results, to), flush=True)
    path = folder / "share" / f"{bundle.manifest.run_id}.tar.gz"
    write_bytes_whole(path, bundle.content)
    told = {"bundle": str(path), "key": key_id_of(bundle.manifest.public_key), "sent": False, "results": []}
    if arguments.dry_run or not to:
        print(f"Not uploaded. The bundle: {path}")
        return told
    if not arguments.yes and not _is_agreed(to):
        print(f"Not uploaded. The bundle: {path}")
        return told
    reason = path.with_name(REASON_FILE)
    try:
        answer = call("POST", urljoin(to, "api/v1/bundles"), bundle.content, "application/gzip", token)
        if answer.status not in (200, 201):
            raise _refusal(answer, _HINTS)
        links = _links(answer, to)
    except NotShared as error:
        write_whole(reason, f"{error}\n")
        why, mark, hint = str(error).partition("\nhint: ")
        raise type(error)(f"{why}\nthe bundle stays in {path}{mark}{hint}") from None
    reason.unlink(missing_ok=True)
    print("Sent." if answer.status == 201 else "The collector has it already.")
    print("\n".join(printable(link["url"]) for link in links))
    return {**told, "sent": True, "results": links}


def _is_agreed(to: str) -> bool:
    """Whether the person agrees. Raises NotShared where nobody can be asked."""
    if not sys.stdin.isatty():
        raise NotShared(f"not uploaded to {to}: stdin is not a terminal\nhint: pass --yes to confirm")
    print(f"Send it to {to}? [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def withdraw(arguments: argparse.Namespace) -> dict[str, Any]:
    """Take a result back that this key signed; returns what became of it. Raises NotShared, OSError."""
    to = collector_address(arguments.collector)
    try:
        key, is_new = read_or_make_key(key_folder(os.environ))
    except KeyProblem as error:
        raise NotShared(str(error)) from None
    if is_new:
        raise NotShared(f"no key in {key_folder(os.environ)}: this user has not sent results from here")
    url = urljoin(to, f"api/v1/results/{quote(arguments.withdraw, safe='')}")
    body = sign_withdrawal(key, arguments.withdraw)
    answer = call("DELETE", url, body, "application/json", _token(os.environ, to))
    if answer.status != 200:
        raise _refusal(answer, _WITHDRAWAL_HINTS)
    if answer.content.get("state") != "withdrawn":
        raise NotShared(f"{to} answered 200, but not as a collector\nhint: check --collector")
    print(f"Withdrawn: {printable(arguments.withdraw)}. Its page now shows that.")
    return {"withdrawn": arguments.withdraw, "key": key_id_of(key.public_key)}


def main(words: Sequence[str]) -> int:
    """Run the program; returns its exit status, 1 or 2 (without an outcome) with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="crowdperf.store.share")
    for name in ("result", "collector", "alias", "public", "withdraw"):
        parser.add_argument(f"--{name}", default="")
    for name in ("dry_run", "yes", "with_events"):
        parser.add_argument(f"--{name}", action="store_true")
    arguments = parser.parse_args(words)
    try:
        told = withdraw(arguments) if arguments.withdraw else share(arguments)
    except (NotShared, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        code = error.code if isinstance(error, NotShared) else NotShared.code
        write_whole(Path(ANSWER_FILE), json.dumps({"error": str(error), "return": code}))
        return code
    write_whole(Path(ANSWER_FILE), json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
