"""What is wrong with a shooting problem, in words: which node, and which term."""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus.arrays import Array
from saltus.model.checks import ModelError
from saltus.ocp.own_terms import Nodes
from saltus.ocp.term_tables import DATA


def refuse_bad_data(problem: Any) -> None:
    """An error if rows of `data`, which users may write to, make no sense."""
    try:
        np.broadcast_shapes(problem.x0.shape[:-1], problem.data.shape[:-2])
    except ValueError:
        shapes = f"x0 {problem.x0.shape[:-1]}, data {problem.data.shape[:-2]}"
        raise ModelError(f"ShootingProblem: leading axes do not go together: {shapes}") from None
    data, shape = problem.data, (problem.T + 1, problem.terms.sizes["ndata"])
    if np.shape(data)[-2:] != shape:
        raise ModelError(f"ShootingProblem: data has shape {np.shape(data)}, expected (..., {shape[0]}, {shape[1]})")
    if not np.isfinite(data).all():
        raise explained(problem, ValueError())
    dt, struck = data[..., :-1, 0], data[..., :-1, 2] > 0
    wrong = (dt < 0) | ((dt == 0) != struck)
    if wrong.any():
        node = tuple(np.argwhere(wrong)[0].tolist())
        expected = "0, as it is an impact" if struck[node] else "a positive time"
        raise ModelError(f"node {node[-1]}: dt is {dt[node]}, expected {expected}")
    wrong = problem.weights < 0
    if wrong.any():
        *_, t, k = place = tuple(np.argwhere(wrong)[0].tolist())
        name, weight = problem.terms.terms[k].name, problem.weights[place]
        raise ModelError(f"node {t}: the weight of term {name!r} is {weight}, expected none negative")
    for name, place in problem.terms.states.items():
        problem.terms.check_configuration(problem.references[..., place], f"reference of term {name!r}")


def explained(problem: Any, error: ValueError) -> ValueError:
    """Which node and term have a number that is not finite; else the error as it is."""
    wrong = np.argwhere(~np.isfinite(problem.data))
    if not len(wrong):
        return error
    terms = problem.terms
    *_, node, place = wrong[0].tolist()
    after = place - DATA - problem.nc - len(terms.terms)
    what = ("dt", "scale of the cost", "impact")[place] if place < DATA else f"activity of contact {place - DATA}"
    if after >= 0:
        what = next(f"reference of term {n!r}" for n, s in terms.places.items() if s.start <= after < s.stop)
    elif place >= DATA + problem.nc:
        what = f"weight of term {terms.terms[place - DATA - problem.nc].name!r}"
    return ModelError(f"node {node}: the {what} is {problem.data[tuple(wrong[0])]}, expected finite numbers")


def term_to_blame(problem: Any, xs: Array, us: Array, node: int) -> str:
    """Of a node, at states (T + 1, nx) and controls (T, nu)."""
    x, u = np.asarray(xs[node], float), np.asarray(us[min(node, problem.T - 1)], float)
    if not (np.isfinite(x).all() and np.isfinite(u).all()):
        return "its state or its controls are not finite"
    try:
        found = problem.term_values(np.tile(x, (problem.T + 1, 1)), np.tile(u, (problem.T, 1)))
    except ValueError as error:
        return str(error)
    costs = {name: float(np.ravel(cost[..., node])[0]) for name, cost in found.costs.items()}
    wrong = [name for name, cost in costs.items() if not np.isfinite(cost)]
    if wrong:
        return f"term {wrong[0]!r} costs {costs[wrong[0]]} there"
    q, v = x[: problem.nq], x[problem.nq :]
    here = Nodes(*(np.tile(part, (problem.T + 1, 1)) for part in (q, v, u)))
    for term in [*problem.own.kernels, *problem.own.functions]:
        weight = problem.own.weight(term)[..., node]
        if np.any(weight > 0) and not np.isfinite(problem.own.slopes(term, here)[..., node, :, :]).all():
            return f"the slopes of term {term.name!r} are not finite there"
    most = max(costs, key=lambda name: costs[name])
    return f"term {most!r} costs most there, {costs[most]:.3g} of {sum(costs.values()):.3g}"
