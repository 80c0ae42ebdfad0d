"""Fitted models in files: one skops archive holds the model and the names of the columns it was fitted to.

A pickle can run any code when it is loaded. A skops archive cannot: it lists the types it is made of, and `load` builds
it only if all of these types are on the short list below.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
from sklearn.gaussian_process import kernels

from coxfield import LGCPClassifier, __version__
from coxfield.utils.whole_files import whole_file

try:
    import skops.io
except ImportError:
    raise ImportError("model files need skops: pip install 'coxfield[cli]'") from None

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FORMAT = "coxfield model 2"
OLDER = ("coxfield model 1",)  # before mixtures of covariances

_MODEL = f"{LGCPClassifier.__module__}.{LGCPClassifier.__qualname__}"
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
        "whitening.Whitening",
    )
)
# Listed by name and not by package: a function of this package is no part of a model.
TRUSTED = (_MODEL, *_MIXTURE, *_KERNELS, *_SPARSE)


class ModelFileError(ValueError):
    """A file cannot be used as a model, or a model cannot be written to a file."""


@dataclass(frozen=True)
class SavedModel:
    """A fitted model, and the names of the columns it was fitted to, as `load` returns them."""

    model: LGCPClassifier
    target: str
    """Name of the column that held the classes."""
    features: tuple[str, ...]
    """Names of the feature columns, in the order the model wants them."""
    id_column: str | None
    """Name of the column that identifies rows, if there was one."""
    version: str
    """Version of coxfield that wrote the file."""


def check_output(path: Path) -> None:
    """Refuse a path to which no model can be written. Called before the work is done.

    The ending is required so that a table that is named by mistake is not overwritten.
    """
    if path.suffix.lower() != ".skops":
        raise ModelFileError(f"A model goes into a file that ends in .skops, and {path} does not: give it that ending")
    if not path.parent.is_dir():
        raise ModelFileError(f"There is no folder {path.parent} to write {path.name} to")


def save(
    model: LGCPClassifier, path: Path, *, target: str, features: Sequence[str], id_column: str | None = None
) -> None:
    """Write a fitted model and the names of the columns it was fitted to, whole or not at all.

    Parameters
    ----------
    model : LGCPClassifier
        Fitted.
    path : Path
        Ends in ``.skops``; an existing file is replaced.
    target : str
        Name of the column that held the classes.
    features : sequence of str
        Names of the feature columns, in the order of the columns of X.
    id_column : str, optional
        Name of the column that identifies rows.
    """
    check_output(path)
    _refuse_boolean_keys(model)
    content = {
        "format": FORMAT,
        "version": __version__,
        "target": target,
        "features": list(features),
        "id_column": id_column,
        "model": model,
    }
    archive = skops.io.dumps(content)
    strangers = _strangers(skops.io.get_untrusted_types(data=archive))
    if strangers:
        raise ModelFileError(
            f"A model that contains {strangers} cannot be saved, because `load` would refuse it as unsafe: "
            "use kernels of sklearn.gaussian_process.kernels and transformers of scikit-learn"
        )
    with whole_file(path) as stream:
        stream.write(archive)


def load(path: Path) -> SavedModel:
    """Read a model that `save` wrote. Only models, kernels, transformers of scikit-learn and arrays are built.

    Raises
    ------
    ModelFileError
        The file is not a model, is damaged, is of an older version, or holds types that are no part of a model.
    """
    strangers = _strangers(_types_beyond_skops(path))
    if strangers:
        raise ModelFileError(f"{path} is refused as unsafe: it contains {strangers}, which is no part of a model")
    try:
        content = skops.io.load(path, trusted=list(TRUSTED))
    except Exception as error:  # damaged archives, and types that have changed since, fail in many ways
        raise ModelFileError(
            f"{path} cannot be loaded by coxfield {__version__}, because it is damaged or from another version "
            f"({type(error).__name__}: {error}): fit the model again"
        ) from error
    return _saved_model(content, path)


def _strangers(types: Sequence[str]) -> str:
    """The types that are no part of a model, for a message; empty if there are none."""
    return ", ".join(name for name in types if name not in TRUSTED)


def _types_beyond_skops(path: Path) -> list[str]:
    """Names of the types in a file that skops does not trust by itself. Nothing is built."""
    if not path.is_file():
        raise ModelFileError(f"There is no file {path}")
    try:
        return skops.io.get_untrusted_types(file=path)
    except (BadZipFile, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is not a model that coxfield fit wrote") from error


def _saved_model(content: Any, path: Path) -> SavedModel:
    """Check that the content of the file is what `save` writes."""
    form = content.get("format") if isinstance(content, dict) else None
    if form in OLDER:
        raise ModelFileError(
            f"{path} was written by an older version of coxfield, whose models cannot be read: fit the model again"
        )
    if form != FORMAT:
        raise ModelFileError(f"{path} is a skops file, but not a model that this version of coxfield fit wrote")
    model = content["model"]
    if not isinstance(model, LGCPClassifier):
        raise ModelFileError(f"{path} holds a {type(model).__name__}, not an LGCPClassifier")
    features = tuple(content["features"])
    return SavedModel(model, content["target"], features, content["id_column"], content["version"])


def _refuse_boolean_keys(model: LGCPClassifier) -> None:
    """Refuse mappings with boolean keys: skops writes keys as text, and reads both keys as True."""
    for name in ("kernel", "mean"):
        value = getattr(model, name)
        if isinstance(value, Mapping) and any(isinstance(key, bool | np.bool_) for key in value):
            raise ModelFileError(
                f"A model whose {name} is given for the classes False and True cannot be saved: "
                "name the classes 0 and 1, or by strings"
            )
