"""
The first hour: from a table to corrected labels
================================================

You have a CSV file. Some rows have a class, some do not, and some classes are wrong. This page goes
all the way, on the command line and in Python side by side. Install the package first, as in
:doc:`/start`::

    pip install '.[cli,plot]'
"""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from sklearn.datasets import load_wine

from coxfield import LGCPClassifier, SLGCPClassifier

# %%
# The table
# ---------
# A table to work with: wines of three makers, with four of their measurements. Three makers in ten
# are known, and five of these are wrong. Use your own table instead: one row per case, one column
# per measurement, and a column for the class.
folder = Path(tempfile.mkdtemp())
wine = load_wine()
columns = ["alcohol", "flavanoids", "color_intensity", "proline"]
measured = wine.data[:, [wine.feature_names.index(name) for name in columns]]
names = np.array(["Rossi", "Bianchi", "Verdi"])
makers = names[wine.target]

rng = np.random.default_rng(1)
known = rng.random(len(makers)) < 0.3
slips = rng.choice(np.flatnonzero(known), 5, replace=False)
written = makers.copy()
written[slips] = names[(wine.target[slips] + 1) % 3]
with (folder / "wine.csv").open("w", newline="") as file:
    table = csv.writer(file)
    table.writerow([*columns, "maker"])
    for row, maker, filled in zip(measured, written, known, strict=True):
        table.writerow([*row, maker if filled else ""])

rows = pl.read_csv(folder / "wine.csv")
rows.head()

# %%
# Rows with a class
# -----------------
# Fit a classifier to them. On the command line it is ``coxfield fit``. The helper below runs a
# command as you would type it, in the folder of the table.


def run(command):
    """Run a command and print what it says."""
    program = [sys.executable, "-m", *command.split()]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=True)
    print(f"$ {command}", done.stdout, done.stderr, sep="\n")


rows.filter(pl.col("maker").is_not_null()).write_csv(folder / "known.csv")
run("coxfield fit known.csv --target maker -o model.skops")

# %%
# In Python:
some = rows.filter(pl.col("maker").is_not_null())
clf = LGCPClassifier().fit(some.select(columns).to_numpy(), some["maker"].to_numpy())
print(f"leave-one-out error {clf.loo_error_:.2f}")

# %%
# Doubtful rows
# -------------
# Which of the known classes look wrong? ``coxfield check`` lists them, the most doubtful one first, with the three rows
# that disagree loudest. Look at these rows in your source, and correct them there.
run("coxfield check known.csv --target maker -o doubtful.csv")
pl.read_csv(folder / "doubtful.csv")

# %%
# In Python:
quality = pl.DataFrame(clf.label_quality()).sort("rank")
quality.filter(pl.col("label") != pl.col("suggested"))

# %%
# We correct the rows where the others are at least 80 % sure.
sure = quality.filter((pl.col("label") != pl.col("suggested")) & (pl.col("suggested_probability") > 0.8))
corrected = some["maker"].to_numpy().copy()
corrected[sure["row"].to_numpy()] = sure["suggested"].to_numpy()
truth = makers[known]
print(f"wrong before: {np.sum(some['maker'].to_numpy() != truth)}, after: {np.sum(corrected != truth)}")

# %%
# Rows without a class
# --------------------
# The corrected table still has blank cells. ``coxfield label`` fills them in. Features with large
# numbers count more there, so they are divided by their standard deviations first.
full = np.full(len(rows), "", dtype=object)
full[known] = corrected
values = rows.select(columns).to_numpy()
scaled = (values - values.mean(axis=0)) / values.std(axis=0)
pl.DataFrame(scaled, schema=columns).with_columns(maker=pl.Series(full.tolist())).write_csv(folder / "corrected.csv")
run("coxfield label corrected.csv --target maker -o labelled.csv --plot labelled.png")

# %%
# The picture that the command has drawn:
figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
ax.imshow(plt.imread(folder / "labelled.png"))
ax.set_axis_off()

# %%
# In Python, with the share of wrong labels, which we know here because we made the table:
y = np.where(full == "", None, full)
semi = SLGCPClassifier(missing_label=None).fit(scaled, y)
print(f"{np.mean(semi.transduction_ != makers):.1%} of all rows wrong")

# %%
# New rows
# --------
# ``coxfield predict`` takes the model and a table with the same columns. The target is not needed.
# With ``--reasons`` it names the training rows that spoke loudest for each prediction.
run("coxfield predict model.skops wine.csv --proba --reasons 2 -o predictions.csv")
pl.read_csv(folder / "predictions.csv").head()

# %%
# Those are the steps. A picture of all rows, with their probabilities, says where to look next.
probability = semi.label_distributions_.max(axis=1)
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
drawn = ax.scatter(values[:, 1], values[:, 3], c=probability, cmap="cividis", vmin=0.3, vmax=1)
figure.colorbar(drawn, label="probability of the label found")
ax.set(xlabel="flavanoids", ylabel="proline")
plt.show()
