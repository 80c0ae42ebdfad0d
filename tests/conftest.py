"""What tests of several folders use."""

import numpy as np
import pytest
from sklearn import config_context

from backends import BACKENDS
from coxfield.kernels.namespace import Library


@pytest.fixture(params=["array_api_strict", "array_api_strict on device1", "torch"])
def library(request):
    """An array library and a device: the strict ones have nothing but the standard. torch is optional."""
    name, _, device = request.param.partition(" on ")
    module = pytest.importorskip(name)
    return Library.of(module.asarray([0.0], device=module.Device(device)) if device else module.asarray([0.0]))


@pytest.fixture
def given(library):
    """A function that makes arrays of the library from those of NumPy, in their precision and with their own memory."""
    return lambda values: library.xp.asarray(np.array(values), device=library.device)


@pytest.fixture
def dispatch(monkeypatch):
    """scikit-learn dispatches arrays to their library. It wants to see the variable, which SciPy has read already."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        yield


@pytest.fixture(params=BACKENDS)
def backend(request):
    """A place where points can be, see `backends`. torch is optional."""
    found = BACKENDS[request.param]
    found.array([0.0])  # skips the test where the library is not installed
    if found.dask:
        pytest.importorskip("dask")
    return found
