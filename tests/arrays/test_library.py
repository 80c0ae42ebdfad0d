"""Arrays go to a library and come back as they were; what cannot be used is refused with a sentence."""

from types import SimpleNamespace

import numpy as np
import pytest

from coxfield.arrays.library import Library, as_numpy, is_dispatched, is_foreign, to_numpy
from lean import run_without


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_arrays_come_back_as_they_went(library, given, dtype):
    values = np.arange(12).reshape(3, 4).T.astype(dtype)  # not in the order of rows
    array = given(values)
    assert is_foreign(array)
    assert Library.of(array) == library
    back = to_numpy(array)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, values)


def test_the_library_makes_arrays_on_its_device(library):
    numbers, counts = library.array([0.5, 2.0]), library.array(np.arange(3))
    assert Library.of(numbers) == Library.of(counts) == Library.of(library.zeros(2, 3)) == library
    assert numbers.dtype == library.double == library.floats[0]
    assert counts.dtype == library.xp.int64
    assert library.precision(numbers) == np.float64
    assert library.precision(library.xp.astype(numbers, library.xp.float32)) == np.float32


def test_numbers_that_are_too_large_become_the_largest(library):
    found = library.finite(library.array([1e300, -1e300, 1.0]), library.xp.float32)
    largest = np.finfo(np.float32).max
    assert to_numpy(found).tolist() == [largest, -largest, 1.0]


def test_nothing_is_dispatched_unless_scikit_learn_is_told_to(given):
    array = given(np.zeros(3))
    assert not is_dispatched(array)
    assert as_numpy(array) is array


def test_arrays_are_dispatched_and_other_values_are_not(given, dispatch):
    assert is_dispatched(given(np.zeros(3)))
    assert isinstance(as_numpy(given(np.zeros(3))), np.ndarray)
    for value in (np.zeros(3), [0.0], 2.0, np.float64(2.0), None, "text"):
        assert not is_dispatched(value)
        assert as_numpy(value) is value


def test_tensors_with_a_history_come_back():
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(to_numpy(torch.ones(3, requires_grad=True) * 2), np.full(3, 2.0))


def test_what_is_no_dense_array_is_refused():
    thing = SimpleNamespace(dtype=float, device="cpu")
    with pytest.raises(TypeError, match=r"give others as dense arrays, got types\.SimpleNamespace"):
        Library.of(thing)


def test_complex_numbers_are_refused(given):
    with pytest.raises(ValueError, match="Complex data not supported"):
        Library.of(given(np.ones(2, complex)))


def test_sparse_tensors_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"give others as dense arrays, got torch\.Tensor"):
        Library.of(torch.eye(3).to_sparse())


def test_without_array_api_compat_arrays_are_refused_and_numpy_works():
    done = run_without(
        ("array_api_compat",),
        "import array_api_strict\n"
        "from coxfield import LGCPClassifier\n"
        "from coxfield.arrays.library import Library\n"
        "print(LGCPClassifier().fit([[0.0], [0.1], [1.0], [1.1]], [0, 0, 1, 1]).predict([[0.0]]))\n"
        "Library.of(array_api_strict.asarray([0.0]))\n",
    )
    assert done.stdout == "[0]\n"
    sentence = "arrays of other libraries than NumPy need array-api-compat: pip install 'coxfield[arrays]'"
    assert done.stderr.splitlines()[-1] == f"ImportError: {sentence}"


def test_numpy_users_import_no_array_library():
    done = run_without(
        (),
        "import sys\n"
        "from coxfield import LGCPClassifier\n"
        "LGCPClassifier(selection='loo_error').fit([[0.0], [0.1], [1.0], [1.1]], [0, 0, 1, 1]).predict([[0.0]])\n"
        "print({'torch', 'cupy', 'array_api_compat', 'array_api_strict'} & set(sys.modules))\n",
    )
    assert done.stdout == "set()\n", done.stderr
