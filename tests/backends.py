"""Where points can be, and what users can do there: one list for the tests of all backends and for the docs.

`python tests/backends.py` prints the table of docs/arrays.md.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import LGCPClassifier
from coxfield.kernels import Member
from coxfield.kernels.namespace import to_numpy

BANK = [
    Member(RBF(0.3), alphas=(0.5, (1.0, 3.0))),
    Member(RBF(1.0), "whitened", alphas=(0.5,)),
    Member(RBF(np.sqrt(0.5)), "whitened", alphas=(0.5,)),
]
SELECTIONS = {
    "mixture": {"kernel": BANK},
    "loo_error": {"selection": "loo_error", "length_scales": [0.1, 0.2, 0.4]},
    "loo_log_loss": {"kernel": Matern(0.3, nu=1.5), "selection": "loo_log_loss", "length_scales": [0.5, 1.0]},
    "None": {"kernel": 2.0 * RBF([0.3, 0.4]), "selection": None},
    "pseudo_likelihood": {
        "kernel": RBF([0.3, 0.4]),
        "selection": "pseudo_likelihood",
        "length_scales": [1.0],
    },
}
POWERS = {
    "predict_proba": lambda clf, new, more: clf.predict_proba(new),
    "class_scores": lambda clf, new, more: clf.class_scores(new),
    "decision_function": lambda clf, new, more: clf.decision_function(new),
    "loo_class_scores": lambda clf, new, more: clf.loo_class_scores(),
    "loo_predict_proba": lambda clf, new, more: clf.loo_predict_proba(),
    "contributions": lambda clf, new, more: clf.contributions(new, top=3).shares,
    "loo_contributions": lambda clf, new, more: clf.loo_contributions([1, 5], top=3).rows,
    "label_quality": lambda clf, new, more: clf.label_quality()["probability"],
    "feature_importance": lambda clf, new, more: clf.feature_importance(20)["importance"],
    "set_p_values": lambda clf, new, more: clf.set_p_values(new),
    "predict_set": lambda clf, new, more: clf.predict_set(new, per_class=True),
    "with_priors": lambda clf, new, more: clf.with_priors([0.3, *[0.7] * (clf.classes_.shape[0] - 1)]).predict_proba(
        new
    ),
    "partial_fit": lambda clf, new, more: clf.partial_fit(*more).predict_proba(new),
    "forget": lambda clf, new, more: clf.forget([0, 7]).predict_proba(new),
    "reselect": lambda clf, new, more: clf.reselect().predict_proba(new),
}


@dataclass(frozen=True)
class Backend:
    """A place where points can be."""

    title: str
    library: str | None = None
    """Another library than NumPy, and its device after a colon."""
    dask: bool = False

    @property
    def refused(self):
        """What cannot be done here: selection -> (why, what the error says)."""
        if not self.dask:
            return {}
        why = "each step of the search is another pass over all pairs of points"
        return {"pseudo_likelihood": (why, "needs all rows in one place: give")}

    def array(self, values):
        """An array of NumPy in the library."""
        if self.library is None:
            return np.array(values)
        name, _, device = self.library.partition(":")
        module = pytest.importorskip(name)
        return module.asarray(np.array(values), **({"device": module.Device(device)} if device else {}))

    def given(self, values, size=25):
        """An array of NumPy as users have it here."""
        if not self.dask:
            return self.array(values)
        import dask.array as da

        there = da.from_array(np.asarray(values), chunks=(size, *np.shape(values)[1:]))
        return there if self.library is None or there.ndim == 1 else there.map_blocks(self.array, meta=there._meta)

    def classifier(self, **options):
        """The classifier of this place."""
        if not self.dask:
            return LGCPClassifier(**options)
        from coxfield.dask import DaskLGCPClassifier

        return DaskLGCPClassifier(**options)

    def home(self, found):
        """A result as NumPy has it; those of Dask are computed by two threads."""
        if not self.dask:
            return to_numpy(found)
        return to_numpy(found.compute(scheduler="threads", num_workers=2) if hasattr(found, "compute") else found)


BACKENDS = {
    "numpy": Backend("NumPy"),
    "strict": Backend("array-api-strict", "array_api_strict"),
    "strict on device1": Backend("array-api-strict, another device", "array_api_strict:device1"),
    "torch": Backend("torch", "torch"),
    "dask": Backend("Dask", dask=True),
    "dask, strict on device1": Backend("Dask, chunks on another device", "array_api_strict:device1", dask=True),
}


def table():
    """The table of docs/arrays.md: what is done where."""
    lines = ["| | " + " | ".join(backend.title for backend in BACKENDS.values()) + " |"]
    lines.append("|---" * (1 + len(BACKENDS)) + "|")
    for name in SELECTIONS:
        shown = f"`fit`, `selection={name}`" if name == "None" else f'`fit`, `selection="{name}"`'
        cells = (f"no: {each.refused[name][0]}" if name in each.refused else "yes" for each in BACKENDS.values())
        lines.append(f"| {shown} | " + " | ".join(cells) + " |")
    lines += [f"| `{power}` |" + " yes |" * len(BACKENDS) for power in POWERS]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
