"""The exceptions of Pagoda's calls, one for each code of a status."""

from __future__ import annotations


class Error(Exception):
    """The base of all exceptions of Pagoda.

    field: the argument that is wrong, "kv.page_size" or "cu_seqlens_q[3]"; "" if there is none.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class InvalidArgument(Error, ValueError):
    """An argument is wrong; nothing was written. The message is "FIELD is VALUE; LIMIT".

    value, limit: these parts of the message, "" where it has another form.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message, field)
        value, _, limit = message.removeprefix(f"{field} is ").partition("; ")
        has_form = bool(field) and message.startswith(f"{field} is ") and bool(limit)
        self.value = value if has_form else ""
        self.limit = limit if has_form else ""


class Unsupported(Error, NotImplementedError):
    """A valid call that no kernel of the back end serves here."""


class NotFound(Error, LookupError):
    """No back end or kernel has that name."""


class OutOfMemory(Error, MemoryError):
    """An allocation failed."""


class InternalError(Error, RuntimeError):
    """A defect of Pagoda itself."""


class StreamCapturing(Error, RuntimeError):
    """The stream is captured and has no workspace yet: run the call once before, or use a plan."""


_BY_CODE = {
    1: InvalidArgument,
    2: Unsupported,
    3: NotFound,
    4: OutOfMemory,
    5: InternalError,
    6: StreamCapturing,
}


def from_status(code: int, field: str, message: str) -> Error:
    """The exception of a status of pagoda.h."""
    return _BY_CODE.get(code, InternalError)(message, field)


def invalid(field: str, value: object, limit: str) -> InvalidArgument:
    """InvalidArgument with the message "FIELD is VALUE; LIMIT"."""
    return InvalidArgument(f"{field} is {value}; {limit}", field)
