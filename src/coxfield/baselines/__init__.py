"""The methods that the paper compares with, as scikit-learn estimators.

============================  ========================================================================================
`HarmonicFunctions`           harmonic functions on a graph (Zhu et al. 2003), semi-supervised
`ParzenClassifier`            kernel density estimates, one per class
`SVMClassifier`               support vector machine, length scale by leave-one-out
`VariationalGPClassifier`     Gaussian process classification, kernel parameters by a variational bound
============================  ========================================================================================

All of them use the isotropic squared exponential. If they choose a length scale from a list, it is the list of
`coxfield.LGCPClassifier`.
"""

from coxfield.baselines.harmonic import HarmonicFunctions
from coxfield.baselines.parzen import ParzenClassifier
from coxfield.baselines.svm import SVMClassifier
from coxfield.baselines.variational_gp import VariationalGPClassifier

__all__ = ["HarmonicFunctions", "ParzenClassifier", "SVMClassifier", "VariationalGPClassifier"]
