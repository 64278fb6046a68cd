"""What a recipe's code may do to env, judged from its text."""

from __future__ import annotations

import textwrap

import pytest
from recipe_engine.documents.written import ANY, written_by

BEFORE = {
    "a key": ("env['CM_A'] = '1'", ("CM_A",)),
    "a key of the input's env": ("i['env']['CM_A'] = '1'", ("CM_A",)),
    "a deleted key": ("del env['CM_A']", ("CM_A",)),
    "a key that is partly known": ("env[f'CM_{name}_PATH'] = '1'", ("CM_*_PATH",)),
    "one of two keys": ("env['CM_A' if x else 'CM_B'] = '1'", (ANY,)),
    "a key from elsewhere": ("env[key] = '1'", (ANY,)),
    "another env": ("i['env'] = {}", (ANY,)),
    "an update": ("env.update({'CM_A': '1'}, CM_B='2')", ("CM_B", "CM_A")),
    "an update from elsewhere": ("env.update(found())", (ANY,)),
    "a default": ("env.setdefault('CM_A', '1')", ("CM_A",)),
    "a read key": ("x = env.get('CM_A')", ()),
    "a function of the recipe": ("mine(env)", ()),
    "a class of the recipe": ("Mine(env)", ()),
    "a function of a library": ("library.finish(env, 'x')", (ANY,)),
    "a function that was imported": ("finish(x, env=env)", (ANY,)),
    "a copy": ("x = dict(env)\nprint(sorted(env))\ncopy.deepcopy(env)", ()),
    "the env of a process": ("subprocess.run(['x'], env=env)", ()),
}


@pytest.mark.parametrize(("statements", "keys"), BEFORE.values(), ids=BEFORE.keys())
def test_what_preprocess_may_set_is_read_from_its_text(statements: str, keys: tuple[str, ...]) -> None:
    hook = f"def preprocess(i):\n{textwrap.indent(statements, '    ')}\n"
    found = written_by({"customize.py": hook, "other.py": "def mine(env): pass\nclass Mine: pass\n"}, [])
    assert (found.before, found.after) == (keys, ())


def test_what_postprocess_and_the_native_script_set_comes_after() -> None:
    hook = "def postprocess(i):\n    library.finish(i['env'])\n"
    assert written_by({"customize.py": hook}, []) == written_by({}, ["cat x > tmp-run-env.out\necho > tmp-run-env.out"])
    assert written_by({"customize.py": hook}, []).after == (ANY,)


def test_a_text_that_is_no_python_may_do_anything() -> None:
    assert written_by({"customize.py": "def preprocess(i:\n"}, []).before == (ANY,)
