"""Alpha-permanents, exact and approximate, and the densities of permanental Cox processes.

================================  ===============================================================================
`alpha_permanent`                 exact, O(2^n n^2), up to 20 rows
`insertion_matrix`                gradient of its logarithm, which gives the ratio for any new point, O(2^n n^2)
`log_permanent_ratio_cyclic`      approximate ratios from cycles of up to four points, O(n^3)
`importance_permanent`            random estimate with its standard error, O(n_samples n^2)
================================  ===============================================================================
"""

from coxfield.permanents.cyclic import log_permanent_ratio_cyclic
from coxfield.permanents.permanent import PermanentEstimate, alpha_permanent, importance_permanent, insertion_matrix

__all__ = [
    "PermanentEstimate",
    "alpha_permanent",
    "importance_permanent",
    "insertion_matrix",
    "log_permanent_ratio_cyclic",
]
