"""Are predicted probabilities right? The public name of `coxfield.evaluation.calibration`."""

from coxfield.evaluation.calibration import Comparison, Reliability, compare, reliability

__all__ = ["Comparison", "Reliability", "compare", "reliability"]
