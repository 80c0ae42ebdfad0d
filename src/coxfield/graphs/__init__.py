"""Few labels among many points: graphs of all points, their spectra, and the experts that learn from both."""
