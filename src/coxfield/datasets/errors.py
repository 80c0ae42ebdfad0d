"""What goes wrong when data are not there, or not what they should be."""


class DatasetUnavailableError(OSError):
    """A data set could not be had; the message says what was tried and what to do."""


class CorruptDatasetError(DatasetUnavailableError):
    """A data file is there, and what it holds is not the data set."""
