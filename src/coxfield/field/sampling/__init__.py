"""Samplers of the label field, and how far their draws can be trusted."""
