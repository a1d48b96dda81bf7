"""How every peer is timed."""

import time


def seconds_of(call):
    """Wall time of one call, the interpreter's share (a few microseconds) included."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
