"""Colours and markers, the same in all pictures.

The colours are the Okabe-Ito palette, which colour-blind readers can tell apart. Classes also differ in marker.
"""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
COLOUR_MAP = "cividis"  # its lightness changes evenly, so that the picture is the same in grey
DARK = "0.1"  # edge of given labels


def style(code: int) -> tuple[str, str]:
    """Colour and marker of a class, by its number. No two of the first 64 classes share both."""
    return COLOURS[code % len(COLOURS)], MARKERS[(code + code // len(COLOURS)) % len(MARKERS)]
