"""Exact derivatives of any algorithm, from its kernel run on dual numbers: what analytical ones are held against."""

from __future__ import annotations

from typing import Any

import numpy as np

import saltus as sl
from saltus.kernel import Algorithm
from saltus.kernel.forward import push_forward
from saltus.model.manifold import _integrate


def exact_jacobians(algorithm: Algorithm, model: sl.Model, *inputs: Any) -> list[list[np.ndarray]]:
    """For each input of one sample (but for integers), d output / d input (*output, nv) of every output; for configurations
    along the tangent of `integrate`."""
    found = []
    for k, spec in enumerate(algorithm.inputs[: len(inputs)]):
        if not spec.integer:
            steps = np.eye(model.nv)
            if spec.configuration:
                (_,), (steps,) = push_forward(_integrate, model, (inputs[k], np.zeros(model.nv)), (None, steps))
            slopes = [steps if n == k else None for n in range(len(inputs))]
            found.append([np.moveaxis(x, 0, -1) for x in push_forward(algorithm, model, inputs, slopes)[1]])
    return found


ERRORS = {"ad": 1e-12, "fdc": 1e-8, "fd": 1e-6}
"""Of each mode, relative to the largest entry, on states of ordinary size."""
