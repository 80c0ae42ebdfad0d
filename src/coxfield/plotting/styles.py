"""Colours and markers, the same in all pictures.

The colours are the Okabe-Ito palette, which colour-blind readers can tell apart. Classes also differ in marker. From
the ninth class on the colours are darker.
"""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
DARKER = ("#003A5C", "#7A3600", "#00513B", "#7D3A63", "#8A5F00", "#1F6A94", "#8F8600", "#808080")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
COLOUR_MAP = "cividis"  # its lightness changes evenly, so that the picture is the same in grey
DARK = "0.1"  # edge of given labels


def style(code: int) -> tuple[str, str]:
    """Colour and marker of a class, by its number. No two of the first 64 classes share both."""
    colours = COLOURS if code < len(COLOURS) else DARKER
    return colours[code % len(colours)], MARKERS[(code + code // len(COLOURS)) % len(MARKERS)]
