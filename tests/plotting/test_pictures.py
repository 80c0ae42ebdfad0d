import numpy as np
import pytest

from coxfield.plotting import figure
from coxfield.plotting.figures import are_pictures, draw_pictures, image_shape


def test_large_squares_are_pictures():
    assert [d for d in (2, 49, 63, 64, 65, 784) if are_pictures(d)] == [64, 784]


def test_the_shape_is_that_given_or_that_of_a_square():
    assert image_shape(64) == (8, 8)
    assert image_shape(6, (2, 3)) == (2, 3)
    with pytest.raises(ValueError, match=r"shape \(3, 5\) does not have 16 pixels: give another image_shape"):
        image_shape(16, (3, 5))
    with pytest.raises(ValueError, match=r"shape \(4, 4\) does not have 17 pixels"):
        image_shape(17)


def test_pictures_are_at_their_places_below_their_texts():
    pictures = np.arange(18.0).reshape(3, 2, 3)
    ax = draw_pictures(figure().subplots(), pictures, ["a", "b", "c"], [(0, 0), (0, 1), (2, 1)])
    a, b, c = ([*drawn.get_extent()] for drawn in ax.images)  # left, right, bottom, top; up is less
    assert a[3] == b[3]
    assert b[:2] == c[:2]
    assert a[1] < b[0]
    assert b[2] < c[3]
    for drawn, text, picture in zip(ax.images, ax.texts, pictures, strict=True):
        assert np.array_equal(drawn.get_array(), picture)
        assert drawn.get_clim() == (0.0, 17.0)  # the same grey is the same number everywhere
        assert text.get_position()[1] < drawn.get_extent()[3]
    assert ax.get_xlim()[0] < a[0] < b[1] < ax.get_xlim()[1]
    assert ax.get_ylim()[0] > c[2] > a[3] > ax.get_ylim()[1]
