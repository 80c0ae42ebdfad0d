"""Few labels among many points: covariances of all points, weighed by leave-one-out, and what they say together."""
