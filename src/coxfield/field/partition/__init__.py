"""The partition function of the label field."""
