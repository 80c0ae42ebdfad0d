"""Label rows by pressing keys: a page in the browser, with a model that answers at once.

`coxfield studio data.csv --target species` opens it for a table, and `open` for arrays. It needs the extra `studio`.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["open"]


def open(  # noqa: A001  # what people expect it to be called; nobody imports it without the name of the package
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    images: Any = None,
    texts: Sequence[str] | None = None,
    prior: Sequence | None = None,
    columns: Sequence[str] | None = None,
    missing_label: Any = None,
    journal: str | Path | None = None,
    check_every: int = 10,
    port: int = 0,
    browser: bool = True,
    announce: Callable[[str], None] = print,
    random_state: int = 0,
) -> NDArray:
    """Open the studio for arrays or a data frame, wait until it is closed, and return the labels.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        What the model compares, as it is: give columns comparable units. For texts alone, an array without columns.
    y : array-like of shape (n_samples,), optional
        Labels that are known already, with `missing_label` for all others.
    images : array of shape (n_samples, height, width) or (n_samples, height, width, 3), or sequence of paths, optional
        A picture of each row.
    texts : sequence of str, optional
        A text of each row. If X has no columns, the model compares the texts.
    prior : sequence, optional
        A guess for each row, which can be confirmed.
    columns : sequence of str, optional
        Names of the columns of X, if it is an array.
    missing_label : optional
        The mark of an unknown label in `y`. None and NaN always are.
    journal : path, optional
        A file that every key press is appended to. If it exists, labelling goes on where it stopped.
    check_every : int, default=10
        Each question of this number is a check: a random row, asked blind. 0 for no checks.
    port : int, default=0
        0 for one that is free.
    browser : bool, default=True
        Whether to open a browser. Otherwise follow the address that is announced.
    announce : callable, default=print
        Called with the address of the page.
    random_state : int, default=0

    Returns
    -------
    ndarray of shape (n_samples,)
        The labels that were given, as text, and None for all other rows: `SLGCPClassifier(missing_label=None)` takes
        them.
    """
    from coxfield.studio.rows import from_arrays
    from coxfield.studio.server import Studio, run
    from coxfield.studio.session import Session

    rows = from_arrays(X, y, images=images, texts=texts, guesses=prior, missing_label=missing_label, columns=columns)
    path = None if journal is None else Path(journal)
    session = Session(rows, path, check_every=check_every, random_state=random_state, by=secrets.token_hex(2))
    run(Studio(session, port=port), browser=browser, announce=announce)
    return session.given()
