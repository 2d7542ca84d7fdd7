"""What derivatives of constrained dynamics are held against: the solver run on dual numbers; and how they are compared."""

from __future__ import annotations

from typing import Any

import numpy as np

import saltus as sl
from tests.constraints import truth

INPUTS = {"q": 0, "v": 1, "tau": 2, "target": 4}
"""Of `solve`, by their places."""
OF_ACCELERATIONS = [f"da_d{name}" for name in INPUTS]
OF_FORCES = [f"df_d{name}" for name in INPUTS]
EVERYTHING = OF_ACCELERATIONS + OF_FORCES
BY_STATE = [f"d{out}_d{name}" for out in "af" for name in ("q", "v", "tau")]


def converged(model: sl.Model, held: list[sl.Constraint], method: str = "constrained_aba", **more: Any) -> Any:
    """Solved to the last digit, for as long as it takes."""
    return sl.ConstrainedDynamics(model, held, method, **{"tolerance": 1e-12, "most_iterations": 200, **more})


def states(model: sl.Model, count: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    v, tau = rng.normal(size=(2, count, model.nv))
    return sl.random_configuration(model, seed, count), v, 10.0 * tau


def allowed(model: sl.Model, held: list[sl.Constraint], q: Any, v: Any) -> Any:
    """The velocities next to `v` that the constraints allow."""
    J = truth.jacobian(model, held, q)
    response, inverse, _ = truth.delassus_inverse(sl.crba(model, q), J)
    return v - truth.times(response, truth.times(inverse, truth.times(J, v)))


def on_dual_numbers(dynamics: sl.ConstrainedDynamics, q: Any, v: Any, tau: Any, **more: Any) -> dict[str, Any]:
    """Exact derivatives of `solve`, by the names of those of `derivatives`."""
    names = ("active", "target", "start", "external", "rows")
    rest = {"target": np.zeros(dynamics.problem.nm), **more}
    inputs = (q, v, tau, *(rest.get(name) for name in names))
    entries = sl.jacobian(sl.ConstrainedDynamics.solve, dynamics, inputs, "ad")
    return {f"d{out}_d{name}": entries[k][n] for name, k in INPUTS.items() for n, out in enumerate("af")}


def errors(ours: Any, right: Any, least: Any = 0.0) -> Any:
    """The largest difference of each sample's matrix, relative to its largest entry or to the natural size of these."""
    difference, size = np.abs(ours - right).max((-1, -2)), np.maximum(np.abs(right).max((-1, -2)), least)
    return np.where(difference == 0, 0.0, difference / np.where(size > 0, size, np.nan))


def misses(ours: Any, right: dict[str, Any], names: list[str], tolerance: Any, least: Any = None) -> list[str]:
    """A line on each matrix that is not close."""
    found = []
    for name in names:
        assert getattr(ours, name).shape == right[name].shape, name
        off = errors(getattr(ours, name), right[name], (least or {}).get(name, 0.0))
        if not (off <= tolerance).all():  # true of NaN
            found.append(f"{name}: {np.sum(~(off <= tolerance))} of {off.size} samples miss, by {np.max(off):.1e}")
    return found


def misses_in_torques(
    model: sl.Model, held: list[sl.Constraint], q: Any, ours: Any, right: dict[str, Any], tolerance: Any
) -> list[str]:
    """The same of J^T df, what forces do together: where redundant constraints share them, that alone is unique."""
    turned = truth.transposed(truth.jacobian(model, held, q))
    found = []
    for name in ("df_dq", "df_dv", "df_dtau"):
        off = errors(turned @ getattr(ours, name), turned @ right[name])
        if not (off <= tolerance).all():
            found.append(f"J^T {name}: {np.sum(~(off <= tolerance))} of {off.size} samples miss, by {np.max(off):.1e}")
    return found


def compare_with_dual_numbers(
    dynamics: sl.ConstrainedDynamics, inputs: Any, names: list[str], tolerance: float, least: Any = None, **more: Any
) -> Any:
    """Derivatives, found right in all that is named."""
    D = dynamics.derivatives(*inputs, **more)
    found = misses(D, on_dual_numbers(dynamics, *inputs, **more), names, tolerance, least)
    assert not found, "\n".join(["", *found])
    return D
