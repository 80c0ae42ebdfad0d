"""Patterns: what they hold and what they refuse."""

import numpy as np
import pytest

from coxfield.process import Pattern, PatternWarning, PointPattern, PolygonWindow, Window


def test_points_outside_of_the_window_are_refused():
    with pytest.raises(ValueError, match=r"the point \[5.0, 5.0\] lies outside"):
        Pattern([[5.0, 5.0]], [(0, 4), (0, 4)])


def test_points_are_counted_in_parts_and_picked_by_mark():
    pattern = Pattern([[1.0], [2.0], [3.0]], (0, 4), marks=["cat", "dog", "cat"])
    assert (len(pattern), pattern.count(), pattern.count((0, 2))) == (3, 3, 2)
    assert pattern.marked("cat").points.tolist() == [[1.0], [3.0]]
    assert len(pattern.marked("bird")) == 0
    assert pattern.marked("cat").window == Window((0, 4))


def test_marks_belong_to_points():
    with pytest.raises(ValueError, match=r"2 points need one mark each, got marks of shape \(3,\)"):
        Pattern([[1.0], [2.0]], (0, 4), marks=[0, 1, 0])
    with pytest.raises(ValueError, match="no marks"):
        Pattern([[1.0]], (0, 4)).marked("cat")


def test_a_pattern_may_be_empty():
    assert len(Pattern([], [(0, 1), (0, 1)])) == 0
    assert Pattern(np.empty((0, 3)), [(0, 1)] * 3).count([(0, 0.5)] * 3) == 0


def test_a_pattern_is_a_point_pattern():
    assert Pattern is PointPattern


FRAMES = {
    "mapping": dict,
    "pandas": lambda columns: pytest.importorskip("pandas").DataFrame(columns),
    "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_patterns_from_frames(kind):
    frame = FRAMES[kind]({"east": [1.0, 2.0, 3.0], "north": [1, 2, 1], "species": ["oak", "elm", "oak"]})
    pattern = PointPattern.from_frame(frame, "east", "north", type="species", window=[(0, 4), (0, 3)], unit="m")
    assert pattern.points.tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 1.0]]
    assert {mark: len(part) for mark, part in pattern.types().items()} == {"elm": 1, "oak": 2}
    assert (pattern.unit, pattern.marked("oak").unit, pattern.rate) == ("m", "m", 3 / 12)
    with pytest.raises(ValueError, match="the frame has no column 'x': name its columns"):
        PointPattern.from_frame(frame)


def test_patterns_from_csv(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("x,y,kind\n1,2,a\n3,4.5,b\n2,3,a\n")
    pattern = PointPattern.from_csv(path, type="kind")
    assert pattern.points.tolist() == [[1.0, 2.0], [3.0, 4.5], [2.0, 3.0]]
    assert pattern.marks.tolist() == ["a", "b", "a"]
    assert pattern.window.sides == ((0.0, 4.0), (0.75, 5.75))  # wider by the mean spacing
    path.write_text("x,y\n1,2\n3,here\n")
    with pytest.raises(ValueError, match="column 'y' holds 'here' in row 2, where a coordinate is needed"):
        PointPattern.from_csv(path)
    path.write_text("x,y\n")
    with pytest.raises(ValueError, match="has no rows below its header"):
        PointPattern.from_csv(path)


def test_patterns_from_geopandas():
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    frame = geopandas.GeoDataFrame({"kind": ["a", "b"]}, geometry=geopandas.points_from_xy([1, 2], [3, 1]), crs=3035)
    area = geopandas.GeoSeries([shapely.box(0, 0, 2, 4), shapely.box(2, 0, 4, 4)], crs=3035)
    pattern = PointPattern.from_geopandas(frame, type="kind", window=area)
    assert (pattern.window.volume, pattern.unit, pattern.marks.tolist()) == (16.0, "metre", ["a", "b"])
    with pytest.warns(PatternWarning, match=r"coordinates in WGS 84 are degrees.*project them to metres"):
        PointPattern.from_geopandas(frame.set_crs(4326, allow_override=True))
    with pytest.raises(ValueError, match="but the window is in WGS 84: use to_crs"):
        PointPattern.from_geopandas(frame, window=area.set_crs(4326, allow_override=True))
    with pytest.raises(ValueError, match="made of points, but the frame has a Polygon"):
        PointPattern.from_geopandas(geopandas.GeoDataFrame(geometry=area))


def test_what_is_odd_about_points_is_said():
    points = [[1.0, 1.0], [1.0, 1.0], [2.0, 5.0]]
    with pytest.warns(PatternWarning, match="1 of 3 points have the same place as an earlier point"):
        PointPattern.from_points(points, [(0, 4), (0, 6)])
    with pytest.raises(ValueError, match=r"the point \[2.0, 5.0\] lies outside of the window .*: leave it out"):
        PointPattern.from_points(points, [(0, 4), (0, 4)])
    pattern = PointPattern.from_points(points[1:], [(0, 4), (0, 4)], marks=["a", "b"], outside="drop")
    assert (len(pattern), pattern.marks.tolist()) == (1, ["a"])
    with pytest.warns(PatternWarning, match="columns lon and lat are degrees"):
        PointPattern.from_frame({"lon": [0.0, 1.0], "lat": [1.0, 2.0]}, "lon", "lat")
    with pytest.raises(ValueError, match="outside must be 'raise' or 'drop', got 'keep'"):
        PointPattern.from_points(points, outside="keep")


def test_a_pattern_is_clipped_to_a_polygon():
    triangle = PolygonWindow([(0, 0), (4, 0), (0, 4)])
    pattern = PointPattern([[1, 1], [3, 3]], [(0, 4), (0, 4)], marks=["in", "out"]).clipped(triangle)
    assert (pattern.marks.tolist(), pattern.window) == (["in"], triangle)
