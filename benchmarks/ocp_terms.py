"""Crocoddyl's gaits as terms of saltus: the classes of `saltus.ocp.terms` from the numbers of `ocp_problems.py`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.ocp_problems import GaitProblem, Term, pose
from saltus.arrays import Array

FACETS = 4


class GaitTerms(NamedTuple):
    """Terms, and what differs from node to node."""

    terms: list[Any]  # of saltus.ocp.terms
    weights: Array  # (T + 1, terms)
    references: dict[str, Array]  # by the term's name, (T + 1, ...); cones have none


def gait_terms(gait: GaitProblem) -> GaitTerms:
    """Names are made different: Crocoddyl has one term on the state of impacts and another one elsewhere, named alike.

    Terms on controls and forces weigh nothing at the last node: there are none.
    """
    names = [term.name for term in gait.terms]
    unique = [f"{name} {names[:k].count(name) + 1}" if name in names[:k] else name for k, name in enumerate(names)]
    weights = np.stack([term.weight for term in gait.terms], axis=1)
    weights[-1, [term.residual in ("control", "friction_cone", "wrench_cone") for term in gait.terms]] = 0.0
    references = {
        name: np.stack([pose(c) for c in term.reference]) if term.residual == "frame_placement" else term.reference
        for name, term in zip(unique, gait.terms, strict=True)
        if term.matrix is None
    }
    return GaitTerms([made(term, name) for term, name in zip(gait.terms, unique, strict=True)], weights, references)


def shooting_problem(gait: GaitProblem, method: str = "constrained_aba") -> Any:
    """saltus' problem of a gait, by a method of constrained dynamics."""
    from saltus.ocp.shooting_problem import ShootingProblem

    found, nv = gait_terms(gait), gait.model.nv
    return ShootingProblem.of_nodes(
        gait.dynamics(method=method), gait.x0, found.terms, gait.dt[:-1], weights=found.weights,
        references=found.references, active=gait.active, motors=range(nv - gait.nu, nv),
    )  # fmt: skip


def made(term: Term, name: str) -> Any:
    """The term; its weight is 1, as nodes have their own."""
    from saltus.ocp import terms

    if term.matrix is not None:
        return cone(term, name)
    given = {"name": name, "activation": activation(term)}
    if term.residual == "state":
        return terms.State(**given)
    if term.residual == "control":
        return terms.Control(**given)
    if term.residual == "com_position":
        return terms.CenterOfMass(**given)
    if term.residual == "frame_translation":
        return terms.FrameTranslation(term.frame, **given)
    if term.residual == "frame_placement":
        return terms.FramePlacement(term.frame, **given)
    raise ValueError(f"term {name!r}: no residual {term.residual!r}")


def activation(term: Term) -> Any:
    from saltus.ocp.activations import Barrier, Quadratic

    if term.activation == "barrier":
        return Barrier(term.lower, term.upper)
    return Quadratic() if term.weights is None else Quadratic(weights=term.weights)


def cone(term: Term, name: str) -> Any:
    """What friction its facets have and how large its sole is stands in the matrix; forces are along the world's axes."""
    from saltus.ocp.terms import FrictionCone, WrenchCone

    A = term.matrix
    assert A is not None
    given = {"friction": -A[0, 2], "facets": FACETS, "inner": False, "axes": "local_world_aligned", "name": name}
    if term.residual == "friction_cone":
        return FrictionCone(term.frame, **given)
    return WrenchCone(term.frame, box=(-2.0 * A[FACETS + 3, 2], -2.0 * A[FACETS + 1, 2]), **given)
