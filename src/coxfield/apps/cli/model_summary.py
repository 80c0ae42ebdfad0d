"""What `coxfield fit` and the commands that change a model say about it when they are done."""

from typing import TYPE_CHECKING

from coxfield.apps.cli import messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield import LGCPClassifier


def summary(model: "LGCPClassifier", features: "Sequence[str]", y: "NDArray | None" = None) -> dict[str, str]:
    """The lines of the summary of a fitted model. `y` are the classes of its rows, if they are known already."""
    import numpy as np

    y = model.classes_[model.y_fit_] if y is None else y
    classes, counts = np.unique(y, return_counts=True)
    sizes = [f"{messages.label_text(label)}: {n}" for label, n in zip(classes.tolist(), counts.tolist(), strict=True)]
    # Rows that came or left have changed the error, and to compute it takes as long as predicting all rows.
    error = {"Leave-one-out error": f"{model.loo_error_:.4g}"} if hasattr(model, "loo_error_") else {}
    return {
        "Rows": str(len(y)),
        "Features": messages.counted(features),
        "Classes": messages.counted(sizes),
        **_covariance(model),
        **error,
    }


def _covariance(model: "LGCPClassifier") -> dict[str, str]:
    """The lines of the summary about the covariance: the kernel, or each member with its share of the evidence."""
    if not hasattr(model, "mixture_"):
        return {"Kernel": str(model.kernel_)}
    columns = [model.mixture_[name].tolist() for name in ("share", "representation", "length_scale", "alpha")]
    members = sorted(zip(*columns, strict=True), reverse=True)
    return {
        f"Covariance {number}": f"{share:.1%} {name}, length scale {scale:.3g}, density power {alpha:g}"
        for number, (share, name, scale, alpha) in enumerate(members, start=1)
    }
