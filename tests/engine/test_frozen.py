"""The base of the engine's types."""

import pytest
from recipe_engine.rules.frozen import Frozen


class Point(Frozen):
    """A type with a default."""

    x: int
    y: int = 2


def test_fields_are_given_in_order_or_by_name() -> None:
    assert Point(1) == Point(x=1, y=2) == Point(1, 2)
    assert Point(1)._asdict() == {"x": 1, "y": 2}
    assert repr(Point(1)) == "Point(x=1, y=2)"


def test_a_value_never_changes() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match=r"Point\.x cannot be changed"):
        point.x = 3  # type: ignore[misc]
    assert point._replace(x=3) == Point(3)
    assert point == Point(1)


def test_equal_values_have_one_hash_and_other_types_are_never_equal() -> None:
    class Pair(Frozen):
        x: int
        y: int = 2

    assert {Point(1), Point(1, 2), Point(2)} == {Point(1), Point(2)}
    assert Pair(1) != Point(1)
    assert Point(1) != (1, 2)


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"z": 3}), ((), {"y": 3}), ((1, 2, 3), {"z": 4})]
)
def test_wrong_fields_are_refused(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Point has the fields x, y"):
        Point(*values, **named)  # type: ignore[call-arg]


def test_an_unknown_field_is_not_replaced() -> None:
    with pytest.raises(TypeError, match="not z"):
        Point(1)._replace(z=3)
