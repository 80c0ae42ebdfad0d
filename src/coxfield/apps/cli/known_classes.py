"""Classes of new rows, compared with the classes that a model has."""

from typing import TYPE_CHECKING

from coxfield.apps.cli import messages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.io.tables import Table


def labels_like(rows: "Table", target: str, classes: "NDArray") -> "NDArray":
    """The labels of all rows in the type of the classes of a model.

    A CSV of integers is read as integers, also where the model knows text: the table of the fit may have had other
    classes beside them.
    """
    import numpy as np

    labels = rows.labels(target, least=1)
    if _kind(classes) == "text":
        return np.array([messages.label_text(label) for label in labels.tolist()])
    if _kind(labels) != _kind(classes):
        raise ValueError(
            f"Column {target!r} of {rows.name} holds {_kind(labels)}, but the classes of the model are "
            f"{_kind(classes)} such as {messages.label_text(classes.tolist()[0])}: write the classes in the same way"
        )
    alike = labels.astype(classes.dtype)
    return alike if (alike == labels).all() else labels


def _kind(labels: "NDArray") -> str:
    """What labels are, in words."""
    kinds = {"U": "text", "O": "text", "b": "booleans", "m": "times", "M": "dates"}
    return kinds.get(labels.dtype.kind, "numbers")


def new_classes(rows: "Table", target: str, labels: "NDArray", classes: "NDArray", *, allowed: bool) -> "NDArray":
    """The classes that a model does not have. They are refused unless they are allowed: each may be a mistake."""
    import numpy as np

    from coxfield.io.columns import listed

    strange = ~np.isin(labels, classes)
    if strange.any() and not allowed:
        row = int(strange.argmax())
        known = listed([messages.label_text(label) for label in classes.tolist()], quoted=False)
        raise ValueError(
            f"Column {target!r} of {rows.name} holds the class {messages.label_text(labels.tolist()[row])} in row "
            f"{row + 1}, which is new to the model: correct it, or give --new-classes; known are {known}"
        )
    return np.unique(labels[strange])
