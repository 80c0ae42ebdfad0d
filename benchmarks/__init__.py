"""Benchmarks: speed as ratios against a peer or a bare matrix product in the same run."""
