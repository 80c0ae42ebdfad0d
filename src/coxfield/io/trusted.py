"""The types that a model file may hold, and the others that a file holds.

They are listed by name and not by package: a function of this package is no part of a model. Nor is a model part of a
model: what is in the file is its state.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from sklearn.gaussian_process import kernels

from coxfield.io.requirements import quoted

try:
    import skops.io
except ImportError:
    raise ImportError("model files need skops: pip install 'coxfield[cli]'") from None

if TYPE_CHECKING:
    from pathlib import Path

MOST_NAMES = 6  # of types in a message

_KERNELS = tuple(
    f"{kernels.__name__}.{name}"
    for name, kind in inspect.getmembers(kernels, inspect.isclass)
    if issubclass(kind, kernels.Kernel) and kind.__module__ == kernels.__name__
)
_SPARSE = tuple(f"scipy.sparse._csr.{name}" for name in ("csr_array", "csr_matrix"))
# What a mixture is made of. Transformers of scikit-learn are not listed: skops trusts them by itself.
_MIXTURE = tuple(
    f"coxfield.kernels.{name}"
    for name in (
        "member.Member",
        "compression.Compression",
        "mixture_ladder.Ladder",
        "mixture.Mixture",
        "radial.Radial",
        "called.Called",
        "profiles.SquaredExponential",
        "profiles.Matern",
        "profiles.RationalQuadratic",
        "transformer.Transformer",
        "units.Units",
        "whitening.Whitening",
    )
)
TRUSTED = (*_MIXTURE, *_KERNELS, *_SPARSE)


def strangers_in(source: Path | bytes) -> str:
    """The types in a file that are no part of a model, for a message; empty if there are none. Nothing is built."""
    kind = "data" if isinstance(source, bytes) else "file"
    names = [name for name in skops.io.get_untrusted_types(**{kind: source}) if name not in TRUSTED]
    # A type of a file may have any name, such as one of many lines.
    shown = [name if re.fullmatch(r"[\w.<>]{1,200}", name, re.ASCII) else quoted(name) for name in names[:MOST_NAMES]]
    return ", ".join(shown) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
