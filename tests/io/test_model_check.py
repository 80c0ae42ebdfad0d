"""What fit guarantees: every fitted model passes, and what no fit leaves behind is refused in a clause."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from coxfield import LGCPClassifier
from coxfield.estimators.tables import Column, TableColumns
from coxfield.io.model_check import LADDER, TERMS, check_header, check_kernel, checked_mixture, checked_state
from coxfield.io.model_data import (
    MOST_LETTERS,
    Reader,
    Unsound,
    Writer,
    is_integer,
    is_number,
    is_text,
    quoted,
    require,
    require_array,
    require_arrays,
)
from coxfield.kernels.mixture import Ladder
from coxfield.kernels.transforms import Member

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 2))
CODES = (X[:, 0] > 0).astype(int)
NAMES = np.array(["cat", "dog"])[CODES]
WEIGHTS = RNG.uniform(0.5, 2, size=40)
MODELS = {
    "mixture": LGCPClassifier().fit(X, NAMES, sample_weight=WEIGHTS),
    "one kernel": LGCPClassifier(selection="loo_error", n_jobs=2).fit(X, CODES),
    "by class": LGCPClassifier({"cat": RBF(1.0), "dog": Matern(2.0)}, selection=None, mean={"cat": 1.0}).fit(X, NAMES),
    "booleans": LGCPClassifier(selection=None, length_scales=[1.0]).fit(X, CODES == 1),
    "objects": LGCPClassifier(selection="pseudo_likelihood").fit(X, NAMES.astype(object)),
    "dates": LGCPClassifier(selection=None).fit(X, np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")[CODES]),
    "bank": LGCPClassifier([Member(transform=PCA(1)), RBF(1.0)]).fit(X, CODES),
    "sparse": LGCPClassifier(selection=None).fit(sparse.csr_array(X), CODES, sample_weight=WEIGHTS),
    "shares": LGCPClassifier(selection=None)._fit_distributions(X, RNG.dirichlet([1, 1, 1], 40), np.array([1, 2, 5])),
}
MODELS["mixture as a kernel"] = LGCPClassifier(MODELS["mixture"].kernel_, selection=None).fit(X[:9], NAMES[:9])


FRAME = pd.DataFrame({"a": X[:, 0], "b": NAMES[::-1], "c": pd.date_range("2020-01-01", periods=40, freq="30D")})
FRAME.loc[3, "a"] = np.nan
MODELS["table"] = LGCPClassifier().fit(FRAME, NAMES)


def read(value):
    """A value as it comes back from a file."""
    write = Writer()
    data = write(value)
    return Reader(write.arrays.__getitem__)(data)


def state_of(name):
    return {part: read(value) for part, value in MODELS[name].__getstate__().items()}


@pytest.mark.parametrize("name", MODELS)
def test_fitted_models_pass(name):
    assert checked_state(state_of(name)).keys() == MODELS[name].__getstate__().keys()


@pytest.mark.parametrize("name", MODELS)
def test_every_attribute_of_a_fit_is_known(name):
    """One that is new has no line in `model_check`, and is not lost silently."""
    with pytest.raises(Unsound, match=r"the model has a part \['newer_'\] that no fit makes"):
        checked_state({**state_of(name), "newer_": 1.0})


def test_a_learned_mixture_is_over_the_training_points_whatever_a_file_says():
    state = state_of("mixture")
    found = checked_state({**state, "kernel_": replace(state["kernel_"], X=X + 1, counts=None)})
    assert found["kernel_"].X is found["X_fit_"]
    assert found["kernel_"].counts is found["_weights"]


def test_names_of_features_pass():
    for kind in (str, object):
        checked_state({**state_of("one kernel"), "feature_names_in_": np.array(["a", "b"], dtype=kind)})


def spoiled(array, value):
    array = array.copy()
    array.ravel()[0] = value
    return array


WRONG = [
    ("one kernel", {"X_fit_": X.tolist()}, "X_fit_ is not an array"),
    ("one kernel", {"X_fit_": spoiled(X, np.nan)}, "X_fit_ holds numbers that are not finite"),
    ("one kernel", {"X_fit_": X[:, :1]}, "n_features_in_ is not 1"),
    ("one kernel", {"X_fit_": X[:30]}, r"y_fit_ has the shape \(40,\), not \(30\)"),
    ("one kernel", {"y_fit_": CODES[:30]}, r"y_fit_ has the shape \(30,\), not \(40\)"),
    ("one kernel", {"y_fit_": CODES + 1}, "y_fit_ holds numbers outside of 0 to 1"),
    ("one kernel", {"y_fit_": CODES - 1}, "y_fit_ holds numbers outside of 0 to 1"),
    ("one kernel", {"y_fit_": CODES.astype(float)}, "y_fit_ is an array of type"),
    ("one kernel", {"classes_": [0, 1]}, "classes_ is not an array of classes"),
    ("one kernel", {"classes_": np.array([0])}, "classes_ holds fewer than two classes"),
    ("one kernel", {"classes_": np.array([1, 0])}, "classes_ is not sorted"),
    ("one kernel", {"classes_": np.array([1, 1])}, "classes_ is not sorted"),
    ("one kernel", {"classes_": np.array([0, np.nan])}, "classes_ holds values that are not finite"),
    ("one kernel", {"classes_": np.array([0j, 1])}, "classes_ is of type '<c16'"),
    ("one kernel", {"classes_": np.array([[0, 1]])}, "classes_ is not an array of classes"),
    ("one kernel", {"classes_": np.array([0, "a"], dtype=object)}, "classes_ holds values that are not text"),
    ("one kernel", {"classes_": np.arange(3)}, r"mean_ has the shape \(2,\), not \(3\)"),
    ("one kernel", {"mean_": np.array([0.0, np.inf])}, "mean_ holds numbers that are not finite"),
    ("one kernel", {"mean_": np.array([0, 1])}, "mean_ is an array of type"),
    ("one kernel", {"mean_": None}, "mean_ is not an array"),
    ("one kernel", {"_weights": -WEIGHTS}, "_weights holds numbers that are not positive"),
    ("one kernel", {"_weights": spoiled(WEIGHTS, np.nan)}, "_weights holds numbers that are not finite"),
    ("one kernel", {"_weights": WEIGHTS[1:]}, "_weights has the shape"),
    ("one kernel", {"_weights": WEIGHTS.astype(np.float32)}, "_weights are not in the precision of the points"),
    ("one kernel", {"_weights": np.ones((40, 3))}, "_weights has the shape"),
    ("one kernel", {"_weights": np.zeros((40, 2))}, "_weights are all 0"),
    ("one kernel", {"n_features_in_": 3}, "n_features_in_ is not 2"),
    ("one kernel", {"n_features_in_": "2"}, "n_features_in_ is not 2"),
    ("one kernel", {"feature_names_in_": np.array(["a"], dtype=object)}, "feature_names_in_ does not hold the name"),
    ("one kernel", {"feature_names_in_": ["a", "b"]}, "feature_names_in_ does not hold the name"),
    ("one kernel", {"feature_names_in_": np.array(["a", 2], dtype=object)}, "feature_names_in_ does not hold the name"),
    ("one kernel", {"kernel_": None}, "a kernel is a NoneType"),
    ("one kernel", {"kernel_": RBF(np.nan)}, "length_scale of RBF is nan"),
    ("one kernel", {"kernel_": RBF(-1.0)}, "length_scale of RBF is -1"),
    ("one kernel", {"kernel_": RBF(np.ones(3))}, "length_scale has 3 entries but the data have 2 features"),
    ("one kernel", {"kernel_": {}}, "kernel_ has wrong classes"),
    ("by class", {"kernel_": {"cat": RBF(1.0), "cow": RBF(1.0)}}, "kernel_ has wrong classes"),
    ("by class", {"kernel_": {"cat": RBF(1.0), "dog": None}}, "a kernel is a NoneType"),
    ("one kernel", {"mixture_": {"weight": np.ones(2)}}, "it has a table of a mixture, but not a mixture"),
    ("mixture", {"mixture_": {"weight": np.ones(2), "share": np.ones(3)}}, "mixture_ is not a table"),
    ("mixture", {"mixture_": [1]}, "mixture_ is not a table"),
    ("one kernel", {"selection_path_": {"chosen": 3}}, "selection_path_ is not a table"),
    ("one kernel", {"loo_error_": np.nan}, "loo_error_ is nan"),
    ("one kernel", {"loo_error_": 2.0}, "loo_error_ is 2.0"),
    ("one kernel", {"loo_log_loss_": -1.0}, "loo_log_loss_ is -1.0"),
    ("one kernel", {"_changed": 0.5}, "_changed is not an integer"),
    ("one kernel", {"_largest_evidence": -1.0}, "_largest_evidence is -1.0"),
    ("one kernel", {"predict": 3}, "the model has a part .* that no fit makes"),
    ("one kernel", {"selection": "best"}, "selection must be one of"),
    ("one kernel", {"selection_part": 0.0}, "selection_part must be a number above 0"),
    ("one kernel", {"n_jobs": 0}, "n_jobs is 0"),
    ("one kernel", {"n_jobs": 10**9}, "n_jobs is 1000000000"),
    ("one kernel", {"n_jobs": "many"}, "n_jobs is 'many'"),
    ("one kernel", {"mean": {"a": np.exp}}, "mean is not made of numbers and names"),
    ("one kernel", {"kernel": RBF(np.nan)}, "length_scale of RBF is nan"),
    ("one kernel", {"kernel": [Member(Member())]}, "a kernel is a Member, which is not a kernel"),
    ("one kernel", {"kernel": [3]}, "a kernel is a int, which is not a kernel"),
    ("one kernel", {"kernel": [Member(transform=3)]}, "a representation is a int, which is not one of"),
    ("one kernel", {"kernel": [Member(alphas=np.exp)]}, "alphas of a member are not numbers"),
]


@pytest.mark.parametrize(("name", "change", "clause"), WRONG, ids=[clause for _, _, clause in WRONG])
def test_states_that_no_fit_leaves_behind_are_refused(name, change, clause):
    with pytest.raises(ValueError, match=clause):
        checked_state({**state_of(name), **change})


@pytest.mark.parametrize("entry", ["X_fit_", "y_fit_", "classes_", "kernel_", "mean_", "_weights", "n_features_in_"])
def test_no_entry_may_be_missing(entry):
    state = state_of("one kernel")
    del state[entry]
    with pytest.raises(Unsound, match=f"the model has no {entry}"):
        checked_state(state)


HEADER = {"format": "x", "version": "1", "target": "species", "features": ["a", "b"], "id_column": None}


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        ({"features": None}, "the features in it are not a list of names"),
        ({"features": "ab"}, "the features in it are not a list of names"),
        ({"features": ["a", 2]}, "the features in it are not a list of names"),
        ({"features": ["a", "a"]}, "two of its features have the same name"),
        ({"features": ["a"]}, "it has 1 names for 2 features"),
        ({"target": None}, "the target in it is not text"),
        ({"target": "\ud800"}, "the target in it is not text"),
        ({"version": 3}, "the version in it is not text"),
        ({"id_column": 3}, "the id_column in it is not text"),
    ],
)
def test_names_of_columns_are_names(change, clause):
    check_header(HEADER, 2, has_ids=False)
    with pytest.raises(Unsound, match=clause):
        check_header({**HEADER, **change}, 2, has_ids=False)


def test_a_header_is_complete():
    with pytest.raises(Unsound, match="its description has no target, features"):
        check_header(
            {name: value for name, value in HEADER.items() if name not in ("target", "features")}, 2, has_ids=False
        )


def test_ids_have_a_column():
    check_header({**HEADER, "id_column": "name"}, 2, has_ids=True)
    with pytest.raises(Unsound, match="it has ids, but no name of their column"):
        check_header(HEADER, 2, has_ids=True)


@pytest.mark.parametrize("name", ["_chosen_from", "_announced", "_arrived"])
@pytest.mark.parametrize("mask", [[True, False], np.ones(2), np.ones(3, bool)])
def test_masks_are_masks(name, mask):
    with pytest.raises(Unsound, match=f"{name} (is not an array|is an array of type|has the shape)"):
        checked_state({**state_of("one kernel"), name: mask})


GOOD = Column("b", "category", ("x", "y"))


@pytest.mark.parametrize(
    "column",
    [
        3,
        replace(GOOD, kind="guess"),
        replace(GOOD, name=None),
        replace(GOOD, levels=["x", "y"]),
        replace(GOOD, levels=("x", 3)),
        replace(GOOD, levels=("x", "x")),
        replace(GOOD, filling=(1.0,)),
        replace(GOOD, blanks=1),
        replace(GOOD, cycles=("day of week",)),
        Column("b", "number"),
        Column("b", "number", filling=(np.nan,)),
        Column("b", "date", filling=(1.0,), cycles=("month",)),
    ],
)
def test_columns_that_no_table_has_are_refused(column):
    with pytest.raises(Unsound, match="columns_ holds a column that no table has"):
        checked_state({**state_of("table"), "columns_": TableColumns((column,))})


JOINT = MODELS["table"].columns_.joint
WIDE = len(JOINT.centre)


@pytest.mark.parametrize(
    "joint",
    [
        3,
        replace(JOINT, centre=JOINT.centre[:-1]),
        replace(JOINT, centre=list(JOINT.centre)),
        replace(JOINT, scale=(0.0,) * WIDE),
        replace(JOINT, scale=(np.inf,) * WIDE),
        replace(JOINT, covariance=JOINT.covariance[:-1]),
        replace(JOINT, covariance=tuple(map(tuple, np.triu(np.ones((WIDE, WIDE))).tolist()))),
        replace(JOINT, covariance=tuple(map(tuple, (2 - np.eye(WIDE)).tolist()))),
        replace(JOINT, covariance=(("x",) * WIDE,) * WIDE),
        replace(JOINT, ridge=0.0),
        replace(JOINT, ridge=np.nan),
    ],
)
def test_fillings_that_no_table_has_are_refused(joint):
    state = state_of("table")
    with pytest.raises(Unsound, match="columns_ fills in blanks as no table does"):
        checked_state({**state, "columns_": replace(state["columns_"], joint=joint)})


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        ({"columns_": 3}, "columns_ are not those of a table"),
        ({"columns_": TableColumns([GOOD])}, "columns_ holds a column"),
        ({"columns_": TableColumns((GOOD,))}, "columns_ are not those of points with"),
        ({"columns_": None}, "n_features_in_ is not"),
        ({"n_features_in_": 2}, "n_features_in_ is not 3"),
        ({"feature_names_in_": None, "n_features_in_": 2}, "n_features_in_ is not 3"),
    ],
)
def test_tables_that_no_fit_makes_are_refused(change, clause):
    with pytest.raises(Unsound, match=clause):
        checked_state({**state_of("table"), **change})


class OwnKernel(RBF):
    """A kernel that another program knows nothing of."""


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(),
        RBF(2, "fixed"),
        RBF(np.float32(2.0), (1e-300, 1e300)),
        RBF([1.0, 2.0], [(1, 2), (3, 4)]),
        RBF(np.array([1.0, 2.0]), np.array([[1, 2], [3, 4]])),
        RBF(np.array([1.0])),
        Matern(1.0, nu=np.inf),
        2.0 * RationalQuadratic(1.0, 0.5) ** 2 + WhiteKernel(0),
        RBF() ** -1,
        ExpSineSquared() + DotProduct(0) * ConstantKernel(3),
        PairwiseKernel(gamma=-1.0, metric="sigmoid", pairwise_kernels_kwargs={"coef0": 1.0}),
    ],
    ids=repr,
)
def test_kernels_that_can_be_fitted_pass(kernel):
    check_kernel(read(kernel))
    assert read(kernel) == kernel


def changed(kernel, **parameters):
    vars(kernel).update(parameters)
    return kernel


@pytest.mark.parametrize(
    ("kernel", "clause"),
    [
        (None, "a kernel is a NoneType"),
        ("RBF", "a kernel is a str"),
        (OwnKernel(), "a kernel is a OwnKernel, which is not a kernel of scikit-learn"),
        (RBF(np.nan), "length_scale of RBF is nan"),
        (RBF(-1.0), r"length_scale of RBF is -1\.0"),
        (RBF(0), "length_scale of RBF is 0"),
        (RBF("1"), "length_scale of RBF is '1'"),
        (RBF(True), "length_scale of RBF is True"),
        (RBF([1.0, "2"]), "length_scale of RBF is"),
        (RBF(np.array([1.0, np.inf])), "length_scale of RBF is"),
        (RBF(np.array(["a", "b"])), "length_scale of RBF is"),
        (RBF(np.ones(3)), "length_scale has 3 entries but the data have 2 features"),
        (RBF(np.ones(0)), "length_scale of RBF is"),
        (RBF(np.ones((2, 2))), "length_scale of RBF is"),
        (RBF(1.0, "free"), "length_scale_bounds of RBF"),
        (RBF(1.0, np.array(["a"])), "length_scale_bounds of RBF"),
        (RBF(1.0, (1, 2, 3)), "length_scale_bounds of RBF"),
        (Matern(nu=-1.0), "nu of Matern is -1"),
        (Matern(nu=0), "nu of Matern is 0"),
        (Matern(nu=np.nan), "nu of Matern is nan"),
        (RationalQuadratic(alpha=-np.inf), "alpha of RationalQuadratic is -inf"),
        (ConstantKernel(0.0) * RBF(), "constant_value of ConstantKernel is 0"),
        (RBF() + ConstantKernel(None), "constant_value of ConstantKernel is None"),
        (RBF() ** np.nan, "exponent of Exponentiation is nan"),
        (DotProduct([1]), "sigma_0 of DotProduct is"),
        (CompoundKernel([RBF()]), "which is not a covariance"),
        (PairwiseKernel(metric=np.exp), "metric of PairwiseKernel is"),
        (PairwiseKernel(pairwise_kernels_kwargs={"a": np.exp}), "pairwise_kernels_kwargs of PairwiseKernel is"),
        (changed(RBF() + RBF(), k2=3), "a kernel is a int"),
    ],
)
def test_kernels_that_no_fit_accepts_are_refused(kernel, clause):
    state = {**state_of("one kernel"), "kernel_": kernel}
    with pytest.raises(ValueError, match=clause):
        checked_state(state)


def test_a_kernel_has_not_too_many_parts():
    many = RBF()
    for _ in range(TERMS):
        many = many + RBF()
    with pytest.raises(Unsound, match=f"a kernel has more than {TERMS} parts"):
        check_kernel(many)


BANK = [Member(), Member(transform="whitened"), Member(RBF(0.5) + RBF(2.0)), Member(2.0 * Matern([1.0, 2.0], nu=1.5))]


def learned(*arguments, weights=None, rows=X):
    return LGCPClassifier(*arguments).fit(rows, CODES, sample_weight=weights).kernel_


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["no weights", "weights"])
@pytest.mark.parametrize("bank", [None, *([member] for member in BANK)])
def test_learned_mixtures_pass(bank, weights):
    mixture = learned(bank, weights=weights)
    checked_mixture(read(mixture))
    checked_mixture(read(replace(mixture, log_densities=None)))


def test_mixtures_of_single_precision_and_of_sparse_points_pass():
    checked_mixture(read(learned(rows=X.astype(np.float32))))
    checked_mixture(read(learned([Member(), Member(transform="standardised")], rows=sparse.csr_array(X))))


def with_ladder(mixture, **parts):
    return replace(mixture, ladders=(replace(mixture.ladders[0], **parts), *mixture.ladders[1:]))


WRONG_MIXTURES = [
    (lambda m: replace(m, X=X.astype(int)), "X of the mixture is an array of type"),
    (lambda m: replace(m, X=X[:, 0]), "X of the mixture has the shape"),
    (lambda m: replace(m, counts=WEIGHTS[:-1]), "counts of the mixture has the shape"),
    (lambda m: replace(m, counts=-WEIGHTS), "counts of the mixture holds numbers that are not positive"),
    (lambda m: replace(m, ladders=()), "the mixture has no members"),
    (lambda m: replace(m, ladders=list(m.ladders)), "the mixture has no members"),
    (lambda m: replace(m, ladders=(3,)), "a part of the mixture is a int"),
    (lambda m: replace(m, log_densities=m.log_densities[0]), "does not have the densities of each representation"),
    (lambda m: replace(m, log_densities=()), "does not have the densities of each representation"),
    (lambda m: replace(m, log_densities=(m.log_densities[0][:, 1:],)), "log_densities of the mixture has the shape"),
    (lambda m: replace(m, log_densities=(m.log_densities[0] * np.nan,)), "log_densities of the mixture holds numbers"),
    (lambda m: replace(m, log_densities=(m.log_densities[0] - 90,)), "log_densities of the mixture are not those of"),
    (lambda m: replace(m, log_densities=(m.log_densities[0] + 90,)), "log_densities of the mixture are not those of"),
    (lambda m: with_ladder(m, name=3), "the name of a representation is not text"),
    (lambda m: with_ladder(m, transform="raw"), "a representation is a str, which is not one of"),
    (lambda m: with_ladder(m, factors=np.array([-1.0])), "factors of the mixture holds numbers that are not positive"),
    (lambda m: with_ladder(m, alphas=np.array([-1.0])), "alphas of the mixture holds negative numbers"),
    (
        lambda m: with_ladder(m, alphas=np.full_like(m.ladders[0].alphas, 1e5)),
        "alphas of the mixture are larger than 16",
    ),
    (lambda m: with_ladder(m, weights=m.ladders[0].weights * np.nan), "weights of the mixture holds numbers that"),
    (lambda m: with_ladder(m, weights=-m.ladders[0].weights), "weights of the mixture holds negative numbers"),
    (lambda m: with_ladder(m, weights=m.ladders[0].weights.T[..., None]), "weights of the mixture has the shape"),
    (lambda m: with_ladder(m, weights=0 * m.ladders[0].weights), "weights of the mixture are all 0"),
    (
        lambda m: with_ladder(
            m, factors=np.ones(400), alphas=np.ones(400), floors=np.ones(400), weights=np.ones((400, 400))
        ),
        r"the mixture has \d+ members, more than 2000",
    ),
    (lambda m: with_ladder(m, covariance=RBF() + DotProduct()), "may take negative values"),
]


@pytest.fixture(scope="module")
def plain():
    return read(learned([Member()]))


@pytest.mark.parametrize(("change", "clause"), WRONG_MIXTURES, ids=[clause for _, clause in WRONG_MIXTURES])
def test_mixtures_that_no_fit_makes_are_refused(change, clause, plain):
    with pytest.raises(ValueError, match=clause):
        checked_mixture(change(plain))


def test_every_array_of_a_ladder_is_known(plain):
    arrays = {name for name, value in vars(plain.ladders[0]).items() if isinstance(value, np.ndarray)}
    assert arrays | {"point_weights"} == LADDER.keys()  # free ladders alone have these
    more = Ladder(**vars(plain.ladders[0]))
    more.__dict__["newer"] = np.ones(3)
    with pytest.raises(Unsound, match=r"has an array .'newer'. that no fit makes"):
        checked_mixture(replace(plain, ladders=(more,)))


@pytest.mark.parametrize(
    ("points", "clause"),
    [
        (None, "X_fit_ is not an array"),
        (X.tolist(), "X_fit_ is not an array"),
        (X[:0], "X_fit_ is empty"),
        (X[:, :0], "X_fit_ is empty"),
        (X.astype(np.float16), "X_fit_ is an array of type float16"),
        (sparse.csr_array(np.where(X > 1, np.inf, X)), "X_fit_ holds numbers that are not finite"),
        (sparse.csr_array(X.astype(int)), "X_fit_ is an array of type"),
    ],
)
def test_points_are_finite_numbers(points, clause):
    with pytest.raises(Unsound, match=clause):
        checked_state({**state_of("one kernel"), "X_fit_": points})


def test_a_condition_that_does_not_hold_is_a_clause():
    require(True, "it is wrong")
    with pytest.raises(Unsound, match="it is wrong"):
        require(False, "it is wrong")


def test_quoted_values_are_short_and_on_one_line():
    assert "\n" not in quoted(np.arange(1000).reshape(50, 20))
    assert len(quoted("x" * 10**6)) <= MOST_LETTERS + 3


def test_quoted_values_can_be_written_everywhere():
    class Odd:
        def __repr__(self):
            return "\ud800\u2028 é"

    assert quoted(Odd()).isascii()


@pytest.mark.parametrize(
    ("value", "number", "integer", "text"),
    [
        (1, True, True, False),
        (2.5, True, False, False),
        (np.nan, False, False, False),
        (np.inf, False, False, False),
        (True, False, False, False),
        (None, False, False, False),
        ("a", False, False, True),
        ("\ud800", False, False, False),
        ([1], False, False, False),
    ],
)
def test_kinds_of_values(value, number, integer, text):
    assert (is_number(value), is_integer(value), is_text(value)) == (number, integer, text)


@pytest.mark.parametrize(
    ("value", "clause"),
    [
        ([1.0, 2.0], "it is not an array"),
        (np.ma.array([1.0, 2.0]), "it is not an array"),
        (np.array([1, 2]), "it is an array of type"),
        (np.array([1.0, 2.0], dtype=">f8"), "it is an array of type"),
        (np.array([1.0]), r"it has the shape \(1,\), not \(2\)"),
        (np.ones((2, 1)), r"it has the shape \(2, 1\), not \(2\)"),
        (np.array([1.0, np.nan]), "it holds numbers that are not finite"),
    ],
)
def test_arrays_are_of_a_type_and_shape_and_finite(value, clause):
    assert require_array(np.array([1.0, -2.0]), "it", (2,)).tolist() == [1, -2]
    assert require_array(np.ones((2, 7)), "it", (2, None)).shape == (2, 7)
    with pytest.raises(Unsound, match=clause):
        require_array(value, "it", (2,))


TABLE = {"a": "nm positive", "b": "m nonnegative", "c": "n codes m", "d": "n mask optional", "e": "k codes n ascending"}
RIGHT = {"a": np.ones((3, 2)), "b": np.zeros(2), "c": np.array([0, 1, 1]), "d": None, "e": np.array([0, 2])}


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        ({"a": np.zeros((3, 2))}, "a of it holds numbers that are not positive"),
        ({"b": np.array([0.0, -1.0])}, "b of it holds negative numbers"),
        ({"b": np.zeros(3)}, r"b of it has the shape \(3,\), not \(2\)"),
        ({"b": None}, "b of it is not an array"),
        ({"c": np.array([0, 1, 2])}, "c of it holds numbers outside of 0 to 1"),
        ({"c": np.array([0, 1, -1])}, "c of it holds numbers outside of 0 to 1"),
        ({"c": np.array([0.0, 1.0, 1.0])}, "c of it is an array of type"),
        ({"d": np.ones(3)}, "d of it is an array of type"),
        ({"d": np.ones(2, bool)}, "d of it has the shape"),
        ({"e": np.array([2, 0])}, "e of it is not ascending"),
    ],
)
def test_arrays_of_a_table_fit_together(change, clause):
    assert require_arrays(RIGHT, TABLE, {"n": 3}, " of it") == {"n": 3, "m": 2, "k": 2}
    assert require_arrays({**RIGHT, "d": np.ones(3, bool), "e": np.array([], int)}, TABLE, {}, " of it")["k"] == 0
    with pytest.raises(Unsound, match=clause):
        require_arrays({**RIGHT, **change}, TABLE, {"n": 3}, " of it")
