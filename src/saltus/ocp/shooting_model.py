"""A robot with its terms and a horizon, as kernels take it, and the kernels that are made for it."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from saltus.constraints.dynamics import SOFT, ConstrainedDynamics
from saltus.kernel import ALGORITHMS, Part
from saltus.model.checks import ModelError
from saltus.ocp.forward import Node, NodeAlgorithms, node_algorithms
from saltus.ocp.horizon import HORIZON, fill_nothing, measure_horizon
from saltus.ocp.nodes import (
    SOLVERS,
    NodeKernels,
    difference_state,
    integrate_state,
    node_kernels,
    reach_of_state,
)
from saltus.ocp.term_tables import NodeModel, TermSet

METHOD, INTEGRATORS = "constrained_aba", ("euler", "rk4")
"""The default of methods, and what integrators there are."""


class ShootingModel(NodeModel):
    """A robot, its terms and a horizon, as algorithms take them."""

    def __init__(self, dynamics: Any, terms: TermSet, T: int) -> None:
        super().__init__(dynamics, terms)
        self.T, self.nx, self.ndx = T, terms.sizes["nx"], terms.sizes["ndx"]
        self.node_data, self.controls = terms.sizes["ndata"], terms.sizes["nact"]


def measure_robot_horizon(problem: ShootingModel) -> Any:
    """As horizon.py; of constrained models `nu` is another size."""
    return measure_horizon(_Sizes(problem.T, problem.nx, problem.ndx, problem.controls, problem.node_data))


class _Sizes(NamedTuple):
    T: int
    nx: int
    ndx: int
    nu: int
    node_data: int
    blocks: tuple[tuple[int, int], ...] = ()


ROBOT_HORIZON = Part(HORIZON.sizes, HORIZON.ints, HORIZON.reals, measure_robot_horizon, fill_nothing)


@cache
def robot_algorithms(method: str, own: tuple[Any, ...] = (), rk4: bool = False) -> tuple[NodeKernels, NodeAlgorithms]:
    """Of nodes, and of horizons, by the method of constrained dynamics and the kernels of the user's terms."""
    known = len(ALGORITHMS)
    kernels = node_kernels(method, tuple(enumerate(own)), rk4, ROBOT_HORIZON)
    node = Node(kernels.step, kernels.final, integrate_state, difference_state, reach_of_state)
    made = node_algorithms(f"robot_{method}{'_rk4' * rk4}", kernels.tables, node, kernels.work, True, keeps=True)
    ALGORITHMS[known:] = (
        [kernels.calc, made.forward, made.difference] if method == METHOD and not own and not rk4 else []
    )
    return kernels, made


robot_algorithms(METHOD)  # what is compiled ahead, by `saltus warmup`; others on first use


def solver_of(dynamics: ConstrainedDynamics) -> str:
    """The method's name, as kernels of nodes know it."""
    name = SOFT.get(dynamics.method, dynamics.method)
    if any(constraint.joint_b > 0 for constraint in dynamics.constraints) and name == "constrained_aba":
        name = "loop_aba"
    if name not in SOLVERS:
        raise ModelError(f"ShootingProblem: unknown method {name!r}, expected one of {', '.join(SOLVERS)}")
    return name
