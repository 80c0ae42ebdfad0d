"""Choosing the parameters of the covariance function."""
