"""Rules of the audit about what a recipe fetches and about its code: hooks and native scripts."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from ..documents.needs import SHA256_KEYS, URL_KEYS
from ..rules.env import PREFIX, SUCCESSOR_PREFIX
from ..rules.symbols import shown
from ..rules.tags import nearest, split_words
from .findings import Finding
from .subject import Look

# --- downloads ---

NEEDS_KEYS = {
    "downloads": "rows of what, size_bytes, sha256, licence",
    "disk_mb": "a whole number of MB (10**6 bytes)",
    "memory_mb": "a whole number of MB (10**6 bytes)",
    "sudo": "a text that says what for",
    "container": "a text that says what for",
    "gpu": "a text that says what for",
    "tokens": "a list of env keys",
}
DOWNLOAD_KEYS = ("what", "size_bytes", "sha256", "licence")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_MD5 = re.compile(r"[0-9a-fA-F]{32}")
_FETCH = re.compile(r"(?m)^(?!\s*(?:#|echo\b)).*?(?:^|[\s;&|(`])(?P<tool>wget|curl)\s+(?:-|\S*://|\"|\$)")
_FETCH_COMMAND = re.compile(r"(?:^|[;&|])\s*(?:sudo\s+)?(?:wget|curl)\s+(?:-|\S*://)")
_CHECK = re.compile(r"\b(?:sha(?:1|224|256|384|512)sum|md5sum|shasum|cksum|b2sum|gpg\s+--verify|hashlib)\b")


def _both_prefixes(keys: tuple[str, ...]) -> frozenset[str]:
    return frozenset(keys) | {SUCCESSOR_PREFIX + key[len(PREFIX) :] for key in keys}


FETCHED_KEYS = _both_prefixes(URL_KEYS) - _both_prefixes(("CM_GIT_URL",))
"""Keys whose value is downloaded as a file; what git clones has checksums of its own."""
CHECKSUM_KEYS = _both_prefixes((*SHA256_KEYS, "CM_DAE_FILE_MD5", "CM_EXTRACT_CHECKSUM"))
CHECKSUM_INPUTS = frozenset({"sha256sum", "md5sum", "checksum"})
DOWNLOAD_TAGS = frozenset({"download", "download-and-extract", "dae"})


def needs(look: Look) -> Iterator[Finding]:
    """What the recipe says it needs: keys and values that plans can use, a checksum for each address."""
    for block in look.blocks:
        for key, value in block.layer.needs.items():
            where = f"{block.where}needs.{key}"
            if key not in NEEDS_KEYS:
                close = nearest(key, NEEDS_KEYS, 1)
                hint = f"did you mean {close[0]}?" if close else f"known are: {', '.join(NEEDS_KEYS)}"
                yield look.subject.finding("needs-unusable", f"nothing reads '{key}'", where, hint)
            elif not _fits(key, value):
                text = f"expected {NEEDS_KEYS[key]}, found {value!r}"
                yield look.subject.finding("needs-unusable", text, where)
            elif key == "downloads":
                for number, row in enumerate(value):
                    yield from _row(look, f"{where}[{number}]", row)


def _fits(key: str, value: Any) -> bool:
    if key == "downloads":
        return isinstance(value, list) and all(isinstance(row, Mapping) for row in value)
    if key.endswith("_mb"):
        return not isinstance(value, bool) and str(value).isdigit()
    if key == "tokens":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, str | bool) or (isinstance(value, list) and all(isinstance(item, str) for item in value))


def _row(look: Look, where: str, row: Mapping[str, Any]) -> Iterator[Finding]:
    for key in row:
        if key not in DOWNLOAD_KEYS:
            hint = f"known are: {', '.join(DOWNLOAD_KEYS)}"
            yield look.subject.finding("needs-unusable", f"nothing reads '{key}'", f"{where}.{key}", hint)
    what, digest = str(row.get("what") or ""), str(row.get("sha256") or "")
    if not what:
        yield look.subject.finding("needs-unusable", "a download without 'what'", where)
    if digest and "<<<" not in digest and not _SHA256.fullmatch(digest):
        yield look.subject.finding("needs-unusable", f"'{digest}' is no SHA-256", f"{where}.sha256")
    if not digest and what.startswith(("http://", "https://", "ftp://")):
        yield look.subject.finding("download-unchecked", f"{what} has no sha256", where)


def fetched(look: Look) -> Iterator[Finding]:
    """Addresses that the metadata hands to a step that downloads."""
    general = [value for block in look.blocks if not block.where for _, env in _envs(look, "") for value in _sums(env)]
    for block in look.blocks:
        for where, env in _envs(look, block.where):
            address = next((str(env[key]) for key in FETCHED_KEYS & env.keys() if _is_address(env[key])), "")
            if address:
                yield from _judge(look, where, address, [*_sums(env), *general])
        for where, dependency in block.dependencies():
            words = split_words(dependency.tags_text)
            address = next((word[5:] for word in words if word.startswith("_url.")), "")
            if address and DOWNLOAD_TAGS.intersection(words):
                entry = dependency.entry
                given = [str(entry[key]) for key in CHECKSUM_INPUTS & entry.keys()]
                yield from _judge(look, where, address, [*given, *_sums(entry.get("env") or {}), *general])


def _envs(look: Look, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The env mappings of one block: env as written over default_env, and those of its dependencies."""
    for block in look.blocks:
        if block.where == where:
            yield f"{where}env", {**block.layer.default_env, **block.layer.env, **block.layer.const}
            for path, dependency in block.dependencies():
                yield f"{path}.env", dependency.entry.get("env") or {}


def _sums(env: Mapping[str, Any]) -> list[str]:
    return [str(env[key]) for key in sorted(CHECKSUM_KEYS & env.keys()) if env[key]]


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://", "ftp://"))


def _judge(look: Look, where: str, address: str, sums: list[str]) -> Iterator[Finding]:
    if not sums:
        text = f"{shown(address)} is downloaded without a checksum"
        hint = "give CM_DOWNLOAD_CHECKSUM_SHA256 or sha256sum beside it"
        yield look.subject.finding("download-unchecked", text, where, hint)
    elif not any("<<<" in value or not _MD5.fullmatch(value) for value in sums):
        yield look.subject.finding("download-md5", f"{shown(address)} is checked with MD5 only", where)


# --- hooks ---

HOOKS = ("predeps", "preprocess", "postprocess", "detect_version")
SHELLS = (".sh",)
STARTERS = frozenset({"system", "popen", "run", "call", "check_call", "check_output", "Popen", "getoutput"})
"""Functions of ``os`` and ``subprocess`` that start a command."""


def hooks(look: Look) -> Iterator[Finding]:
    """Python files that do not compile, hooks that cannot take what they get."""
    for name, text in look.subject.texts.items():
        if not name.endswith(".py"):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
                compile(tree, name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", 0) or 0
            yield look.subject.finding_in("hook-syntax", str(getattr(error, "msg", error)), (name, line))
            continue
        if not _CHECK.search(text):
            yield from _first(look, name, "download-unchecked", _fetching_texts(tree))
        for node in tree.body if name == "customize.py" else ():
            if isinstance(node, ast.FunctionDef) and node.name in HOOKS and not _takes_one(node.args):
                signature = f"{node.name}({ast.unparse(node.args)})"
                hint = f"def {node.name}(i):"
                yield look.subject.finding_in("hook-signature", signature, (name, node.lineno), hint)


def _fetching_texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Commands that download, where Python code starts them; such texts elsewhere may be advice for the user."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or ast.unparse(call.func).rpartition(".")[2] not in STARTERS:
            continue
        for node in ast.walk(call):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                line = next((line for line in node.value.splitlines() if _FETCH_COMMAND.search(line)), "")
                if line:
                    yield node.lineno, line


def _takes_one(arguments: ast.arguments) -> bool:
    given = len(arguments.posonlyargs) + len(arguments.args)
    needed = given - len(arguments.defaults)
    open_keywords = [default for default in arguments.kw_defaults if default is None]
    return needed <= 1 and (given >= 1 or arguments.vararg is not None) and not open_keywords


# --- native scripts ---

_COMMAND = r"(?:^|[;&|({]|\bthen\b|\bdo\b|\belse\b)\s*"
_EVAL = re.compile(_COMMAND + r"eval\s+[\"'$]")
_CHANGES = re.compile(_COMMAND + r"(?:sudo\s+)?(?:rm|rmdir|mv|chmod|chown|truncate)\s+(?P<words>[^;&|#\n]*)")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_EXPANSION = re.compile(r"(?<!\\)\$(?:\{\w+\}|\w+)")


def scripts(look: Look) -> Iterator[Finding]:
    """Native scripts that fail, or that a value can turn into something else; one finding of a kind in each file."""
    subject = look.subject
    for block in look.blocks:
        name = block.layer.script_name
        wanted = re.compile(rf"{re.escape(name)}(-.+)?\.(sh|bat)")
        if name and not re.search(r"[<#]", name) and not any(map(wanted.fullmatch, subject.files)):
            text = f"there is no '{name}.sh' in the folder"
            hint = f"without the ending: {name[:-3]}" if name.endswith(".sh") else ""
            yield subject.finding("script-missing", text, f"{block.where}script_name", hint)
    for name, text in subject.texts.items():
        if not name.endswith(SHELLS):
            continue
        if "\r\n" in text:
            line = text[: text.index("\r\n")].count("\n") + 1
            hint = "write it with LF: sed -i 's/\\r$//' FILE"
            yield subject.finding_in("shell-line-ends", "lines end with CR LF", (name, line), hint)
        elif name in subject.shell_errors:
            line, problem = subject.shell_errors[name]
            yield subject.finding_in("shell-syntax", problem, (name, line))
        yield from _first(look, name, "shell-eval", _evals(text))
        yield from _first(look, name, "shell-unquoted", _unquoted(text))
        if not _CHECK.search(text):
            yield from _first(look, name, "download-unchecked", _fetches(text))


def _first(look: Look, name: str, code: str, found: Iterator[tuple[int, str]]) -> Iterator[Finding]:
    rows = list(found)
    if rows:
        line, text = rows[0]
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        yield look.subject.finding_in(code, text.strip() + more, (name, line))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a script that are no comments; text fed to another program (``<<EOF``) is left out."""
    end = ""
    for number, line in enumerate(text.splitlines(), 1):
        if end:
            end = "" if line.strip() == end else end
            continue
        if not line.lstrip().startswith("#"):
            yield number, line
        here = re.search(r"<<-?\s*['\"\\]?(\w+)", line)
        end = here[1] if here and "<<<" not in line else ""


def _evals(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in _lines(text) if _EVAL.search(line))


def _unquoted(text: str) -> Iterator[tuple[int, str]]:
    for number, line in _lines(text):
        for match in _CHANGES.finditer(line):
            if _EXPANSION.search(_QUOTED.sub("", match["words"])):
                yield number, line
                break


def _fetches(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in _lines(text) if _FETCH.search(line))
