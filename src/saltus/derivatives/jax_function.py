"""The package's functions inside JAX: callbacks with gradients of their own, under `jit`, `vmap` and `grad`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from saltus.derivatives.adapter import gradients_of, leading_axes, outputs_of
from saltus.derivatives.problem import CONFIGURATIONS, parameters
from saltus.model.model import Model
from saltus.model.parameters import refuse_several


def jax_function(function: Callable[..., Any], model: Any) -> Callable[..., Any]:
    """`function(model, ...)` as a function of JAX's arrays, for `jax.grad`, `jax.jit` and `jax.vmap`; it runs on the CPU.

    Inputs that are no arrays (names of frames) stay as they are. Leading axes broadcast, and those of `vmap` are one batch.
    Gradients with respect to configurations (..., nq) are those of normalised coordinates: they have no part along a
    quaternion. For constrained dynamics, the function is `ConstrainedDynamics.solve` and the model the object.

    Needs JAX, which saltus does not install: `pip install 'saltus[jax]'`. JAX computes in single precision unless
    `jax.config.update("jax_enable_x64", True)`.

        forward_dynamics = jax.jit(sl.jax_function(sl.aba, robot))
        slope = jax.grad(lambda tau: (forward_dynamics(q, v, tau) ** 2).sum())(tau)
    """
    import jax
    import jax.numpy as jnp

    refuse_several(model, "jax_function")
    names = parameters(function)

    @cache
    def shapes_of(
        rest: tuple[tuple[int, Any], ...], own: tuple[tuple[int, tuple[int, ...]], ...]
    ) -> list[tuple[int, ...]]:
        """The shapes of the outputs of one sample, found by a run."""
        tree = model if isinstance(model, Model) else model.model
        sample = dict(rest) | {k: tree.neutral() if names[k] in CONFIGURATIONS else np.zeros(s) for k, s in own}
        return [np.shape(x) for x in outputs_of(function, model, [sample[k] for k in range(len(sample))])]

    @cache
    def differentiable(rest: tuple[tuple[int, Any], ...], places: tuple[int, ...]) -> Any:
        """The function of the arrays at these places, all with the same leading axes, and the rest of the inputs."""

        def inputs_of(arrays: Any) -> list[Any]:
            given = dict(rest) | {k: np.asarray(x) for k, x in zip(places, arrays, strict=True)}
            return [given[k] for k in range(len(given))]

        def run(*arrays: Any) -> Any:
            return tuple(x.astype(arrays[0].dtype) for x in outputs_of(function, model, inputs_of(arrays)))

        def run_back(arrays: Any, weights: Any) -> Any:
            gradients = gradients_of(function, model, inputs_of(arrays), [np.asarray(x) for x in weights])
            return tuple(np.asarray(gradients[k], x.dtype) for k, x in zip(places, arrays, strict=True))

        @jax.custom_vjp  # type: ignore[untyped-decorator]
        def call(*arrays: Any) -> Any:
            leading = leading_axes(function, places[0], arrays[0].shape)
            own = tuple((k, x.shape[len(leading) :]) for k, x in zip(places, arrays, strict=True))
            shapes = tuple(jax.ShapeDtypeStruct((*leading, *s), arrays[0].dtype) for s in shapes_of(rest, own))
            return jax.pure_callback(run, shapes, *arrays, vmap_method="broadcast_all")

        def forward(*arrays: Any) -> Any:
            return call(*arrays), arrays

        def backward(arrays: Any, weights: Any) -> Any:
            shapes = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays)
            return jax.pure_callback(run_back, shapes, arrays, weights, vmap_method="broadcast_all")

        call.defvjp(forward, backward)
        return call

    def outer(*inputs: Any) -> Any:
        arrays = {k: jnp.asarray(x) for k, x in enumerate(inputs) if hasattr(x, "shape") or isinstance(x, list)}
        rest = tuple((k, x) for k, x in enumerate(inputs) if k not in arrays)
        leading = {k: leading_axes(function, k, x.shape) for k, x in arrays.items()}
        whole, real = jnp.broadcast_shapes(*leading.values()), jnp.result_type(float, *arrays.values())
        wide = [jnp.broadcast_to(x.astype(real), (*whole, *x.shape[len(leading[k]) :])) for k, x in arrays.items()]
        outputs = differentiable(rest, tuple(arrays))(*wide)
        return outputs[0] if len(outputs) == 1 else outputs

    return outer
