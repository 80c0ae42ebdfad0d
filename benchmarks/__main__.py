"""`python -m benchmarks [--quick]`: all benchmarks, one after the other."""

import argparse

from benchmarks import cross_validation, leave_one_out, map_labels, prediction

parser = argparse.ArgumentParser(description="Measure speed and memory as ratios against peers in the same run.")
parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
options = parser.parse_args()
for benchmark in (prediction, leave_one_out, cross_validation, map_labels):
    benchmark.run(quick=options.quick)
