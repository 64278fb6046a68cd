"""Random small repositories, planned and run, with an empty cache and with a warm one: no plan is wrong where certain.

The plan hooks that are drawn keep the promises of docs/howto/plan-and-lock.md; all other code does as it likes.
"""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from helpers import TemporaryHome
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_comparison import compare, files_below, planned_rows, rows_of
from recipe_engine.actions.run import new_engine, parse_request
from recipe_engine.disk.files import working_folder
from recipe_engine.disk.store import Store
from recipe_engine.rules.errors import RecipeError
from recipe_engine.rules.model import StepEvent

FEWER = settings(max_examples=max(8, settings.default.max_examples // 2) if settings.default else 8)
KEYS = ("CM_A", "CM_B", "CM_C", "CM_TMP_D", "+CM_L")
VALUES = ("1", "2", "yes")
VERSIONS = ("1.0", "2.0", "3.0")
PHASES = ("deps", "prehook_deps", "posthook_deps", "post_deps")
CONDITIONS = ("enable_if_env", "skip_if_env", "enable_if_any_env", "skip_if_any_env")
WRITES = (
    "i['env']['{key}'] = {value!r}",
    "e = i['env']; e.update({{'{key}': {value!r}}})",
    "i['env'] = {{**i['env'], '{key}': {value!r}}}",
    "i.get('env').setdefault('{key}', {value!r})",
    "env = i['env']; env |= {{'{key}': {value!r}}}",
    "i['env'].pop('{key}', None)",
    "i['run_script_input']['env']['{key}'] = {value!r}",
)
"""Ways in which hooks write env in Python."""
ENDS = (
    "return {'return': 0}",
    "return {'return': 0, 'skip': True}",
    "i['meta']['prehook_deps'] = []; return {'return': 0}",
    "i['meta']['post_deps'] = i['meta'].get('deps', []); return {'return': 0}",
    "return {'return': 0, 'version': '2.0'}",
    "return {'return': 0, 'add_extra_cache_tags': ['found']}",
    "return {'return': 1, 'error': 'it did not work'}",
)

keys, texts = st.sampled_from(KEYS), st.sampled_from(VALUES)
plain_keys = st.sampled_from(KEYS[:-1])
conditions = st.dictionaries(plain_keys, st.lists(texts, min_size=1, max_size=2), min_size=1, max_size=2)
envs = st.dictionaries(
    plain_keys, st.one_of(texts, st.sampled_from(["<<<CM_A>>>", "<<<CM_B>>>x"])), min_size=1, max_size=2
)


def some(**choices: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping with each of these keys, or without it."""
    return st.fixed_dictionaries({}, optional=choices)


versions = some(
    version=st.sampled_from(VERSIONS), version_min=st.sampled_from(VERSIONS), version_max=st.sampled_from(VERSIONS)
)


class Source(NamedTuple):
    """One recipe: its metadata and the texts of its files."""

    meta: dict[str, Any]
    customize: str = ""
    run_sh: str = ""
    validate_cache_sh: str = ""


@st.composite
def dependencies(draw: Any, number: int) -> dict[str, Any]:
    """A dependency on one of the recipes before ``number``."""
    other = draw(st.integers(0, number - 1))
    tags = draw(st.sampled_from([f"get,r{other}"] * 4 + ["either"] * (number > 2)))
    tags += draw(st.sampled_from(["", "", ",_plain", ",_fancy", ",_n.7", ",_n.<<<CM_A>>>"]))
    more = some(
        env=envs,
        dynamic=st.just(True),
        update_tags_from_env_with_prefix=st.just({"_n.": ["CM_B"]}),
        reuse_version=st.just(True),
        force_env_keys=st.just(["CM_TMP_*"]),
        continue_on_error=st.just(True),
        **dict.fromkeys(CONDITIONS, conditions),
    )
    asked = draw(versions) if draw(st.integers(0, 5)) == 5 else {}
    given = draw(more)
    kept = draw(st.sets(st.sampled_from(sorted(given)), max_size=2)) if given else set()
    return {"tags": tags, "names": ["tool"], **asked, **{key: given[key] for key in kept}}


@st.composite
def metas(draw: Any, number: int) -> dict[str, Any]:
    """The metadata of recipe ``number``."""
    alias = f"get-r{number}"
    own = {f"CM_R{number}_*", f"CM_R{number}_OUT"}
    layer = some(env=envs, default_env=envs, const=envs)
    meta: dict[str, Any] = {
        "cache": draw(st.sampled_from([True, True, False])),
        "tags": [*alias.split("-"), *(["either"] if number < 2 else [])],
        "new_env_keys": draw(st.lists(st.sampled_from([*sorted(own), *KEYS, "CM_*"]), max_size=3, unique=True)),
        "variations": {
            "plain": {"group": "g", "default": True},
            "fancy": {"group": "g"},
            "n.#": {"env": {"CM_C": "#"}},
        },
        **draw(layer),
    }
    for name in ("plain", "fancy"):
        if draw(st.booleans()):
            meta["variations"][name].update(draw(layer))
    if draw(st.booleans()):
        meta["versions"] = {version: draw(layer) for version in VERSIONS}
        meta["default_version"] = draw(st.sampled_from(VERSIONS))
    extra = some(
        update_meta_if_env=st.lists(
            st.builds(lambda name, given, then: {name: given, **then}, st.sampled_from(CONDITIONS), conditions, layer),
            min_size=1,
            max_size=1,
        ),
        extra_cache_tags_from_env=st.just([{"env": "CM_A", "prefix": "a-"}]),
        local_env_keys=st.just(["CM_B"]),
        input_mapping=st.just({"in": "CM_A"}),
    )
    meta.update(draw(extra) if draw(st.booleans()) else {})
    for phase in PHASES if number else ():
        meta[phase] = draw(st.lists(dependencies(number), min_size=0, max_size=3 if phase == "deps" else 2))
        if meta[phase] and draw(st.booleans()):
            meta["variations"]["fancy"][phase] = [draw(dependencies(number))]
    if meta.get("deps") and draw(st.booleans()):
        meta["ad"] = {"tool": draw(some(env=envs, tags=st.just("_fancy"), version_min=st.just("2.0")))}
    return meta


@st.composite
def hooks(draw: Any, number: int, key_choice: st.SearchStrategy[str], ends: tuple[str, ...]) -> str:
    """The body of a hook: a few writes, maybe under a condition, and an end."""
    lines = []
    for _ in range(draw(st.integers(0, 2))):
        key = draw(key_choice)
        value: Any = [draw(texts)] if key.startswith("+") else draw(texts)
        lines.append(draw(st.sampled_from(WRITES)).format(key=key, value=value))
    if draw(st.booleans()):
        lines.insert(draw(st.integers(0, len(lines))), f"if i['env'].get('CM_B') == '1': {draw(st.sampled_from(ends))}")
    return "".join(f"    {line}\n" for line in [*lines, draw(st.sampled_from(ends))])


@st.composite
def sources(draw: Any, number: int) -> Source:
    """Recipe ``number``. A plan(i) that is drawn is its preprocess, which then writes keys that nobody else does."""
    parts, check = [], ""
    free = st.one_of(keys, st.just(f"CM_R{number}_OUT"))
    promised = st.just(f"CM_R{number}_SURE")
    kind = draw(st.sampled_from(["none", "none", "none", "none", "plan", "plan", "empty plan", "hook"]))
    if kind == "hook":
        body = draw(hooks(number, free, (ENDS[0],) * 6 + ENDS + (f"return {SKIP_FOR.format(max(0, number - 1))}",)))
        parts.append(f"def preprocess(i):\n{body}")
    elif kind == "plan":
        body = draw(hooks(number, promised, (ENDS[0],) * 4 + ENDS[:3] + ENDS[4:6]))
        parts.append(f"def preprocess(i):\n{body}\n\nplan = preprocess\n")
    elif kind == "empty plan":
        parts.append("def plan(i):\n    return {'return': 0}\n")
    if draw(st.integers(0, 5)) == 5:
        body = draw(hooks(number, free, (ENDS[0], ENDS[0], ENDS[4], ENDS[5])))
        parts.append(f"def postprocess(i):\n{body}")
    if draw(st.integers(0, 5)) == 5:
        check = draw(st.sampled_from(["exit 0\n", "exit 1\n", '[ "$CM_A" != 1 ]\n']))
        if check == "exit 0\n" and draw(st.booleans()):
            parts.append("def plan_reuse(i):\n    return {'return': 0}\n")
    lines = draw(st.lists(st.tuples(free, texts), max_size=2)) if draw(st.integers(0, 3)) == 3 else []
    run_sh = "".join(f"echo '{key}={value}' >> tmp-run-env.out\n" for key, value in lines)
    return Source(draw(metas(number)), "\n\n".join(parts), run_sh, check)


SKIP_FOR = "{{'return': 0, 'skip': True, 'script': {{'tags': 'get,r{0}'}}}}"


@st.composite
def repositories(draw: Any) -> list[Source]:
    """Three to six recipes, each depending on earlier ones only."""
    return [draw(sources(number)) for number in range(draw(st.integers(3, 6)))]


requests = some(
    env=st.dictionaries(plain_keys, texts, max_size=2),
    const=st.dictionaries(plain_keys, texts, max_size=1),
    version=st.sampled_from(VERSIONS),
    new=st.just(True),
    renew=st.just(True),
    skip_cache=st.just(True),
    fake_run=st.just(True),
    mixed_versions=st.just(True),
    **{"in": texts},
)


def contradictions(home: TemporaryHome, inputs: dict[str, Any]) -> list[str]:
    """Plans and runs ``inputs``; what the plan called certain and the run did otherwise."""
    before = files_below(home.path, home.work)
    events: list[StepEvent] = []
    refusal = failure = ""
    planned = []
    with working_folder(home.work):
        try:
            planned = planned_rows(inputs, home.engine_home)
        except RecipeError as error:
            refusal = error.message
        assert files_below(home.path, home.work) == before, "the plan changed a file"
        with Store.opened(home.engine_home.store_path):
            engine = new_engine(home.engine_home, None)
            engine.observers.append(events.append)
            try:
                engine.run_consistently(parse_request(inputs))
            except RecipeError as error:
                failure = error.message
    if refusal:
        return [] if failure else [f"the plan refused what runs: {refusal}"]
    return compare(planned, rows_of(events), Counter(), has_failed=bool(failure))


def test_what_is_run_and_reused_after_the_run_started_over_was_run_as_planned(home: TemporaryHome) -> None:
    """The hook may give a version, so the plan knows of none that a later step could rule out."""
    versions = {"versions": {version: {} for version in VERSIONS}, "default_version": "2.0"}
    hook = "def plan_reuse(i):\n    return {'return': 0}\n"
    home.recipe("get-r0", {"cache": True, "variations": {"v": {}}, **versions}, customize=hook)
    both = [{"tags": "get,r0,_v"}, {"tags": "get,r0", "version": "1.0"}]
    home.recipe("get-r1", {"cache": True, "deps": both})
    home.recipe("get-r2", {"deps": [{"tags": "get,r0"}, {"tags": "get,r1"}]})
    assert contradictions(home, {"tags": "get,r2", "quiet": True}) == []


@FEWER
@given(repositories(), requests)
def test_what_a_plan_calls_certain_is_what_the_run_does(repository: list[Source], request: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory(prefix="plans-") as folder:
        home = TemporaryHome(Path(folder))
        for number, source in enumerate(repository):
            alias = f"get-r{number}"
            files = {"validate_cache.sh": source.validate_cache_sh}
            home.recipe(alias, source.meta, customize=source.customize, run_sh=source.run_sh, files=files)
        inputs = {"tags": f"get,r{len(repository) - 1}", "quiet": True, **request}
        for cache in ("empty", "warm"):
            assert contradictions(home, dict(inputs)) == [], f"with an {cache} cache"
