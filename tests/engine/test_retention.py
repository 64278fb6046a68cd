"""Which entries go and which stay: the rule alone."""

import random

import pytest
from recipe_engine.rules.retention import Item, Limits, decide

NOW_S = 1000.0
A = Item("a", 10, 100.0)
B = Item("b", 20, 200.0)
C = Item("c", 30, 300.0)


def gone(items: list[Item], limits: Limits) -> list[str]:
    return list(decide(items, limits, NOW_S)[0])


def reasons(items: list[Item], limits: Limits) -> dict[str, str]:
    removed, kept = decide(items, limits, NOW_S)
    return {**removed, **kept}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(), []),
        (Limits(max_size_bytes=60), []),
        (Limits(max_size_bytes=59), ["a"]),
        (Limits(max_size_bytes=49), ["a", "b"]),
        (Limits(max_size_bytes=0), ["a", "b", "c"]),
        (Limits(older_than_s=900), []),
        (Limits(older_than_s=899), ["a"]),
        (Limits(older_than_s=0), ["a", "b", "c"]),
        (Limits(max_size_bytes=30, older_than_s=850), ["a", "b"]),
        (Limits(max_size_bytes=50, older_than_s=750), ["a", "b"]),
    ],
)
def test_the_least_recently_used_go_first_and_no_more_than_needed(limits: Limits, expected: list[str]) -> None:
    assert gone([C, A, B], limits) == expected


def test_what_a_recent_entry_needs_stays() -> None:
    needy = C._replace(depends_on=("a",))
    assert gone([A, B, needy], Limits(older_than_s=750)) == ["b"]
    assert gone([A, B, needy], Limits(max_size_bytes=40)) == ["b"]


def test_what_needs_an_entry_goes_with_it_and_before_it() -> None:
    items = [A, B._replace(depends_on=("a",)), C._replace(depends_on=("b",))]
    assert gone(items, Limits(max_size_bytes=0)) == ["c", "b", "a"]
    assert gone(items, Limits(max_size_bytes=30)) == ["c"]


def test_a_pinned_entry_and_all_that_it_needs_stay_with_the_reason() -> None:
    items = [A, B._replace(depends_on=("a", "elsewhere")), C._replace(depends_on=("b",), kept_because="pinned")]
    removed, kept = decide(items, Limits(max_size_bytes=0, older_than_s=0), NOW_S)
    assert removed == {}
    assert kept == {"a": "needed by c, which is pinned", "b": "needed by c, which is pinned", "c": "pinned"}


def test_what_needs_a_pinned_entry_may_go() -> None:
    items = [A._replace(kept_because="pinned"), B._replace(depends_on=("a",))]
    assert gone(items, Limits(max_size_bytes=0)) == ["b"]


def test_useless_entries_go_without_any_limit_unless_something_needs_them() -> None:
    useless = A._replace(useless="it was never finished")
    assert reasons([useless, B], Limits()) == {"a": "it was never finished"}
    assert reasons([useless, B._replace(depends_on=("a",))], Limits()) == {"a": "needed by b"}
    assert gone([useless, B._replace(depends_on=("a",))], Limits(max_size_bytes=0)) == ["b", "a"]
    chain = [useless, B._replace(depends_on=("a",), useless="expired")]
    assert gone(chain, Limits()) == ["b", "a"]
    assert gone([useless._replace(kept_because="in use")], Limits()) == []
    circle = [useless._replace(depends_on=("b",)), B._replace(depends_on=("a",), useless="expired")]
    assert sorted(gone(circle, Limits())) == ["a", "b"]


def test_entries_that_need_each_other_go_together_or_not_at_all() -> None:
    items = [A._replace(depends_on=("b",)), B._replace(depends_on=("a",)), C]
    assert sorted(gone(items, Limits(max_size_bytes=55))) == ["a", "b"]
    items[1] = items[1]._replace(kept_because="pinned")
    assert gone(items, Limits(max_size_bytes=55)) == ["c"]


@pytest.mark.parametrize("seed", range(50))
def test_whatever_the_cache_nothing_that_stays_lacks_what_it_needs(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"e{number}" for number in range(30)]
    items = [
        Item(
            name,
            chance.randrange(100),
            chance.uniform(0, NOW_S),
            tuple(chance.sample(names, chance.randrange(3))),
            chance.choice(["", "", "", "", "pinned"]),
            chance.choice(["", "", "", "", "expired"]),
        )
        for name in names
    ]
    limits = Limits(chance.choice([None, 200, 700]), chance.choice([None, 300.0]))
    removed, kept = decide(items, limits, NOW_S)
    for item in items:
        if item.uid not in removed:
            assert removed.keys().isdisjoint(item.depends_on)
        else:
            assert not item.kept_because
    assert kept.keys().isdisjoint(removed)
    again = decide(items[::-1], limits, NOW_S)
    assert [list(part.items()) for part in again] == [list(removed.items()), list(kept.items())]


def test_ten_thousand_entries_are_decided_without_comparing_each_with_each() -> None:
    items = [Item(f"e{n}", 1, float(n), (f"e{n // 2}",)) for n in range(10_000)]
    assert len(gone(items, Limits(max_size_bytes=5_000))) == 5_000
