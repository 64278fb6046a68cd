"""Tag queries: what a text of tags asks for."""

import pytest
from recipe_engine.rules.errors import RequestError
from recipe_engine.rules.query import TagQuery, merge_tag_texts, nearest, parse_query, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("get,cuda", ("get", "cuda")),
        (" get , cuda ,, ", ("get", "cuda")),
        ("b,a,b,a", ("b", "a")),
        ("", ()),
        (" , ,", ()),
        (["get,cuda", " _dev"], ("get", "cuda", "_dev")),
        (["a", "b,a"], ("a", "b")),
        ([], ()),
    ],
)
def test_words_are_split_at_commas_stripped_and_kept_once_in_the_order_given(
    text: str | list[str], words: tuple[str, ...]
) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("get,cuda", TagQuery(all_of=("get", "cuda"))),
        ("get,-tmp", TagQuery(all_of=("get",), none_of=("tmp",))),
        ("get,_dev,_package.a.b", TagQuery(all_of=("get",), variations=("dev", "package.a.b"))),
        ("get,-_dev", TagQuery(all_of=("get",), excluded_variations=("dev",))),
        ("get,_-dev", TagQuery(all_of=("get",), excluded_variations=("dev",))),
        ("_b,get,_a", TagQuery(all_of=("get",), variations=("b", "a"))),
        ("get,_~debug", TagQuery(all_of=("get",), variations=("~debug",))),
        ("get-x,x_y", TagQuery(all_of=("get-x", "x_y"))),
        ("", TagQuery()),
    ],
)
def test_the_first_signs_of_a_word_tell_what_it_asks_for(text: str, query: TagQuery) -> None:
    assert parse_query(text) == query


@pytest.mark.parametrize("text", ["get,_a,-_a", "get,-_a,_a", "get,_-a,_a", "get,_n.8,-_n.8"])
def test_a_variation_both_asked_for_and_excluded_is_refused_with_the_way_out(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_query(text)
    name = "n.8" if "n.8" in text else "a"
    assert f"variation _{name} is both requested and excluded" in caught.value.message
    assert text in caught.value.message
    assert caught.value.hint == f"keep either _{name} or -_{name}"
    assert caught.value.code == 1


def test_the_same_word_as_tag_and_as_variation_is_no_contradiction() -> None:
    assert parse_query("get,-dev,_dev") == TagQuery(all_of=("get",), none_of=("dev",), variations=("dev",))


def test_a_query_shown_as_text_asks_for_the_same() -> None:
    query = parse_query("_v,get,-tmp,cuda,_-w")
    assert query.text == "get,cuda,-tmp,_v,-_w"
    assert parse_query(query.text) == query


@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [
        ("z,y", "x,y,a", "z,y,x,a"),
        ("", "b,a", "b,a"),
        ("b,a", "", "b,a"),
        ("a, b", "b ,c", "a,b,c"),
    ],
)
def test_added_words_come_behind_the_old_ones_in_the_order_given(old: str, new: str, merged: str) -> None:
    assert merge_tag_texts(old, new) == merged


def test_the_nearest_words_are_the_most_alike_first_and_none_when_nothing_is_close() -> None:
    known = ["python3", "python", "cuda", "cudnn"]
    assert nearest("pyhton3", known) == ["python3", "python"]
    assert nearest("pyhton3", known, 1) == ["python3"]
    assert nearest("zzz", known) == []


def test_a_higher_likeness_keeps_vague_resemblances_out() -> None:
    assert nearest("verify", ["version"]) == ["version"]
    assert nearest("verify", ["version"], 1, 0.85) == []
    assert nearest("force-cache", ["force_cache"], 1, 0.85) == ["force_cache"]
