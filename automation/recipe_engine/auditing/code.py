"""Rules of the audit about what a recipe fetches and about its code: hooks and native scripts."""

import ast
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ..documents.needs import SHA256_KEYS, URL_KEYS
from ..rules.conditions import shown
from ..rules.env import PREFIX, SUCCESSOR_PREFIX
from ..rules.query import nearest, split_words
from .findings import Finding
from .recipes import AuditedRecipe, Block, Registered, finds

# --- downloads ---

NEEDS_KEYS = {
    "downloads": "rows of what, size_bytes, sha256, license",
    "disk_mb": "a whole number of MB (10**6 bytes)",
    "memory_mb": "a whole number of MB (10**6 bytes)",
    "sudo": "a text with the purpose",
    "container": "a text with the purpose",
    "gpu": "a text with the purpose",
    "tokens": "a list of env keys",
}
DOWNLOAD_KEYS = ("what", "size_bytes", "sha256", "license", "licence")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_MD5 = re.compile(r"[0-9a-fA-F]{32}")
_FETCH = re.compile(r"(?m)^(?!\s*(?:#|echo\b)).*?(?:^|[\s;&|(`])(?P<tool>wget|curl)\s+(?:-|\S*://|\"|\$)")
_FETCH_COMMAND = re.compile(r"(?:^|[;&|])\s*(?:sudo\s+)?(?:wget|curl)\s+(?:-|\S*://)")
_CHECK = re.compile(r"\b(?:sha(?:1|224|256|384|512)sum|md5sum|shasum|cksum|b2sum|gpg\s+--verify|hashlib)\b")


def _both_prefixes(keys: tuple[str, ...]) -> frozenset[str]:
    return frozenset(keys) | {SUCCESSOR_PREFIX + key[len(PREFIX) :] for key in keys}


FETCHED_KEYS = _both_prefixes(URL_KEYS) - _both_prefixes(("CM_GIT_URL",))
"""Keys whose value is downloaded as a file; git checks what it clones itself."""
CHECKSUM_KEYS = _both_prefixes((*SHA256_KEYS, "CM_DAE_FILE_MD5", "CM_EXTRACT_CHECKSUM"))
CHECKSUM_INPUTS = frozenset({"sha256sum", "md5sum", "checksum"})
DOWNLOAD_TAGS = frozenset({"download", "download-and-extract", "dae"})


@finds("needs-unusable", "download-unchecked")
def needs(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """What the recipe says it needs: keys and values that plans can use, a checksum for each address."""
    for block in audited.blocks:
        for key, value in block.layer.needs.items():
            where = f"{block.where}needs.{key}"
            if key not in NEEDS_KEYS:
                yield _unread(audited, where, key, NEEDS_KEYS)
            elif not _fits(key, value):
                text = f"expected {NEEDS_KEYS[key]}, found {value!r}"
                yield audited.finding("needs-unusable", text, where)
            elif key == "downloads":
                for number, row in enumerate(value):
                    yield from _row(audited, f"{where}[{number}]", row)


def _unread(audited: AuditedRecipe, where: str, key: str, known: Collection[str]) -> Finding:
    close = nearest(key, known, 1)
    hint = f"did you mean {close[0]}?" if close else f"known are: {', '.join(known)}"
    return audited.finding("needs-unusable", f"'{key}' has no effect", where, hint)


def _fits(key: str, value: Any) -> bool:
    is_text_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
    if key == "downloads":
        return isinstance(value, list) and all(isinstance(row, Mapping) for row in value)
    if key.endswith("_mb"):
        return not isinstance(value, bool) and str(value).isdigit()
    return is_text_list or (key != "tokens" and isinstance(value, str | bool))


def _row(audited: AuditedRecipe, where: str, row: Mapping[str, Any]) -> Iterator[Finding]:
    yield from (_unread(audited, f"{where}.{key}", str(key), DOWNLOAD_KEYS) for key in row if key not in DOWNLOAD_KEYS)
    what, digest = str(row.get("what") or ""), str(row.get("sha256") or "")
    if not what:
        yield audited.finding("needs-unusable", "a download without 'what'", where)
    if digest and "<<<" not in digest and not _SHA256.fullmatch(digest):
        yield audited.finding("needs-unusable", f"'{digest}' is not a SHA-256", f"{where}.sha256")
    if not digest and _is_address(what):
        yield audited.finding("download-unchecked", f"{what} has no sha256", where)


@finds("download-unchecked", "download-md5")
def fetched(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """Addresses that the metadata hands to a step that downloads."""
    general = [value for block in audited.blocks if not block.where for _, env in _envs(block) for value in _sums(env)]
    for block in audited.blocks:
        for where, env in _envs(block):
            address = next((str(env[key]) for key in FETCHED_KEYS & env.keys() if _is_address(env[key])), "")
            yield from _judge(audited, where, address, [*_sums(env), *general])
        for where, dependency in block.dependencies():
            words = split_words(dependency.tags_text)
            address = next((word[5:] for word in words if word.startswith("_url.")), "")
            if DOWNLOAD_TAGS.intersection(words):
                given = [str(dependency.entry[key]) for key in CHECKSUM_INPUTS & dependency.entry.keys()]
                yield from _judge(audited, where, address, [*given, *_sums(dependency.env), *general])


def _envs(block: Block) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The env mappings of one block: env as written over default_env, and those of its dependencies."""
    yield f"{block.where}env", {**block.layer.default_env, **block.layer.env, **block.layer.const}
    yield from ((f"{path}.env", dependency.env) for path, dependency in block.dependencies())


def _sums(env: Mapping[str, Any]) -> list[str]:
    return [str(env[key]) for key in sorted(CHECKSUM_KEYS & env.keys()) if env[key]]


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://", "ftp://"))


def _judge(audited: AuditedRecipe, where: str, address: str, sums: list[str]) -> Iterator[Finding]:
    if address and not sums:
        text = f"{shown(address)} is downloaded without a checksum"
        hint = "add CM_DOWNLOAD_CHECKSUM_SHA256 or sha256sum"
        yield audited.finding("download-unchecked", text, where, hint)
    elif address and not any("<<<" in value or not _MD5.fullmatch(value) for value in sums):
        yield audited.finding("download-md5", f"{shown(address)} is checked with MD5 only", where)


# --- hooks ---

HOOKS = ("predeps", "preprocess", "postprocess", "detect_version")
STARTERS = frozenset({"system", "popen", "run", "call", "check_call", "check_output", "Popen", "getoutput"})
"""Functions of ``os`` and ``subprocess`` that start a command."""


@finds("hook-syntax", "hook-signature", "download-unchecked", is_of_recipe=False)
def hooks(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """Python files that do not compile, hooks that cannot take what they get."""
    for name, text in audited.texts.items():
        if not name.endswith(".py"):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
                compile(tree, name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", 0) or 0
            yield audited.finding_in(name, line, "hook-syntax", str(getattr(error, "msg", error)))
            continue
        if not _CHECK.search(text):
            yield from _first(audited, name, "download-unchecked", _fetching_texts(tree))
        for node in tree.body if name == "customize.py" else ():
            if isinstance(node, ast.FunctionDef) and node.name in HOOKS and not _takes_one(node.args):
                signature = f"{node.name}({ast.unparse(node.args)})"
                hint = f"def {node.name}(i):"
                yield audited.finding_in(name, node.lineno, "hook-signature", signature, hint)


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


@finds("script-missing")
def script_names(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """Names of native scripts that are not in the folder."""
    for block in audited.blocks:
        name = block.layer.script_name
        wanted = re.compile(rf"{re.escape(name)}(-.+)?\.(sh|bat)")
        if name and not re.search(r"[<#]", name) and not any(map(wanted.fullmatch, audited.files)):
            text = f"'{name}.sh' is not in the folder"
            hint = f"without the ending: {name[:-3]}" if name.endswith(".sh") else ""
            yield audited.finding("script-missing", text, f"{block.where}script_name", hint)


@finds("shell-line-ends", "shell-syntax", "shell-eval", "shell-unquoted", "download-unchecked", is_of_recipe=False)
def scripts(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """Native scripts that fail, or that a value can turn into something else; one finding of a kind in each file."""
    for name, text in audited.texts.items():
        if not name.endswith(".sh"):
            continue
        if "\r\n" in text:
            line = text[: text.index("\r\n")].count("\n") + 1
            hint = "write it with LF: sed -i 's/\\r$//' FILE"
            yield audited.finding_in(name, line, "shell-line-ends", "lines end with CR LF", hint)
        elif name in audited.shell_errors:
            line, problem = audited.shell_errors[name]
            yield audited.finding_in(name, line, "shell-syntax", problem)
        lines = list(_lines(text))
        yield from _first(audited, name, "shell-eval", [row for row in lines if _EVAL.search(row[1])])
        yield from _first(audited, name, "shell-unquoted", [row for row in lines if _is_unquoted(row[1])])
        if not _CHECK.search(text):
            yield from _first(audited, name, "download-unchecked", [row for row in lines if _FETCH.search(row[1])])


def _first(audited: AuditedRecipe, name: str, code: str, found: Iterable[tuple[int, str]]) -> Iterator[Finding]:
    rows = list(found)
    if rows:
        line, text = rows[0]
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        yield audited.finding_in(name, line, code, text.strip() + more)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a script that are not comments; text fed to another program (``<<EOF``) is left out."""
    end = ""
    for number, line in enumerate(text.splitlines(), 1):
        if end:
            end = "" if line.strip() == end else end
            continue
        if not line.lstrip().startswith("#"):
            yield number, line
        here = re.search(r"<<-?\s*['\"\\]?(\w+)", line)
        end = here[1] if here and "<<<" not in line else ""


def _is_unquoted(line: str) -> bool:
    """Whether a command that changes files gets an expansion outside quotes."""
    return any(_EXPANSION.search(_QUOTED.sub("", match["words"])) for match in _CHANGES.finditer(line))
