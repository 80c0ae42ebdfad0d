"""Constructor options of the estimators, each as Python source: mostly valid, sometimes not."""

from hypothesis import strategies as st

from fuzz.chance import happens, mostly
from fuzz.kernels import kernels, numbers

LENGTHS = ["[1.0]", "[0.5, 1.0, 2.0]", "np.array([1.0, 0.1])", "[1e-300, 1e300]", "[1e-30]", "[1e30]", "(2.0, 2.0)"]
NO_LENGTHS = ["[]", "[0.0]", "[-1.0]", "[nan]", "[inf]", "'a'", "1.0", "[[1.0]]", "['a']", "[None]", "{}"]
WRONG = ["'wrong'", "None", "nan", "-1", "[]", "1.5"]
MEMBERS = ["Member()", "Member(transform='whitened')", "Member(RBF(1.0), 'standardised')", "Member(alphas=(0.0, 1.0))"]
WRONG_MEMBERS = ["Member(transform='wrong')", "Member('rbf')", "Member(alphas=())", "Member(alphas=(nan,))", "3"]


@st.composite
def means(draw, classes, usual):
    """A number for all classes or a mapping: of means, or of powers alpha."""
    if happens(draw, 30):
        return "{" + f"{draw(st.sampled_from(classes))}: {draw(st.sampled_from(usual))}" + "}"
    return mostly(draw, usual, ["nan", "inf", "'a'", "None", "{'no class': 1.0}", "-1e308", "1e308"], percent=15)


@st.composite
def one_kernel(draw, classes, d):
    """A kernel, or a kernel for each class."""
    if happens(draw, 10):
        pairs = [f"{name}: {draw(kernels(d))}" for name in classes]
        return "{" + ", ".join(pairs[:-1] if happens(draw, 10) else pairs) + "}"
    return mostly(draw, [draw(kernels(d))], ["'rbf'", "3", "RBF", "None", "[]"], percent=3)


@st.composite
def bank(draw, classes, d):
    """A kernel for a mixture: one, or a list of kernels and members."""
    if happens(draw, 50):
        return draw(one_kernel(classes, d))
    members = [mostly(draw, MEMBERS, WRONG_MEMBERS, percent=5), draw(kernels(d))]
    return "[" + ", ".join(members[: draw(st.integers(1, 2))]) + "]"


def _add(draw, options, name, percent, usual, rare=WRONG):
    """Set an option in so many of a hundred cases."""
    if happens(draw, percent):
        options[name] = mostly(draw, usual, rare, percent=8)


def _common(draw, options):
    _add(draw, options, "length_scales", 15, LENGTHS, NO_LENGTHS)


@st.composite
def lgcp(draw, classes, d):
    """Options of `LGCPClassifier`."""
    options = {}
    _add(draw, options, "selection", 65, ["None", "'loo_error'", "'loo_log_loss'", "'pseudo_likelihood'", "'mixture'"])
    if happens(draw, 50):
        mixes = options.get("selection", "'mixture'") == "'mixture'"
        options["kernel"] = draw(bank(classes, d) if mixes else one_kernel(classes, d))
    if happens(draw, 20):
        options["mean"] = draw(means(classes, ["1.0", "-2.5", "0", "1e-300", "700.0"]))
    _common(draw, options)
    _add(draw, options, "learn_mean", 15, ["False", "True"])
    if happens(draw, 12):
        options["selection_part"] = mostly(
            draw, ["0.5", "0.8", "1"], ["0.0", "1.5", "nan", "'half'", "True"], percent=10
        )
        options["random_state"] = "0"
    _add(draw, options, "n_jobs", 5, ["1", "2"], ["0", "'two'", "-1"])
    return options


@st.composite
def slgcp(draw, classes, d, graph):
    """Options of `SLGCPClassifier`, without the mark of missing labels."""
    options = {"random_state": mostly(draw, ["0"], ["'seed'", "-1", "np.random.default_rng(0)"], percent=4)}
    if graph:
        options["kernel"] = draw(st.sampled_from(["'precomputed'", "'precomputed_distances'"]))
        _add(draw, options, "inference", 10, ["'mixture'"])
        return options
    fields = ["'map'", "'marginals'", "'perturb_and_map'"]
    _add(draw, options, "inference", 60, [*fields, "'mixture'", "'auto'"])
    if happens(draw, 40) and options.get("inference") != "'mixture'":
        options["kernel"] = draw(one_kernel(classes, d))
    if "inference" in options:
        options["n_draws"] = mostly(draw, ["40", "64"], ["3", "None", "'a'", "16.0"], percent=8)
    if happens(draw, 20):
        options["mean"] = draw(means(classes, ["1.0", "-2.5", "0", "1e-300", "700.0"]))
    # Cross validation of marginals takes seconds, so most of these cases do without.
    draws = options.get("inference") in ("'marginals'", "'perturb_and_map'")
    _add(draw, options, "selection", 85 if draws else 30, ["None"] if draws else ["None", "'cv_error'"])
    _common(draw, options)
    _add(draw, options, "n_folds", 15, ["2", "3", "1000"], ["1", "0", "2.5", "True"])
    _add(draw, options, "tolerance", 10, ["0.0", "1e-3", "1e-300"])
    return options


@st.composite
def permanental(draw, classes, d):
    """Options of `PermanentalClassifier`."""
    options = {"random_state": "0"}
    if happens(draw, 40):
        options["kernel"] = draw(one_kernel(classes, d))
    if happens(draw, 25):
        options["alpha"] = draw(means(classes, ["0.5", "2.0", "1e-6", "1e6", "1e-300", "1e300"]))
    _add(draw, options, "method", 40, ["'cyclic'", "'importance'", "'exact'"])
    _add(draw, options, "density", 25, ["'janossy'"])
    if options.get("density") == "'janossy'" and happens(draw, 30):
        box = f"[[-4.0, 4.0]] * {d}"
        options["window"] = mostly(draw, [box], ["[[1.0, 0.0]]", "[]", "'a'", f"[[nan, 1.0]] * {d}"], percent=20)
    _add(draw, options, "cycles", 15, ["2", "3"], ["1", "5", "2.5"])
    _add(draw, options, "selection", 40, ["None", "'loo_log_loss'"])
    _add(draw, options, "n_samples", 50, ["50"], ["0", "1", "2.5"])
    _common(draw, options)
    return options


@st.composite
def parzen(draw):
    """Options of `ParzenClassifier`."""
    options = {}
    _add(
        draw,
        options,
        "length_scale",
        40,
        [draw(numbers()), "5e-324", "1.7e308"],
        ["0.0", "-1.0", "nan", "'a'", "[1.0]"],
    )
    return options


@st.composite
def harmonic(draw):
    """Options of `HarmonicFunctions`, without the mark of missing labels."""
    options = draw(parzen())
    _common(draw, options)
    _add(draw, options, "class_mass_normalisation", 20, ["True"])
    _add(draw, options, "n_folds", 15, ["2", "3", "1000"], ["1", "0", "2.5", "True"])
    return options
