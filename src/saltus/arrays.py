"""The types of public functions' arguments and results."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
"""A NumPy array of float64 (float32 if the inputs are); for CUDA inputs, an array on the same device."""

ArrayLike: TypeAlias = Any
"""What NumPy turns into an array of numbers, or an array with `__cuda_array_interface__`."""
