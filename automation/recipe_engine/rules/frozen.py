"""The base of the engine's types: values that never change, made and read by field name.

Defining a frozen dataclass takes about a millisecond and a named tuple a fifth of that, both because Python code is
compiled for each; at the fifty types that a cached call loads, this would be most of what the call may cost.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: bool) -> Any:
        """For type checkers only; Python 3.10 has none."""
        return lambda cls: cls


Value = TypeVar("Value", bound="Frozen")


@dataclass_transform(frozen_default=True)
class Frozen:
    """Fields are the annotated names of a class, in their order; those with a value may be left out.

    A default is shared by all values of the class, so a mapping among them is never written to.
    """

    _fields: ClassVar[tuple[str, ...]]
    _defaults: ClassVar[dict[str, Any]]
    _values: ClassVar[itemgetter[Any]]

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(cls.__annotations__)
        cls._defaults = {name: vars(cls)[name] for name in cls._fields if name in vars(cls)}
        cls._values = itemgetter(*cls._fields)

    def __init__(self, *values: Any, **named: Any) -> None:
        own = self.__dict__
        own.update(self._defaults)
        if values:
            own.update(zip(self._fields, values, strict=False))
        own.update(named)
        if len(own) != len(self._fields) or len(values) > len(own):
            names = (*map(repr, values), *named)
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(self._fields)}, found {', '.join(names)}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed, use _replace")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(self._values(self.__dict__))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={vars(self)[name]!r}' for name in self._fields)})"

    def _replace(self: Value, **changes: Any) -> Value:
        """The same value with other fields."""
        new = object.__new__(type(self))
        own = new.__dict__
        own.update(self.__dict__)
        own.update(changes)
        if len(own) != len(self._fields):
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(self._fields)}, not {', '.join(changes)}")
        return new

    def _asdict(self) -> dict[str, Any]:
        """The fields by name."""
        return {name: vars(self)[name] for name in self._fields}
