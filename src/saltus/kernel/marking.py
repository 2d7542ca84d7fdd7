"""Samples that cannot be computed, marked instead of refused: `on_invalid="mark"`.

Kernels refuse a batch in which a single sample holds a NaN, an infinity or a configuration that is not of unit length. Here
such samples are found, run with something valid in the place of what is wrong, and get NaN in all outputs. All others get
what they would have got without them, bit for bit, for no sample of a batch has a say in another's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saltus.arrays import on_gpu
from saltus.kernel.launch import check_count, convert, leading_shape, number_type
from saltus.kernel.sloped import CARRIERS
from saltus.kernel.target import packet

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm, Spec
    from saltus.kernel.tables import Configurations

Mask = NDArray[np.bool_]


def check_choice(on_invalid: object, name: str) -> None:
    """Complains of what is neither of the two choices."""
    if on_invalid not in ("raise", "mark"):
        raise ValueError(f"{name}: on_invalid is {on_invalid!r}, expected 'raise' or 'mark'")


def call_marking(
    algorithm: Algorithm,
    model: Any,
    inputs: tuple[Any, ...],
    out: Any = None,
    run: Callable[..., Any] | None = None,
) -> Any:
    """What `algorithm.call` answers, or `run(model, inputs)` in its place, which takes the same inputs."""
    if algorithm.coupled is not None and model.coupling is not None:
        algorithm = algorithm.coupled
    call = partial(algorithm.call, out=out) if run is None else run
    check_count(algorithm, inputs)
    if any(map(on_gpu, inputs)):
        raise TypeError(
            f"{algorithm.name}: on_invalid='mark' is for NumPy arrays; on a GPU inputs are not checked, and NaN stays "
            "visible in the results"
        )
    if any(value.__class__ in CARRIERS for value in inputs):
        raise TypeError(f"{algorithm.name}: on_invalid='mark' is for NumPy arrays, expected plain ones")
    if out is None:  # else what is written there before the refusal may be an input
        try:
            return call(model, inputs)
        except ValueError:
            pass
    arrays = convert(algorithm, inputs)
    sizes = algorithm.sizes(model, arrays)
    if model.coupling is not None:
        sizes |= {"nq": model.nq, "nv": model.nv, "nvv": model.nv**2}
    leading = leading_shape(algorithm, arrays, sizes)
    if model.varied and algorithm.reads_varied:
        leading = np.broadcast_shapes(leading, model.leading)
    valid, wrong = repaired(algorithm.tables.configurations, model, algorithm.inputs, arrays)
    if not wrong.any():
        return call(model, inputs)
    return mark(call(model, valid), np.broadcast_to(wrong, leading))


def repaired(
    rules: Configurations, model: Any, specs: Sequence[Spec], arrays: Sequence[NDArray[Any]]
) -> tuple[tuple[NDArray[Any], ...], Mask]:
    """The inputs with zeros, or neutral configurations, in the place of what is not valid, and which samples are not."""
    number = packet(8 * number_type(arrays).itemsize)
    valid, masks = [], []
    for spec, array in zip(specs, arrays, strict=False):
        if spec.integer:
            valid.append(array)
            continue
        wrong = ~np.isfinite(array).all(axis=tuple(range(array.ndim - len(spec.shape), array.ndim)))
        if spec.configuration:
            with np.errstate(all="ignore"):
                wrong |= rules.not_allowed(model, array, number)
        if wrong.any():
            array = array.copy()
            array[wrong] = rules.neutral(model) if spec.configuration else 0.0
        valid.append(array)
        masks.append(wrong)
    return tuple(valid), np.logical_or.reduce(np.broadcast_arrays(*masks))


def mark(answer: Any, wrong: Mask) -> Any:
    """NaN in all arrays of an answer, for these samples (...)."""
    for each in answer if isinstance(answer, tuple) else (answer,):
        if isinstance(each, tuple):
            mark(each, wrong)
        elif isinstance(each, np.ndarray):
            each[wrong] = np.nan
    return answer
