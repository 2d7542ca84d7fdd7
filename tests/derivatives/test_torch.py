"""The package's functions as functions of PyTorch's tensors: values, and gradients as PyTorch itself measures them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from tests.closeness import assert_close, with_rounding
from tests.generators import floating_tree, random_state
from tests.kernel.cases import all_kinds

torch = pytest.importorskip("torch")


def tensors(*arrays: Any, dtype: Any = None) -> list[Any]:
    return [torch.tensor(x, dtype=dtype, requires_grad=True) for x in arrays]


def normalised(model: sl.Model, q: Any) -> Any:
    """Coordinates with quaternions, and pairs of cosine and sine, of unit length."""
    parts = []
    for joint in model.joints[1:]:
        unit = joint.kind.unit_coordinates
        own = q[..., joint.iq : joint.iq + joint.nq]
        if unit.stop:
            turn = own[..., unit.start : unit.stop]
            own = torch.cat([own[..., : unit.start], turn / turn.norm(dim=-1, keepdim=True)], -1)
        parts.append(own)
    return torch.cat(parts, -1)


@pytest.mark.parametrize("name", ["rnea", "aba", "nonlinear_effects", "crba"])
@pytest.mark.parametrize("make", [lambda: sl.random_model(3, 4, ["revolute", "prismatic"]), all_kinds])
def test_gradcheck(name: str, make: Any) -> None:
    """Through a normalisation: off the manifold the functions refuse their inputs."""
    model = make()
    function, state = sl.torch_function(getattr(sl, name), model), random_state(model, 1, (2,))
    given = {"rnea": "q v a", "aba": "q v tau", "nonlinear_effects": "q v", "crba": "q"}[name].split()
    inputs = tensors(*(getattr(state, each) for each in given))
    assert torch.autograd.gradcheck(lambda q, *x: function(normalised(model, q), *x), inputs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("make", [lambda: floating_tree(2, 3), all_kinds])
def test_through_integrate(make: Any) -> None:
    """Configurations reached along the tangent; both functions are ours."""
    model = make()
    integrate, aba, state = (
        sl.torch_function(sl.integrate, model),
        sl.torch_function(sl.aba, model),
        random_state(model, 2),
    )
    dq, tau = tensors(np.full(model.nv, 0.1), state.tau)
    q, v = torch.tensor(state.q), torch.tensor(state.v)
    assert torch.autograd.gradcheck(lambda dq, tau: aba(integrate(q, dq), v, tau), (dq, tau), atol=1e-5, rtol=1e-5)


def test_gradient_of_quaternions() -> None:
    """It agrees with the gradient along the tangent, and has no part along the quaternion."""
    model = sl.random_model(0, 1, ["free_flyer"])
    state = random_state(model, 3)
    q, v, a = tensors(state.q, state.v, state.a)
    weights = np.random.default_rng(4).normal(size=6)
    (sl.torch_function(sl.rnea, model)(q, v, a) * torch.tensor(weights)).sum().backward()
    _, (tangent, dv, da) = sl.vjp(sl.rnea, model, (state.q, state.v, state.a), weights)
    gradient, h = q.grad.numpy(), 1e-6
    assert abs(gradient[3:] @ state.q[3:]) < 1e-13
    steps = h * np.eye(6)
    moved = (sl.integrate(model, state.q, steps) - sl.integrate(model, state.q, -steps)) / (2 * h)
    assert_close(moved @ gradient, tangent, 1e-8)
    assert_close(v.grad.numpy(), dv, 1e-14)
    assert_close(a.grad.numpy(), da, 1e-14)


def test_batches_broadcast() -> None:
    model = all_kinds()
    state = random_state(model, 5, (4, 3))
    q, v, tau = tensors(state.q, state.v[0, 0], state.tau[0])
    a = sl.torch_function(sl.aba, model)(q, v, tau)
    assert_close(a.detach().numpy(), sl.aba(model, state.q, state.v[0, 0], state.tau[0]), 1e-12)
    a.sum().backward()
    _, (_, dv, dtau) = sl.vjp(sl.aba, model, (state.q, state.v[0, 0], state.tau[0]), np.ones(model.nv))
    assert_close(v.grad.numpy(), dv.sum((0, 1)), 1e-11)
    assert_close(tau.grad.numpy(), dtau.sum(0), 1e-11)


def test_forces_and_constants() -> None:
    """External forces have gradients; frames have none, nor has what is no tensor."""
    model = floating_tree(2, 4)
    state = random_state(model, 6)
    (forces,) = tensors(state.forces)
    a = sl.torch_function(sl.aba, model)(torch.tensor(state.q), state.v, state.tau, forces)
    a[0].backward()
    _, gradients = sl.vjp(sl.aba, model, (state.q, state.v, state.tau, state.forces), np.eye(model.nv)[0])
    assert_close(forces.grad.numpy(), gradients[3], 1e-12)

    (v,) = tensors(state.v)
    velocity = sl.torch_function(sl.frame_velocity, model)(torch.tensor(state.q), v, len(model.frames) - 1, "world")
    velocity[2].backward()
    J = sl.frame_jacobian(model, state.q, len(model.frames) - 1, "world")
    assert_close(v.grad.numpy(), J[2], 1e-12)


def test_single_precision() -> None:
    model = all_kinds()
    state = random_state(model, 7)
    inputs = tensors(state.q, state.v, state.tau, dtype=torch.float32)
    a = sl.torch_function(sl.aba, model)(*inputs)
    a.sum().backward()
    assert a.dtype == torch.float32 and {x.grad.dtype for x in inputs} == {torch.float32}
    doubles = [x.detach().numpy().astype(np.float64) for x in inputs]
    tolerance = with_rounding(0.0, np.linalg.cond(sl.crba(model, doubles[0])), real=np.float32)
    assert_close(a.detach().numpy(), sl.aba(model, *doubles), tolerance)
    assert_close(inputs[2].grad.numpy(), sl.minverse(model, doubles[0]).sum(-2), tolerance)


def test_several_outputs() -> None:
    model = all_kinds()
    state = random_state(model, 8)
    q, v = tensors(state.q, state.v)
    position, velocity = sl.torch_function(sl.center_of_mass, model)(q, v)
    (position.sum() + velocity.sum()).backward()
    assert_close(v.grad.numpy(), sl.center_of_mass_jacobian(model, state.q).sum(0), 1e-11)


def test_constrained_dynamics() -> None:
    """Both outputs, on the manifold by `integrate`."""
    robot = sl.load_robot("quadruped")
    feet = [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]
    solve = sl.torch_function(sl.ConstrainedDynamics.solve, sl.ConstrainedDynamics(robot, feet))
    integrate, state = sl.torch_function(sl.integrate, robot), random_state(robot, 10)
    standing, dq, v, tau = (
        torch.tensor(robot.reference_configurations["standing"]),
        *tensors(np.zeros(robot.nv), state.v, state.tau),
    )

    def found(dq: Any, v: Any, tau: Any) -> Any:
        return solve(integrate(standing, dq), v, tau)

    assert torch.autograd.gradcheck(found, (dq, v, tau), atol=1e-4, rtol=1e-5)


def test_no_second_derivatives() -> None:
    model = all_kinds()
    state = random_state(model, 9)
    q, v, tau = tensors(state.q, state.v, state.tau)
    (slope,) = torch.autograd.grad(sl.torch_function(sl.aba, model)(q, v, tau).square().sum(), v, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()
