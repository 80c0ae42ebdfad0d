from collections import defaultdict

import numpy as np

from coxfield.calibration import reliability
from coxfield_paper.report.blocks import Figure, Table
from coxfield_paper.studies import few_labels_calibration as calibration
from coxfield_paper.studies.bins import sums
from coxfield_paper.studies.few_labels_methods import OURS, SPREADING


def result(ece, seed=0, n=60):
    """What probabilities that are right would leave in a record."""
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.5, 1, n)
    judged = reliability((rng.random(n) > share).astype(int), np.column_stack([share, 1 - share]))
    return sums(judged) | {"ece": ece, "log_loss": 0.5}


def measured():
    found = defaultdict(dict)
    found["digits", 2, OURS] = {0: result(0.02), 1: result(0.04, seed=1)}
    found["digits", 5, OURS] = {0: result(0.1, seed=2)}
    found["digits", 2, SPREADING] = {0: result(0.2, seed=3)}
    return found


def test_rows_have_the_means_of_each_method():
    table = calibration.table(measured())
    first, second = (dict(zip(table.headings, cells, strict=True)) for cells in table.rows)
    assert (first["data"], first["labels"]) == ("digits", "2 labels per class")
    assert (first[f"ECE, {OURS}"], first[f"ECE, {SPREADING}"]) == ("0.030 ± 0.010", "0.200")
    assert first[f"log loss, {OURS}"] == "0.500 ± 0.000"
    assert 0 < float(first["ECE by chance"]) < 0.2
    assert (second[f"ECE, {OURS}"], second[f"ECE, {SPREADING}"]) == ("0.100", "–")


def test_without_our_probabilities_there_is_no_diagram_and_chance_is_a_dash():
    found = defaultdict(dict, {("oil", 10, SPREADING): {0: result(0.2)}})
    (table,) = calibration.blocks(found, "name")
    assert isinstance(table, Table)
    assert dict(zip(table.headings, table.rows[0], strict=True))["ECE by chance"] == "–"


def test_each_data_set_has_a_panel_with_both_methods():
    found = measured()
    found["oil", 10, OURS] = {0: result(0.1, seed=4)}
    _, drawn = calibration.blocks(found, "name")
    assert isinstance(drawn, Figure)
    panels = [axes for axes in drawn.figure.axes if axes.axison]
    assert [panel.get_title() for panel in panels] == ["digits", "oil"]
    assert [len(panel.containers) for panel in panels] == [2, 1]
    (legend,) = drawn.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [OURS, SPREADING]
    assert f"digits, {OURS}: 0." in drawn.description
    assert not drawn.wide
