"""Finds private data: secrets, home folders, the names of the person and of the machine.

`find_leaks` reads text or bytes, `find_leaks_in_file` a file of any size, `find_leaks_in_folder` a whole tree with the
names in it. `masked` returns a text that can be shown. A leak never contains the private text, only place and kind.
Data without a recognizable shape (a user's name) comes from the caller as `PrivateNames`. `known_here` reads them from
the machine.

The search looks for literal anchors first and for patterns only around them, so that megabytes of hex digits cost
milliseconds. There is no entropy test: digests, uids and accuracy logs are as random as secrets are. Of compressed
files `zip_members` opens those that are zip archives.

Every search has a `Budget`: a text that was written to keep the search busy ends it with a leak of the kind
`Kind.NOT_SEARCHED`, so no caller can mistake it for a clean one. To search many files from a stranger, use one budget
for all of them.
"""

import io
import os
import re
import socket
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO

from crowdperf.kit.secret_shapes import HOME, Kind, SearchedText, Span, is_secret_name, places, shape_spans
from crowdperf.kit.user_paths import home_folder

MASK = "********"
BLOCK_BYTES = 1024 * 1024
OVERLAP_BYTES = 8 * 1024
"""Overlap of consecutive blocks of a file. Every pattern is shorter."""
LEFT_BYTES = 256
"""Number of characters before a finding that rules may look at."""
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")

SHORTEST_NAME = 3
SHORTEST_SECRET = 6
CONTEXT_BYTES = 30
"""How much of the line before and after a leak its excerpt shows."""

_PUBLIC_NAMES_TEXT = """
root user admin administrator ubuntu debian centos fedora ec2-user azureuser opc guest nobody daemon test tester
runner ci build builder worker cmuser mlperf mlcommons nvidia jenkins docker vagrant default localhost
localhost.localdomain local host linux server node machine system benchmark
"""
PUBLIC_NAMES = frozenset(_PUBLIC_NAMES_TEXT.split())
"""Names of accounts and machines that do not identify a person. Home folders with them are still found."""

NOBODYS_HOMES = ("/root", *(f"/home/{name}" for name in sorted(PUBLIC_NAMES)))
"""Home folders of containers and of cloud images, the same everywhere. 40 accuracy.txt of round v5.1 have
`Downloading package punkt_tab to /root/...`, which an official script prints."""

CERTAIN = frozenset((Kind.TOKEN, Kind.PRIVATE_KEY, Kind.AUTHORIZATION, Kind.OWN_SECRET))
"""Secrets beyond doubt: in the 53,820 files of round v5.1 such a shape occurs once, and that is a token. Texts that
only look like a secret by their name are in 250 of these files, in examples and public addresses nearly always. Home
folders are in the files of all 34 submitters."""

_PROGRAM = re.compile(r"(?:^|/)(?:code|src)/[^/]+/[^/]+/(?:script|src/crowdperf)/")
"""The folders of a submission with the program that ran: `script/` and `src/` below `<code folder>/<model>/<system>/`.
"""

_WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateNames:
    """The names of the person and the machine. `secrets` are values that are leaks as any part of a text.

    The others are found as whole words only. `public` are names and home folders that are published on purpose and so
    are not leaks ("/root" of a container). Secrets cannot be made public.
    """

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    public: tuple[str, ...] = ()


NOTHING_KNOWN = PrivateNames()


MAX_PLACES, FOLDER_PLACES = 1_000_000, 3_000_000
"""The number of places of one text or file, or of a whole folder, that are examined further. Three million last about
20 seconds. The logs of the largest submitter of round v5.1, 500 MB, have 0.6 million."""
_LEAK_PLACES = 20
"""A leak costs as much as so many places."""


@dataclass(slots=True)
class Budget:
    """The remaining number of places to examine. Use one for all texts of a search with a limited time."""

    most: int = MAX_PLACES
    spent: int = 0

    def spend(self, places: int) -> bool:
        """Use that many places. Return whether there were enough left. Once spent, the search ends."""
        self.spent += places
        return self.spent <= self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """One finding: `line` counts from 1, `excerpt` is the text around it with everything found replaced."""

    line: int
    kind: Kind
    excerpt: str

    def __str__(self) -> str:
        """The form in a list of findings."""
        return f"line {self.line}: {self.kind.value}: {self.excerpt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLeak:
    """A leak in a file of a folder. `path` is relative and masked, `leak.line` is 0 when it is in the path itself."""

    path: str
    leak: Leak

    def __str__(self) -> str:
        """The form in a list of findings."""
        where = f"{self.path}:{self.leak.line}" if self.leak.line else f"{self.path} (its name)"
        return f"{where}: {self.leak.kind.value}: {self.leak.excerpt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who works where. `public` are names that are published on purpose: the submitter, the
    system's name."""

    user: str
    host: str
    home: str
    emails: tuple[str, ...] = ()
    public: tuple[str, ...] = ()


def known_of(person: Person, environ: Mapping[str, str]) -> PrivateNames:
    """Return the names to look for, without general names (root, ubuntu), public names and very short ones.

    Secrets are the values of variables whose names suggest a secret.
    """
    public = PUBLIC_NAMES | {name.lower() for name in person.public}
    hosts = dict.fromkeys((person.host, person.host.partition(".")[0]))
    home = person.home.rstrip("/\\")
    values = (value.strip() for name, value in environ.items() if is_secret_name(name))
    return PrivateNames(
        users=_worth_finding((person.user,), public),
        hosts=_worth_finding(hosts, public),
        homes=(home,) if len(home) > 1 else (),
        emails=tuple(one for one in dict.fromkeys(person.emails) if "@" in one),
        public=person.public,
        secrets=tuple(sorted({value for value in values if len(value) >= SHORTEST_SECRET})),
    )


def known_here(emails: tuple[str, ...] = (), public: tuple[str, ...] = ()) -> PrivateNames:
    """Return the names of this machine and of the environment of this process. Reads only, and runs no program."""
    home = home_folder()
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or os.environ.get("USERNAME") or home.name
    person = Person(user=user, host=socket.gethostname(), home=str(home), emails=emails, public=public)
    return known_of(person, os.environ)


def _worth_finding(names: Iterable[str], public: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in names if len(name) >= SHORTEST_NAME and name.lower() not in public)


def find_leaks(
    text: str | bytes, known: PrivateNames = NOTHING_KNOWN, limit: int | None = None, budget: Budget | None = None
) -> tuple[Leak, ...]:
    """Return the leaks in `text`, in its order, at most `limit` of them.

    The last one is of `Kind.NOT_SEARCHED` if the budget (without one: a new one) ended before the text.
    """
    return _search(io.BytesIO(_as_utf8(text)), known, limit, budget or Budget())


_MAX_MEMBERS, _MAX_UNPACKED_BYTES = 10_000, 256 * 1024 * 1024


def zip_members(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the names and the content of the files in a zip archive, as far as they can be read, up to 256 MB.

    If `content` is not an archive, no file is yielded. Archives in archives are not opened.
    """
    if not content.startswith(b"PK\x03\x04"):
        return
    left = _MAX_UNPACKED_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist()[:_MAX_MEMBERS]:
                with archive.open(member) as file:
                    data = file.read(left)
                left -= len(data)
                yield member.filename, data
                if left <= 0:
                    return
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, ValueError, zlib.error):
        return  # damaged, or encrypted: what cannot be read here cannot be read elsewhere


def find_leaks_in_file(
    path: Path, known: PrivateNames = NOTHING_KNOWN, limit: int | None = None, budget: Budget | None = None
) -> tuple[Leak, ...]:
    """Return the leaks in a file, as `find_leaks` does, reading it in blocks. Raises OSError."""
    with path.open("rb") as file:
        is_utf_16 = file.read(2) in UTF_16_MARKS
        file.seek(0)
        if is_utf_16:
            return find_leaks(file.read(), known, limit, budget)
        return _search(file, known, limit, budget or Budget())


def _search(file: IO[bytes], known: PrivateNames, limit: int | None, budget: Budget) -> tuple[Leak, ...]:
    found: list[Leak] = []
    line, begin, rest = 1, 0, b""
    block = file.read(BLOCK_BYTES)
    while True:
        following = file.read(BLOCK_BYTES)
        data = rest + block
        text = SearchedText.of(data)
        if not budget.spend(_places(text, known)):
            return (*found, _not_searched(line, budget))
        end = max(begin, len(data) - OVERLAP_BYTES) if following else len(data)
        spans = _all_spans(text, known)
        chosen = [span for span in spans if begin <= span.start < end]
        left = None if limit is None else limit - len(found)
        found += islice(_leaks(data, spans, chosen, line, begin), left)
        if not following or len(found) == limit:
            budget.spend(_LEAK_PLACES * len(found))
            return tuple(found)
        read_to = max([end, *(span.end for span in chosen)])
        line += data.count(b"\n", begin, read_to)
        kept_from = max(0, read_to - LEFT_BYTES)
        rest, begin, block = data[kept_from:], read_to - kept_from, following


def _places(text: SearchedText, known: PrivateNames) -> int:
    """The number of places of a block that are examined: each costs some microseconds, times five or so.

    Ordinary logs have a few dozen in a megabyte. 150,000 mean a text that was written to keep the search busy.
    """
    names = (*known.users, *known.hosts, *known.homes, *known.emails, *known.secrets)
    return places(text) + sum(text.count(_as_utf8(name)) for name in names)


def _not_searched(line: int, budget: Budget) -> Leak:
    excerpt = f"more than {budget.most} places that could be secrets, so the search ended here"
    return Leak(line=line, kind=Kind.NOT_SEARCHED, excerpt=excerpt)


def known_in(path: str, known: PrivateNames) -> PrivateNames:
    """Return the names to look for in a file of a submission, `path` with slashes.

    The program that ran is the project's own text, in which a name like "max" or "server" is a word: in it, only
    tokens, home folders and addresses are leaks, names are not.
    """
    return replace(known, users=(), hosts=()) if _PROGRAM.search(path) else known


def find_leaks_in_folder(folder: Path, known: PrivateNames = NOTHING_KNOWN) -> tuple[FileLeak, ...]:
    """Return the leaks in the files below a folder, in their names and in the targets of links, by path. Raises
    OSError."""
    found: list[FileLeak] = []
    budget = Budget(FOLDER_PLACES)
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_dir() and not path.is_symlink():
            continue
        shown, names = masked(relative.as_posix(), known), known_in(relative.as_posix(), known)
        in_name = [Leak(line=0, kind=leak.kind, excerpt=leak.excerpt) for leak in find_leaks(str(relative), names)]
        is_link = path.is_symlink()
        inside = find_leaks(os.readlink(path), known) if is_link else find_leaks_in_file(path, names, budget=budget)
        found += [FileLeak(path=shown, leak=leak) for leak in (*in_name, *inside)]
        if inside and inside[-1].kind is Kind.NOT_SEARCHED:
            break
    return tuple(found)


def masked(text: str, known: PrivateNames = NOTHING_KNOWN) -> str:
    """Return `text` with everything that `find_leaks` finds replaced by its kind's sign (`********`, `~`, `<user>`),
    and completely masked if it exceeds a `Budget`."""
    data = text.encode("utf-8", "surrogateescape")
    searched = SearchedText.of(data)
    if not Budget().spend(_places(searched, known)):
        return MASK
    return _replaced(data, _all_spans(searched, known), 0, len(data)).decode("utf-8", "surrogateescape")


_SIGNS = {
    Kind.HOME_PATH: HOME,
    Kind.USER_NAME: b"<user>",
    Kind.HOST_NAME: b"<host>",
    Kind.EMAIL: b"<e-mail>",
}


def _as_utf8(text: str | bytes) -> bytes:
    if isinstance(text, str):
        try:
            return text.encode("utf-8", "surrogateescape")  # names of files that are not UTF-8
        except UnicodeEncodeError:
            return text.encode("utf-8", "surrogatepass")  # texts of JSON with half a character
    if text.startswith(UTF_16_MARKS):
        return text.decode("utf-16", "replace").encode()
    return text


def _all_spans(text: SearchedText, known: PrivateNames) -> list[Span]:
    """Every finding, in order, without those inside another. The longer of two that overlap comes first."""
    lowered = text.lowered
    spans = [*_known_spans(text, known), *shape_spans(text)]
    if spans and known.public:
        public = {_as_utf8(name.lower()) for name in known.public}
        spans = [span for span in spans if span.kind not in _SIGNS or lowered[span.start : span.end] not in public]
    spans.sort(key=lambda span: (span.start, -span.end))
    kept: list[Span] = []
    for span in spans:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
        elif span.end > kept[-1].end:
            kept[-1] = kept[-1]._replace(end=span.end)
    return kept


def _known_spans(text: SearchedText, known: PrivateNames) -> Iterator[Span]:
    data, lowered = text.data, text.lowered
    for secret in _possible(known.secrets, text):
        yield from _occurrences(data, _as_utf8(secret), Kind.OWN_SECRET)
    for home in _possible(known.homes, text):
        # Deep ones are also found behind a mount point; "/root" alone is the end of many a path.
        is_deep = home.count("/") + home.count("\\") > 1
        yield from _words(data, data, _as_utf8(home), Kind.HOME_PATH, is_start_free=is_deep)
    for email in _possible(known.emails, text):
        yield from _words(lowered, data, _as_utf8(email.lower()), Kind.EMAIL)
    for host in _possible(known.hosts, text):
        yield from _words(lowered, data, _as_utf8(host.lower()), Kind.HOST_NAME)
    for user in _possible(known.users, text):
        yield from _words(data, data, _as_utf8(user), Kind.USER_NAME)


def _possible(names: Iterable[str], text: SearchedText) -> Iterator[str]:
    return (name for name in names if text.may_have(_as_utf8(name)))


def _occurrences(data: bytes, wanted: bytes, kind: Kind) -> Iterator[Span]:
    start = data.find(wanted)
    while start >= 0:
        yield Span(start, start + len(wanted), kind)
        start = data.find(wanted, start + len(wanted))


def _words(data: bytes, original: bytes, wanted: bytes, kind: Kind, is_start_free: bool = False) -> Iterator[Span]:
    """The positions of `wanted` with no letter, digit or underscore next to it."""
    for span in _occurrences(data, wanted, kind):
        has_before = not is_start_free and span.start > 0 and original[span.start - 1] in _WORD_BYTES
        has_after = span.end < len(original) and original[span.end] in _WORD_BYTES
        if not (has_before or has_after):
            yield span


def _leaks(data: bytes, spans: list[Span], chosen: list[Span], line: int, counted: int) -> Iterator[Leak]:
    """The chosen ones of `spans`. `data[counted]` is in line `line`."""
    for span in chosen:
        line += data.count(b"\n", counted, span.start)
        counted = span.start
        nearest = max(0, span.start - CONTEXT_BYTES)
        start = max(nearest, data.rfind(b"\n", nearest, span.start) + 1)
        end_of_line = data.find(b"\n", span.end, span.end + CONTEXT_BYTES)
        end = end_of_line if end_of_line >= 0 else min(len(data), span.end + CONTEXT_BYTES)
        excerpt = _replaced(data, spans, start, end).decode("utf-8", "replace")
        yield Leak(line=line, kind=span.kind, excerpt=re.sub(r"[\x00-\x1f\x7f-\x9f\ufffd]+", " ", excerpt).strip())


def _replaced(data: bytes, spans: list[Span], start: int, end: int) -> bytes:
    """`data[start:end]` with the part of each span in it replaced. The spans are in order and do not overlap."""
    pieces, done = [], start
    for number in range(bisect_right(spans, start, key=lambda span: span.end), len(spans)):
        span = spans[number]
        if span.start >= end:
            break
        pieces += [data[done : max(done, span.start)], _SIGNS.get(span.kind, MASK.encode())]
        done = span.end
    return b"".join([*pieces, data[done:end]])
