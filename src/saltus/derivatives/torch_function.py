"""The package's functions inside PyTorch: tensors in, tensors out, gradients by vector-Jacobian products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saltus.derivatives.adapter import gradients_of, leading_axes, outputs_of
from saltus.model.parameters import refuse_several


def torch_function(function: Callable[..., Any], model: Any) -> Callable[..., Any]:
    """`function(model, ...)` as a function of tensors that PyTorch can differentiate, on the CPU or where they are.

    Inputs that are no tensors (names of frames, arrays) stay as they are. Leading axes broadcast. Gradients with respect to
    configurations (..., nq) are those of normalised coordinates: they have no part along a quaternion. Second derivatives
    are refused. For constrained dynamics, the function is `ConstrainedDynamics.solve` and the model the object.

    Needs PyTorch, which saltus does not install: `pip install 'saltus[torch]'`. On a GPU run the
    functions that `vjp` has rules for.

        forward_dynamics = sl.torch_function(sl.aba, robot)
        a = forward_dynamics(q, v, tau)                           # tensors (..., nq), (..., nv), (..., nv)
        a.square().sum().backward()                               # q.grad, v.grad, tau.grad
    """
    import torch

    refuse_several(model, "torch_function")

    def plain(x: Any) -> Any:
        """A tensor as the package's functions take it."""
        if not isinstance(x, torch.Tensor):
            return x
        return x.detach() if x.is_cuda else x.detach().numpy()

    class Differentiable(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.save_for_backward(*(x if isinstance(x, torch.Tensor) else None for x in inputs))
            ctx.rest = [None if isinstance(x, torch.Tensor) else x for x in inputs]
            like = next(x for x in inputs if isinstance(x, torch.Tensor))
            outputs = outputs_of(function, model, [plain(x) for x in inputs])
            tensors = tuple(torch.as_tensor(x, device=like.device) for x in outputs)
            return tensors[0] if len(tensors) == 1 else tensors

        @staticmethod
        @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, *weights: Any) -> Any:
            given = [x if saved is None else saved for x, saved in zip(ctx.rest, ctx.saved_tensors, strict=True)]
            gradients = gradients_of(
                function, model, [plain(x) for x in given], [plain(x.contiguous()) for x in weights]
            )
            return tuple(
                torch.as_tensor(gradient, dtype=x.dtype, device=x.device) if needed else None
                for x, gradient, needed in zip(given, gradients, ctx.needs_input_grad, strict=True)
            )

    def call(*inputs: Any) -> Any:
        tensors = {k: x for k, x in enumerate(inputs) if isinstance(x, torch.Tensor)}
        leading = {k: leading_axes(function, k, x.shape) for k, x in tensors.items()}
        if len(set(leading.values())) > 1:  # PyTorch knows how to differentiate this
            whole = torch.broadcast_shapes(*leading.values())
            for k, x in tensors.items():
                tensors[k] = x.expand(*whole, *x.shape[len(leading[k]) :]).contiguous()
        return Differentiable.apply(*(tensors.get(k, x) for k, x in enumerate(inputs)))

    return call
