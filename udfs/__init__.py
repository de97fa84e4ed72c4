"""Functions over Arrow arrays: plain Python/NumPy/Numba kernels that test without a JVM, thin Spark wrappers last."""
