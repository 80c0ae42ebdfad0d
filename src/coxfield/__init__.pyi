from coxfield.estimators.permanental import PermanentalClassifier as PermanentalClassifier
from coxfield.estimators.semi_supervised import SLGCPClassifier as SLGCPClassifier
from coxfield.estimators.supervised import LGCPClassifier as LGCPClassifier

__version__: str
__all__ = ["LGCPClassifier", "PermanentalClassifier", "SLGCPClassifier", "__version__"]
