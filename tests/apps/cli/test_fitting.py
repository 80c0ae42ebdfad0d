"""Tables to fit: which rows are training rows, and what they are called."""

from pathlib import Path

import polars as pl
import pytest
import typer

from coxfield.apps.cli.fit import Columns, LabelledTable

ROWS = pl.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": ["a", "b", "a", "b"], "w": [1, 0, 2, 1], "id": [4, 3, 2, 1]})


@pytest.fixture
def path(tmp_path):
    ROWS.write_csv(tmp_path / "t.csv")
    return tmp_path / "t.csv"


def test_rows_of_weight_zero_are_no_training_rows(path):
    data = LabelledTable.read(path, Columns("y", "id", "w", None, None))
    assert data.features == ["x"]
    assert data.places.tolist() == [0, 2, 3]
    assert data.training_ids == ["4", "2", "1"]
    model = data.fit(selection=None)
    assert model.X_fit_[:, 0].tolist() == ROWS["x"].gather(data.places).to_list()


def test_without_weights_and_ids(path):
    data = LabelledTable.read(path, Columns("y", None, None, ["x"], None))
    assert data.places.tolist() == [0, 1, 2, 3]
    assert data.training_ids is None


def test_columns_have_one_role_each():
    with pytest.raises(typer.BadParameter, match="--target, --id and --weight must be different columns"):
        Columns("y", "y", None, None, None).check()


def test_a_table_that_is_not_there():
    with pytest.raises(ValueError, match=r"There is no file absent\.csv"):
        LabelledTable.read(Path("absent.csv"), Columns("y", None, None, None, None))
