import numpy as np
import pytest
from dask.sizeof import sizeof

from coxfield.dask.leave_one_out import LabelledBlock, PathBlock
from coxfield.dask.pair_sums import Block, Counts, Fits, Partial
from coxfield.engine.class_sums import ClassSums, Scores
from coxfield.kernels.protocol import LogSums

LARGE = np.zeros((1000, 50))
SUMS = ClassSums(LARGE, LARGE + 1)
NONE = np.zeros(0)


@pytest.mark.parametrize(
    ("result", "arrays"),
    [
        (Block(LARGE), 1),
        (LabelledBlock(Block(LARGE), NONE, NONE), 1),
        (SUMS, 2),
        (Partial([[LogSums(NONE, LARGE)]]), 1),
        (Partial([[LogSums(NONE, LARGE)], None], LARGE + 2), 2),
        (Scores(NONE, SUMS), 2),
        (Fits(LARGE, NONE), 1),
        (Counts(LARGE, NONE), 1),
        (PathBlock(LARGE, NONE, NONE, NONE), 1),
    ],
)
def test_dask_knows_how_large_results_are(result, arrays):
    assert arrays * LARGE.nbytes < sizeof(result) < arrays * LARGE.nbytes + 2000
