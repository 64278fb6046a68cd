"""What wins over what: env, inputs, variations, versions, constants, and the changes to dependencies."""

import copy
from typing import Any

import pytest
from builders import configured, recipe, request
from recipe_engine.rules.configure import apply_default_version, configure
from recipe_engine.rules.errors import MetaError, RequestError
from recipe_engine.rules.model import Configured
from recipe_engine.rules.query import BOUND_KEYS, VersionRange

# --- precedence: each level of this ladder beats the ones above it ---

LADDER: list[tuple[str, dict[str, Any]]] = [
    ("default_env", {"meta": {"default_env": {"X": "default_env"}}}),
    ("caller env", {"env": {"X": "caller env"}}),
    ("recipe env", {"meta": {"env": {"X": "recipe env"}}}),
    ("variation env", {"variation": {"env": {"X": "variation env"}}}),
    ("combination env", {"combination": {"env": {"X": "combination env"}}}),
    ("version env", {"version": {"env": {"X": "version env"}}}),
    ("caller const", {"const": {"X": "caller const"}}),
    ("mapped input", {"inputs": {"x": "mapped input"}}),
]


def laid(*levels: dict[str, Any]) -> Configured:
    """A recipe configured with several levels of the ladder at once."""
    meta: dict[str, Any] = {"input_mapping": {"x": "X"}}
    variation: dict[str, Any] = {}
    combination: dict[str, Any] = {}
    version: dict[str, Any] = {}
    given: dict[str, dict[str, Any]] = {"env": {}, "const": {}, "inputs": {"version": "1.0"}}
    for level in levels:
        meta.update(level.get("meta", {}))
        variation.update(level.get("variation", {}))
        combination.update(level.get("combination", {}))
        version.update(level.get("version", {}))
        for name, values in given.items():
            values.update(level.get(name, {}))
    meta["variations"] = {"v": variation, "w": {}, "v,w": combination}
    meta["versions"] = {"1.0": version}
    return configure(recipe(**meta), request("get,x,_v,_w", given["inputs"], env=given["env"], const=given["const"]))


PAIRS = [
    pytest.param(low, high, id=f"{high[0]} beats {low[0]}")
    for number, low in enumerate(LADDER)
    for high in LADDER[number + 1 :]
]


@pytest.mark.parametrize(("low", "high"), PAIRS)
def test_a_stronger_origin_of_a_value_beats_a_weaker_one(
    low: tuple[str, dict[str, Any]], high: tuple[str, dict[str, Any]]
) -> None:
    assert laid(low[1]).env["X"] == low[0]
    assert laid(low[1], high[1]).env["X"] == high[0]


def test_all_origins_together_give_the_strongest() -> None:
    assert laid(*(level for _, level in LADDER)).env["X"] == "mapped input"


@pytest.mark.parametrize("place", ["variation", "combination", "version"])
def test_a_const_of_a_block_beats_every_env_and_a_later_default_nothing(place: str) -> None:
    made = laid({place: {"const": {"X": "const"}}}, {"env": {"X": "caller"}}, {"meta": {"env": {"X": "recipe"}}})
    assert made.env["X"] == "const"
    assert made.const["X"] == "const"


def test_a_const_at_the_top_of_a_recipe_counts() -> None:
    made = configured({"const": {"X": "const"}, "variations": {"v": {"env": {"X": "v"}}}}, "get,x,_v")
    assert made.env["X"] == "const"
    assert made.const == {"X": "const"}


def test_a_default_env_of_a_variation_fills_a_gap_and_does_not_beat_that_of_the_recipe() -> None:
    meta = {"default_env": {"A": "recipe"}, "variations": {"v": {"default_env": {"A": "v", "B": "v"}}}}
    made = configured(meta, "get,x,_v")
    assert (made.env["A"], made.env["B"]) == ("recipe", "v")


def test_the_env_of_a_dependency_entry_beats_what_the_parent_hands_down_and_yields_to_the_recipe() -> None:
    asked = request("get,x", env={"A": "parent", "B": "parent"})._replace(local_env={"A": "entry", "B": "entry"})
    made = configure(recipe(env={"B": "recipe"}), asked)
    assert (made.env["A"], made.env["B"]) == ("entry", "recipe")


# --- inputs ---


@pytest.mark.parametrize(
    ("value", "text"),
    [("user", "user"), (5, "5"), (True, "True"), (False, "False"), ("", ""), (["a", "b"], ["a", "b"])],
)
def test_a_mapped_input_becomes_an_env_value_and_a_constant(value: object, text: object) -> None:
    made = configured({"input_mapping": {"x": "CM_X"}}, inputs={"x": value})
    assert made.env["CM_X"] == text
    assert made.const == {"CM_X": text}


def test_an_input_that_is_not_given_is_not_mapped() -> None:
    made = configured({"input_mapping": {"x": "CM_X", "y": "CM_Y"}}, inputs={"y": None, "z": "1"})
    assert made.const == {}
    assert "CM_X" not in made.env
    assert "CM_Y" not in made.env


def test_a_mapping_of_a_variation_holds_when_the_variation_is_on() -> None:
    meta = {"variations": {"v": {"input_mapping": {"x": "CM_X"}}}}
    assert configured(meta, "get,x,_v", {"x": "1"}).env["CM_X"] == "1"
    assert "CM_X" not in configured(meta, "get,x", {"x": "1"}).env


def test_all_mappings_are_known_to_the_cache_key() -> None:
    meta = {"input_mapping": {"x": "CM_X"}, "variations": {"v": {"input_mapping": {"y": "CM_Y"}}}}
    assert configured(meta, "get,x,_v").layer.input_mapping == {"x": "CM_X", "y": "CM_Y"}


# --- merging the layers ---


def test_states_are_merged_deeply_and_lists_without_repeats() -> None:
    meta = {
        "state": {"a": {"l": [1, 2], "k": "recipe"}},
        "variations": {"v": {"state": {"a": {"l": [2, 3], "k": "v"}}}},
    }
    assert configured(meta, "get,x,_v").state == {"a": {"l": [1, 2, 3], "k": "v"}}


def test_what_leaves_is_the_union_of_all_blocks_in_order() -> None:
    meta = {
        "new_env_keys": ["A", "B"],
        "new_state_keys": ["s"],
        "variations": {"v": {"new_env_keys": ["B", "C"], "new_state_keys": ["t", "s"]}},
    }
    layer = configured(meta, "get,x,_v").layer
    assert (layer.new_env_keys, layer.new_state_keys) == (("A", "B", "C"), ("s", "t"))


def test_the_last_block_that_names_a_script_or_a_default_version_decides() -> None:
    meta = {
        "script_name": "one",
        "default_version": "1",
        "variations": {"v": {"script_name": "two"}, "w": {"default_version": 2.0}},
    }
    layer = configured(meta, "get,x,_v,_w").layer
    assert (layer.script_name, layer.default_version) == ("two", "2.0")


def test_docker_settings_are_merged_deeply() -> None:
    meta = {"docker": {"run": False, "mounts": ["a"]}, "variations": {"v": {"docker": {"mounts": ["b"]}}}}
    assert configured(meta, "get,x,_v").layer.docker == {"run": False, "mounts": ["a", "b"]}


def test_warnings_and_disk_space_add_up() -> None:
    meta = {
        "warnings": ["one"],
        "required_disk_space": 10,
        "variations": {"v": {"warning": "two", "required_disk_space": 5}, "w": {"warnings": ["one"]}},
    }
    layer = configured(meta, "get,x,_v,_w").layer
    assert (layer.warnings, layer.required_disk_space_mb) == (("one", "two"), 15)


def test_needs_of_blocks_add_up_but_for_memory_and_flags() -> None:
    needs = {"disk_mb": 3, "memory_mb": 5, "sudo": True, "tokens": ["A"]}
    more = {"disk_mb": 4, "memory_mb": 2, "sudo": True, "gpu": "runs", "tokens": ["A", "B"]}
    made = configured({"needs": needs, "variations": {"v": {"needs": more}}}, "get,x,_v")
    assert made.layer.needs == {"disk_mb": 7, "memory_mb": 5, "sudo": True, "gpu": "runs", "tokens": ["A", "B"]}
    assert made.layer.needs["sudo"] is True


def test_dependencies_of_a_block_replace_those_of_the_same_names_and_join_the_others() -> None:
    meta = {
        "deps": [{"tags": "get,a", "names": ["a"]}, {"tags": "get,b"}],
        "post_deps": [{"tags": "get,p"}],
        "variations": {"v": {"deps": [{"tags": "get,other", "names": ["a"]}, {"tags": "get,c"}]}},
    }
    layer = configured(meta, "get,x,_v").layer
    assert [dependency.tags_text for dependency in layer.deps] == ["get,other", "get,b", "get,c"]
    assert [dependency.tags_text for dependency in layer.post_deps] == ["get,p"]


@pytest.mark.parametrize(
    ("condition", "counts"),
    [
        ({"enable_if_env": {"MODE": ["fast"]}}, True),
        ({"enable_if_env": {"MODE": ["slow"]}}, False),
        ({"skip_if_env": {"MODE": ["fast"]}}, False),
        ({}, True),
    ],
)
@pytest.mark.parametrize("is_at_top", [True, False])
def test_a_conditional_block_counts_while_its_condition_holds(
    condition: dict[str, Any], counts: bool, is_at_top: bool
) -> None:
    conditional = [{**condition, "env": {"A": "yes"}, "default_env": {"B": "yes"}, "state": {"s": 1}}]
    meta: dict[str, Any] = {"env": {"MODE": "fast", "A": "no"}, "variations": {"v": {}}}
    (meta if is_at_top else meta["variations"]["v"])["update_meta_if_env"] = conditional
    made = configured(meta, "get,x,_v")
    assert (made.env["A"] == "yes", "B" in made.env, made.state) == (counts, counts, {"s": 1} if counts else {})


def test_a_conditional_block_sees_the_inputs_and_does_not_beat_a_constant() -> None:
    meta = {
        "input_mapping": {"mode": "MODE", "a": "A"},
        "update_meta_if_env": [{"enable_if_env": {"MODE": ["fast"]}, "env": {"A": "conditional", "B": "conditional"}}],
    }
    made = configured(meta, inputs={"mode": "fast", "a": "user"})
    assert (made.env["A"], made.env["B"]) == ("user", "conditional")


def test_an_input_decides_a_condition_even_against_the_env_of_its_block() -> None:
    meta = {
        "input_mapping": {"mode": "MODE"},
        "env": {"MODE": "slow"},
        "update_meta_if_env": [{"enable_if_env": {"MODE": ["fast"]}, "env": {"B": "conditional"}}],
    }
    assert configured(meta, inputs={"mode": "fast"}).env["B"] == "conditional"


def test_a_conditional_block_is_looked_at_again_after_each_later_block() -> None:
    meta = {
        "update_meta_if_env": [{"enable_if_env": {"MODE": ["fast"]}, "env": {"A": "recipe's"}}],
        "variations": {"v": {"env": {"MODE": "fast"}}},
    }
    assert configured(meta, "get,x,_v").env["A"] == "recipe's"
    assert "A" not in configured(meta).env


def test_of_two_conditional_blocks_the_older_one_has_the_last_word() -> None:
    meta = {
        "update_meta_if_env": [{"env": {"A": "recipe's"}}],
        "variations": {"v": {"update_meta_if_env": [{"env": {"A": "variation's", "B": "variation's"}}]}},
    }
    made = configured(meta, "get,x,_v")
    assert (made.env["A"], made.env["B"]) == ("recipe's", "variation's")


def test_placeholders_of_the_env_are_filled_in_at_the_end() -> None:
    meta = {"env": {"A": "<<<B>>>", "B": "recipe"}, "variations": {"v": {"env": {"B": "v"}}}}
    assert configured(meta, "get,x,_v").env["A"] == "v"
    assert configured({"env": {"A": "<<<C>>>"}}, env={"C": "caller"}).env["A"] == "caller"
    assert configured({"env": {"A": "<<<NONE>>>"}}).env["A"] == "<<<NONE>>>"


def test_a_plus_key_with_one_text_is_a_list_of_one() -> None:
    assert configured({"env": {"+PATH": "/bin"}}).env["+PATH"] == ["/bin"]
    with pytest.raises(RequestError, match=r"'\+PATH' must contain a list, found dict"):
        configured({"env": {"+PATH": {"a": "/bin"}}})


def test_an_error_in_a_variation_says_where_it_is() -> None:
    with pytest.raises(MetaError, match=r"/_cm\.yaml: variations\.v\.env: expected a mapping, found list"):
        configured({"variations": {"v": {"env": ["a"]}}}, "get,x,_v")


def test_an_error_in_a_version_says_where_it_is() -> None:
    with pytest.raises(MetaError, match=r"/_cm\.yaml: versions\.1\.0\.deps\[0\]: expected a mapping, found str"):
        configured({"versions": {"1.0": {"deps": ["a"]}}}, inputs={"version": "1.0"})


def test_configuring_changes_neither_the_recipe_nor_the_request() -> None:
    meta: dict[str, Any] = {
        "env": {"+PATH": ["/recipe"], "A": "<<<B>>>"},
        "state": {"s": {"l": [1]}},
        "adr": {"y": {"tags": "_one"}},
        "deps": [{"tags": "get,y", "names": ["y"], "env": {"E": "1"}}],
        "default_version": "1.0",
        "versions": {"1.0": {"env": {"B": "version"}, "adr": {"y": {"env": {"E": "2"}}}}},
        "variations": {"n.#": {"env": {"N": "#"}, "state": {"s": {"l": [2]}}, "const": {"C": "1"}}},
    }
    asked = request("get,x,_n.8", {"adr": {"y": {"tags": "_two"}}}, env={"+LIST": ["a"]}, const={"K": "1"})
    before = copy.deepcopy((meta, asked))
    made = apply_default_version(configure(recipe(**meta), asked))
    made.env["+PATH"].append("/changed")
    made.env["+LIST"].append("changed")
    made.state["s"]["l"].append("changed")
    assert (meta, asked) == before


def test_two_requests_of_one_recipe_do_not_see_each_other() -> None:
    made = recipe(input_mapping={"x": "X"}, variations={"v": {"const": {"C": "1"}}})
    configure(made, request("get,x,_v", {"x": "1"}))
    second = configure(made, request("get,x"))
    assert (second.const, second.const_state, second.env) == ({}, {}, {})


# --- ad and adr ---

TOOLS = {
    "deps": [{"tags": "get,y", "names": ["y", "tool"], "version": "1"}, {"tags": "get,z", "names": ["z"]}],
    "prehook_deps": [{"tags": "get,pre", "names": ["pre"]}],
    "posthook_deps": [{"tags": "get,posthook", "names": ["posthook"]}],
    "post_deps": [{"tags": "get,post", "names": ["post"]}],
}


@pytest.mark.parametrize("key", ["ad", "add_deps", "adr", "add_deps_recursive"])
@pytest.mark.parametrize(("handle", "phase"), [("pre", "prehook_deps"), ("posthook", "posthook_deps"), ("y", "deps")])
def test_an_override_reaches_the_named_dependency_in_each_of_the_four_lists(key: str, handle: str, phase: Any) -> None:
    made = configured(TOOLS, inputs={key: {handle: {"tags": "_v", "version": "2"}}})
    changed = made.layer.dependencies(phase)[0]
    assert changed.tags_text.endswith(",_v")
    assert changed.entry["version"] == "2"


@pytest.mark.parametrize("key", ["ad", "adr"])
def test_what_the_caller_changes_wins_over_recipe_variation_and_version(key: str) -> None:
    meta = {
        **TOOLS,
        key: {"y": {"version": "recipe", "tags": "_r"}},
        "variations": {"v": {key: {"y": {"version": "variation", "tags": "_v"}}}},
        "versions": {"1.0": {key: {"y": {"version": "version", "tags": "_n"}}}},
    }

    def version_of(tags: str, **inputs: Any) -> tuple[str, str]:
        changed = configured(meta, tags, inputs).layer.deps[0]
        return changed.entry["version"], changed.tags_text

    assert version_of("get,x") == ("recipe", "get,y,_r")
    assert version_of("get,x,_v") == ("variation", "get,y,_r,_v")
    assert version_of("get,x,_v", version="1.0") == ("version", "get,y,_r,_v,_n")
    caller = {key: {"y": {"version": "caller", "tags": "_c"}}}
    assert version_of("get,x,_v", version="1.0", **caller) == ("caller", "get,y,_r,_v,_n,_c")


def test_the_recursive_changes_of_all_blocks_are_handed_on_with_the_callers_on_top() -> None:
    meta = {"adr": {"p": {"version": "recipe", "tags": "a"}}, "variations": {"v": {"adr": {"q": {"name": "v"}}}}}
    made = configured(meta, "get,x,_v", {"adr": {"p": {"version": "caller", "tags": "b"}}})
    assert made.recursive_overrides == {"p": {"version": "caller", "tags": "a,b"}, "q": {"name": "v"}}


def test_own_changes_are_not_handed_on() -> None:
    assert configured({**TOOLS, "ad": {"y": {"version": "2"}}}).recursive_overrides == {}


def test_an_unknown_handle_is_an_error_for_ad_with_the_names_that_there_are() -> None:
    with pytest.raises(RequestError) as caught:
        configured(TOOLS, inputs={"ad": {"pyhton": {"version": "2"}}})
    assert caught.value.message == "'pyhton' is not one of the dependencies"
    assert caught.value.hint == "known names: tool, post, y, posthook, pre, z. Use --adr.NAME for deeper dependencies"
    assert caught.value.code == 1


def test_an_unknown_handle_of_a_block_is_an_error_too() -> None:
    with pytest.raises(RequestError, match="'nobody' is not one of the dependencies"):
        configured({**TOOLS, "variations": {"v": {"ad": {"nobody": {"version": "2"}}}}}, "get,x,_v")


def test_handles_of_one_override_may_be_names_in_different_lists() -> None:
    layer = configured(TOOLS, inputs={"ad": {"y": {"version": "2"}, "post": {"version": "3"}}}).layer
    assert (layer.deps[0].entry["version"], layer.post_deps[0].entry["version"]) == ("2", "3")


def test_an_unknown_handle_of_adr_is_meant_for_someone_further_down() -> None:
    made = configured(TOOLS, inputs={"adr": {"deeper": {"version": "2"}}})
    assert made.layer.deps == configured(TOOLS).layer.deps
    assert made.recursive_overrides == {"deeper": {"version": "2"}}


def test_a_placeholder_in_a_change_is_filled_in_even_when_its_value_holds_one() -> None:
    meta = {**TOOLS, "env": {"A": "<<<B>>>", "B": "two"}, "adr": {"y": {"tags": "_v.<<<A>>>,_w.<<<NONE>>>"}}}
    assert configured(meta).layer.deps[0].tags_text == "get,y,_v.two"


def test_a_malformed_override_from_the_caller_names_the_flag() -> None:
    with pytest.raises(MetaError, match=r"--adr\.python: expected a mapping, found str '3.8'"):
        request("get,x", {"adr": {"python": "3.8"}})


# --- versions ---

BOUNDS = {
    "version": ("exact", "CM_VERSION"),
    "version_min": ("minimum", "CM_VERSION_MIN"),
    "version_max": ("maximum", "CM_VERSION_MAX"),
    "version_max_usable": ("maximum_usable", "CM_VERSION_MAX_USABLE"),
}


@pytest.mark.parametrize(("name", "field", "key"), [(name, *rest) for name, rest in BOUNDS.items()])
def test_a_bound_comes_from_the_input_then_from_the_env_then_from_the_recipe(name: str, field: str, key: str) -> None:
    def bound(meta: dict[str, Any], inputs: dict[str, Any], env: dict[str, Any]) -> tuple[str, str]:
        made = configured(meta, inputs=inputs, env=env)
        return getattr(made.version, field), made.env.get(key, "")

    assert bound({}, {}, {}) == ("", "")
    assert bound({name: "1"}, {}, {}) == ("1", "1")
    assert bound({name: "1"}, {}, {key: "2"}) == ("2", "2")
    assert bound({name: "1"}, {name: "3"}, {key: "2"}) == ("3", "3")
    assert bound({name: 1.5}, {}, {}) == ("1.5", "1.5")


@pytest.mark.parametrize("place", ["recipe", "variation", "dependency entry"])
def test_a_version_set_by_an_env_block_chooses_the_versions_block(place: str) -> None:
    meta: dict[str, Any] = {"versions": {"2.0": {"env": {"A": "two"}}}, "variations": {"v": {}}}
    asked = request("get,x,_v")
    if place == "recipe":
        meta["env"] = {"CM_VERSION": "2.0"}
    elif place == "variation":
        meta["variations"]["v"]["env"] = {"CM_VERSION": "2.0"}
    else:
        asked = asked._replace(local_env={"CM_VERSION": "2.0"})
    made = configure(recipe(**meta), asked)
    assert (made.version.exact, made.env["A"]) == ("2.0", "two")


def test_a_version_asked_for_beats_one_set_by_a_variation() -> None:
    meta = {"versions": {"1.0": {"env": {"A": "one"}}}, "variations": {"v": {"env": {"CM_VERSION": "2.0"}}}}
    made = configured(meta, "get,x,_v", {"version": "1.0"})
    assert (made.version.exact, made.env["CM_VERSION"], made.env["A"]) == ("1.0", "1.0", "one")


def test_a_condition_sees_the_version_asked_for() -> None:
    meta = {"update_meta_if_env": [{"enable_if_env": {"CM_VERSION": ["1.0"]}, "env": {"A": "old"}}]}
    assert configured(meta, inputs={"version": "1.0"}).env["A"] == "old"
    assert "A" not in configured(meta, inputs={"version": "2.0"}).env


def test_an_empty_version_in_the_env_is_none() -> None:
    assert configured({"version_min": "1"}, env={"CM_VERSION": None, "CM_VERSION_MIN": ""}).version == VersionRange(
        minimum="1"
    )


@pytest.mark.parametrize(
    ("env", "inputs", "exact"),
    [
        ({"CM_VERSION": "<<<A>>>"}, {}, "1.0"),
        ({"CM_VERSION": "<<<A>>>.<<<NONE>>>"}, {}, "1.0"),
        ({"CM_VERSION": "<<<A>>>", "A": "2.0"}, {}, "2.0"),
        ({}, {"version": "<<<A>>>"}, "1.0"),
        ({"A": "2.0"}, {"version": "<<<A>>>"}, "2.0"),
        ({"A": "<<<B>>>", "B": "2.0"}, {"version": "<<<A>>>"}, "2.0"),
    ],
)
def test_a_placeholder_that_nothing_fills_asks_for_no_version(
    env: dict[str, str], inputs: dict[str, str], exact: str
) -> None:
    meta = {"version": "1.0", "versions": {name: {"env": {"BLOCK": name}} for name in ("1.0", "2.0")}}
    made = configured(meta, inputs=inputs, env=env)
    assert (made.version.exact, made.env["BLOCK"]) == (exact, exact)


@pytest.mark.parametrize("name", BOUND_KEYS)
def test_no_bound_is_a_placeholder_and_the_default_version_is_chosen_without_one(name: str) -> None:
    made = configured({"default_version": "3"}, inputs={name: "<<<NONE>>>"})
    assert made.version == VersionRange()
    assert apply_default_version(made).env["CM_VERSION"] == "3"


def test_a_version_without_a_block_is_passed_on() -> None:
    made = configured({"versions": {"1.0": {"env": {"A": "one"}}}}, inputs={"version": "7.7"})
    assert (made.version.exact, made.env) == ("7.7", {"CM_VERSION": "7.7"})


def default(meta: dict[str, Any], inputs: dict[str, Any] | None = None, tags: str = "get,x") -> Configured:
    """The recipe at the moment when it is about to run."""
    return apply_default_version(configured(meta, tags, inputs))


VERSIONED = {
    "default_version": "1.5",
    "versions": {name: {"env": {"BLOCK": name}} for name in ("1.0", "1.5", "2.0", "3.0")},
}


@pytest.mark.parametrize(
    ("inputs", "version", "block"),
    [
        ({}, "1.5", "1.5"),
        ({"version": "1.0"}, "1.0", "1.0"),
        ({"version": "9.9"}, "9.9", None),
        ({"version_min": "1.0"}, "1.5", "1.5"),
        ({"version_min": "2.0"}, "2.0", "2.0"),
        ({"version_min": "2.5"}, "2.5", None),
        ({"version_max": "1.0"}, "1.0", "1.0"),
        ({"version_max": "1.2"}, "1.2", None),
        ({"version_max": "1.2", "version_max_usable": "1.0"}, "1.0", "1.0"),
        ({"version_max": "3.0"}, "1.5", "1.5"),
    ],
)
def test_the_block_is_that_of_the_version_that_was_chosen_also_when_a_bound_moved_it(
    inputs: dict[str, Any], version: str, block: str | None
) -> None:
    made = default(VERSIONED, inputs)
    assert made.version.exact == version
    assert made.env["CM_VERSION"] == version
    assert made.env.get("BLOCK") == block


def test_before_the_recipe_is_about_to_run_the_default_version_does_not_count() -> None:
    made = configured(VERSIONED)
    assert made.version == VersionRange()
    assert made.env == {}


def test_without_a_default_version_nothing_is_chosen() -> None:
    made = configured({"versions": {"1.0": {}}}, inputs={"version_min": "1.0"})
    assert apply_default_version(made) is made


def test_a_variation_may_replace_the_default_version() -> None:
    meta = {**VERSIONED, "variations": {"v": {"default_version": "3.0"}}}
    assert default(meta, tags="get,x,_v").env["BLOCK"] == "3.0"


VERSION_BLOCK: dict[str, Any] = {
    **TOOLS,
    "input_mapping": {"x": "X"},
    "default_version": "1.5",
    "adr": {"y": {"version": "recipe"}},
    "variations": {"v": {"env": {"A": "variation"}, "adr": {"y": {"version": "variation"}}}},
    "versions": {
        "1.5": {
            "env": {"A": "version", "X": "version"},
            "deps": [{"tags": "get,new", "names": ["tool", "y"]}, {"tags": "get,more", "names": ["more"]}],
            "add_deps_recursive": {"y": {"version": "version", "tags": "_n"}},
        }
    },
}
CALLERS: dict[str, Any] = {
    "x": "user",
    "ad": {"z": {"tags": "_c"}},
    "adr": {"y": {"md5sum": "1"}, "more": {"tags": "_c"}},
}


def test_a_version_that_is_asked_for_changes_dependencies_before_the_caller_does() -> None:
    made = default(VERSION_BLOCK, {**CALLERS, "version": "1.5"}, "get,x,_v")
    first, second, third = made.layer.deps
    assert (made.env["A"], made.env["X"], made.env["CM_VERSION"]) == ("version", "user", "1.5")
    assert (first.tags_text, first.entry["version"], first.entry["md5sum"]) == ("get,new,_n", "version", "1")
    assert (second.tags_text, third.tags_text) == ("get,z,_c", "get,more,_c")


def test_the_block_of_a_default_version_comes_after_all_overrides() -> None:
    made = default(VERSION_BLOCK, CALLERS, "get,x,_v")
    first, second, third = made.layer.deps
    assert (made.env["A"], made.env["X"], made.env["CM_VERSION"]) == ("version", "user", "1.5")
    assert first.entry == {"tags": "get,new", "names": ["tool", "y"]}
    assert (second.tags_text, third.tags_text) == ("get,z,_c", "get,more")
    assert made.recursive_overrides == {
        "y": {"version": "version", "tags": "_n", "md5sum": "1"},
        "more": {"tags": "_c"},
    }


def test_the_whole_block_of_a_default_version_counts() -> None:
    meta = {
        "state": {"s": {"a": 1}},
        "update_meta_if_env": [{"enable_if_env": {"NEW": ["yes"]}, "env": {"LATE": "yes"}}],
        "default_version": "1.5",
        "versions": {
            "1.5": {
                "env": {"NEW": "yes", "P": "<<<C>>>"},
                "const": {"C": "const"},
                "const_state": {"k": 1},
                "state": {"s": {"b": 2}},
                "new_env_keys": ["N"],
            }
        },
    }
    made = default(meta)
    assert made.env == {"NEW": "yes", "LATE": "yes", "C": "const", "P": "const", "CM_VERSION": "1.5"}
    assert (made.const, made.const_state, made.state) == ({"C": "const"}, {"k": 1}, {"s": {"a": 1, "b": 2}})
    assert made.layer.new_env_keys == ("N",)
