"""Class sums and leave-one-out in the array libraries that scikit-learn dispatches to, such as torch and CuPy."""
