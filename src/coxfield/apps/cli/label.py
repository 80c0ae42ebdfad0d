"""`coxfield label`: find the labels of all rows of a table from the few that are given."""

import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coxfield.apps.cli import console, options

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from coxfield import SLGCPClassifier
    from coxfield.io.tables import Table


class Inference(StrEnum):
    """How labels are found: the values of `inference` of `SLGCPClassifier`."""

    auto = "auto"
    mixture = "mixture"
    map = "map"
    marginals = "marginals"
    perturb_and_map = "perturb_and_map"


KINDS = {Inference.mixture: ("probability",), Inference.map: ("score",)}  # of columns that are added; else both


def label(
    table: options.TableArgument,
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", metavar="COLUMN", help="Column of the classes. It is blank in the rows to label."
        ),
    ],
    missing: options.MissingOption = None,
    found: options.FoundOption = False,
    output: options.TableOutputOption = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE", help="Draw the rows to a .png, .pdf or .svg file. It is replaced if it exists."
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Column that identifies rows. It is not a feature.")
    ] = None,
    feature: options.FeatureOption = None,
    drop: options.DropOption = None,
    read: options.ReadOption = None,
    inference: Annotated[
        Inference,
        typer.Option(
            help="mixture: covariances that are learned from all rows. map, marginals, perturb_and_map: the label "
            "field of one kernel, with the most probable labels of all rows together (map) or of each row. auto: "
            "mixture, but map if --length-scale is given."
        ),
    ] = Inference.auto,
    length_scale: Annotated[
        float | None,
        typer.Option(
            "--length-scale",
            "-l",
            metavar="X",
            help="Length scale of the label field. Default: it is chosen. A mixture has none.",
        ),
    ] = None,
    shares: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS=SHARE,...",
            help="Known shares of the classes among all rows, such as cat=0.7,dog=0.3, or balanced. Only for mixture.",
        ),
    ] = None,
    prior_columns: Annotated[
        str | None,
        typer.Option(
            metavar="PREFIX",
            help="Columns PREFIX and CLASS hold a guess per row: probabilities of the classes. Only for mixture.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", "-s", min=0, help="Seed of the random draws of marginals and perturb_and_map.")
    ] = 0,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Label the rows whose target is blank, from the few rows where it is not, and say how probable the labels are.

    All rows help, the blank ones too. Nearest neighbours make graphs of all rows, and the given labels say which graphs
    to trust. One label per class is enough to start. All columns except the target and the id are features: numbers,
    words, dates, and blank cells among them. Columns of
    different units are standardised; pixels and the like stay as they are.

    A cell is blank if it is empty. If other values stand for unknown, such as NA or ?, name them with --missing.

    The result has all columns of the table, with the target filled in. Added columns are: given, whether the label was
    in the table; and for each class probability_CLASS. A summary is printed to standard error. It says which
    covariances speak, and how many errors to expect.

    The result can be labelled again. Labels that were found before count as blank, and the columns that were added are
    made anew. Set given to true where you have checked a label, or give --found to take all of them.

    With --inference map the labels found are, together, the most probable labels of a label field with one length scale
    (minimum cuts). With two classes this is exact. With more classes it is exact for the labels that are certified.
    Added columns are: given; certified, whether the label was given or is proven; and for each class score_CLASS, the
    score of the class from the given labels alone. There are no probabilities.

    With --inference marginals or perturb_and_map each row takes its own most probable class of the label field. There
    are columns score_CLASS and probability_CLASS, and no column certified.

    \b
    Examples:
      coxfield label data.csv --target species -o labelled.csv --plot picture.png
      coxfield label data.csv -t species --missing NA --missing '?' -o labelled.csv
      coxfield label data.parquet -t species --id plant -d year -o labelled.parquet
      cat data.csv | coxfield label - -t species -f length -f width | head -n 3
      coxfield label data.csv -t species --id plant -d year --inference map -o labelled.csv
      coxfield label data.csv -t species --id plant -d year -l 0.5 -o labelled.csv
    """  # noqa: D301
    length_scales = options.length_scales(length_scale)
    inference = _resolved(inference, length_scale)
    options.check_columns({"--target": target, "--id": id_column}, feature, drop)
    from coxfield import SLGCPClassifier
    from coxfield.io import tables

    console.check(output, plot, inputs=[table])
    marks = {target: missing or []}
    rows, names = options.read_features(
        table,
        verbatim=[target, id_column],
        feature=feature,
        drop=drop,
        missing=marks,
        read=read,
        found=found,
        quiet=quiet,
    )
    tables.check_columns(rows.rows, output)
    guessed = [name for name in names if prior_columns and name.startswith(prior_columns)]
    names = [name for name in names if name not in guessed]
    X: Any = rows.features(names)
    known, given = _known(rows, target), ~rows.missing_labels(target)  # its note is no help if features are refused
    _check_names(rows, known, inference)
    if not any(rows.rows[name].n_unique() > 1 for name in names):
        raise ValueError(f"{rows.name} has the same features in all rows, so they cannot be told apart: add features")
    model = SLGCPClassifier(inference=inference.value, length_scales=length_scales, missing_label=None)
    model.set_params(random_state=seed, n_jobs=jobs, verbose=int(console.watched(quiet)))
    model.set_params(class_prior=_shares(shares, known))
    sentences = _fit(model, X, known, given, _guess(rows, prior_columns, guessed, known))
    X = X if model.columns_ is None else model.columns_.points(X)
    result = _labelled(model, rows, target, X, given)
    picture = None if plot is None else _picture(model, X, given, names, target, plot)
    for sentence in sentences:
        typer.secho(f"Warning: {sentence}", fg=typer.colors.YELLOW, err=True)
    console.write(result, output, picture, plot)
    if not quiet:
        console.print_summary({"Read": rows.described(names)} | summary(model, names, given, output, plot), err=True)


def _known(rows: "Table", target: str) -> "NDArray":
    """The classes of the rows that have one. Those who may have forgotten --missing are told so."""
    from coxfield.io.columns import hint

    advice = hint(rows.rows[target])
    try:
        known = rows.known_labels(target)
    except ValueError as error:
        raise ValueError(f"{error}; {advice}" if advice else str(error)) from None
    if advice:
        typer.echo(f"Note: {advice}; without it they are a class", err=True)
    return known


def _resolved(inference: Inference, length_scale: float | None) -> Inference:
    """What auto means. Only the label field has a length scale."""
    if inference == Inference.auto:
        return Inference.mixture if length_scale is None else Inference.map
    if inference == Inference.mixture and length_scale is not None:
        raise typer.BadParameter("--inference mixture has no length scale: leave out --length-scale, or give map")
    return inference


def _check_names(rows: "Table", known: "NDArray", inference: Inference) -> None:
    """Refuse a table that already has a column of a name that is to be added."""
    kinds = KINDS.get(inference, ("score", "probability"))
    classes = [console.label_text(name) for name in dict.fromkeys(known.tolist())]
    certified = ["certified"] if inference == Inference.map else []
    added = ["given", *certified, *(f"{kind}_{name}" for kind in kinds for name in classes)]
    present = set(rows.rows.columns)
    taken = [name for name in added if name in present]
    if taken:
        raise ValueError(
            f"{rows.name} already has a column {taken[0]!r}, which coxfield label adds: rename or remove it"
        )


def _shares(text: str | None, known: "NDArray") -> "dict | str | None":
    """The class shares that a user states: CLASS=SHARE, with commas between."""
    if text is None or text == "balanced":
        return text
    classes = {console.label_text(name): name for name in dict.fromkeys(known.tolist())}
    found = {}
    for part in text.split(","):
        name, _, share = part.rpartition("=")
        try:
            found[classes.get(name.strip(), name.strip())] = float(share)
        except ValueError:
            raise ValueError(f"--shares needs CLASS=SHARE with commas between, got {part!r}") from None
    return found


def _guess(rows: "Table", prefix: str | None, names: list[str], known: "NDArray") -> "dict | None":
    """The guess of each class, by the columns that a prefix names."""
    if prefix is None:
        return None
    classes = {prefix + console.label_text(name): name for name in dict.fromkeys(known.tolist())}
    missing = [name for name in classes if name not in names]
    if missing:
        raise ValueError(f"{rows.name} has no column {missing[0]!r} with a guess: --prior-columns needs one per class")
    return dict(zip(classes.values(), rows.matrix(list(classes)).T, strict=True))


def _fit(model: "SLGCPClassifier", X: "NDArray", known: "NDArray", given: "NDArray", prior: "dict | None") -> list[str]:
    """Fit the model to all rows, which labels those that are blank. Return its warnings as sentences."""
    import numpy as np

    from coxfield.estimators.trivial import ChainsDisagreeWarning, TrivialLabellingWarning

    y = np.full(len(given), None, dtype=object)
    y[given] = known
    with console.gathered() as caught:
        for kind in (TrivialLabellingWarning, ChainsDisagreeWarning):
            warnings.simplefilter("always", kind)
        model.fit(X, y, **({} if prior is None else {"prior": prior}))
    return list(dict.fromkeys(_sentence(warning, model, given) for warning in caught))


def _sentence(warning: warnings.WarningMessage, model: "SLGCPClassifier", given: "NDArray") -> str:
    """A warning of the library in one line, with what can be done about it on a command line."""
    from coxfield.estimators.trivial import TrivialLabellingWarning

    if not issubclass(warning.category, TrivialLabellingWarning):
        return " ".join(str(warning.message).split())
    winner = console.label_text(model.transduction_[~given][0].item())
    what = "most probable labelling gives" if model.inference_ == "map" else "label distributions give"
    return (
        f"the {what} all {(~given).sum()} blank rows to {winner}, as happens if labels are "
        "few and the length scale is long: label more rows, or try a shorter --length-scale"
    )


def _labelled(model: "SLGCPClassifier", rows: "Table", target: str, X: "NDArray", given: "NDArray") -> "pl.DataFrame":
    """The table with its target filled in, and the columns that are added."""
    import polars as pl

    columns = {"given": given}
    if model.inference_ == "map":
        columns["certified"] = model.certified_
    names = [console.label_text(name) for name in model.classes_.tolist()]
    if model.inference_ != "mixture":
        columns |= {f"score_{name}": column for name, column in zip(names, _scores(model, X, given), strict=True)}
    if model.inference_ != "map":
        distributions = zip(names, model.label_distributions_.T, strict=True)
        columns |= {f"probability_{name}": column for name, column in distributions}
    added = [pl.Series(name, column) for name, column in columns.items()]
    return rows.with_labels(target, model.transduction_).with_columns(*added)


def _scores(model: "SLGCPClassifier", X: "NDArray", given: "NDArray") -> "NDArray":
    """Scores of the classes from the given labels alone, one row per class."""
    from coxfield import LGCPClassifier

    alone = LGCPClassifier(model.kernel_, selection=None, n_jobs=model.n_jobs)
    return alone.fit(X[given], model.transduction_[given]).class_scores(X).T


def _picture(
    model: "SLGCPClassifier", X: "NDArray", given: "NDArray", names: list[str], target: str, plot: Path
) -> bytes:
    """The bytes of the picture. If drawing fails, nothing has been written yet."""
    from coxfield import plotting
    from coxfield.progress import progress

    with progress("picture", None, model.verbose):
        if model.inference_ == "mixture":
            figure = plotting.figure(11, 4.6)
            pair = names if len(names) == 2 else None
            plotting.plot_few_labels(model, axes=figure.subplots(1, 2), feature_names=pair, title=target)
        else:
            figure = plotting.figure()
            certified = getattr(model, "certified_", given)  # labels from marginals are never proven
            look = {"feature_names": names if X.shape[1] == len(names) else None, "title": target}
            plotting.plot_labelling(X, model.transduction_, given, certified, ax=figure.subplots(), **look)
        return plotting.encode(figure, plot)


# The summary of `coxfield label`: what was found, how, and how far it can be trusted.


LOUDEST = 3  # covariances that the summary names
AUDIBLE = 0.005  # share that is not rounded to 0 %


def summary(
    model: "SLGCPClassifier", features: list[str], given: "NDArray", output: Path | None, plot: Path | None
) -> dict[str, str]:
    """The lines of the summary of a labelling."""
    sizes = []
    for name in model.classes_.tolist():
        of_class = model.transduction_ == name
        sizes.append(f"{console.label_text(name)}: {(of_class & given).sum()} -> {of_class.sum()}")
    lines = {
        "Rows": f"{len(given)} ({given.sum()} labelled, {(~given).sum()} blank)",
        "Features": console.counted(features),
        "Classes": console.counted(sizes),
    }
    lines |= _committee(model) if model.inference_ == "mixture" else _field(model)
    if model.inference_ == "map":
        lines |= _certainty(model, given)
    else:
        lines |= _doubt(model, given)
    return lines | {name: str(path) for name, path in (("Table", output), ("Picture", plot)) if path is not None}


def _committee(model: "SLGCPClassifier") -> dict[str, str]:
    """Which covariances speak, and how loud each voice is."""
    columns = [model.members_[name].tolist() for name in ("covariance", "effective_rank", "without_mode_0", "share")]
    members = [
        f"{name}, effective rank {rank:.0f}{', without mode 0' if centred else ''}: {100 * share:.0f} %"
        for name, rank, centred, share in zip(*columns, strict=True)
        if share >= AUDIBLE
    ]
    left = len(members) - LOUDEST
    more = [f"{left} more: {100 * sum(columns[3][LOUDEST:]):.0f} %"] if left > 0 else []
    voices = [f"{name}: {100 * loudness:.0f} %" for name, loudness in model.voices_.items() if loudness > 0]
    return {"Covariances": "; ".join([*members[:LOUDEST], *more]), "Voices": "; ".join(voices)}


def _field(model: "SLGCPClassifier") -> dict[str, str]:
    """The kernel of the label field, and how it was chosen."""
    path = model.selection_path_
    error = f"{path['cv_error'][path['chosen']].item():.4g}"
    loss = (
        {"Cross-validation log loss": f"{path['cv_log_loss'][path['chosen']].item():.4g}"}
        if "cv_log_loss" in path
        else {}
    )
    return {"Kernel": str(model.kernel_), "Cross-validation error": error, **loss}


def _certainty(model: "SLGCPClassifier", given: "NDArray") -> dict[str, str]:
    """How much of the most probable labelling is proven."""
    blank, proven = int((~given).sum()), int(model.certified_[~given].sum())
    return {
        "Energy": f"{model.energy_:.10g}",
        "Relative gap": f"{model.result_.relative_gap:.2g} (up to {model.tolerance:g} counts as none)",
        # Rounded down, so that 100% means all labels.
        "Certified": f"{proven} of the {blank} labels found ({1000 * proven // blank / 10:g}%)",
    }


def _doubt(model: "SLGCPClassifier", given: "NDArray") -> dict[str, str]:
    """How many errors the label distributions predict, and how exactly these are known if they were drawn."""
    largest = model.label_distributions_[~given].max(axis=1)
    doubt = {"Errors to expect": f"{(1 - largest).sum():.1f} of the {len(largest)} labels found, if the model is right"}
    if hasattr(model, "marginal_errors_"):
        doubt["Standard error of probabilities"] = f"at most {model.marginal_errors_.max():.2g}"
    return doubt
