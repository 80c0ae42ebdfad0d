"""Graphs of all points, labelled or not: neighbours, affinities, modes, and the heat covariances that they give."""
