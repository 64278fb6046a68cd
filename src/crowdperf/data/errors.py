"""The exception of this package."""


class DataError(Exception):
    """Data that cannot be used; `str()` is the message and, in a line of its own, the hint."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}\nhint: {hint}" if hint else message)
        self.message = message
        self.hint = hint
