"""Phases of a motion, as users declare them, and what they come to: durations of nodes, and where terms count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from saltus.model.checks import ModelError, whole_number
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
        if not isinstance(phase, Phase | ImpactPhase):
            raise ModelError(f"phase {k} is {phase!r}, expected a Phase or an ImpactPhase")
        own, count = (0.0, 1) if isinstance(phase, ImpactPhase) else steps_of(phase, dt, k, len(steps))
        spans.append((len(steps), len(steps) + count))
        steps += [own] * count
    return spans, steps


def steps_of(phase: Phase, dt: float, k: int, first: int) -> tuple[float, int]:
    """The duration of the nodes of phase k, and how many there are."""
    where = f"phase {k}, from node {first} on"
    own = dt if phase.dt is None else phase.dt
    if not (isinstance(own, Real) and 0.0 < own < np.inf):
        raise ModelError(f"{where}: dt is {own!r}, expected a positive time; an impact is an ImpactPhase")
    if (phase.duration is None) == (phase.nodes is None):
        raise ModelError(f"{where}: expected either a duration or a number of nodes")
    if phase.nodes is not None:
        count = whole_number(phase.nodes, f"{where}: its number of nodes")
    elif isinstance(phase.duration, Real) and 0.0 < phase.duration < np.inf:
        count = round(float(phase.duration) / float(own))
    else:
        raise ModelError(f"{where}: its duration is {phase.duration!r}, expected a positive time")
    if count < 1:
        raise ModelError(f"{where}: it has {count} nodes, expected one at least")
    return float(own), count


def listed(values: Any, what: str) -> list[Any]:
    """What was given as a list."""
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping):
        return list(values)
    raise ModelError(f"{what} are {values!r}, expected a list")


def terms_of(values: Any, what: str) -> list[Term]:
    """A list of terms, whose names differ: the second one would stand in the place of the first."""
    terms = listed(values, what)
    for term in terms:
        if not isinstance(term, Term):
            raise ModelError(f"{what}: one is {term!r}, expected those of saltus.ocp.terms")
    names = [term.name for term in terms]
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"{what}: two have the name {name!r}, expected names of their own")
    return terms


def unique(terms: Sequence[Term]) -> list[Term]:
    """Each term once, by its name; weights and references may differ from phase to phase, nothing else."""
    found: dict[str, Term] = {}
    for term in terms:
        first = found.setdefault(term.name, term)
        for each in fields(term):
            if each.name not in ("weight", "reference") and (
                type(first) is not type(term) or repr(getattr(first, each.name)) != repr(getattr(term, each.name))
            ):
                raise ModelError(
                    f"term {term.name!r}: two have this name and differ in {each.name!r}, expected two names"
                )
    return list(found.values())
