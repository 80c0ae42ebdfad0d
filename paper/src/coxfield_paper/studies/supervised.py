"""Table supervisedResults: test errors of LGCP, variational GP classification and SVM on five data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield import LGCPClassifier
from coxfield.baselines import SVMClassifier, VariationalGPClassifier
from coxfield_paper.report.blocks import MISSING, Table, difference, mean_of, seconds
from coxfield_paper.report.item import Item
from coxfield_paper.studies.data_sets import partition
from coxfield_paper.studies.study import Study, crossed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coxfield_paper.report.records import Record

PAPER = {  # table supervisedResults, per cent
    "Synth": {"LGCP": 9.1, "GPC": 10.1, "SVM": 9.4},
    "Diabetes": {"LGCP": 21.7, "GPC": 20.8, "SVM": 22.3},
    "Banana": {"LGCP": 11.4, "GPC": 10.6, "SVM": 10.7},
    "rSTL": {"LGCP": 20.0, "GPC": 18.6, "SVM": 12.4},
    "BCI": {"LGCP": 39.5, "GPC": 24.5, "SVM": 31.5},
}
SIZES = {"Synth": "250/1000", "Diabetes": "200/332", "Banana": "400/4900", "rSTL": "500/500", "BCI": "200/200"}
PARTITIONS = {"Synth": 1, "Diabetes": 1, "Banana": 10, "rSTL": 10, "BCI": 10}  # 1: the standard one
QUICK = {"Synth": 1, "Diabetes": 1, "Banana": 3}
HEADINGS = ("data", "method", "train/test", "partitions", "paper", "ours", "difference", "range", "seconds")
NOTE = (
    "Mean and standard error over random partitions; Synth and Diabetes have one standard partition. For each of the "
    "others the paper prints the error of one random partition, without a standard error. The range shows what "
    "such an error may be. GPC: variational bound, logistic link, best of ten random starts. SVM: C as "
    "SVM-light sets it. Seconds: fit and prediction of one partition, on one core."
)
METHODS: dict[str, Callable[[int], Any]] = {
    "LGCP": lambda seed: LGCPClassifier(selection="loo_error"),
    "GPC": lambda seed: VariationalGPClassifier(random_state=seed),
    "SVM": lambda seed: SVMClassifier(),
}


def measure(data: str, method: str, seed: int) -> dict[str, Any]:
    """Fit on one partition of a data set, and count the errors on the test part, in per cent."""
    X_train, y_train, X_test, y_test = partition(data, seed)
    classifier = METHODS[method](seed).fit(X_train, y_train)
    wrong = classifier.predict(X_test) != y_test
    return {"error": 100 * float(np.mean(wrong))}


STUDY = Study(
    "table-1",
    measure,
    ("data", "method"),
    cells=crossed(PARTITIONS, lambda data: tuple(METHODS)),
    quick=crossed(QUICK, lambda data: tuple(METHODS)),
)


def render(found: Mapping[str, Record]) -> Sequence[Table]:
    """Our errors beside those of the paper, one row per data set and method."""
    rows = [_row(data, method, [*STUDY.records(found, data, method).values()]) for data in PAPER for method in METHODS]
    return [
        Table(
            caption="Test error, %. Length scales of LGCP and SVM by leave-one-out 0-1 loss.",
            headings=HEADINGS,
            rows=tuple(rows),
            notes=(NOTE,),
        )
    ]


def _row(data: str, method: str, records: list[Record]) -> tuple[str, ...]:
    ours, paper = mean_of(records, "error"), PAPER[data][method]
    count = str(len(ours.values)) if ours.values else MISSING
    figures = (f"{paper}", str(ours), difference(ours, paper), ours.range, seconds(records))
    return data, method, SIZES[data], count, *figures


ITEM = Item("table-1", "Table 1: test errors on supervised binary data sets", STUDY.tasks, render)
