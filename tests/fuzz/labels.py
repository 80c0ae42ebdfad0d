"""Labels of all types, known and missing, as Python source: so a failure can be printed word for word."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from fuzz.chance import generator_seeds, happens, mostly

#: Names of classes, by kind.
NAMES = {
    "ints": ["0", "1", "2", "3", "4", "5"],
    "strings": ["'a'", "'b'", "'c'", "''", "'10'", "'-1'"],
    "negative": ["1", "-1", "7", "0", "-5", "100"],
    "large": ["2**62", "-2**62", "0", "1", "2**53 + 1", "2**53"],
    "floats": ["0.0", "1.0", "2.0", "-3.0", "4.0", "1e15"],
    "bools": ["False", "True"],
    "halves": ["0.5", "1.5", "2.5", "1e-300", "-0.5", "1e300"],
    "mixed": ["'a'", "1", "2.5", "True", "None", "(1, 2)"],
    "numpy": ["np.int8(1)", "np.int8(2)", "np.int64(3)", "np.float32(4)", "np.str_('x')", "np.True_"],
    "times": ["np.datetime64('2020-01-01')", "np.datetime64('2021-01-01')", "np.datetime64('NaT')"],
    "bytes": ["b'a'", "b'b'", "b'c'"],
}
USUAL = ("ints", "strings", "ints", "bools", "floats", "negative", "large")
RARE = ("halves", "mixed", "numpy", "times", "bytes")
MISSING = ("-1", "None", "nan", "pd.NA", "pd.NaT", "''", "'?'")
WRAPPERS = {
    "array": "np.array([{}])",
    "list": "[{}]",
    "object": "np.array([{}], object)",
    "tuple": "({},)",
    "series": "pd.Series([{}])",
    "categorical": "pd.Series([{}], dtype='category')",
    "string": "pd.Series([{}], dtype='string')",
    "nullable": "pd.Series([{}], dtype='Int64')",
    "column": "np.array([{}])[:, None]",
    "scalar": "[{}][0]",
}


@dataclass(frozen=True)
class Labels:
    """Labels, each as source, and their container."""

    names: tuple[str, ...]
    wrapper: str = "array"

    @property
    def source(self):
        """Python that makes these labels."""
        return WRAPPERS[self.wrapper].format(", ".join(self.names))

    @property
    def classes(self):
        """The different labels in the order of their first appearance."""
        return list(dict.fromkeys(self.names))

    def take(self, rows):
        """The labels of some points."""
        return replace(self, names=tuple(self.names[row] for row in rows))


@st.composite
def labels(draw, n):
    """Labels of n points: mostly two or three classes of one type, all known."""
    kind = mostly(draw, USUAL, RARE, percent=8)
    count = mostly(draw, [2, 2, 2, 3], [1, 4, 6], percent=15)
    names = NAMES[kind][:count]
    rng = np.random.default_rng(draw(generator_seeds()))
    chosen = [names[code] for code in rng.integers(len(names), size=n)]
    for row, name in enumerate(names[:n]):  # a class that is named is there, in most cases
        if not happens(draw, 5):
            chosen[row] = name
    if happens(draw, 4):
        chosen[draw(st.integers(0, n - 1))] = draw(st.sampled_from(MISSING))
    return Labels(tuple(_of_length(draw, chosen)), _wrapper(draw))


@st.composite
def partial_labels(draw, n):
    """Labels of which most are missing, and the mark of a missing label."""
    known = draw(labels(n))
    mark = mostly(draw, ["-1", "None", "nan"], MISSING, percent=15)
    names = list(known.names)
    if not happens(draw, 10):
        share = draw(st.sampled_from([2, 3, 5]))
        names = [name if row < 2 or row % share == 0 else mark for row, name in enumerate(names)]
    elif happens(draw, 20):
        names = [mark] * n
    wrapper = "object" if mark in ("None", "nan") and known.wrapper == "array" else known.wrapper
    return Labels(tuple(names), wrapper), mark


def _of_length(draw, chosen):
    return chosen[:-1] if happens(draw, 1) and len(chosen) > 1 else chosen


def _wrapper(draw):
    usual, rare = ["array", "array", "list", "object", "series"], list(WRAPPERS)
    return mostly(draw, usual, rare, percent=12)
