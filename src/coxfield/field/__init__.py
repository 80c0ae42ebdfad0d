"""The label field: a Potts model on the unlabelled points, its most probable labelling, and samples of it.

`LabelField` holds the model of section 'Semi-supervised learning' as data. `map_labels` finds a labelling of least
energy by minimum cuts and proves how close it is to the minimum. `sample` runs one of the samplers `Gibbs`,
`SwendsenWang`, `PerturbAndMap` and `RandomisedCut`, and says how far the marginals can be trusted.
"""

from coxfield.field.chains import Samples, State, sample
from coxfield.field.mincut import Round
from coxfield.field.partition import (
    LogPartition,
    LogPredictive,
    log_joint_predictive,
    log_partition,
    log_predictive_density,
)
from coxfield.field.potts import LabelField
from coxfield.field.samplers import Gibbs, PerturbAndMap, RandomisedCut, SwendsenWang
from coxfield.field.solve import MapResult, map_labels

__all__ = [
    "Gibbs",
    "LabelField",
    "LogPartition",
    "LogPredictive",
    "MapResult",
    "PerturbAndMap",
    "RandomisedCut",
    "Round",
    "Samples",
    "State",
    "SwendsenWang",
    "log_joint_predictive",
    "log_partition",
    "log_predictive_density",
    "map_labels",
    "sample",
]
