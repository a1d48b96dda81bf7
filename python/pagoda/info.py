"""What this build of the package is, and what it finds on this machine."""

from __future__ import annotations

from typing import NamedTuple

from pagoda import _core


class Backend(NamedTuple):
    """A back end: its name, whether it can run here, its device or the reason why it can't run, and
    the memory ("cpu", "cuda", "hip") that the arrays of its calls are in."""

    name: str
    is_available: bool
    description: str
    memory: str


class Kernel(NamedTuple):
    """A kernel and the decision on it: `reason` says why it is not selected."""

    name: str
    backend: str
    is_selected: bool
    can_run: bool
    reason: str


class Info(NamedTuple):
    """The version of the library, and every back end of this build."""

    version: str
    backends: list[Backend]

    def __str__(self) -> str:
        lines = [f"pagoda {self.version}"]
        for b in self.backends:
            lines.append(f"  {b.name}: {'' if b.is_available else 'not here: '}{b.description}")
        return "\n".join(lines)


def _version() -> str:
    number: int = _core.VERSION
    return f"{number // 1000000}.{number // 1000 % 1000}.{number % 1000}"


__version__ = _version()


def info() -> Info:
    """The version of the library and its back ends."""
    return Info(__version__, [Backend(*b) for b in _core.backends()])
