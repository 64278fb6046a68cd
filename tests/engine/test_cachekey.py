"""Which cache entry serves which request."""

import itertools
from typing import Any

import pytest
from builders import configured, entry_of, entry_with_tags, key_of
from recipe_engine.rules.cachekey import cache_key, entry_tags, misfit, preference
from recipe_engine.rules.model import CacheKey

VARIED: dict[str, Any] = {
    "variations": {
        "v": {},
        "w": {},
        "n.#": {},
        "a": {"alias": "v"},
        "up": {"base": ["v"]},
        "g1": {"group": "g", "default": True},
        "g2": {"group": "g"},
        "~mark": {},
    },
    "input_mapping": {"x": "CM_X", "y": "CM_Y", "token": "CM_HF_TOKEN"},
}


def key(tags: str = "get,x", **inputs: Any) -> CacheKey:
    """The key of a request to a recipe with variations and inputs."""
    return key_of(VARIED, tags, inputs)


# --- tags ---


@pytest.mark.parametrize(
    ("tags", "inputs", "required"),
    [
        ("get,x", {}, ["get", "x"]),
        ("x,get,_v,_n.8", {}, ["x", "get", "_v", "_n.8"]),
        ("get,x,_up", {}, ["get", "x", "_up"]),
        ("get,x", {"version": "1.2"}, ["get", "x", "version-1.2"]),
        ("get,x", {"version_min": "1.2"}, ["get", "x"]),
        ("get,x", {"extra_cache_tags": "one, two"}, ["get", "x", "one", "two"]),
        ("get,x", {"extra_cache_tags": ["one", "two"]}, ["get", "x", "one", "two"]),
        ("get,x", {"extra_cache_tags": "one,-two"}, ["get", "x", "one"]),
        ("get,x", {"name": "My-Venv"}, ["get", "x", "name-my-venv"]),
        ("get,x", {"extra_cache_tags": "x,get"}, ["get", "x"]),
        ("x", {}, ["x", "get"]),
    ],
)
def test_an_entry_must_have_cms_tags_for_a_request(tags: str, inputs: dict[str, Any], required: list[str]) -> None:
    assert key(tags, **inputs).required_tags == (*required, "script-artifact-a00000000000000a")


@pytest.mark.parametrize(
    ("tags", "inputs", "excluded"),
    [
        ("get,x", {}, ()),
        ("get,x,-tmp,-_v", {}, ("tmp", "_v")),
        ("get,x", {"extra_cache_tags": "-virtual,one"}, ("virtual",)),
    ],
)
def test_an_entry_must_lack_what_the_request_excludes(
    tags: str, inputs: dict[str, Any], excluded: tuple[str, ...]
) -> None:
    assert key(tags, **inputs).excluded_tags == (*excluded, "format-mlc")


def test_a_tag_asked_for_may_hold_a_placeholder() -> None:
    made = key_of({"env": {"A": "one"}}, inputs={"extra_cache_tags": "t-<<<A>>>"})
    assert made.extra_tags == ("t-one",)


@pytest.mark.parametrize(
    ("env", "extra"),
    [
        ({"CM_EXTRA_CACHE_TAGS": "one, two"}, ("one", "two")),
        ({"CM_EXTRA_CACHE_TAGS": "", "CM_NAME": ""}, ()),
        ({"CM_EXTRA_CACHE_TAGS": None, "CM_NAME": None}, ()),
        ({"CM_NAME": " My-Venv "}, ("name-my-venv",)),
    ],
)
def test_a_tag_may_be_asked_for_through_the_env(env: dict[str, Any], extra: tuple[str, ...]) -> None:
    assert key_of(env=env).extra_tags == extra


@pytest.mark.parametrize(
    ("value", "derived"),
    [
        ("python-3.8,venv", ("deps-python-3.8", "deps-venv")),
        (["one", "two"], ("deps-one", "deps-two")),
        ("", ()),
        (None, ()),
    ],
)
def test_env_values_give_tags_for_search_and_entry(value: object, derived: tuple[str, ...]) -> None:
    made = configured({"extra_cache_tags_from_env": [{"env": "CM_TAGS", "prefix": ""}]})
    env = {} if value is None else {"CM_TAGS": value}
    found = cache_key(made, env)
    assert found.derived_tags == derived
    assert set(derived) <= set(found.required_tags)


def test_the_prefix_stands_between_deps_and_value() -> None:
    made = configured({"extra_cache_tags_from_env": [{"env": "CM_TAGS", "prefix": "python-"}]})
    assert cache_key(made, {"CM_TAGS": "3.8"}).derived_tags == ("deps-python-3.8",)


@pytest.mark.parametrize(
    ("tags", "inputs", "version", "added", "expected"),
    [
        ("get,x,_v", {}, "", (), ["get", "x", "_v"]),
        ("get,x", {}, "1.2", (), ["get", "x", "version-1.2"]),
        ("get,x", {"version": "1.2"}, "1.2.3", (), ["get", "x", "version-1.2.3"]),
        ("get,x", {"version": "1.2"}, "", (), ["get", "x", "version-1.2"]),
        ("get,x", {}, "1", ("more", "get"), ["get", "x", "more", "version-1"]),
        ("get,x,-tmp", {"extra_cache_tags": "a,-b"}, "", ("-c",), ["get", "x", "a"]),
        ("get,x", {}, "", ("tmp", "more"), ["get", "x", "more"]),
    ],
)
def test_a_finished_entry_has_the_tags_asked_for_those_added_and_the_version_found(
    tags: str, inputs: dict[str, Any], version: str, added: tuple[str, ...], expected: list[str]
) -> None:
    found = entry_tags(key(tags, **inputs), version, added)
    assert set(found) == {*expected, "script-artifact-a00000000000000a"}
    assert len(found) == len(set(found))


# --- which entry serves which request: (made for, asked, why not; empty when it serves) ---

SERVES: list[tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]], str]] = [
    (("get,x", {}), ("get,x", {}), ""),
    (("get,x,_v", {}), ("x,get,_v", {}), ""),
    (("get,x,_v,_w", {}), ("get,x,_w,_v", {}), ""),
    # exact variations: neither more nor less, and no other value
    (("get,x,_v", {}), ("get,x", {}), "it was built with the variations ['g1', 'v'], but requested are ['g1']"),
    (("get,x", {}), ("get,x,_v", {}), "it was built with the variations ['g1'], but requested are ['g1', 'v']"),
    (("get,x,_n.8", {}), ("get,x,_n.9", {}), "it was built with the variations"),
    (("get,x,_g2", {}), ("get,x", {}), "it was built with the variations ['g2'], but requested are ['g1']"),
    (("get,x,-_g1", {}), ("get,x", {}), "it was built with the variations [], but requested are ['g1']"),
    (("get,x", {}), ("get,x,_~mark", {}), "it was built with the variations ['g1'], but requested are ['g1', '~mark']"),
    (("get,x,_~mark", {}), ("get,x", {}), "it was built with the variations ['g1', '~mark'], but requested are ['g1']"),
    # what is on counts, not how it came on
    (("get,x", {}), ("get,x,_g1", {}), ""),
    (("get,x,_g1", {}), ("get,x", {}), ""),
    (("get,x", {}), ("get,x,-_g2", {}), ""),
    (("get,x,_up", {}), ("get,x,_up,_v", {}), ""),
    (("get,x,_up,_v", {}), ("get,x,_up", {}), ""),
    # tags: an entry may have more than asked, as in CM
    (("get,x", {"extra_cache_tags": "one"}), ("get,x", {}), ""),
    (("get,x", {}), ("get,x", {"extra_cache_tags": "one"}), "it has no tag 'one'"),
    (("get,x", {}), ("get,x,one", {}), "it has no tag 'one'"),
    (("get,x,one", {}), ("get,x", {"extra_cache_tags": "one"}), ""),
    (("get,x", {}), ("get,x", {"extra_cache_tags": "v"}), "it has no tag 'v'"),
    (("get,x", {"name": "venv"}), ("get,x", {"name": "other"}), "it has no tag 'name-other'"),
    (("get,x", {"extra_cache_tags": "one"}), ("get,x", {"extra_cache_tags": "-one"}), "it has the excluded tag 'one'"),
    (("get,x", {"extra_cache_tags": "one"}), ("get,x,-one", {}), "it has the excluded tag 'one'"),
    # inputs: another value does not fit, a value that nobody asks about does
    (("get,x", {"x": "1"}), ("get,x", {"x": "1"}), ""),
    (("get,x", {"x": "1"}), ("get,x", {"x": "2"}), "it was made with --x=1, requested is --x=2"),
    (("get,x", {}), ("get,x", {"x": "2"}), "it was made without --x, requested is --x=2"),
    (("get,x", {"x": "1"}), ("get,x", {}), ""),
    (("get,x", {"x": "1", "y": "2"}), ("get,x", {"y": "2"}), ""),
    (("get,x", {"x": 1}), ("get,x", {"x": "1"}), ""),
    (("get,x", {"z": "1"}), ("get,x", {"z": "2"}), ""),
    (("get,x", {"token": "a"}), ("get,x", {"token": "b"}), ""),
    # versions
    (("get,x", {"version": "1.2"}), ("get,x", {}), ""),
    (("get,x", {"version": "1.2"}), ("get,x", {"version": "1.2"}), ""),
    (("get,x", {"version": "1.2"}), ("get,x", {"version": "1.3"}), "it has no tag 'version-1.3'"),
    (("get,x", {}), ("get,x", {"version": "1.2"}), "it has no tag 'version-1.2'"),
]


@pytest.mark.parametrize(("made", "asked", "why_not"), SERVES)
def test_an_entry_serves_a_request_or_says_why_not(
    made: tuple[str, dict[str, Any]], asked: tuple[str, dict[str, Any]], why_not: str
) -> None:
    entry = entry_of(key(made[0], **made[1]))
    found = misfit(entry, key(asked[0], **asked[1]))
    assert found.startswith(why_not) if why_not else found == ""


@pytest.mark.parametrize(
    ("version", "bounds", "why_not"),
    [
        ("1.5", {"version_min": "1.0", "version_max": "2.0"}, ""),
        ("1.5", {"version_min": "1.5", "version_max": "1.5"}, ""),
        ("0.9", {"version_min": "1.0"}, "its version 0.9 is not within >= 1.0"),
        ("3.10", {"version_max": "3.9"}, "its version 3.10 is not within <= 3.9"),
        ("3.10", {"version_min": "3.9"}, ""),
        ("", {"version_min": "1.0"}, ""),
    ],
)
def test_the_version_of_an_entry_must_lie_within_the_bounds(version: str, bounds: dict[str, str], why_not: str) -> None:
    assert misfit(entry_of(key(), version), key("get,x", **bounds)) == why_not


def test_an_entry_that_was_never_finished_serves_nobody() -> None:
    made = entry_of(key())
    assert misfit(made._replace(tags=("tmp", *made.tags)), key()) == "it was never finished"


def test_a_tag_that_the_recipe_added_can_be_asked_for_and_excluded() -> None:
    made = entry_of(key(), added=("found-here",))
    assert misfit(made, key("get,x", extra_cache_tags="found-here")) == ""
    assert misfit(made, key("get,x", extra_cache_tags="-found-here")) == "it has the excluded tag 'found-here'"


@pytest.mark.parametrize("mapping", [{"t": "CM_HF_TOKEN"}, {"token": "CM_T"}, {"token": "CM_HF_TOKEN"}])
def test_the_value_of_a_secret_input_does_not_reach_the_key(mapping: dict[str, str]) -> None:
    (name,) = mapping
    assert key_of({"input_mapping": {**mapping, "x": "CM_X"}}, inputs={name: "hush", "x": "1"}).inputs == {"x": "1"}


# --- entries that CM made ---


@pytest.mark.parametrize(
    ("tags", "asked", "why_not"),
    [
        (("get", "x"), "get,x", ""),
        (("get", "x", "more"), "get,x", ""),
        (("get", "x", "_v"), "get,x,_v", ""),
        (("get", "x", "_w", "_v"), "get,x,_v,_w", ""),
        (("get", "x", "_v"), "get,x", "CM made it for the variations ['v'], but requested are []"),
        (("get", "x", "_v", "_w"), "get,x,_v", "CM made it for the variations ['v', 'w'], but requested are ['v']"),
        (("get", "x"), "get,x,_v", "it has no tag '_v'"),
        (("get", "x"), "get,x,_g1", "it has no tag '_g1'"),
        (("tmp", "get", "x"), "get,x", "it was never finished"),
        (("get",), "get,x", "it has no tag 'x'"),
    ],
)
def test_an_entry_of_cm_serves_when_it_names_the_very_variations_asked_for(
    tags: tuple[str, ...], asked: str, why_not: str
) -> None:
    entry = entry_with_tags(*tags, "script-artifact-a00000000000000a")
    assert misfit(entry, key(asked)) == why_not


def test_an_entry_of_another_recipe_with_the_same_tags_does_not_serve() -> None:
    entry = entry_with_tags("get", "x", "script-artifact-b00000000000000b")
    assert misfit(entry, key()) == "it has no tag 'script-artifact-a00000000000000a'"


# --- preference ---


@pytest.mark.parametrize(
    ("asked", "best_first"),
    [
        ({}, [{}, {"x": "1"}, {"x": "1", "y": "2"}, {"extra_cache_tags": "one"}, {"extra_cache_tags": "one,two"}]),
        ({"extra_cache_tags": "one"}, [{"extra_cache_tags": "one"}, {"extra_cache_tags": "one,two"}]),
        ({"x": "1"}, [{"x": "1"}, {"x": "1", "y": "2"}, {"x": "1", "extra_cache_tags": "a"}]),
        ({}, [{"extra_cache_tags": "a"}, {"extra_cache_tags": "b"}]),
    ],
)
def test_the_entry_with_least_beyond_what_was_asked_comes_first(
    asked: dict[str, Any], best_first: list[dict[str, Any]]
) -> None:
    wanted = key("get,x", **asked)
    entries = [entry_of(key("get,x", **made)) for made in best_first]
    assert [misfit(entry, wanted) for entry in entries] == [""] * len(entries)
    for order in itertools.permutations(entries):
        assert sorted(order, key=lambda entry: preference(entry, wanted)) == entries


def test_an_entry_of_cm_counts_as_having_nothing_beyond() -> None:
    of_cm = entry_with_tags("get", "x", "script-artifact-a00000000000000a")
    named = entry_of(key("get,x", extra_cache_tags="one"))
    assert preference(of_cm, key()) < preference(named, key())


# --- the fingerprint, which names the lock and an unfinished entry ---

REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("get,x", {}),
    ("x,get,-tmp", {}),
    ("get,x,_g1", {}),
    ("get,x,-_g2", {}),
    ("get,x,_g2", {}),
    ("get,x,-_g1", {}),
    ("get,x,_v", {}),
    ("get,x,_v,_w", {}),
    ("get,x,_w,_v", {}),
    ("get,x,_up", {}),
    ("get,x,_v,_up", {}),
    ("get,x,_n.8", {}),
    ("get,x,_n.9", {}),
    ("get,x,_~mark", {}),
    ("get,x", {"extra_cache_tags": "one"}),
    ("get,x,one", {}),
    ("get,x", {"extra_cache_tags": "two,one"}),
    ("get,x", {"extra_cache_tags": "one,two"}),
    ("get,x", {"extra_cache_tags": "x"}),
    ("get,x", {"extra_cache_tags": "-one"}),
    ("get,x", {"name": "venv"}),
    ("get,x", {"x": "1"}),
    ("get,x", {"x": 1}),
    ("get,x", {"x": "2"}),
    ("get,x", {"y": "1"}),
    ("get,x", {"token": "1"}),
    ("get,x", {"unmapped": "1"}),
    ("get,x", {"version": "1.2"}),
    ("get,x", {"version": "1.3"}),
]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(one, other, id=f"{one}-{other}")
        for one, other in itertools.combinations_with_replacement(REQUESTS, 2)
    ],
)
def test_fingerprints_are_equal_exactly_when_what_either_makes_serves_both(
    one: tuple[str, dict[str, Any]], other: tuple[str, dict[str, Any]]
) -> None:
    first, second = key(one[0], **one[1]), key(other[0], **other[1])
    serve_each_other = not misfit(entry_of(first), second) and not misfit(entry_of(second), first)
    assert (first.fingerprint == second.fingerprint) is serve_each_other


def test_other_bounds_another_recipe_and_other_derived_tags_have_another_fingerprint() -> None:
    plain = key()
    others = [
        key("get,x", version_min="1.0"),
        key("get,x", version_max="1.0"),
        key_of({**VARIED, "uid": "b00000000000000b"}),
        plain._replace(derived_tags=("deps-a",)),
    ]
    assert len({plain.fingerprint, *(other.fingerprint for other in others)}) == 5


def test_a_fingerprint_is_64_hex_digits_and_stays_the_same() -> None:
    assert len(key().fingerprint) == 64
    assert int(key().fingerprint, 16) >= 0
    assert key("get,x", x="1").fingerprint == key("get,x", x="1").fingerprint


def test_of_equally_good_entries_the_same_one_is_taken_in_every_process() -> None:
    entries = [entry_of(key())._replace(uid=uid) for uid in ("b", "a", "c")]
    assert [entry.uid for entry in sorted(entries, key=lambda entry: preference(entry, key()))] == ["a", "b", "c"]
