"""Errors for data sets that are missing or damaged."""


class DatasetUnavailableError(OSError):
    """A data set could not be found; the message says what was tried and what to do."""


class CorruptDatasetError(DatasetUnavailableError):
    """A data file exists, but it does not hold the data set."""
