"""`python -m benchmarks [--quick]`: all benchmarks, one after the other."""

import argparse

from benchmarks import (
    arrays,
    cross_validation,
    dask_cluster,
    few_labels,
    gaussian_field,
    guaranteed_sets,
    import_time,
    label_errors,
    leave_one_out,
    live_data,
    many_points,
    map_labels,
    mixtures,
    onnx_export,
    pair_correlation,
    permanental,
    prediction,
    pseudo_likelihood,
    reasons,
    samplers,
    serving,
    sparse_field,
    tables,
)

parser = argparse.ArgumentParser(description="Measure speed and memory as ratios against peers in the same run.")
parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
options = parser.parse_args()
for benchmark in (
    prediction,
    reasons,
    live_data,
    leave_one_out,
    mixtures,
    pseudo_likelihood,
    cross_validation,
    guaranteed_sets,
    label_errors,
    few_labels,
    many_points,
    map_labels,
    sparse_field,
    gaussian_field,
    pair_correlation,
    permanental,
    samplers,
    arrays,
    dask_cluster,
    onnx_export,
    serving,
    tables,
    import_time,
):
    benchmark.run(quick=options.quick)
