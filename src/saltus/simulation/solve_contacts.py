"""Contact problems that are given as arrays: what the simulator solves in each step, for those who have their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, real_numbers
from saltus.constraints.report import Status, whole
from saltus.kernel import Layout, Part, Tables, declare, kernel, ld, st
from saltus.kernel.tables import Filled, FilledPart
from saltus.model.tree import CONFIGURATIONS
from saltus.simulation.contact_law import CONVEX, COULOMB
from saltus.simulation.contact_problem import ENDLESS, METHODS, REPORT, ROWS, row_sizes, settle

LAWS = {"coulomb": COULOMB, "convex": CONVEX}

TOLERANCE = {"d": 1e-9, "f": 1e-5}
"""Of the natural map [m/s], by the type of numbers."""

BEYOND = 10.0 * ENDLESS
"""Stands for infinity: inputs are finite."""

LEAST = {"d": 1e-12, "f": 1e-3}
"""Of the share of its diagonal that is added to G (contact_newton.py)."""


class ContactProblem:
    """What stands in the place of a model for problems of one size."""

    specialised = varied = weightless = False
    coupling = None

    def __init__(self, rows: int, contacts: int) -> None:
        self.name, self.rows, self.contacts = f"{rows} rows and {contacts} contacts", rows, contacts
        self.filled: dict[Tables, Filled] = {}
        self.quick: dict[Any, Any] = {}
        self.parts: dict[Part, FilledPart] = {}


@lru_cache(256)
def problem_of(rows: int, contacts: int) -> ContactProblem:
    return ContactProblem(rows, contacts)


def measure(problem: ContactProblem) -> dict[str, int]:
    return {"nb": problem.rows, "nk": problem.contacts, **row_sizes(problem.rows + 3 * problem.contacts)}


PLAIN = Part(("nb", "nk", "nr", "nrr", "nrs"), Layout(), Layout(), measure, lambda problem, ints, reals: None)


@kernel
def place_of(first, i):
    """Where a row of the kernels' order, normals first, stands in the users', normals last."""
    if i < first:
        return i
    k = (i - first) % 3
    return i + 2 if k == 0 else i - 1


@declare(
    Tables([PLAIN], CONFIGURATIONS),
    inputs={
        "options": "3 int", "G": "nr nr", "g": "nr", "friction": "nk", "lower": "nb", "upper": "nb", "compliance": "nr",
        "start": "nr", "limits": "2",
    },
    outputs={"x": "nr", "u": "nr", "report": "9"},
    work=ROWS,
)  # fmt: skip
def _solve_contacts(tree, options, G, g, friction, lower, upper, compliance, start, limits, w, x, u, report):
    """`options`: law, method, turns; `limits`: the tolerance, and `least` (settle)."""
    first, n = tree.nb, tree.nr
    for i in range(n):
        row = place_of(first, i)
        for j in range(n):
            st(w.delassus, i * n + j, ld(G, row * n + place_of(first, j)))
        st(w.delassus, i * n + i, ld(w.delassus, i * n + i) + ld(compliance, row))
        w.free[i], w.impulse[i] = ld(g, row), ld(start, row)
    for i in range(first):
        w.lower[i], w.upper[i] = ld(lower, i), ld(upper, i)
    for c in range(tree.nk):
        w.friction[first + 3 * c] = ld(friction, c)
    dual_at, product_at = settle(w, first, n, options[0], options[1], ld(limits, 0), ld(limits, 1), options[2], report)
    st(report, REPORT, dual_at)
    st(report, REPORT + 1, product_at)
    for i in range(n):
        row = place_of(first, i)
        st(x, row, w.impulse[i])
        st(u, row, w.rate[i])


class ContactResiduals(NamedTuple):
    """What is left of contact problems, each the worst of all rows and contacts (contact_problem.py), and where: rows of
    joints are counted first, then contacts; -1 where nothing is left."""

    natural: Array
    """(...) [m/s]: zero where the problem is solved, and about as far off as rates are."""
    dual: Array
    """(...) [m/s]: how fast contacts close, and rows move that must not."""
    complementarity: Array
    """(...) [J]: work of impulses that should do none, or not that."""
    natural_at: Any
    dual_at: Any
    complementarity_at: Any


@dataclass(frozen=True, eq=False)
class ContactImpulses:
    """The solution of contact problems: rates = G impulses + compliance impulses + g."""

    rows: int
    impulses: Array
    """(..., nr) [N s, N m s]: of the rows of joints, then of contacts, each two tangents and the normal."""
    rates: Array
    """(..., nr) [m/s, rad/s]"""
    report: Array

    @property
    def status(self) -> Any:
        """(...) of `Status`; one sample's is a member. INACCURATE: rounding allows no more; STOPPED: none was found."""
        status = self.report[..., 6]
        if isinstance(status, np.ndarray | np.floating):
            status = np.where(np.isnan(status), int(Status.INVALID), status)
        return Status(int(status)) if status.ndim == 0 else whole(status)

    @property
    def iterations(self) -> Array:
        """(...): steps of Newton's method, or sweeps."""
        return whole(self.report[..., 0])

    @property
    def turns(self) -> Array:
        """(...): how often Newton's method needed a new start."""
        return whole(self.report[..., 1])

    @property
    def residuals(self) -> ContactResiduals:
        places = whole(self.report[..., [5, 7, 8]])
        contacts = self.rows + (places - self.rows) // 3
        places = places * (places < self.rows) + contacts * (places >= self.rows)
        return ContactResiduals(*(self.report[..., k] for k in (2, 3, 4)), *(places[..., k] for k in range(3)))  # type: ignore[call-arg]


def solve_contacts(
    G: ArrayLike,
    g: ArrayLike,
    friction: ArrayLike,
    *,
    rows: int = 0,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    compliance: ArrayLike | None = None,
    start: ArrayLike | None = None,
    law: Literal["coulomb", "convex"] = "coulomb",
    method: Literal["admm", "pgs"] = "admm",
    tolerance: float | None = None,
    max_turns: int = 60,
) -> ContactImpulses:
    """Impulses x of contacts and joints, and the rates u = G x + compliance x + g that they lead to.

        a row of a joint    lower <= x <= upper     u = 0 inside, u >= 0 at the lower end, u <= 0 at the upper one
        a contact           |x_t| <= mu x_n         u_n >= 0, x_n u_n = 0;  u_t = 0, or x_t = -mu x_n u_t / |u_t|

    Loops are rows with infinite ends, joint limits go from 0 to infinity, dry friction from -f to f (times the step).

    G: (..., nr, nr), the Delassus matrix J M^-1 J^T; symmetric, positive semidefinite. First `rows` rows of joints, then
    three rows a contact: two tangents and the normal, which points to where the contact opens.
    g: (..., nr), the rates without impulses; a gap adds gap / step to the normal's, restitution adds to it, too.
    friction: (..., nk), mu of each contact.
    lower, upper: (..., rows), unless `rows` is 0.
    compliance: (..., nr), added to the diagonal of G.
    start: (..., nr), impulses to begin from, as those of the last step.
    law: "coulomb", or "convex": impulses minimise 1/2 x^T (G + compliance) x + g^T x over intervals and cones, so what
    slides lifts off. That is MuJoCo's model, with its R as compliance, and g less the reference rates.
    method: "admm" or "pgs", which takes many steps (contact_problem.py).
    tolerance: of the natural map [m/s]; 1e-9, in single precision 1e-5.
    max_turns: after how many new starts, each 15 steps of Newton's method, or hundred sweeps, an answer must do.

    Leading axes of all are broadcast. A box of 1 kg on four points, thrown along the ground:

    >>> import numpy as np, saltus as sl
    >>> points = 0.1 * np.array([[1, 1, -1], [1, -1, -1], [-1, 1, -1], [-1, -1, -1]])
    >>> turn = np.array([[[0, z, -y], [-z, 0, x], [y, -x, 0]] for x, y, z in points])
    >>> J = np.concatenate([np.tile(np.eye(3), (4, 1)), turn.reshape(12, 3)], axis=1)
    >>> G = J @ np.diag([1, 1, 1, 150, 150, 150]) @ J.T
    >>> found = sl.solve_contacts(G, J @ [1, 0, -0.2, 0, 0, 0], np.full(4, 0.5))
    >>> str(found.status), found.impulses.reshape(4, 3).sum(axis=0).round(6) + 0.0
    ('CONVERGED', array([-0.1,  0. ,  0.2]))
    >>> (J.T @ found.impulses + [1, 0, -0.2, 0, 0, 0]).round(6)[:3] + 0.0
    array([0.9, 0. , 0. ])
    """
    if law not in LAWS:
        raise ValueError(f"solve_contacts: law is {law!r}, expected one of {', '.join(map(repr, LAWS))}")
    if method not in METHODS:
        raise ValueError(f"solve_contacts: method is {method!r}, expected one of {', '.join(map(repr, METHODS))}")
    if max_turns < 0:
        raise ValueError(f"solve_contacts: max_turns is {max_turns}, expected 0 or more")
    if tolerance is not None and not tolerance > 0:
        raise ValueError(f"solve_contacts: tolerance is {tolerance}, expected more than 0")
    contacts = np.shape(friction)[-1] if np.ndim(friction) else -1
    size = np.shape(g)[-1] if np.ndim(g) else -1
    if contacts < 0 or size != rows + 3 * contacts:
        raise ValueError(
            f"solve_contacts: g has the shape {np.shape(g)} and friction {np.shape(friction)}, expected (..., nr) and "
            f"(..., nk) with nr = rows + 3 nk and rows = {rows}"
        )
    if (lower is None or upper is None) and rows:
        raise ValueError(f"solve_contacts: {rows} rows of joints, but lower or upper is not given")
    G, g = real_numbers(G, "solve_contacts: G"), real_numbers(g, "solve_contacts: g")
    single = G.dtype == g.dtype == np.float32
    dtype = np.dtype(np.float32 if single else np.float64)
    mu, low, high = (
        numbers(value, name, shape, dtype)
        for value, name, shape in ((friction, "friction", contacts), (lower, "lower", rows), (upper, "upper", rows))
    )
    soft, begin = numbers(compliance, "compliance", size, dtype), numbers(start, "start", size, dtype)
    for name, wrong, values in (("friction", mu < 0, mu), ("compliance", soft < 0, soft)):
        if wrong.any():
            raise ValueError(f"solve_contacts: {name} has the entry {values[wrong].flat[0]:g}, expected 0 or more")
    if (low > high).any():
        raise ValueError("solve_contacts: a lower end lies above its upper one")
    options = np.array([LAWS[law], METHODS[method], max_turns], np.int32)
    limits = np.array([TOLERANCE[dtype.char] if tolerance is None else tolerance, LEAST[dtype.char]], dtype)
    inputs = (options, G, g, mu, low, high, soft, begin, limits)
    return ContactImpulses(rows, *_solve_contacts.call(problem_of(rows, contacts), inputs))


def numbers(value: ArrayLike | None, name: str, size: int, dtype: Any) -> Array:
    """What was given, or zeros; infinite ends as what kernels take for them."""
    if value is None:
        return np.zeros(size, dtype)
    return np.clip(real_numbers(value, f"solve_contacts: {name}"), -BEYOND, BEYOND).astype(dtype)
