"""What is secret, and how values are written without it. Every writer of the engine asks this module and no other.

A text is secret when

- its key says so: ``HF_TOKEN``, ``db.password``, ``--api-key`` (``is_secret``),
- it has the shape of one: a service's access token, a private key, a login in an address, an authorization header,
- or it is the value that such a key or login had anywhere in this call of ``cm`` (``learn``): in the user's process
  environment, among the inputs, in the env or state of a step.

``hidden`` is for people: texts, logs, errors. ``stored`` is for files that later runs work with: an address loses its
login and still is one, and a weak password such as ``ubuntu`` is not searched for in other values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from .frozen import Frozen

MASK = "********"
HIDDEN_LENGTH = 6
STORED_LENGTH, WORD_LENGTH = 8, 12
"""The length from which the value of a secret key is searched for in other texts; below it is a word such as ``yes``.
In stored values a text of letters or digits only, such as a user's name, counts from ``WORD_LENGTH`` on."""


# --- names ---


def _set(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_LAST_WORDS = _set(
    "APIKEY AUTHORIZATION COOKIE CREDENTIAL CREDENTIALS PASSCODE PASSPHRASE PASSWD PASSWORD PASSWORDS PAT SECRET",
    "SSHPASS TOKEN ACCESSKEY PRIVATEKEY SECRETKEY",
)
_WORDS_BEFORE = {
    "KEY": _set(
        "ACCESS ACCOUNT API AUTH DEPLOY ENCRYPTION KAGGLE LICENSE MASTER PRIVATE SECRET SHARED SIGNING STORAGE",
        "SUBSCRIPTION WANDB",
    ),
    "TOKENS": _set(
        "ACCESS API AUTH BEARER BOT DEPLOY GH GITHUB GITLAB HF HUGGINGFACE NPM OAUTH PERSONAL PYPI REFRESH REGISTRY",
        "SECRET SERVICE SESSION SLACK USER VAULT",
    ),
    "SECRETS": _set("API APP AUTH CLIENT GITHUB USER"),
    "AUTH": _set("BASIC HTTP NPM PROXY REGISTRY"),
    "PWD": _set("DB MYSQL SMTP USER"),
    "STRING": _set("CONNECTION"),
}
"""Last words that name a secret only behind one of these: ``API_KEY`` and not ``CACHE_KEY``, ``HF_TOKENS`` and not
``MAX_NEW_TOKENS``."""
_ORDINARY_BEFORE = {
    "TOKEN": _set(
        "ADAPTER BLANK BOS CLS CONTROL EACH END EOS EXTRA FIRST IMAGE INPUT LAST MASK MAX MIN NEW NEXT NUM OUTPUT PAD",
        "PER PREVIOUS SECOND SEP SINGLE SOS SPECIAL START STOP UNK WITH WITHOUT WORD",
    ),
    "PASS": _set(
        "ACCURACY ALL BACKWARD CHECK COMPILER COMPLIANCE DID EACH FIRST FORWARD IS LAST MULTI MUST NEXT ONE",
        "OPTIMIZATION PER PERFORMANCE RENDER SECOND SHOULD SINGLE TEST TESTS THIRD TWO WARMUP",
    ),
    "CREDENTIALS": _set("ALLOW"),
    "PASSWD": _set("NO"),
}
"""Words before which the last word is an ordinary one: ``EOS_TOKEN`` and ``TIME_PER_TOKEN`` of language models,
``FIRST_PASS``."""
_PATH_KINDS = ("CREDENTIAL", "CREDENTIALS", "COOKIE")
"""What such a key holds may be the path of a file, which is no secret itself."""


@lru_cache(maxsize=8192)
def is_secret(key: str) -> bool:
    """Whether an env key, flag, header or JSON key names a secret, by the words usual for them.

    Of a dotted name the last part counts; ``apiKey``, ``api-key`` and ``API_KEY`` are one name.
    """
    words = _words(key)
    before, last = ["", *words][-2:]
    if last == "ID":
        return words[-3:-1] == ["ACCESS", "KEY"]
    if before in _ORDINARY_BEFORE.get(last, ()):
        return False
    if last in _LAST_WORDS:
        return True
    if last == "PASS":
        return before != ""
    return before in _WORDS_BEFORE.get(last, ()) or (last.endswith(("PASSWORD", "PASSWD")) and last != "NOPASSWD")


def _words(key: str) -> list[str]:
    name = key.rpartition(".")[2].replace("-", "_").lstrip("+_")
    if not (name.isupper() or name.islower()):
        name = "".join(f"_{b}" if a.islower() and b.isupper() else b for a, b in zip(" " + name, name, strict=False))
    words = [word for word in name.upper().split("_") if word]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in ("BASE64", "B64")):
        words.pop()  # HF_TOKEN_2
    return [*words[:-1], words[-1].rstrip("0123456789") or words[-1]] if words else [""]


# --- shapes ---


class Shape(Frozen):
    """What secrets of one kind look like; ``pattern`` is only tried on texts with one of the ``anchors`` in them.

    Group ``keep``, where it has one, is what is shown of it.
    """

    anchors: tuple[str, ...]
    pattern: str


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
"""Access tokens as services shape them: how one begins, and the pattern of the rest. `crowdperf.kit.secret_shapes` has
the same table: it works without an engine, and the engine imports no recipe; tests/kit/test_privacy.py compares
them, so a shape is added to both."""
_FEW = ("gh", "gl")
"""Beginnings that are in many a word: what follows them is part of what is looked for first."""
TOKENS = Shape(
    (
        *(start for start, _ in TOKEN_SHAPES if start not in _FEW),
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        *("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"),
    ),
    rf"(?<![A-Za-z0-9])(?:{'|'.join(re.escape(start) + rest for start, rest in TOKEN_SHAPES)})",
)
LOGIN = Shape(("://",), r"(?<=://)(?P<login>[^/?#@\s\"<>:]*:[^/?#\s\"<>]+|[A-Za-z0-9_-]{16,})@")
"""A user with a password, or a token for a user, in front of a host (RFC 3986, 3.2.1)."""
OTHERS = (
    Shape(
        ("authorization",),
        r"(?i)(?P<keep>authorization[\"']?\s*[:=]\s*[\"']?)"
        r"(?:(?:basic|bearer|digest|negotiate|token|apikey) +[^\s\"'<>]{6,}|(?=[^\s\"'<>]*\d)[^\s\"'<>]{16,})",
    ),
    Shape(("bearer ",), r"(?i)(?P<keep>bearer +)(?=[a-z._~+/-]*\d)[\w.~+/-]{20,}=*"),
    Shape(
        ("token=", "signature=", "sig=", "key=", "password=", "secret="),
        r"(?i)(?P<keep>[?&](?:x-amz-signature|x-amz-security-token|x-goog-signature|signature|sig|password"
        r"|(?:access_|auth_|private_|refresh_)?token|api_?key|(?:client_)?secret)=)[^&#\s\"'<>]+",
    ),
    Shape(
        ("-----begin ",),
        r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----(?:[\w+/=:,.\s\\]|-(?!----))*(?:-----END [A-Z ]+-----)?",
    ),
)
"""Headers (RFC 9110, 11.6.2), signed addresses (Amazon, Google, Azure), private keys (RFC 7468)."""
REPEATED_LENGTH = 200
"""Texts up to this length, such as labels and reasons in a plan, are judged once."""
SHORTEST = 16
"""No shape but a login is shorter than this."""
ANCHORS = tuple(dict.fromkeys(anchor.lower() for shape in (TOKENS, LOGIN, *OTHERS) for anchor in shape.anchors))


@lru_cache(maxsize=16)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)  # at its first use: most calls meet no text that needs it


def without_shapes(text: str) -> str:
    """``text`` with the mask in the place of everything that has the shape of a secret."""
    if len(text) < SHORTEST and "@" not in text:
        return text
    return _short_without_shapes(text) if len(text) <= REPEATED_LENGTH else _without_shapes(text)


def _without_shapes(text: str) -> str:
    lowered = text.lower()
    if not [anchor for anchor in ANCHORS if anchor in lowered]:  # a list: quicker than any() of a generator
        return text
    text = _without_logins(text, f"{MASK}@")
    if any(anchor in text for anchor in TOKENS.anchors):
        text = _compiled(TOKENS.pattern).sub(MASK, text)
    for shape in OTHERS:
        if any(anchor in lowered for anchor in shape.anchors):
            text = _compiled(shape.pattern).sub(lambda found: found.groupdict().get("keep", "") + MASK, text)
    return text


_short_without_shapes = lru_cache(maxsize=8192)(_without_shapes)


def _without_logins(text: str, instead: str) -> str:
    return _compiled(LOGIN.pattern).sub(instead, text) if "@" in text and "://" in text else text


# --- values ---


class KnownSecrets:
    """The values that secret keys and logins have had in this call of ``cm``, longest first."""

    def __init__(self) -> None:
        self.texts: tuple[str, ...] = ()
        self.strong: tuple[str, ...] = ()  # those of them that are searched for in stored values
        self.learned: dict[Any, str] = {}  # the last text of each key: the env of a step has mostly those of another
        self.calls = 0

    def add(self, text: str) -> None:
        """Takes a secret; of one with several lines each long line, too."""
        lines = [line.strip() for line in text.splitlines() if len(line) >= WORD_LENGTH] if "\n" in text else []
        new = {item for item in (text.strip(), *lines) if len(item) >= HIDDEN_LENGTH}
        if not new.issubset(self.texts):
            self.texts = tuple(sorted({*self.texts, *new}, key=lambda item: (-len(item), item)))
            self.strong = tuple(filter(_is_strong, self.texts))


def _is_strong(text: str) -> bool:
    return len(text) >= (WORD_LENGTH if text.isalpha() or text.isdigit() else STORED_LENGTH)


_known = KnownSecrets()


@contextmanager
def known_from(*sources: Any) -> Iterator[bool]:
    """Learns the secrets in ``sources``; whether this is the outermost such block, at whose end all are forgotten."""
    _known.calls += 1
    try:
        learn(sources)
        yield _known.calls == 1
    finally:
        _known.calls -= 1
        if not _known.calls:
            _known.texts, _known.strong, _known.learned = (), (), {}
            _short_stored_text.cache_clear()  # it has seen them


def learn(value: Any, key: str = "") -> None:
    """Remembers the secrets in a value, its key, or the items of a nested one: they are hidden from now on."""
    if isinstance(value, str):
        if value.startswith(("--", "export ")) and "=" in value:
            key, _, value = value.removeprefix("export ").partition("=")
            value = value.strip("\"' ")
        if key and is_secret(key):
            is_path = value[:1] in ("/", "~", ".") and _words(key)[-1] in _PATH_KINDS
            if not (is_path or "<<<" in value or "\ue000" in value):  # a placeholder, or the symbol of a plan
                _known.add(value)
        elif "://" in value and "@" in value:
            for found in _compiled(LOGIN.pattern).finditer(value):
                _known.add(found["login"].rpartition(":")[2])
    elif value.__class__ is dict or isinstance(value, Mapping):
        learned = _known.learned
        for name, item in value.items():
            if item is None or learned.get(name) is item:
                continue
            if item.__class__ is str:
                learned[name] = item
                if "://" not in item and not is_secret(name if name.__class__ is str else str(name)):
                    continue
            learn(item, str(name))
    elif isinstance(value, list | tuple | Frozen):
        for item in value._asdict().values() if isinstance(value, Frozen) else value:
            learn(item, key)


def known_secrets() -> tuple[str, ...]:
    """What was learned in this call of ``cm``, longest first."""
    return _known.texts


def hidden(value: Any, key: str = "") -> Any:
    """A value for people: secrets are masked at any depth, all of it when ``key`` names a secret."""
    return _walk(value, key, hidden_text)


def hidden_texts(value: Any) -> Any:
    """``hidden`` for a value whose keys are names of inputs and the like: only texts are masked."""
    return _walk(value, None, hidden_text)


def stored(value: Any, key: str = "") -> Any:
    """A value that later runs can work with, without secrets: addresses without logins."""
    return _walk(value, key, _stored_text)


def without_secrets(values: Mapping[str, Any]) -> dict[str, Any]:
    """An env or state for a file: without the keys that name secrets, at any depth; the rest as ``stored``."""
    return {
        key: without_secrets(value) if isinstance(value, Mapping) else stored(value)
        for key, value in values.items()
        if not is_secret(str(key))
    }


def hidden_text(text: str) -> str:
    """``hidden`` for a text."""
    for secret in _known.texts:
        text = text.replace(secret, MASK)
    return without_shapes(text)


def _stored_text(text: str) -> str:
    of_known = _short_stored_text if len(text) <= REPEATED_LENGTH else _text_without
    return of_known(text, _known.strong)


def _text_without(text: str, secrets: tuple[str, ...]) -> str:
    text = _without_logins(text, "")
    for secret in secrets:
        text = text.replace(secret, MASK)
    return without_shapes(text)


_short_stored_text = lru_cache(maxsize=8192)(_text_without)
"""The env of a step has mostly the values of another: each is judged once for the same secrets."""


def _walk(value: Any, key: str | None, on_text: Callable[[str], str]) -> Any:
    """``value`` with ``on_text`` applied to its texts; ``key`` is None when keys do not count."""
    if isinstance(value, str):
        text = MASK if key and is_secret(key) and value else on_text(value)
        return value if text == value else text  # a text that knows its error (ErrorText) stays one
    if value.__class__ is dict or isinstance(value, Mapping):
        names = [(name, None if key is None else str(name)) for name in value]
        return {_walk(name, None, on_text): _walk(value[name], text, on_text) for name, text in names}
    if key and is_secret(key) and not isinstance(value, bool | type(None)):
        return MASK if value not in ([], ()) else value
    if isinstance(value, Frozen):
        fields = value._asdict()
        return value._replace(**{name: _walk(fields[name], None if key is None else "", on_text) for name in fields})
    if isinstance(value, list | tuple):
        items = [_walk(item, None if key is None else "", on_text) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def holds_secret(name: str, value: Any) -> bool:
    """Whether a flag (``hf_token``, ``env.CM_API_KEY``) or its value is secret, or a word in it gives a secret flag."""
    if value.__class__ is str:
        return is_secret(name.rstrip(",")) or _is_key_itself(name, value) or _stored_text(value) != value
    words = value if isinstance(value, list | tuple) else ()
    flags = [str(word).partition("=")[0] for word in words if str(word).startswith("-")]
    return (
        any(map(is_secret, (name.rstrip(","), *flags))) or _is_key_itself(name, value) or stored(value, name) != value
    )


def _is_key_itself(name: str, value: Any) -> bool:
    """Whether a flag that wants the name of a key's variable (``endpoint_key_variable``) got what cannot be one."""
    is_name = name.lower().endswith("_key_variable")
    return is_name and isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_]*", value) is None


def without_secret_flags(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a nested mapping that hold no secret."""
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            kept[str(name)] = without_secret_flags(value, f"{prefix}{name}.")
        elif not holds_secret(f"{prefix}{name}", value):
            kept[str(name)] = value
    return kept
