from sklearn import config_context

from coxfield import threads
from coxfield.engine import tiles as blocks


def test_no_block_exceeds_the_working_memory():
    for n, columns, itemsize, count in [(10, 10, 8, 1), (10**6, 10**6, 4, 8), (3, 10**9, 8, 2)]:
        with config_context(working_memory=1), threads.use(count):
            rows, width = blocks.tile_shape(n, columns, itemsize)
            assert rows * width * itemsize * count <= 2**20
            whole = blocks.whole_rows(n, columns, itemsize, copies=2)
            assert whole == 1 or whole * columns * itemsize * count * 2 <= 2**20
