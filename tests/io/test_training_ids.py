"""Ids of training rows: found, packed and unpacked; and models whose rows have come and gone."""

import functools
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import LGCPClassifier
from coxfield.io import model_file
from coxfield.io.model_data import Unsound
from coxfield.io.model_file import ModelFileError, TrainingIds, check_ids, packed, unpacked
from model_archives import put_together, saved, taken_apart
from tolerances import assert_close

IDS = TrainingIds(("007", "b", "007", "ä ö", "c"))
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)


def test_all_rows_of_an_id_are_found():
    assert IDS.places(["c", "007", "x"]).tolist() == [0, 2, 4]
    assert IDS.places([]).tolist() == []
    assert IDS.missing(["y", "b", "x", "y"]) == ["y", "x"]
    assert IDS.known(["y", "b", "007", "b"]) == ["b", "007"]


def test_rows_come_and_go():
    assert IDS.without(np.array([0, 3])).texts == ("b", "007", "c")
    assert IDS.followed_by(["d", "b"]).texts == (*IDS.texts, "d", "b")


@given(st.lists(TEXTS, min_size=1, max_size=20))
def test_texts_come_back(texts):
    ids = TrainingIds(tuple(texts))
    assert unpacked(packed(ids), len(texts)) == ids


def test_the_longest_id_does_not_make_the_others_long():
    ids = TrainingIds((*(str(number) for number in range(1000)), "x" * 1000))
    assert len(packed(ids)) < 6000


def array(content):
    return saved(np.frombuffer(content, np.uint8))


@pytest.mark.parametrize(
    ("content", "n_rows", "clause"),
    [
        (array(b"a\0b"), 3, "it has 2 ids for 3 training rows"),
        (array(b""), 2, "it has 1 ids for 2 training rows"),
        (array(b"a\0\0b"), 3, "an id in it is blank"),
        (array(b"a\0 "), 2, "an id in it is blank"),
        (array(b"a\0\xff"), 2, "its list of ids holds text that cannot be read"),
        (array(b"a\0\xed\xa0\x80"), 2, "its list of ids holds text that cannot be read"),
        (saved(np.array(["a", "b"])), 2, "its list of ids is an array of type"),
        (saved(np.array([97, 0, 98])), 2, "its list of ids is an array of type"),
        (saved(np.array([97, 0, 98], np.uint16)), 2, "its list of ids does not hold bytes"),
        (saved(np.array([[97, 0, 98]], np.uint8)), 2, "its list of ids has the shape"),
    ],
)
def test_what_no_fit_makes_is_refused(content, n_rows, clause):
    with pytest.raises(Unsound, match=clause):
        unpacked(content, n_rows)


def test_ids_that_could_not_be_told_apart_are_refused():
    with pytest.raises(Unsound, match="an id in it holds a zero byte"):
        check_ids(TrainingIds(("a\0b", "c")), 2)
    with pytest.raises(Unsound, match="an id in it is not text"):
        check_ids(TrainingIds(("\ud800", "c")), 2)


@pytest.fixture
def path(tmp_path):
    model = LGCPClassifier(selection=None).fit([[0.0], [1.0]], ["a", "b"])
    model_file.save(model, tmp_path / "model.skops", target="y", features=["x"], id_column="name", ids=["1", "2"])
    return tmp_path / "model.skops"


@pytest.mark.parametrize(
    ("content", "clause"),
    [
        (array(b"1"), "it has 1 ids for 2 training rows"),
        (array(b"1\0"), "an id in it is blank"),
        (saved(np.array([None]), allow_pickle=True), "does not hold numbers or text"),
        (array(b"1\x002")[:-1], "announces"),
    ],
)
def test_a_file_with_wrong_ids_is_refused(path, content, clause):
    put_together({**taken_apart(path), model_file.IDS: content}, path)
    with pytest.raises(ModelFileError, match=clause):
        model_file.load(path)


def test_a_file_may_lose_its_ids_and_is_a_model_still(path):
    members = taken_apart(path)
    assert np.load(io.BytesIO(members.pop(model_file.IDS))).tobytes() == b"1\x002"
    put_together(members, path)
    assert model_file.load(path).ids is None


def a_model():
    X = np.arange(60.0)[:, None]
    return LGCPClassifier(selection=None).fit(X, X[:, 0] > 30)


def save(model, path, **table):
    model_file.save(model, path, **{"target": "y", "features": ["x"], "id_column": "name", **table})


SIXTY = [f"id {number}" for number in range(60)]


def test_ids_of_training_rows_are_remembered(tmp_path):
    path = tmp_path / "new.skops"
    model = a_model()
    save(model, path, ids=SIXTY)
    assert model_file.load(path).ids.texts == tuple(SIXTY)
    save(model, path)
    assert model_file.load(path).ids is None


@pytest.mark.parametrize(
    ("table", "clause"),
    [
        ({"ids": SIXTY[:-1]}, "it has 59 ids for 60 training rows"),
        ({"ids": [*SIXTY[:-1], ""]}, "an id in it is blank"),
        ({"ids": [*SIXTY[:-1], 3]}, "an id in it is not text"),
        ({"ids": SIXTY, "id_column": None}, "it has ids, but no name of their column"),
    ],
)
def test_wrong_ids_are_not_saved(tmp_path, table, clause):
    path = tmp_path / "new.skops"
    with pytest.raises(ModelFileError, match=f"The model cannot be saved, because {clause}"):
        save(a_model(), path, **table)
    assert not path.exists()


RNG = np.random.default_rng(7)
X = RNG.normal(size=(60, 2))
NAMES = np.array(["cat", "dog"])[(X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)]
WEIGHTS = RNG.integers(0, 4, size=60).astype(float)
QUERIES = RNG.normal(size=(40, 2), scale=3)
OPTIONS = {
    "mixture": {},
    "part": {"selection_part": 0.6, "random_state": 0},
    "one": {"selection": "loo_error"},
    "by class": {"kernel": {"cat": RBF(1.0), "dog": 2.0 * Matern(2.0, nu=1.5)}, "selection": None},
}
STEPS = {
    "grown": lambda clf: clf.partial_fit(X[30:], NAMES[30:]),
    "shrunk": lambda clf: clf.forget([0, 5, 29]),
    "both": lambda clf: clf.partial_fit(X[30:], NAMES[30:], sample_weight=WEIGHTS[30:]).forget([0, 5, 31]),
    "announced": lambda clf: clf.partial_fit(X[30:], NAMES[30:], classes=["ant", "cow"]),
    "came": lambda clf: clf.partial_fit(X[:3] + 5, ["cow"] * 3, classes=["cow"]),
    "left": lambda clf: clf.partial_fit(X[:3] + 5, ["cow"] * 3, classes=["cow"]).forget([30, 31, 32]),
}
LIVES = [
    (name, step) for name in OPTIONS for step in STEPS if name != "by class" or step in ("grown", "shrunk", "both")
]

every_life = pytest.mark.parametrize(("name", "step"), LIVES, ids=[" ".join(life) for life in LIVES])


@functools.cache
def model_of(name, step):
    return STEPS[step](LGCPClassifier(**OPTIONS[name]).fit(X[:30], NAMES[:30]))


def back(model, path):
    """The model as it comes back from a file."""
    model_file.save(model, path / "model.skops", target="species", features=["a", "b"])
    return model_file.load(path / "model.skops").model


def assert_same_scores(found, wanted):
    """Equal up to rounding: rows are arranged anew, so sums are taken in another order."""
    assert_close(found, wanted, terms=50 * 60, scale=np.abs(wanted).max())


@every_life
def test_models_come_back(tmp_path, name, step):
    model = model_of(name, step)
    loaded = back(model, tmp_path)
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.y_fit_.tolist() == model.y_fit_.tolist()
    np.testing.assert_array_equal(loaded.X_fit_, model.X_fit_)
    for mask in ("_announced", "_arrived"):
        assert getattr(loaded, mask).tolist() == getattr(model, mask).tolist()
    assert loaded._training.rows.chosen_from.tolist() == model._training.rows.chosen_from.tolist()
    assert_same_scores(loaded.class_scores(QUERIES), model.class_scores(QUERIES))
    assert_same_scores(loaded.loo_class_scores(), model.loo_class_scores())


@every_life
def test_loaded_models_go_on_as_before(tmp_path, name, step):
    one, other = (back(model_of(name, step), tmp_path) for _ in range(2))
    one.partial_fit(QUERIES[:5], NAMES[:5])
    other = back(other.partial_fit(QUERIES[:5], NAMES[:5]), tmp_path)
    one.forget([1, 3, len(one.y_fit_) - 1])
    other = back(other.forget([1, 3, len(other.y_fit_) - 1]), tmp_path)
    assert one.classes_.tolist() == other.classes_.tolist()
    assert_same_scores(other.class_scores(QUERIES), one.class_scores(QUERIES))


def test_a_covariance_that_was_chosen_again_comes_back(tmp_path):
    model = back(model_of("mixture", "left"), tmp_path).reselect()
    assert model.classes_.tolist() == ["cat", "dog"]  # no row is left of the third
    loaded = back(model, tmp_path)
    assert loaded.loo_error_ == model.loo_error_
    np.testing.assert_array_equal(loaded.predict_proba(QUERIES), model.predict_proba(QUERIES))
