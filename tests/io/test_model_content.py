"""What fit guarantees: every fitted model passes, and what no fit leaves behind is refused."""

import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import LGCPClassifier
from coxfield.io.model_content import check_header, check_state
from coxfield.io.requirements import Unsound
from coxfield.kernels.mixture_ladder import Member

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


def state_of(name):
    """The state as it is after loading, with arrays that may be changed."""
    memo = {}
    state = copy.deepcopy(MODELS[name].__getstate__(), memo)
    for kernel in (state["kernel_"], state["kernel"]):
        getattr(kernel, "__dict__", {}).pop("_reference", None)
    return state


@pytest.mark.parametrize("name", MODELS)
def test_fitted_models_pass(name):
    check_state(state_of(name))


def test_names_of_features_pass():
    for kind in (str, object):
        check_state({**state_of("one kernel"), "feature_names_in_": np.array(["a", "b"], dtype=kind)})


def spoiled(array, value):
    array = array.copy()
    array.ravel()[0] = value
    return array


WRONG = [
    ("one kernel", {"X_fit_": X.tolist()}, "X_fit_ is no array"),
    ("one kernel", {"X_fit_": spoiled(X, np.nan)}, "X_fit_ holds numbers that are not finite"),
    ("one kernel", {"X_fit_": X[:, :1]}, "n_features_in_ is not 1"),
    ("one kernel", {"X_fit_": X[:30]}, r"y_fit_ has the shape \(40,\), not \(30\)"),
    ("one kernel", {"y_fit_": CODES[:30]}, r"y_fit_ has the shape \(30,\), not \(40\)"),
    ("one kernel", {"y_fit_": CODES + 1}, "y_fit_ holds numbers outside of 0 to 1"),
    ("one kernel", {"y_fit_": CODES - 1}, "y_fit_ holds numbers outside of 0 to 1"),
    ("one kernel", {"y_fit_": CODES.astype(float)}, "y_fit_ is an array of type"),
    ("one kernel", {"classes_": [0, 1]}, "classes_ is no array of classes"),
    ("one kernel", {"classes_": np.array([0])}, "classes_ holds fewer than two classes"),
    ("one kernel", {"classes_": np.array([1, 0])}, "classes_ is not sorted"),
    ("one kernel", {"classes_": np.array([1, 1])}, "classes_ is not sorted"),
    ("one kernel", {"classes_": np.array([0, np.nan])}, "classes_ holds values that are not finite"),
    ("one kernel", {"classes_": np.array([0j, 1])}, "classes_ is of type '<c16'"),
    ("one kernel", {"classes_": np.array([[0, 1]])}, "classes_ is no array of classes"),
    ("one kernel", {"classes_": np.array([0, "a"], dtype=object)}, "classes_ holds values that are no text"),
    ("one kernel", {"classes_": np.array(["a", "\ud800"])}, "classes_ holds values that are no text"),
    ("one kernel", {"classes_": np.full(6, 2**31, np.uint32).view("<U3")}, "classes_ holds text that cannot be read"),
    ("one kernel", {"classes_": np.arange(3)}, r"mean_ has the shape \(2,\), not \(3\)"),
    ("one kernel", {"mean_": np.array([0.0, np.inf])}, "mean_ holds numbers that are not finite"),
    ("one kernel", {"mean_": np.array([0, 1])}, "mean_ is an array of type"),
    ("one kernel", {"mean_": None}, "mean_ is no array"),
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
    ("one kernel", {"feature_names_in_": np.array(["a", 2], dtype=object)}, "feature_names_in_ holds values that are"),
    ("one kernel", {"kernel_": None}, "a kernel is a NoneType"),
    ("one kernel", {"kernel_": RBF(np.nan)}, "length_scale of RBF is nan"),
    ("one kernel", {"kernel_": RBF(-1.0)}, "length_scale of RBF is -1"),
    ("one kernel", {"kernel_": RBF(np.ones(3))}, "length_scale of RBF has 3 entries for 2 features"),
    ("one kernel", {"kernel_": {}}, "kernel_ has wrong classes"),
    ("by class", {"kernel_": {"cat": RBF(1.0), "cow": RBF(1.0)}}, "kernel_ has wrong classes"),
    ("by class", {"kernel_": {"cat": RBF(1.0), "dog": None}}, "a kernel is a NoneType"),
    ("one kernel", {"mixture_": {"weight": np.ones(2)}}, "it has a table of a mixture, but no mixture"),
    ("mixture", {"X_fit_": X + 1}, "the points of the mixture are not X_fit_"),
    ("mixture", {"_weights": None}, "counts of the mixture are not the weights of the points"),
    ("mixture", {"mixture_": {"weight": np.ones(2), "share": np.ones(3)}}, "mixture_ has columns of different length"),
    ("mixture", {"mixture_": [1]}, "mixture_ is no mapping"),
    ("mixture", {"mixture_": {"kernel": np.full(3, 2**31, np.uint32).view("<U3")}}, "mixture_ holds text that cannot"),
    ("one kernel", {"selection_path_": {"chosen": 3}}, "selection_path_ has columns of different length"),
    ("one kernel", {"loo_error_": np.nan}, "loo_error_ is no share"),
    ("one kernel", {"loo_error_": 2.0}, "loo_error_ is no share"),
    ("one kernel", {"n_jobs": 0}, "n_jobs is 0"),
    ("one kernel", {"n_jobs": 10**9}, "n_jobs is 1000000000"),
    ("one kernel", {"n_jobs": "many"}, "n_jobs is 'many'"),
    ("one kernel", {"verbose": RBF}, "verbose is not made of numbers and names"),
    ("one kernel", {"mean": {"a": np.exp}}, "mean is not made of numbers and names"),
    ("one kernel", {"kernel": RBF(np.nan)}, "length_scale of RBF is nan"),
    ("one kernel", {"kernel": [3]}, "kernel is a int, not a Member"),
    ("one kernel", {"kernel": [Member(transform=3)]}, "a representation is a int, which is not one of"),
    ("one kernel", {"kernel": [Member(alphas=np.exp)]}, "alphas of a member are no numbers"),
    ("one kernel", {"predict": np.exp}, "the model has an entry .* that hides a part of its class"),
    ("one kernel", {"_precision": 3}, "the model has an entry .* that hides a part of its class"),
]


@pytest.mark.parametrize(("name", "change", "clause"), WRONG, ids=[clause for _, _, clause in WRONG])
def test_states_that_no_fit_leaves_behind_are_refused(name, change, clause):
    with pytest.raises(Unsound, match=clause):
        check_state({**state_of(name), **change})


@pytest.mark.parametrize(
    "entry", ["X_fit_", "y_fit_", "classes_", "kernel_", "mean_", "_weights", "n_features_in_", "kernel"]
)
def test_no_entry_may_be_missing(entry):
    state = state_of("one kernel")
    del state[entry]
    with pytest.raises(Unsound, match=f"the model has no {entry}"):
        check_state(state)


@pytest.mark.parametrize("state", [None, [], {1: 2}])
def test_a_state_is_a_mapping_of_names(state):
    with pytest.raises(Unsound, match="the model is no mapping of names"):
        check_state(state)


HEADER = {"format": "x", "version": "1", "target": "species", "features": ["a", "b"], "id_column": None}


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        ({"features": None}, "the features in it are no list of names"),
        ({"features": "ab"}, "the features in it are no list of names"),
        ({"features": ["a", 2]}, "the features in it are no list of names"),
        ({"features": ["a", "a"]}, "two of its features have the same name"),
        ({"features": ["a"]}, "it has 1 names for 2 features"),
        ({"target": None}, "the target in it is no text"),
        ({"target": "\ud800"}, "the target in it is no text"),
        ({"version": 3}, "the version in it is no text"),
        ({"id_column": 3}, "the id_column in it is no text"),
    ],
)
def test_names_of_columns_are_names(change, clause):
    check_header(HEADER, 2)
    with pytest.raises(Unsound, match=clause):
        check_header({**HEADER, **change}, 2)


def test_a_header_is_complete():
    with pytest.raises(Unsound, match="its description has no target, features"):
        check_header({name: value for name, value in HEADER.items() if name not in ("target", "features")}, 2)
    with pytest.raises(Unsound, match="its description is no mapping"):
        check_header([], 2)


def test_ids_have_a_column():
    check_header({**HEADER, "id_column": "name"}, 2, has_ids=True)
    with pytest.raises(Unsound, match="it has ids, but no name of their column"):
        check_header(HEADER, 2, has_ids=True)


@pytest.mark.parametrize("name", ["_chosen_from", "_announced", "_arrived"])
@pytest.mark.parametrize("mask", [[True, False], np.ones(2), np.ones(3, bool)])
def test_masks_are_masks(name, mask):
    with pytest.raises(Unsound, match=f"{name} is no mask"):
        check_state({**state_of("one kernel"), name: mask})
