"""Weights of columns for each class, and tiles of a size that fits."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context

from coxfield import threads
from coxfield.engine import class_sums as tiles
from coxfield.engine import store as module
from coxfield.engine.store import Segments, Shares

RNG = np.random.default_rng(0)
CODES = np.sort(RNG.integers(5, size=40))
WEIGHTS = RNG.uniform(0.5, 2, size=40)
MATRIX = np.where(CODES[:, None] == np.arange(5), WEIGHTS[:, None], 0)
SEGMENTS = Segments(np.searchsorted(CODES, np.arange(5)), WEIGHTS)
SOFT = Shares(RNG.dirichlet(np.ones(5), size=40))
CASES = {"segments": (SEGMENTS, MATRIX), "shares": (Shares(MATRIX), MATRIX), "soft": (SOFT, SOFT.matrix)}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    return request.param


def test_sums_of_tiles_are_the_product_with_the_matrix(case):
    weights, matrix = case
    tile = RNG.normal(size=(7, 40))
    for cuts in ([0, 40], [0, 3, 17, 18, 40]):
        sums = np.zeros((7, 5))
        for start, stop in pairwise(cuts):
            weights.add(tile[:, start:stop], start, sums)
        np.testing.assert_allclose(sums, tile @ matrix, atol=1e-13)


def test_single_entries_count_like_tiles(case):
    weights, matrix = case
    tile = RNG.normal(size=(7, 40)) * (RNG.random((7, 40)) < 0.1)
    at, columns = np.nonzero(tile)
    sums = np.zeros((7, 5))
    weights.add_entries(at, columns, tile[at, columns], sums)
    np.testing.assert_allclose(sums, tile @ matrix, atol=1e-13)


def test_members(case):
    weights, matrix = case
    assert weights.n_classes == matrix.shape[1]
    for c, (columns, own) in enumerate(weights.members()):
        found = np.zeros(40)
        found[columns] = own
        np.testing.assert_array_equal(found, matrix[:, c])


def test_many_classes_in_a_tile_are_summed_at_once(monkeypatch):
    monkeypatch.setattr(module, "MANY_SEGMENTS", 2)
    tile, sums = RNG.normal(size=(3, 40)), np.zeros((3, 5))
    SEGMENTS.add(tile, 0, sums)
    np.testing.assert_allclose(sums, tile @ MATRIX, atol=1e-13)


def test_scaled_weights_are_rows_of_the_matrix_multiplied(case):
    weights, matrix = case
    factors = RNG.uniform(0.1, 3, size=40)
    scaled = weights.scaled(factors)
    assert type(scaled) is type(weights)
    sums = np.zeros((40, 5))
    scaled.add(np.eye(40), 0, sums)
    np.testing.assert_allclose(sums, matrix * factors[:, None], rtol=1e-14)


def test_weights_of_some_columns_alone(case):
    weights, matrix = case
    some = np.array([0, 3, 4, 20, 39])
    np.testing.assert_array_equal(weights.among(some).matrix, matrix[some])
    assert weights.among(some[:0]).matrix.shape == (0, 5)


sizes = st.integers(1, 10**9)


@given(n=sizes, columns=sizes, itemsize=st.sampled_from([4, 8]), count=st.integers(1, 64), memory=st.floats(1e-6, 1e4))
def test_no_block_exceeds_the_working_memory(n, columns, itemsize, count, memory):
    allowed = memory * 2**20
    with config_context(working_memory=memory), threads.use(count):
        rows, width = tiles.tile_shape(n, columns, itemsize)
        assert rows * width == 1 or rows * width * itemsize * count <= allowed
        assert 1 <= rows <= n
        assert 1 <= width <= columns
        whole = tiles.whole_rows(n, columns, itemsize, copies=3)
        assert whole == 1 or whole * columns * itemsize * count * 3 <= allowed
        assert 1 <= whole <= n


def test_much_work_has_a_tile_for_every_thread_and_little_work_is_not_cut():
    with threads.use(4):
        assert tiles.tile_shape(400, 10_000, 8)[0] == 100
        assert tiles.tile_shape(400, 1000, 8)[0] == 400
        assert tiles.whole_rows(400, 1000, 8) == 100


def test_many_columns_leave_fewer_whole_rows():
    with threads.use(1), config_context(working_memory=10**6):
        few, many = (tiles.whole_rows(10**6, columns, 8) for columns in (1000, 10**6))
    assert few == tiles.ROWS
    assert many == 16 * tiles.ROWS * tiles.COLUMNS // 10**6
