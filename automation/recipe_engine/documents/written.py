"""What a recipe's own code may do to env, judged from its text alone: nothing is imported or run.

A plan needs to know which env keys a recipe sets when it runs, so that it decides no condition that such a key could
turn. Where the text does not tell, the answer is wide rather than wrong: the glob ``*`` means "any key".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

ANY = "*"
KEY_SHAPE = re.compile(r"\+? ?[A-Za-z_][A-Za-z0-9_.]*")
READERS = frozenset(["get", "keys", "items", "values", "copy", "startswith", "endswith", "format", "join", "strip"])
"""Methods that read the mapping or text they are called on."""
HARMLESS_CALLS = frozenset(
    ["str", "len", "dict", "list", "print", "sorted", "bool", "isinstance", "set", "repr", "tuple", "deepcopy"]
)
"""Functions that do not change the env that they are given."""
ENV_NAMES = frozenset(["env"])
"""What recipes call the env that a hook gets (``env = i['env']`` in all recipes of cm4mlops that have hooks)."""


class NotedEnv(dict[str, Any]):
    """An env that remembers which keys were written, also with the value that they had."""

    def __init__(self, env: Mapping[str, Any]) -> None:
        super().__init__(env)
        self.touched: set[str] = set()

    def __setitem__(self, key: str, value: Any) -> None:
        self.touched.add(key)
        super().__setitem__(key, value)

    def update(self, *given: Any, **named: Any) -> None:
        """As ``dict.update``."""
        for key, value in dict(*given, **named).items():
            self[key] = value

    def setdefault(self, key: str, default: Any = None) -> Any:
        """As ``dict.setdefault``; counts as written in any case."""
        self[key] = self.get(key, default)
        return self[key]


class Written(NamedTuple):
    """What a recipe's code may change.

    ``before`` are the keys and globs that preprocess may set, ``after`` those of the native script and postprocess;
    ``may_end_early``: preprocess can answer ``skip``; ``may_change_lists``: it touches its dependency lists;
    ``runs_recipes``: a hook starts recipes itself.
    """

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    may_end_early: bool = False
    may_change_lists: bool = False
    runs_recipes: bool = False


def written_by(python: Mapping[str, str], scripts: Iterable[str]) -> Written:
    """What ``python`` (file name to text, ``customize.py`` among them) and native ``scripts`` (texts) may change."""
    before: dict[str, None] = {}
    after: dict[str, None] = {}
    may_end_early = may_change_lists = runs_recipes = False
    trees = []
    for text in python.values():
        try:
            trees.append(ast.parse(text))
        except (SyntaxError, ValueError):
            before[ANY] = None
    own = frozenset(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, _NAMED))
    for tree in trees:
        finder = _Finder(own | HARMLESS_CALLS)
        finder.visit(tree)
        before.update(dict.fromkeys(finder.keys["before"]))
        after.update(dict.fromkeys(finder.keys["after"]))
        may_end_early = may_end_early or finder.has_skip
        may_change_lists = may_change_lists or finder.touches_lists
        runs_recipes = runs_recipes or finder.runs_recipes
    for text in scripts:
        after.update(dict.fromkeys(keys_of_script(text)))
    return Written(tuple(before), tuple(after), may_end_early, may_change_lists, runs_recipes)


def keys_of_script(text: str) -> Iterator[str]:
    """The keys that a native script may write into tmp-run-env.out: those it names, or any when that is not plain."""
    if "tmp-run-env.out" not in text:
        return
    is_plain = True
    for line in text.splitlines():
        if "tmp-run-env.out" not in line or line.lstrip().startswith("#"):
            continue
        found = re.findall(r"""(?:echo|printf)\s+(?:-e\s+|-n\s+)?["']?([A-Za-z_][A-Za-z0-9_]*)=""", line)
        yield from found
        is_plain = is_plain and (bool(found) or re.search(r"\brm\b|\bcat\b|^\s*if\b|\[ ", line) is not None)
    if not is_plain:
        yield ANY


_NAMED = (ast.FunctionDef, ast.ClassDef)


class _Finder(ast.NodeVisitor):
    """Walks one Python file and collects the keys it may set, apart for what runs before and after the script.

    A function whose name is not among ``known`` may do anything to an env that it is given.
    """

    def __init__(self, known: frozenset[str]) -> None:
        self.known = known
        self.keys: dict[str, dict[str, None]] = {"before": {}, "after": {}}
        self.when = "before"
        self.has_skip = False
        self.touches_lists = False
        self.runs_recipes = False

    def _add(self, pattern: str) -> None:
        if pattern:
            self.keys[self.when][pattern] = None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Enters a function; what postprocess sets comes after the native script."""
        outer = self.when
        if node.name == "postprocess":
            self.when = "after"
        if node.name not in ("detect_version", "plan"):
            self.generic_visit(node)
        self.when = outer

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """``env[KEY] = ...`` sets a key, ``i['env'] = ...`` any."""
        if isinstance(node.ctx, ast.Store | ast.Del):
            if _is_env(node.value):
                self._add(_pattern(node.slice))
            elif isinstance(node.slice, ast.Constant) and node.slice.value == "env":
                self._add(ANY)
        if isinstance(node.slice, ast.Constant) and node.slice.value in _LIST_KEYS and _is_meta(node.value):
            self.touches_lists = True
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Calls that are given the env, or that set keys by name."""
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if isinstance(function, ast.Attribute) and _is_env(function.value):
            if name in ("setdefault", "pop"):
                self._add(_pattern(node.args[0]) if node.args else ANY)
            elif name not in READERS:
                for pattern in _update_patterns(node):
                    self._add(pattern)
        elif name not in self.known and not _is_of("subprocess", function) and any(map(_is_env, _arguments(node))):
            self._add(ANY)
        if name == "update_deps":
            self.touches_lists = True
        if name == "access" and not _is_of("os", function) and _asks_for_run(node):
            self.runs_recipes = True
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        """Arguments of CM's helpers that name a key to set, and the answer ``skip``."""
        for key, value in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant):
                continue
            if key.value == "skip" and self.when == "before" and not _is_false(value):
                self.has_skip = True
            if key.value in ("env_path_key", "env_key", "default_path_env_key"):
                text = _pattern(value)
                self._add(text if key.value != "default_path_env_key" or text == ANY else "+" + text)
            if key.value == "extra_paths" and isinstance(value, ast.Dict):
                for item in value.values:
                    self._add(_pattern(item))
        self.generic_visit(node)


_LIST_KEYS = frozenset(["deps", "prehook_deps", "posthook_deps", "post_deps"])


def _is_env(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "env"
    return isinstance(node, ast.Name) and node.id in ENV_NAMES


def _is_meta(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "meta"
    return isinstance(node, ast.Name) and node.id == "meta"


def _is_of(module: str, function: ast.AST) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == module


def _arguments(node: ast.Call) -> Iterator[ast.AST]:
    yield from node.args
    yield from (keyword.value for keyword in node.keywords)


def _is_false(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _asks_for_run(node: ast.Call) -> bool:
    """Whether a ``cm.access`` call runs a recipe, as far as its argument tells; an argument made elsewhere may."""
    argument = node.args[0] if node.args else None
    if not isinstance(argument, ast.Dict):
        return True
    given = {
        key.value: value.value
        for key, value in zip(argument.keys, argument.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
    }
    return given.get("action", "run") == "run" and str(given.get("automation", "script")).startswith("script")


def _pattern(node: ast.AST) -> str:
    """The key that an expression names, as a glob where only a part of it is plain."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        parts = [str(part.value) if isinstance(part, ast.Constant) else ANY for part in node.values]
        return re.sub(r"\*+", ANY, "".join(parts))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return re.sub(r"\*+", ANY, _pattern(node.left) + _pattern(node.right))
    if isinstance(node, ast.IfExp):
        choices = {_pattern(node.body), _pattern(node.orelse)}
        return choices.pop() if len(choices) == 1 else ANY
    return ANY


def _update_patterns(node: ast.Call) -> Iterator[str]:
    """The keys that ``env.update(...)`` sets."""
    for keyword in node.keywords:
        yield keyword.arg or ANY
    for argument in node.args:
        if isinstance(argument, ast.Dict) and all(key is not None for key in argument.keys):
            yield from (_pattern(key) for key in argument.keys if key is not None)
        else:
            yield ANY
