"""The summary of `coxfield label`: what was found, how, and how far it can be trusted."""

from pathlib import Path
from typing import TYPE_CHECKING

from coxfield.apps.cli import console

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield import SLGCPClassifier

LOUDEST = 3  # covariances that the summary names
AUDIBLE = 0.005  # share that is not rounded to 0 %


def summary(
    model: "SLGCPClassifier", features: list[str], given: "NDArray", output: Path | None, plot: Path | None
) -> dict[str, str]:
    """The lines of the summary of a labelling."""
    sizes = []
    for name in model.classes_.tolist():
        of_class = model.transduction_ == name
        sizes.append(f"{console.label_text(name)}: {(of_class & given).sum()} -> {of_class.sum()}")
    lines = {
        "Rows": f"{len(given)} ({given.sum()} labelled, {(~given).sum()} blank)",
        "Features": console.counted(features),
        "Classes": console.counted(sizes),
    }
    lines |= _committee(model) if model.inference_ == "mixture" else _field(model)
    if model.inference_ == "map":
        lines |= _certainty(model, given)
    else:
        lines |= _doubt(model, given)
    return lines | {name: str(path) for name, path in (("Table", output), ("Picture", plot)) if path is not None}


def _committee(model: "SLGCPClassifier") -> dict[str, str]:
    """Which covariances speak, and how loud each voice is."""
    columns = [model.members_[name].tolist() for name in ("covariance", "effective_rank", "without_mode_0", "share")]
    members = [
        f"{name}, effective rank {rank:.0f}{', without mode 0' if centred else ''}: {100 * share:.0f} %"
        for name, rank, centred, share in zip(*columns, strict=True)
        if share >= AUDIBLE
    ]
    left = len(members) - LOUDEST
    more = [f"{left} more: {100 * sum(columns[3][LOUDEST:]):.0f} %"] if left > 0 else []
    voices = [f"{name}: {100 * loudness:.0f} %" for name, loudness in model.voices_.items() if loudness > 0]
    return {"Covariances": "; ".join([*members[:LOUDEST], *more]), "Voices": "; ".join(voices)}


def _field(model: "SLGCPClassifier") -> dict[str, str]:
    """The kernel of the label field, and how it was chosen."""
    path = model.selection_path_
    error = f"{path['cv_error'][path['chosen']].item():.4g}"
    loss = (
        {"Cross-validation log loss": f"{path['cv_log_loss'][path['chosen']].item():.4g}"}
        if "cv_log_loss" in path
        else {}
    )
    return {"Kernel": str(model.kernel_), "Cross-validation error": error, **loss}


def _certainty(model: "SLGCPClassifier", given: "NDArray") -> dict[str, str]:
    """How much of the most probable labelling is proven."""
    blank, proven = int((~given).sum()), int(model.certified_[~given].sum())
    return {
        "Energy": f"{model.energy_:.10g}",
        "Relative gap": f"{model.result_.relative_gap:.2g} (up to {model.tolerance:g} counts as none)",
        # Rounded down, so that 100% means all labels.
        "Certified": f"{proven} of the {blank} labels found ({1000 * proven // blank / 10:g}%)",
    }


def _doubt(model: "SLGCPClassifier", given: "NDArray") -> dict[str, str]:
    """How many errors the label distributions predict, and how exactly these are known if they were drawn."""
    largest = model.label_distributions_[~given].max(axis=1)
    doubt = {"Errors to expect": f"{(1 - largest).sum():.1f} of the {len(largest)} labels found, if the model is right"}
    if hasattr(model, "marginal_errors_"):
        doubt["Standard error of probabilities"] = f"at most {model.marginal_errors_.max():.2g}"
    return doubt
