"""The gaits of Crocoddyl evaluated from their numbers: whole horizons, by saltus' dynamics and NumPy's arithmetic.

    x_{t+1} = f_t(x_t, u_t),    l_t = s_t sum_i w_ti a_i(r_ti)        (symbols: benchmarks/ocp_problems.py)

Slow and obvious, to say which conventions hold: no solver uses it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

import saltus as sl
from benchmarks.ocp_problems import GaitProblem, Term, pose
from saltus.arrays import Array


class Motion(NamedTuple):
    """Where nodes lead to, and how the ground pushes."""

    next: Array  # (N, nx)
    forces: Array  # (N, feet, 3 or 6) along the world's axes, zero where nothing touches; impulses at impacts


def moved(problem: GaitProblem, nodes: Array, xs: Array, us: Array) -> Motion:
    """One step of each of these nodes (N,), from states (N, nx) with controls (N, nu)."""
    model, size = problem.model, problem.contact_size
    q, v = xs[:, : model.nq], xs[:, model.nq :]
    tau = np.concatenate([np.zeros((len(nodes), model.nv - problem.nu)), us], axis=1)
    dynamics, active = problem.dynamics(method="prox_ltl"), problem.active[nodes]
    dt, strikes = problem.dt[nodes, None], problem.impact[nodes, None]
    solution, struck = dynamics.solve(q, v, tau, active), dynamics.impact(q, v, active)
    assert (solution.status == 0).all() and (struck.status == 0).all()
    after = v + dt * solution.a
    q1 = np.where(strikes, q, sl.integrate(model, q, dt * after))
    local = np.where(strikes, struck.impulses, solution.forces).reshape(len(nodes), -1, size // 3, 3)
    turns = np.stack([sl.frame_placement(model, q, foot)[:, :3, :3] for foot in problem.feet], axis=1)
    forces = np.einsum("nfij,nfbj->nfbi", turns, local).reshape(len(nodes), -1, size)
    return Motion(np.concatenate([q1, np.where(strikes, struck.v, after)], axis=1), forces * active[:, :, None])


def residual(problem: GaitProblem, term: Term, nodes: Array, xs: Array, us: Array, forces: Array) -> Array:
    """(N, size) of a term at these nodes."""
    model, c = problem.model, term.reference[nodes]
    q, v = xs[:, : model.nq], xs[:, model.nq :]
    last = nodes[:, None] == problem.T
    if term.residual == "state":
        return np.concatenate([sl.difference(model, c[:, : model.nq], q), v - c[:, model.nq :]], axis=1)
    if term.residual == "control":
        return np.where(last, 0.0, us - c)
    if term.residual == "com_position":
        return sl.center_of_mass(model, q) - c
    if term.residual == "frame_translation":
        return sl.frame_placement(model, q, term.frame)[:, :3, 3] - c
    if term.residual == "frame_placement":
        there = sl.frame_placement(model, q, term.frame)
        return np.stack(
            [pin.log6(np.linalg.solve(pose(one), X)).vector for one, X in zip(c, there, strict=True)]
        )  # fmt: skip
    if term.residual in ("friction_cone", "wrench_cone"):
        assert term.matrix is not None
        return np.where(last, 0.0, forces[:, problem.feet.index(term.frame)] @ term.matrix.T)
    raise ValueError(f"term {term.name!r}: no residual {term.residual!r}")


def term_costs(problem: GaitProblem, nodes: Array, xs: Array, us: Array, forces: Array) -> Array:
    """(N, terms), activations without weights, zero where a node does not have the term."""
    result = np.zeros((len(nodes), len(problem.terms)))
    for column, term in zip(result.T, problem.terms, strict=True):
        here = term.weight[nodes] > 0
        if here.any():
            column[here] = term.value(residual(problem, term, nodes[here], xs[here], us[here], forces[here]))
    return result


def costs(problem: GaitProblem, nodes: Array, xs: Array, us: Array, forces: Array) -> Array:
    """(N,) costs of these nodes."""
    weights = np.stack([term.weight[nodes] for term in problem.terms], axis=1)
    result: Array = problem.scale[nodes] * (weights * term_costs(problem, nodes, xs, us, forces)).sum(1)
    return result
