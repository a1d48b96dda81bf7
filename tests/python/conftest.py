"""Arrays for the tests: random inputs, poisoned outputs."""

import sys

import ml_dtypes
import numpy as np
import pytest

DTYPES = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
}


@pytest.fixture(autouse=True)
def same_values():
    """Each test draws the same values in each run, alone or after others."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(7)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def normal(rng):
    """normal(shape, dtype): values around 0, rounded to the type."""
    return lambda shape, dtype="float32": rng.standard_normal(shape).astype(DTYPES[dtype])


def poisoned(shape, dtype="float32"):
    """An output whose every byte must be written."""
    return np.full(shape, np.nan).astype(DTYPES[dtype])
