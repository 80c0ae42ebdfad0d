"""What `make demo` runs: the embedded data beside the paper, and pictures of both classifiers."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from coxfield.experiments import circles, helix, lgcp_samples, mnist, supervised


def main(arguments: list[str] | None = None) -> None:
    """Print the table of errors, draw circles and helix, and with --mnist classify MNIST."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("report"), help="folder for pictures (default: report)")
    parser.add_argument("--mnist", action="store_true", help="classify MNIST too (a minute or two; fetched if need be)")
    options = parser.parse_args(arguments)
    console = Console()
    console.print(_table(supervised.run()))
    if options.mnist:
        console.print(_mnist_lines(mnist.run(verbose=1)))
    rings = [circles.run(2), circles.run(3, noise=0.45, random_state=1)]
    for count, record in zip((2, 3), rings, strict=True):
        console.print(
            f"{count} rings, 5 labels each: {len(record.errors)} of {(record.y < 0).sum()} labels not recovered; "
            f"relative gap {record.gap:.1e}, {record.certified:.0%} of the labels certified"
        )
    circles.draw(options.output / "concentric_circles.png", rings)
    helix.draw(options.output / "double_helix.png", helix.run())
    lgcp_samples.draw(options.output / "lgcp_samples.png", lgcp_samples.run())
    console.print(f"Pictures in {options.output}: concentric_circles.png, double_helix.png, lgcp_samples.png")


def _table(records: list[supervised.Record]) -> Table:
    table = Table(title="Test error, %: LGCP, length scale by leave-one-out 0-1 loss")
    for column in ("data", "train/test", "length scale", "paper", "ours"):
        table.add_column(column, justify="left" if column == "data" else "right")
    for record in records:
        several = len(record.errors) > 1
        scales = f"{min(record.length_scales):.3g}" + (f" to {max(record.length_scales):.3g}" if several else "")
        table.add_row(
            f"{record.data}, mean of {len(record.errors)} partitions" if several else record.data,
            f"{record.train}/{record.test}",
            scales,
            f"{record.paper:.1f}",
            f"{record.error:.2f}" + (f" ± {record.standard_error:.2f}" if several else ""),
        )
    return table


def _mnist_lines(record: mnist.Record) -> str:
    return (
        f"MNIST, all 60,000 training points: test error {record.error:.2f} % (paper {mnist.PAPER_LGCP} %, 1-NN "
        f"{mnist.PAPER_NEAREST_NEIGHBOUR} %), length scale {record.length_scale:.3g}, leave-one-out error "
        f"{record.loo_error:.2f} %; selection {record.fit_seconds:.0f} s, prediction {record.predict_seconds:.1f} s"
    )


if __name__ == "__main__":
    main()
