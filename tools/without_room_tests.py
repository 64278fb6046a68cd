"""Takes out of the tests what needs a room that went, function by function.

A top-level statement of a test goes when it imports what went, names it in a text (a module, a recipe by its folder or
its tags, a program), or uses a name of a statement that goes, a fixture by its parameter. A file of tests without any
test left goes whole. Helpers and conftest.py are treated alike, and what they lose is lost to the tests.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Gone:
    """What went: rooms of crowdperf, words that name recipes (folders, comma-joined tags), and programs of recipes that
    stay (folder of the recipe, name without .py)."""

    rooms: frozenset[str]
    words: frozenset[str]
    programs: frozenset[tuple[str, str]]

    def imports(self, module: str) -> bool:
        """Whether the module is of a room that went."""
        parts = module.split(".")
        return parts[0] == "crowdperf" and len(parts) > 1 and parts[1] in self.rooms

    @cached_property
    def _named(self) -> re.Pattern[str]:
        rooms, words = "|".join(sorted(self.rooms)), "|".join(map(re.escape, sorted(self.words)))
        return re.compile(rf"\bcrowdperf[./](?:{rooms})\b" + (rf"|(?<![\w,-])(?:{words})(?![\w-])" if words else ""))

    def is_named(self, text: str) -> bool:
        """Whether a text names a room or a recipe that went."""
        return bool(self._named.search(text))

    def may_be_in(self, text: str) -> bool:
        """Whether code with this text can name or import what went."""
        return any(f"crowdperf{joint}{room}" in text for joint in "./" for room in self.rooms) or (
            "from crowdperf import" in text or any(word in text for word in self.words)
        )

    def programs_in(self, text: str) -> frozenset[str]:
        """The programs that may be named in a file with this text: those of recipes that it names."""
        return frozenset(program for alias, program in self.programs if alias in text and program in text)


def bound_names(node: ast.stmt) -> set[str]:
    """The names that a top-level statement binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(one.asname or one.name).partition(".")[0] for one in node.names}
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def used_names(node: ast.stmt) -> Iterator[str]:
    """The names that a statement uses: variables, parameters (fixtures), and attributes as `module.name`."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.arg):
            yield one.arg
        elif isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
            yield f"{one.value.id}.{one.attr}"


@dataclass(frozen=True)
class Facts:
    """What a top-level statement is: the names it binds, those it uses, its texts, and what it imports inside."""

    node: ast.stmt
    binds: frozenset[str]
    uses: frozenset[str]
    texts: tuple[str, ...]
    imports: tuple[str, ...]


def facts_of(tree: ast.Module) -> list[Facts]:
    """What is known of each top-level statement of a file."""
    found = []
    for node in tree.body:
        inner = list(ast.walk(node))
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        texts = [one.value for one in inner if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        imports = [
            f"{one.module}.{name.name}" for one in inner if isinstance(one, ast.ImportFrom) for name in one.names
        ]
        imports += [name.name for one in inner if isinstance(one, ast.Import) for name in one.names]
        found.append(
            Facts(
                node,
                frozenset(bound_names(node)),
                frozenset(used_names(node)),
                () if is_docstring else tuple(texts),
                tuple(imports),
            )
        )
    return found


class TestFile:
    """One file of tests and what it loses."""

    __test__ = False

    def __init__(self, name: str, text: str, facts: Callable[[str], list[Facts]]) -> None:
        self.name, self.text, self._facts = name, text, facts
        self.stem = PurePosixPath(name).stem
        self.lost_nodes: set[int] = set()
        self.lost_names: set[str] = set()

    @property
    def facts(self) -> list[Facts]:
        """What is known of its statements; found out when it is asked for."""
        return self._facts(self.name)

    def lose(self, index: int, names: set[str]) -> bool:
        """Marks a statement, or names of an import, as lost; says whether that is new."""
        is_new = not names <= self.lost_names
        self.lost_names |= names
        if not isinstance(self.facts[index].node, ast.Import | ast.ImportFrom):
            is_new |= index not in self.lost_nodes
            self.lost_nodes.add(index)
        return is_new

    def begin(self, gone: Gone) -> None:
        """Marks what names or imports what went by itself."""
        programs = gone.programs_in(self.text)
        if not programs and not gone.may_be_in(self.text):
            return
        for index, facts in enumerate(self.facts):
            node = facts.node
            if isinstance(node, ast.ImportFrom):
                names = {one.asname or one.name for one in node.names if gone.imports(f"{node.module}.{one.name}")}
            elif isinstance(node, ast.Import):
                names = {one.asname or one.name for one in node.names if gone.imports(one.name)}
            elif (
                any(map(gone.imports, facts.imports))
                or any(map(gone.is_named, facts.texts))
                or any(PurePosixPath(text).stem in programs for text in facts.texts)
            ):
                self.lose(index, set(facts.binds))
                continue
            else:
                continue
            self.lose(index, names)

    def spread(self, lost: Mapping[str, set[str]]) -> bool:
        """Marks what uses what is lost, here or in helpers (`lost`, by module); says whether there was more."""
        is_more = False
        if not self.lost_names and not any(module in self.text for module in lost):
            return False
        for index, facts in enumerate(self.facts):
            node = facts.node
            if isinstance(node, ast.ImportFrom) and node.module in lost:
                names = {one.asname or one.name for one in node.names if one.name in lost[node.module]}
                is_more |= self.lose(index, names)
            elif isinstance(node, ast.Import):
                for one in (one for one in node.names if one.name in lost):
                    dotted = {f"{one.asname or one.name}.{name}" for name in lost[one.name]}
                    is_more |= self.lose(index, dotted)
            elif index not in self.lost_nodes and facts.uses & self.lost_names:
                is_more |= self.lose(index, set(facts.binds))
        return is_more

    @property
    def has_tests(self) -> bool:
        """Whether a test is left, or the file has helpers only."""
        if not self.stem.startswith("test_"):
            return True
        left = [facts for index, facts in enumerate(self.facts) if index not in self.lost_nodes]
        functions = [one for one in left if isinstance(one.node, ast.FunctionDef | ast.ClassDef)]
        return any(name.lower().startswith("test") for one in functions for name in one.binds)

    def left(self) -> str:
        """The file without what is lost; empty where no test is left."""
        if not self.has_tests:
            return ""
        lines = self.text.splitlines(keepends=True)
        for index, node in reversed([*enumerate(facts.node for facts in self.facts)]):
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))]) - 1
            if index in self.lost_nodes:
                lines[first : node.end_lineno] = []
            elif isinstance(node, ast.Import | ast.ImportFrom):
                kept = [one for one in node.names if (one.asname or one.name) not in self.lost_names]
                if len(kept) < len(node.names):
                    lines[first : node.end_lineno] = [f"{ast.unparse(with_names(node, kept))}\n"] if kept else []
        return "".join(lines)


def with_names(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> ast.stmt:
    """An import with some of its names."""
    if isinstance(node, ast.Import):
        return ast.Import(names)
    return ast.ImportFrom(node.module, names, node.level)


def pruned_tests(texts: Mapping[str, str], facts: Callable[[str], list[Facts]], gone: Gone) -> dict[str, str]:
    """Returns the files that change by their names, empty for those that go. texts: every Python file of the tests;
    facts: gives what facts_of says of a file by its name."""
    files = [TestFile(name, text, facts) for name, text in texts.items()]
    for file in files:
        file.begin(gone)
    fixtures = [file for file in files if file.stem == "conftest"]
    is_more = True
    while is_more:
        lost = {file.stem: set(file.lost_names) for file in files if file.lost_names and file.stem != "conftest"}
        for file in files:
            for other in fixtures:
                if other is not file and file.name.startswith(other.name.removesuffix("conftest.py")):
                    file.lost_names |= other.lost_names
        is_more = sum(file.spread(lost) for file in files) > 0
    left = {file.name: file.left() for file in files if file.lost_names or file.lost_nodes}
    return {name: text for name, text in left.items() if text != texts[name]}
