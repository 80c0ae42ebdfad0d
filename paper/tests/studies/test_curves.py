import pytest

from coxfield_paper.report.blocks import Mean, Verdict
from coxfield_paper.report.records import DONE, FAILED, Record
from coxfield_paper.studies.curves import NAMES, alike, curves_of, describe, draw, lower, table


def record(method, labels, seed, error, status=DONE):
    asked = {"method": method, "labels": labels, "seed": seed}
    return Record(f"{method}/{labels}/{seed}", asked, status, {"error": error} if status == DONE else {})


CURVES = curves_of(
    [
        record("SLGCP", 10, 0, 4.0),
        record("SLGCP", 10, 1, 8.0),
        record("SVM", 10, 0, 30.0),
        record("SVM", 10, 1, 36.0),
        record("SVM", 50, 0, 20.0),
        record("GPC", 10, 0, 0.0, status=FAILED),
    ]
)


def test_methods_and_numbers_of_labels_are_those_with_results():
    assert CURVES.methods == ["SVM", "SLGCP"]
    assert CURVES.labels == [10, 50]
    assert CURVES.partitions == 2


def test_differences_are_taken_in_the_partitions_that_both_have():
    assert CURVES.difference("SVM", "SLGCP", 10).values == (26.0, 28.0)
    assert CURVES.difference("SVM", "SLGCP", 50).values == ()


def test_the_table_leaves_out_what_is_not_known():
    assert table(CURVES).rows == (("SVM", "33.00 ± 3.00", "20.00"), ("SLGCP", "6.00 ± 2.00", "–"))


def test_each_method_is_a_line_and_a_sentence():
    (axes,) = draw(CURVES).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [NAMES["SVM"], NAMES["SLGCP"]]
    assert axes.containers[1].lines[0].get_ydata().tolist() == [6.0]
    assert describe(CURVES).startswith("Test error with 10 and with 50 labels: SVM 33.00 ± 3.00 % and 20.00 %; ")
    assert describe(curves_of([])) == "no results"


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ((3.0, 4.0, 5.0), Verdict.BORNE_OUT),
        ((-3.0, -4.0, -5.0), Verdict.NOT_BORNE_OUT),
        ((0.0, 0.0, 0.0), Verdict.NOT_BORNE_OUT),
        ((-1.0, 4.0, 9.0), Verdict.UNDECIDED),  # positive in the mean, but that may be chance
        ((4.0,), Verdict.UNDECIDED),
    ],
)
def test_a_lower_error_must_be_more_than_chance(differences, verdict):
    assert lower(Mean(differences)) == verdict


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ((0.1, -0.1, 0.0), Verdict.BORNE_OUT),
        ((1.0, 1.1, 0.9), Verdict.BORNE_OUT),  # apart for sure, but by too little to be seen
        ((5.0, 5.1, 4.9), Verdict.NOT_BORNE_OUT),
        ((-20.0, 0.0, 20.0), Verdict.UNDECIDED),  # no difference in the mean, but nothing is known
        ((0.0,), Verdict.UNDECIDED),
    ],
)
def test_errors_are_alike_only_if_that_is_known(differences, verdict):
    assert alike(Mean(differences)) == verdict
