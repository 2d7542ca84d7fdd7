"""Phases of a motion, as users declare them, and what they come to: durations of nodes, and where terms count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import numpy as np

from saltus.model.checks import ModelError
from saltus.ocp.terms import Term


@dataclass(frozen=True)
class Phase:
    """So long, with these contacts, and with these terms beside those of the whole problem.

    contacts: names of those that hold.
    duration: [s], rounded to nodes of the problem's dt; or
    nodes: how many.
    terms: those that count here; references may be arrays over the phase's nodes (nodes, size).
    """

    contacts: Sequence[str] = ()
    duration: float | None = None
    terms: Sequence[Term] = ()
    nodes: int | None = None
    dt: float | None = None


@dataclass(frozen=True)
class ImpactPhase:
    """A node of no duration: velocities jump so that these contacts hold from here on."""

    contacts: Sequence[str] = ()
    terms: Sequence[Term] = field(default=())


class Placed(NamedTuple):
    """A term, and from which node to which it counts; `own`: it was asked for there, so that forces of impacts count."""

    term: Term
    start: int
    stop: int
    own: bool


def spans_of(phases: Sequence[Phase | ImpactPhase], dt: float) -> tuple[list[tuple[int, int]], list[float]]:
    """First and last node of each phase, and the duration of each node."""
    spans: list[tuple[int, int]] = []
    steps: list[float] = []
    for k, phase in enumerate(phases):
        if isinstance(phase, ImpactPhase):
            own, count = 0.0, 1
        elif isinstance(phase, Phase):
            own = dt if phase.dt is None else phase.dt
            where = f"phase {k}, from node {len(steps)} on"
            if not 0.0 < own < np.inf:
                raise ModelError(f"{where}: dt is {own}, expected a positive time; an impact is an ImpactPhase")
            if (phase.duration is None) == (phase.nodes is None):
                raise ModelError(f"{where}: expected either a duration or a number of nodes")
            count = phase.nodes if phase.nodes is not None else round(float(phase.duration) / own)  # type: ignore[arg-type]
            if count < 1:
                raise ModelError(f"{where}: it has {count} nodes, expected one at least")
        else:
            raise ModelError(f"phase {k} is {phase!r}, expected a Phase or an ImpactPhase")
        spans.append((len(steps), len(steps) + count))
        steps += [own] * count
    return spans, steps


def unique(terms: Sequence[Term]) -> list[Term]:
    """Each term once, by its name; weights and references may differ from phase to phase, nothing else."""
    found: dict[str, Term] = {}
    for term in terms:
        if not isinstance(term, Term):
            raise ModelError(f"ShootingProblem: a term is {term!r}, expected one of saltus.ocp.terms")
        first = found.setdefault(term.name, term)
        for each in fields(term):
            if each.name not in ("weight", "reference") and (
                type(first) is not type(term) or repr(getattr(first, each.name)) != repr(getattr(term, each.name))
            ):
                raise ModelError(
                    f"term {term.name!r}: two have this name and differ in {each.name!r}, expected two names"
                )
    return list(found.values())
