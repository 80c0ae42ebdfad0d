"""Grids of cells, intensities on them, and circulant embedding: the covariance it implies is the kernel's."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

from coxfield.process import Grid, Intensity, Window, sample_gaussian_field
from coxfield.process.fields import TOLERANCE, embed


@pytest.mark.parametrize(
    ("window", "resolution", "shape"),
    [
        ([(0, 4), (0, 1)], 8, (8, 2)),
        ([(0, 4), (0, 1)], (3, 5), (3, 5)),
        ([(0, 100), (0, 1)], 10, (10, 1)),
        ((0, 1), None, (1024,)),
        ([(0, 1e100), (0, 5e99)], 8, (8, 4)),
    ],
)
def test_resolution_is_of_the_longest_side_or_of_each(window, resolution, shape):
    assert Grid.over(window, resolution).shape == shape


@pytest.mark.parametrize("resolution", [0, -3, 2.5, (4, 4, 4), (4, 0), np.nan])
def test_resolutions_that_make_no_grid_are_refused(resolution):
    with pytest.raises(ValueError, match="resolution must be one positive whole number, or one per axis"):
        Grid.over([(0, 1), (0, 1)], resolution)


def test_fields_have_at_most_three_dimensions():
    with pytest.raises(ValueError, match="one, two or three dimensions, but the window has 4"):
        Grid.over([(0, 1)] * 4)


def test_the_last_axis_runs_fastest():
    grid = Grid.over([(0, 2), (0, 3)], (2, 3))
    assert grid.spacing.tolist() == [1, 1]
    assert grid.centres().tolist() == [[x, y] for x in (0.5, 1.5) for y in (0.5, 1.5, 2.5)]


def test_cells_hold_their_centres_and_their_corners():
    grid = Grid.over([(-1, 3), (2, 5)], (4, 3))
    np.testing.assert_array_equal(grid.cells_of(grid.centres()), np.arange(12))
    assert grid.cells_of([[3.0, 5.0]]) == [11]
    assert grid.cells_of([[-1.0, 2.0]]) == [0]
    with pytest.raises(ValueError, match="outside"):
        grid.cells_of([[0.0, 1.9]])


def test_an_intensity_is_looked_up_and_summed_cell_by_cell():
    rho = Intensity(Grid.over([(0, 2), (0, 1)], (2, 2)), np.array([[1.0, 2.0], [4.0, 8.0]]))
    assert rho([[0.1, 0.1], [0.1, 0.9], [1.9, 0.1], [1.9, 0.9]]).tolist() == [1, 2, 4, 8]
    assert rho.integral == 15 * 0.5
    assert rho.grid.window == Window([(0, 2), (0, 1)])


@pytest.mark.parametrize("values", [[1.0, -1.0], [1.0, np.nan], [np.inf, 1.0]])
def test_intensities_are_finite_and_not_negative(values):
    with pytest.raises(ValueError, match=r"finite and not negative anywhere, but it is (-1|nan|inf) in a cell: "):
        Intensity(Grid.over((0, 1), 2), np.array(values))


def test_intensities_have_a_value_per_cell():
    with pytest.raises(ValueError, match=r"needs one value per cell, got values of shape \(3,\)"):
        Intensity(Grid.over((0, 1), 2), np.ones(3))


def test_windows_whose_volume_may_be_no_number_are_refused():
    with pytest.raises(ValueError, match=r"the window is 2e.100 long, and fields are drawn on up to 1e.100: measure"):
        Grid.over([(0, 1), (-1e100, 1e100)])


class Slanted(kernels.StationaryKernelMixin, kernels.Kernel):
    """A stationary kernel that is not even in each coordinate: exp(-h^T A h / 2) with A slanted."""

    A = np.array([[3.0, 1.5], [1.5, 1.0]])

    def __init__(self):  # scikit-learn reads its signature
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        h = X[:, None] - (X if Y is None else Y)[None]
        return np.exp(-np.einsum("abi,ij,abj->ab", h, self.A, h) / 2)

    def diag(self, X):
        return np.ones(len(X))


class Lump(Slanted):
    """Dies out, but is not a covariance function: 1 within a distance of 1, and 0 beyond."""

    def __call__(self, X, Y=None, eval_gradient=False):
        h = X[:, None] - (X if Y is None else Y)[None]
        return (np.abs(h).max(axis=2) < 1).astype(float)


def implied(embedding):
    """Covariances between all cells of a grid, as the eigenvalues on the torus imply them."""
    torus = np.fft.ifftn(embedding.eigenvalues).real
    cells = np.stack(np.unravel_index(np.arange(np.prod(embedding.grid.shape)), embedding.grid.shape))
    return torus[tuple(cells[:, :, None] - cells[:, None, :])]


@pytest.mark.parametrize(
    ("kernel", "window", "resolution"),
    [
        (RBF(1.0), (0, 10), 64),
        (RBF(1.0), (0, 1), 64),  # as long as the window: much padding
        (Matern(0.5, nu=0.5), (0, 1), 50),
        (2.5 * RBF(0.3), [(0, 1), (0, 1)], 12),
        (Matern(1.0, nu=0.5), [(0, 1), (0, 1)], 12),
        (Matern(0.3, nu=2.5), [(0, 1), (0, 2)], 12),
        (RationalQuadratic(1.0, alpha=1.0), [(0, 3), (0, 3)], 12),  # long tails: tapered
        (RBF([0.2, 3.0]), [(0, 1), (-1, 1)], (9, 11)),
        (ConstantKernel(0.5) + RBF(0.2), [(0, 1), (0, 1)], 10),
        (RBF(0.5) * Matern(1.0, nu=1.5), [(0, 1), (0, 1)], 10),
        (Slanted(), [(0, 4), (0, 3)], (10, 13)),
        (RBF(0.4), [(0, 1), (0, 1), (0, 0.5)], (6, 5, 4)),
        (RBF(1.0), [(0, 1), (0, 1)], (7, 1)),
    ],
)
def test_implied_covariance_is_the_kernel(kernel, window, resolution):
    grid = Grid.over(window, resolution)
    embedding = embed(kernel, grid)
    assert embedding.eigenvalues.min() >= 0
    assert embedding.error <= TOLERANCE
    variance = kernel.diag(grid.centres()[:1])[0]
    # A transform of N numbers errs by log2(N) units of their norm, and there are two.
    covariance = np.fft.ifftn(embedding.eigenvalues).real
    rounded = np.finfo(float).eps * 2 * np.log2(covariance.size) * np.linalg.norm(covariance)
    error = np.abs(implied(embedding) - kernel(grid.centres()))
    assert error.max() <= embedding.error * variance + rounded


@pytest.mark.parametrize("n_fields", [1, 2, 5])
def test_as_many_fields_as_were_asked_for(n_fields, monkeypatch):
    monkeypatch.setattr("coxfield.process.fields.AT_ONCE", 100)  # one pair at a time
    fields = embed(RBF(1.0), Grid.over((0, 4), 32)).draw(n_fields, np.random.default_rng(0))
    assert fields.shape == (n_fields, 32)
    assert np.unique(fields[:, 0]).size == n_fields


@pytest.mark.parametrize("kernel", [1.5 * RBF(0.4), Matern(0.4, nu=0.5)])
@pytest.mark.parametrize("window", [(0, 1), [(0, 1), (0, 0.5)]])
def test_fields_have_mean_zero_the_covariance_and_gaussian_kurtosis(kernel, window):
    n_fields, grid = 6000, Grid.over(window, 8)
    fields = sample_gaussian_field(kernel, window, resolution=8, size=n_fields, random_state=4).reshape(n_fields, -1)
    C = kernel(grid.centres())
    variance = C[0, 0]
    assert np.abs(fields.mean(axis=0)).max() < 4 * np.sqrt(variance / n_fields)
    # The variance of a product of Gaussians is C_ii C_jj + C_ij^2.
    error = np.abs(fields.T @ fields / n_fields - C) / np.sqrt((variance**2 + C**2) / n_fields)
    assert error.max() < 4
    fourth = (fields**4).mean(axis=0)
    assert (np.abs(fourth - 3 * variance**2) / np.sqrt(96 * variance**4 / n_fields)).max() < 4


def test_pairs_of_one_transform_are_independent():
    a, b = sample_gaussian_field(RBF(0.4), (0, 1), resolution=8, size=2, random_state=np.random.default_rng(1))
    assert not np.allclose(a, b)
    embedding, rng = embed(RBF(0.4), Grid.over((0, 1), 8)), np.random.default_rng(1)
    pairs = np.stack([embedding.draw(2, rng) for _ in range(4000)])
    cross = np.einsum("sa,sb->ab", pairs[:, 0], pairs[:, 1]) / len(pairs)
    assert np.abs(cross).max() < 4 / np.sqrt(len(pairs))


def test_same_seed_same_field():
    draw = [sample_gaussian_field(RBF(1.0), [(0, 2), (0, 2)], resolution=16, random_state=3) for _ in range(2)]
    np.testing.assert_array_equal(*draw)
    other = sample_gaussian_field(RBF(1.0), [(0, 2), (0, 2)], resolution=16, random_state=4)
    assert (other != draw[0]).all()


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (kernels.DotProduct(), r"DotProduct.* is not stationary.*use RBF"),
        (RBF(1.0) + kernels.WhiteKernel(0.1), r"jumps at distance zero.*leave WhiteKernel out"),
        (RBF([1.0, 2.0, 3.0]), "length_scale has 3 entries but the data have 2 features"),
    ],
)
def test_kernels_that_make_no_stationary_field_are_refused(kernel, sentence):
    with pytest.raises(ValueError, match=sentence):
        sample_gaussian_field(kernel, [(0, 1), (0, 1)], resolution=4)


def test_no_embedding_because_the_kernel_has_not_died_out(monkeypatch):
    monkeypatch.setattr("coxfield.process.fields.LARGEST", 2**12)
    with pytest.raises(ValueError, match=r"of the variance is left half-way round; choose a coarser resolution"):
        embed(RBF(100.0), Grid.over((0, 1), 64))
    # The advice helps.
    assert embed(RBF(100.0), Grid.over((0, 1), 2)).error <= TOLERANCE


def test_no_embedding_because_it_is_no_covariance(monkeypatch):
    monkeypatch.setattr("coxfield.process.fields.LARGEST", 2**12)
    with pytest.raises(ValueError, match="some of its Fourier coefficients are negative"):
        embed(Lump(), Grid.over([(0, 2), (0, 2)], 16))
