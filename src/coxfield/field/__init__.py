"""The label field: a Potts model on the unlabelled points, and its most probable labelling.

`LabelField` holds the model of section 'Semi-supervised learning' as data; `map_labels` finds its minimum energy by
minimum cuts and proves how close it is.
"""

from coxfield.field.mincut import Round
from coxfield.field.potts import LabelField
from coxfield.field.solve import MapResult, map_labels

__all__ = ["LabelField", "MapResult", "Round", "map_labels"]
