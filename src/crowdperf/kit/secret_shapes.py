"""The shapes that secrets and home folders have in text: tokens of services, keys, logins, assignments, paths.

`shape_spans` is the whole interface, and other modules use `privacy`. Each rule has a literal anchor that is searched
first. Shapes of tokens: GitHub (docs.github.com, "GitHub's token formats"), GitLab ("Token prefixes"), AWS ("Unique
identifiers" of IAM), PyPI, Slack, Google, npm, NVIDIA NGC and Docker Hub as documented on their pages in 2026. Lengths
are lower bounds, a little generous.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

HOME = b"~"
"""The replacement for a home folder."""


class Kind(enum.Enum):
    """The kind of a finding."""

    TOKEN = "access token"
    PRIVATE_KEY = "private key"
    LOGIN = "login in an address"
    AUTHORIZATION = "authorization header"
    SECRET = "value of a secret"
    OWN_SECRET = "value of a secret of this machine"
    HOME_PATH = "path of a home folder"
    USER_NAME = "name of the user"
    HOST_NAME = "name of the machine"
    EMAIL = "e-mail address of the user"
    NOT_SEARCHED = "text that is too slow to search"


class Span(NamedTuple):
    """Where something was found, in bytes."""

    start: int
    end: int
    kind: Kind


class _Shape(NamedTuple):
    """`pattern` begins with `anchor`. Group "hide", if there is one, is the secret part."""

    anchor: bytes
    pattern: re.Pattern[bytes]
    kind: Kind
    is_any_case: bool = False


TOKEN_SHAPES = (
    ("gh", r"[pousr]_[A-Za-z0-9]{20,}"),
    ("github_pat_", r"[A-Za-z0-9_]{20,}"),
    ("gl", r"(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{18,}"),
    ("hf_", r"[A-Za-z0-9]{30,}"),
    ("AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("pypi-", r"AgE[A-Za-z0-9_-]{16,}"),
    ("xox", r"[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("hooks.slack.com/services/", r"[A-Za-z0-9/]{20,}"),
    ("AIza", r"[A-Za-z0-9_-]{35}"),
    ("ya29.", r"[A-Za-z0-9_-]{20,}"),
    ("npm_", r"[A-Za-z0-9]{30,}"),
    ("nvapi-", r"[A-Za-z0-9_-]{40,}"),
    ("dckr_pat_", r"[A-Za-z0-9_-]{20,}"),
    ("sk-", r"(?:proj-|ant-)[A-Za-z0-9_-]{20,}"),
    ("eyJ", r"[A-Za-z0-9_-]{10,1000}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
)
"""The prefix of a token, and the pattern of the rest. `recipe_engine.rules.secrets` has the same table (a test compares
them). A pattern that can contain another prefix needs an end (1,000 characters of a JSON web token's header), or the
search is quadratic."""

_TOKENS = tuple(
    _Shape(start.encode(), re.compile(re.escape(start.encode()) + rest.encode()), Kind.TOKEN)
    for start, rest in TOKEN_SHAPES
)

_OTHERS = (
    _Shape(b"-----BEGIN ", re.compile(rb"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----"), Kind.PRIVATE_KEY),
    _Shape(b"://", re.compile(rb"://(?P<hide>[^/@\s\"'<>:]*:(?P<value>[^/@\s\"'<>]+))@"), Kind.LOGIN),
    _Shape(b"://", re.compile(rb"://(?P<hide>(?P<value>[A-Za-z0-9_-]{16,}))@"), Kind.LOGIN),
    _Shape(
        b"authorization",
        re.compile(
            rb"authorization[\"']?\s*[:=]\s*[\"']?(?P<hide>"
            rb"(?:(?:basic|bearer|digest|negotiate|token|apikey) +|(?=[^\s\"'<>]{0,256}\d)(?=[^\s\"'<>]{16}))"
            rb"(?P<value>[^\s\"'<>]{6,}))"
        ),
        Kind.AUTHORIZATION,
        is_any_case=True,
    ),
    _Shape(
        b"bearer ",
        re.compile(rb"bearer +(?P<hide>(?=[a-z._~+/-]*\d)[\w.~+/-]{20,}=*)"),
        Kind.AUTHORIZATION,
        is_any_case=True,
    ),
    *(
        _Shape(anchor, re.compile(re.escape(anchor) + rb"=(?P<hide>[\w%+/-]{20,}=*)"), Kind.SECRET, is_any_case=True)
        for anchor in (b"x-amz-signature", b"&signature", b"&sig")
    ),
)

SECRET_WORDS = ("token", "password", "passwd", "passphrase", "secret", "credential", "credentials", "key")
"""Last words of the names whose values are looked for in texts ("key" only after one of `KEY_WORDS`): fewer than
`is_secret_name` knows, since a text has many a `pass=` that is none."""

KEY_WORDS = ("api", "access", "private", "secret")

_NAME_IN_TEXT = re.compile(
    r"(?:^|[_.-])(?:token|password|passwd|passphrase|secret|(?:api|access|private|secret)[_-]?key|credentials?)$",
    re.IGNORECASE,
)

_SECRET_NAME = re.compile(
    r"(?:.*_)?(?:(?:access|api|private|secret)key|authorization|cookie|credentials?|pass(?:code|phrase|wd|words?)|pat"
    r"|secret|sshpass|token|access_key_id|connection_string"
    r"|(?:access|account|api|auth|deploy|encryption|kaggle|license|master|private|secret|shared|signing|storage"
    r"|subscription|wandb)_key"
    r"|(?:access|api|auth|bearer|bot|deploy|gh|github|gitlab|hf|huggingface|npm|oauth|personal|pypi|refresh|registry"
    r"|secret|service|session|slack|user|vault)_tokens"
    r"|(?:api|app|auth|client|github|user)_secrets|(?:basic|http|npm|proxy|registry)_auth|(?:db|mysql|smtp|user)_pwd)"
    r"|.+_pass|.*pass(?:word|wd)"
)
_ORDINARY_NAME = re.compile(
    r"(?:.*_)?(?:no_?passwd|allow_credentials|(?:adapter|blank|bos|cls|control|each|end|eos|extra|first|image|input|last"
    r"|mask|max|min|new|next|num|output|pad|per|previous|second|sep|single|sos|special|start|stop|unk|with|without|word)"
    r"_token|(?:accuracy|all|backward|check|compiler|compliance|did|each|first|forward|is|last|multi|must|next|one"
    r"|optimization|per|performance|render|second|should|single|test|tests|third|two|warmup)_pass)"
)
"""In small letters, with an underscore between words. `is_secret` of `recipe_engine.rules.secrets` has the same words:
it cannot import these, and a package that works without CM cannot import the engine's. A test compares them."""

_KEY_STARTS = tuple(f"{word}{mark}".encode() for word in KEY_WORDS for mark in ("", "_", "-"))

_PLACES = (
    *(b"token", b"passw", b"passphrase", b"secret", b"credential", b"authorization", b"eyj"),
    *(b"_key", b"-key", b"ikey", b"sskey", b"tekey"),
    *(b"/home/", b"users", b"/root/"),
)

_KEYS_OF_A_PLACE = 10
"""A "key" without one of `KEY_WORDS` before it is skipped at once, because every message of a detail log has one."""

_ANCHORS = (*(shape.anchor for shape in (*_TOKENS, *_OTHERS)), *map(str.encode, SECRET_WORDS), *_PLACES)
_ANCHOR_BYTES = frozenset(b"".join(_ANCHORS).lower()) - frozenset(b"0123456789 ")
_LOWER = bytes(range(256)).lower()
_NO_ANCHOR = bytes(byte for byte in range(256) if _LOWER[byte] not in _ANCHOR_BYTES)


@functools.lru_cache(maxsize=1024)
def _reduced(text: bytes) -> tuple[bytes, frozenset[int]]:
    kept = text.translate(_LOWER, _NO_ANCHOR)
    return kept, frozenset(kept)


@dataclass(frozen=True, slots=True)
class SearchedText:
    """A text with what makes a search in it quick.

    reduced: in lower case, without the bytes that no anchor has: numbers, quotes and blanks are most of a log.
    present: the bytes in it. One byte is looked for many times faster than a word.
    """

    data: bytes
    lowered: bytes
    reduced: bytes
    present: frozenset[int]

    @classmethod
    def of(cls, data: bytes) -> SearchedText:
        """Look once for each byte that anchors consist of."""
        reduced = data.translate(_LOWER, _NO_ANCHOR)
        return cls(data, data.lower(), reduced, frozenset(byte for byte in _ANCHOR_BYTES if byte in reduced))

    def may_have(self, word: bytes) -> bool:
        """Whether a word in any case can be in the text."""
        kept, needed = _reduced(word)
        return self.present.issuperset(needed) and kept in self.reduced

    def count(self, word: bytes) -> int:
        """Return at most how often a word is in the text, in any case."""
        kept, needed = _reduced(word)
        if not kept:
            return self.lowered.count(word.lower())
        return self.reduced.count(kept) if self.present.issuperset(needed) else 0


_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_SIGN = rb"[\"']?(?P<sign>[ \t]{0,4}[:=][ \t]{0,4}|(?<=[a-z]) )(?P<quote>[bru]?[\"'])?"
_ASSIGNMENTS = {word: re.compile(word + _SIGN) for word in map(str.encode, SECRET_WORDS)}
"""The positions of assignments to a name that ends with the word, in a text in lower case."""
_QUOTED = re.compile(rb"[^\"'\r\n]*")
_BARE = re.compile(rb"[^\s\"',;&|<>(){}\[\]]*")
_VALUE_BYTES, _JUDGED_BYTES = 4096, 256
"""The longest value that is found, and the part of it that decides its kind."""
_LOOKS = 100
"""Names that are looked at in one text without a blank, quote or bracket."""
_NO_VALUE = re.compile(
    rb"(?i)(?:your|my[_-]|xxx|example|change_?-?me|none$|null$|true$|false$|yes$|no$|on$|off$|not\b|required|optional|hidden"
    rb"|masked|redacted|env\b|str\b|int\b|bytes\b|password$|token$|secret$|key$|[$%*.<{\[\\])"
)
_MODEL_WORDS = frozenset(
    b"eos bos pad unk mask sep cls stop start end image special next last first max min per num output input new "
    b"extra word control sos blank".split()
)
"""`<word>_token` that language models speak of."""


def places(text: SearchedText) -> int:
    """Return at how many places of a text `shape_spans` has to look twice: what its time depends on."""
    return sum(map(text.count, _PLACES)) + text.count(b"key") // _KEYS_OF_A_PLACE


def is_secret_name(name: str) -> bool:
    """Return whether a variable, flag or key of this name contains a secret. Of a dotted name the last part counts.
    `apiKey`, `api-key` and `API_KEY_2` are one name."""
    words = re.sub("(?<=[a-z])(?=[A-Z])|[-_]+", "_", name.rpartition(".")[2].lstrip("+")).strip("_").lower()
    words = re.sub(r"(?:_(?:\d+|base64|b64))*$", "", words).rstrip("0123456789")
    return _SECRET_NAME.fullmatch(words) is not None and _ORDINARY_NAME.fullmatch(words) is None


def shape_spans(text: SearchedText) -> Iterator[Span]:
    """Yield the parts of a text with the shape of a secret or of a home folder."""
    for shape in (*_TOKENS, *_OTHERS):
        searched = text.lowered if shape.is_any_case else text.data
        if text.may_have(shape.anchor) and shape.anchor in searched:
            yield from _shape(text.data, searched, shape)
    for word, pattern in _ASSIGNMENTS.items():
        if text.may_have(word):
            yield from _assignments(text, word, pattern)
    yield from _home_paths(text)


def _shape(data: bytes, searched: bytes, shape: _Shape) -> Iterator[Span]:
    is_word = shape.anchor[:1].isalpha()
    for found in shape.pattern.finditer(searched):
        if is_word and found.start() and data[found.start() - 1 : found.start()].isalnum():
            continue
        groups = found.groupdict()
        if "value" in groups and _NO_VALUE.match(data[found.start("value") : found.end("value")]):
            continue
        yield Span(*(found.span("hide") if "hide" in groups else found.span()), shape.kind)


class _Value(NamedTuple):
    """The value of an assignment to a name. `sign` is between the two."""

    start: int
    end: int
    sign: bytes
    is_quoted: bool


def _assignments(text: SearchedText, word: bytes, pattern: re.Pattern[bytes]) -> Iterator[Span]:
    """Values given to secret names: `--password=x`, `HF_TOKEN=x`, `"api_key": "x"`, `?token=x`, and so on."""
    data, lowered = text.data, text.lowered
    # The end of the bare value looked at last, and how often: a text of assignments without an end is read once.
    run_end = looks = 0
    for found in pattern.finditer(lowered):
        at, value_start, is_quoted = found.start(), found.end(), found["quote"] is not None
        if word == b"key" and not lowered.endswith(_KEY_STARTS, 0, at):
            continue
        if is_quoted:
            value_end = _match_end(_QUOTED, data, value_start, value_start + _VALUE_BYTES)
        else:
            looks += 1
            if value_start >= run_end:
                run_end, looks = _match_end(_BARE, data, value_start, len(data)), 0
            value_end = min(run_end, value_start + _VALUE_BYTES)
        if is_quoted or (value_end > value_start and looks < _LOOKS):
            before = data[max(0, at - 80) : at]
            start = at - len(before) + len(before.rstrip(_NAME_BYTES))
            value = _Value(value_start, value_end, found["sign"], is_quoted)
            if _is_leak(data, start, at + len(word), value):
                yield Span(value.start, value.end, Kind.SECRET)


def _match_end(pattern: re.Pattern[bytes], data: bytes, start: int, end: int) -> int:
    found = pattern.match(data, start, end)
    return found.end() if found else start


def _is_leak(data: bytes, start: int, end: int, given: _Value) -> bool:
    """Whether the value given to the name `data[start:end]` is a secret."""
    name = data[start:end]
    value = data[given.start : min(given.end, given.start + _JUDGED_BYTES)]
    if len(value) < 4 or not _NAME_IN_TEXT.search(name.decode("ascii")) or _NO_VALUE.match(value):
        return False
    is_flag = name.startswith(b"-")
    is_given = is_flag or name.isupper() or data[max(0, start - 1) : start] in (b"?", b"&")
    parts = re.split(rb"[_.-]", name.lower().lstrip(b"-"))
    is_of_model = parts[-1] == b"token" and len(parts) > 1 and parts[-2] in _MODEL_WORDS
    if is_of_model or (value.isdigit() and parts[-1] == b"token"):
        return False
    is_spaced = not given.sign.strip()
    has_blank = given.is_quoted and re.search(rb"\s", data[given.start : given.end])
    if (is_spaced and (not is_flag or value.startswith(b"-"))) or has_blank:
        return False
    has_shape = len(value) >= 8 and re.search(rb"\d", value) and re.search(rb"[A-Za-z]", value)
    is_called = data[given.end : given.end + 1] in (b"(", b"[", b"{")
    is_expression = not given.is_quoted and (is_called or re.fullmatch(rb"[A-Za-z_]\w*(?:\.\w+)+", value))
    is_token_text = parts[-1] != b"token" or (len(value) >= 16 and has_shape)
    if is_given and not is_expression:
        return True
    return bool(is_token_text and (given.is_quoted or (has_shape and not is_expression)))


_ACCOUNT = re.compile(rb"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_BEFORE_PATH = re.compile(rb"(?:^|[^A-Za-z0-9_.~})/-]|file://|-[A-Z])(?:/(?:var|export|usr|nfs|mnt|data))?$")
_BEFORE_USERS = re.compile(rb"(?:^|[^A-Za-z0-9_.~})/-]|file://|-[A-Z])(?:/mnt/[a-z])?$")
_WINDOWS_HOME = re.compile(rb"[:](?P<bar>\\{1,4}|/)Users(?:\\{1,4}|/)(?P<name>[A-Za-z0-9_][^\\/\s\"'<>|:*?]*)")
_NOBODY = frozenset(
    b"user username you yourname your_name your-name me name someone shared public default home "
    b"mlperf_inference_data".split()
)
"""Names that mean any user in instructions. The last is the scratch folder in NVIDIA's documents."""


def _home_paths(text: SearchedText) -> Iterator[Span]:
    data = text.data
    for folder, before in ((b"/home/", _BEFORE_PATH), (b"/Users/", _BEFORE_USERS), (b"/root/", _BEFORE_PATH)):
        at = data.find(folder) if text.may_have(folder) else -1
        while at >= 0:
            end = at + len(folder)
            name = _ACCOUNT.match(data, end, end + 64)
            stand = before.search(data, max(0, at - 16), at)
            if name and stand and name[0].lower().rstrip(b".") not in _NOBODY:
                yield Span(at, end - 1 if folder == b"/root/" else name.end(), Kind.HOME_PATH)
            at = data.find(folder, end)
    if text.may_have(b"Users"):
        for found in _WINDOWS_HOME.finditer(data):
            drive = data[found.start() - 1 : found.start()]
            if found.start() and drive.isalpha() and found["name"].lower() not in _NOBODY:
                yield Span(found.start() - 1, found.end(), Kind.HOME_PATH)
