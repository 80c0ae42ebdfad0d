"""
Simulate a log Gaussian Cox process
===================================

First a random intensity is drawn: the exponential of a Gaussian process. Then points are drawn from
it.
"""

import matplotlib.pyplot as plt
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.process import LogGaussianCoxProcess, superpose, thin

window = [(0, 10), (0, 10)]
process = LogGaussianCoxProcess(RBF(1.0), mean=0.0)
pattern = process.sample(window, random_state=4)
print(f"{len(pattern)} points; {process.expected_count(window):.0f} are expected of the process")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
pattern.intensity.plot(left).set_title("intensity")
pattern.plot(right).set_title("points")

# %%
# A rough covariance makes small clusters. A long length scale makes large ones.
figure, panels = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, kernel in zip(panels, (Matern(0.5, nu=0.5), RBF(0.5), RBF(3.0)), strict=True):
    other = LogGaussianCoxProcess(kernel, mean=0.5).sample(window, random_state=1)
    other.plot(ax).set_title(str(kernel), fontsize="medium")

# %%
# Each class of a classifier is such a process. What we see is a thinned union of the classes, with
# a mark at each point.
animals = superpose({"cat": process.sample(window, random_state=1), "dog": process.sample(window, random_state=2)})
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
animals.plot(left).set_title(f"all {len(animals)}")
seen = thin(animals, 0.2, random_state=3)
seen.plot(right).set_title(f"seen: {len(seen)}")
plt.show()
