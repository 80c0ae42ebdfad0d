"""Classification with log Gaussian Cox processes.

The flow is points -> covariance -> class sums or label field -> labels, and the modules show it. `docs/paper_map.md`
says where each equation of the paper lives.
"""

import importlib

__version__ = "0.3.0"

# Loaded on first use, so that `import coxfield` costs next to nothing.
_HOMES = {
    "LGCPClassifier": "coxfield.estimators.supervised",
    "PermanentalClassifier": "coxfield.estimators.permanental",
    "SLGCPClassifier": "coxfield.estimators.semi_supervised",
}
__all__ = ["LGCPClassifier", "PermanentalClassifier", "SLGCPClassifier", "__version__"]


def __getattr__(name):
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'coxfield' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_HOMES])
