"""Alpha-permanents, exact and approximate, and what the permanental Cox process does with them.

================================  =====================================================================
`alpha_permanent`                 exact, O(2^n n^2), up to 20 rows
`insertion_matrix`                its log gradient: all ratios that a new point may give, O(2^n n^2)
`log_permanent_ratio_cyclic`      the ratio from cycles of up to four points, O(n^3)
`importance_permanent`            an estimate with its standard error, O(n_samples n^2)
================================  =====================================================================
"""

from coxfield.permanents.cyclic import log_permanent_ratio_cyclic
from coxfield.permanents.exact import alpha_permanent, insertion_matrix
from coxfield.permanents.importance import PermanentEstimate, importance_permanent

__all__ = [
    "PermanentEstimate",
    "alpha_permanent",
    "importance_permanent",
    "insertion_matrix",
    "log_permanent_ratio_cyclic",
]
