"""What stands for inputs that a caller leaves out, in the precision and the memory of those that are given."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.constraints.tables import ConstrainedModel

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


class Defaults(NamedTuple):
    everything: ArrayLike  # (nc,): all constraints are active
    nothing: ArrayLike  # (nm,): no targets, no forces to start from
    rows: ArrayLike  # (nu, nv), none at all where users give none


class DefaultInputs:
    """The defaults of a problem, made once for every kind of array that comes."""

    def __init__(self, problem: ConstrainedModel) -> None:
        self._shapes = problem.nc, problem.nm, (problem.nu, problem.model.nv)
        self._on_cpu = {dtype: self._made(dtype) for dtype in (DOUBLE, SINGLE)}
        self._on_gpu: dict[Any, Defaults] = {}

    def _made(self, dtype: Any) -> Defaults:
        nc, nm, rows = self._shapes
        return Defaults(np.ones(nc, dtype), np.zeros(nm, dtype), np.zeros(rows, dtype))

    def like(self, *inputs: ArrayLike) -> Defaults:
        """Those that go with these inputs: in single precision if all are, on the GPU if the first is."""
        ours, first = self._on_cpu[SINGLE if is_single(*inputs) else DOUBLE], inputs[0]
        if not hasattr(first, "__cuda_array_interface__"):
            return ours
        key = type(first), str(first.dtype), str(getattr(first, "device", ""))
        if key not in self._on_gpu:
            self._on_gpu[key] = Defaults(*(beside(first, array) for array in ours))
        return self._on_gpu[key]


def is_single(*inputs: ArrayLike) -> bool:
    """Whether all are arrays of float32."""
    return {getattr(x, "dtype", None) for x in inputs} == {SINGLE}


def beside(given: ArrayLike, array: Array) -> ArrayLike:
    """An array where `given` is: itself, or a copy on its GPU, by the library that it is of."""
    if not hasattr(given, "__cuda_array_interface__"):
        return array
    library = type(given).__module__.partition(".")[0]
    if library == "torch":
        return given.new_tensor(array)
    if library == "cupy":
        import cupy

        return cupy.asarray(array, given.dtype)
    from saltus.kernel.cuda import cuda  # type: ignore[attr-defined]  # Numba is imported in that layer only

    return cuda.to_device(array.astype(given.dtype))
