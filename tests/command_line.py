"""Commands as a person types them and as a program pipes them, and small tables to run them on."""

from pathlib import Path

import numpy as np
import polars as pl
from typer.testing import CliRunner

from coxfield import SLGCPClassifier
from coxfield.apps.cli.app import app
from coxfield.io import model_file

RNG = np.random.default_rng(3)
START = RNG.bit_generator.state
FEATURES = ["-f", "length", "-f", "width"]
LABEL = ["label", "data.csv", "-t", "species", *FEATURES]
ONE_KERNEL = ["--selection", "loo_error"]
QUICK = ["--length-scale", "0.7"]  # which means --inference map


def flowers(n, target=("cat", "dog")):
    """Rows of two noisy classes, with an id that must not lose its zeros, a text and a weight."""
    codes = RNG.integers(0, 2, n)
    return pl.DataFrame(
        {
            "name": [f"{i:03d}" for i in range(n)],
            "length": codes + RNG.normal(scale=0.6, size=n),
            "width": RNG.normal(size=n) - codes,
            "notes": ["some text"] * n,
            "weight": RNG.integers(1, 3, n),
            "species": [target[code] for code in codes],
        }
    )


def run(*arguments, code=0, **options):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def refusal(*arguments, code=1):
    """The sentence on standard error of a command that must fail, without a word on standard output."""
    result = run(*arguments, code=code)
    assert result.stdout == ""
    return result.stderr


def refusal_that_changes_nothing(*arguments, code=1):
    """The sentence of a command that must fail, and leaves all files as they were."""
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    sentence = refusal(*arguments, code=code)
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before
    if code == 1:
        assert sentence.startswith("Error: ")
        assert sentence.count("\n") == 1
    return sentence


def load(name="model.skops"):
    return model_file.load(Path(name))


def fit(*arguments, **options):
    return run("fit", "train.csv", "-t", "species", "-o", "model.skops", *arguments, **options)


def summary(*arguments):
    """What `fit` prints about the model, by name."""
    return dict(line.split(": ", 1) for line in fit(*arguments).stdout.splitlines())


def predictions(*arguments, **options):
    result = run("predict", "model.skops", "new.csv", *arguments, **options)
    return pl.read_csv(result.stdout_bytes, schema_overrides={"name": pl.String})


def spoil(column, value):
    """Write `value` into the third row of a column of new.csv and train.csv."""
    third = pl.when(pl.int_range(pl.len()) == 2)
    for name in ("train.csv", "new.csv"):
        rows = pl.read_csv(name, infer_schema=False)
        rows.with_columns(third.then(pl.lit(value)).otherwise(column).alias(column)).write_csv(name)


def partly_labelled(n=40, target=("cat", "dog"), known=5):
    """Rows in two clouds, of which every `known`-th has its label."""
    codes = np.arange(n) % 2
    labels = [target[code] if i % known == 0 else None for i, code in enumerate(codes)]
    return pl.DataFrame(
        {
            "name": [f"{i:03d}" for i in range(n)],
            "length": 3 * codes + RNG.normal(scale=0.8, size=n),
            "species": labels,
            "width": RNG.normal(size=n) - codes,
            "code": [f"0{i}" for i in range(n)],
        }
    )


def library_labels(rows, **parameters):
    """What the library makes of the same table. As on the command line, a length scale asks for the label field."""
    if "length_scales" in parameters:
        parameters = {"inference": "map", **parameters}
    y = np.array(rows["species"].to_list(), dtype=object)
    return SLGCPClassifier(missing_label=None, **parameters).fit(rows["length", "width"].to_numpy(), y)


def labelled(*arguments, table="data.csv", **options):
    result = run("label", table, "-t", "species", *FEATURES, *arguments, **options)
    return pl.read_csv(result.stdout_bytes, schema_overrides={"name": pl.String, "code": pl.String})


def renamed(rows, prefix="n"):
    """The rows with other ids."""
    return rows.with_columns(name=pl.format("{}{}", pl.lit(prefix), pl.int_range(pl.len())))
