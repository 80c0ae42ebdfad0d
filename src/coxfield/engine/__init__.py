"""From covariances to class sums to decisions: the hot path."""
