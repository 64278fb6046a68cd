"""tools/syntax.py gives what `ast.walk` gives."""

import ast
from pathlib import Path

import pytest
from syntax import import_statements, walk

TEXT = """
import a1
class A:
    import a2
    def f(self, g=lambda: 1):
        from a3 import x
        async def h():
            async with one: import a4
            async for two in three: import a5
            else: import a6
try: import a7
except E: import a8
else: import a9
finally: import a10
try: pass
except E: import a11
while 1: import a12
else: import a13
for i in j: import a14
else: import a15
with k: from . import a16
if [i for i in j]: import a17
elif (lambda: 2)(): import a18
else: import a19
match m:
    case 1 if n: import a20
    case [*_]:
        match o:
            case _: from .p import *
"""


@pytest.mark.parametrize(
    "text", [TEXT, Path(__file__).read_text(encoding="utf-8")], ids=["all statements", "this file"]
)
def test_nodes_and_imports_are_those_of_ast_walk(text: str) -> None:
    tree = ast.parse(text)
    expected = [node for node in ast.walk(tree) if not isinstance(node, ast.expr_context)]
    assert list(walk(tree)) == expected
    imports = [node for node in expected if isinstance(node, ast.Import | ast.ImportFrom)]
    assert sorted(import_statements(tree), key=lambda one: one.lineno) == sorted(imports, key=lambda one: one.lineno)
    assert len(imports) == (21 if text == TEXT else 4)
