"""Do probabilities mean what they say? The public name of `coxfield.evaluation.calibration`."""

from coxfield.evaluation.calibration import Comparison, Reliability, compare, reliability

__all__ = ["Comparison", "Reliability", "compare", "reliability"]
