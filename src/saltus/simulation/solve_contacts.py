"""Contact problems that are given as arrays: what the simulator solves in each step, for those who have their own."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, real_numbers
from saltus.constraints.report import Status, whole
from saltus.kernel import Layout, Part, Tables, declare, kernel, ld, less, minimum, select, st, zero
from saltus.kernel.tables import Filled, FilledPart
from saltus.model.tree import CONFIGURATIONS
from saltus.simulation.contact_law import CONVEX, COULOMB
from saltus.simulation.contact_problem import ENDLESS, METHODS, REPORT, ROWS, row_sizes, settle

DOUBLE, SINGLE, INVALID = np.dtype(np.float64), np.dtype(np.float32), int(Status.INVALID)

LAWS = {"coulomb": COULOMB, "convex": CONVEX}

TOLERANCE = {"d": 1e-9, "f": 1e-5}
"""Of the natural map [m/s], by the type of numbers."""

BEYOND = 10.0 * ENDLESS
"""Stands for infinity: inputs are finite."""

LEAST = {"d": 1e-12, "f": 1e-5}
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
def turned(array, first, n, x, forth):
    """x = an array, contacts' normals first (`forth`) or, the other way, last."""
    for i in range(first):
        x[i] = ld(array, i)
    for i in range(first, n, 3):
        if forth:
            x[i], x[i + 1], x[i + 2] = ld(array, i + 2), ld(array, i), ld(array, i + 1)
        else:
            x[i + 2], x[i], x[i + 1] = ld(array, i), ld(array, i + 1), ld(array, i + 2)


@kernel
def turned_row(G, row, first, n, w, i):
    """Row i of the Delassus matrix, from one of G."""
    for j in range(first):
        st(w.delassus, i * n + j, ld(G, row * n + j))
    for j in range(first, n, 3):
        k = row * n + j
        st(w.delassus, i * n + j, ld(G, k + 2))
        st(w.delassus, i * n + j + 1, ld(G, k))
        st(w.delassus, i * n + j + 2, ld(G, k + 1))


@declare(
    Tables([PLAIN], CONFIGURATIONS),
    inputs={
        "options": "3 int", "G": "nr nr", "g": "nr", "friction": "nk", "lower": "nb", "upper": "nb", "compliance": "nr",
        "start": "nr", "limits": "2",
    },
    outputs={"x": "nr", "u": "nr", "report": "9"},
    work=ROWS,
    sloped=False,
)  # fmt: skip
def _solve_contacts(tree, options, G, g, friction, lower, upper, compliance, start, limits, w, x, u, report):
    """`options`: law, method, turns; `limits`: the tolerance, and `least` (settle)."""
    first, n = tree.nb, tree.nr
    turned(g, first, n, w.free, True)
    turned(start, first, n, w.impulse, True)
    turned(compliance, first, n, w.step, True)
    for i in range(first):
        turned_row(G, i, first, n, w, i)
    for i in range(first, n, 3):
        turned_row(G, i + 2, first, n, w, i)
        turned_row(G, i, first, n, w, i + 1)
        turned_row(G, i + 1, first, n, w, i + 2)
    for i in range(n):
        st(w.delassus, i * n + i, ld(w.delassus, i * n + i) + w.step[i])
    least = zero(g)  # of what must not be negative
    for i in range(n):
        least = minimum(least, ld(compliance, i))
    for i in range(first):
        w.lower[i], w.upper[i] = ld(lower, i), ld(upper, i)
        least = minimum(least, w.upper[i] - w.lower[i])
    for c in range(tree.nk):
        w.friction[first + 3 * c] = ld(friction, c)
        least = minimum(least, ld(friction, c))
    dual_at, product_at = settle(w, first, n, options[0], options[1], ld(limits, 0), ld(limits, 1), options[2], report)
    st(report, 6, select(less(least, 0.0), 1.0 * Status.INVALID, ld(report, 6)))
    st(report, REPORT, dual_at)
    st(report, REPORT + 1, product_at)
    turned(w.impulse, first, n, x, False)
    turned(w.rate, first, n, u, False)


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


class ContactImpulses(NamedTuple):
    """The solution of contact problems: rates = G impulses + compliance impulses + g."""

    impulses: Array
    """(..., nr) [N s, N m s]: of the rows of joints, then of contacts, each two tangents and the normal."""
    rates: Array
    """(..., nr) [m/s, rad/s]"""
    report: Array
    """(..., 9): what the other attributes are made of."""
    rows: int

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
        return ContactResiduals(*(self.report[..., k] for k in (2, 3, 4)), *(places[..., k] for k in range(3)))


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
    """Impulses x of contacts and joints, and the rates u = G x + compliance x + g that they lead to::

        a row of a joint    lower <= x <= upper     u = 0 inside, u >= 0 at the lower end, u <= 0 at the upper one
        a contact           |x_t| <= mu x_n         u_n >= 0, x_n u_n = 0;  u_t = 0, or x_t = -mu x_n u_t / |u_t|

    Loops are rows with infinite ends, joint limits go from 0 to infinity, dry friction from -f to f (times the step).

    `G` (..., nr, nr) is the Delassus matrix J M^-1 J^T: symmetric, positive semidefinite; first `rows` rows of joints, then
    three rows a contact: two tangents and the normal, which points to where the contact opens.

    g: (..., nr), the rates without impulses; a gap adds gap / step to the normal's, restitution adds to it, too.
    friction: (..., nk), mu of each contact.
    lower, upper: (..., rows), unless `rows` is 0.
    compliance: (..., nr), 0 or more, added to the diagonal of G.
    start: (..., nr), impulses to begin from, as those of the last step.
    law: "coulomb", or "convex": impulses minimise 1/2 x^T (G + compliance) x + g^T x over intervals and cones, so what
        slides lifts off. That is MuJoCo's model, with its R as compliance, and g less the reference rates.
    method: "admm" or "pgs", which takes many steps (contact_problem.py).
    tolerance: of the natural map [m/s]; 1e-9, in single precision 1e-5.
    max_turns: after how many new starts, each 20 steps of Newton's method or more, or hundred sweeps, an answer must do.

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
    if not (G.__class__ is g.__class__ is friction.__class__ is np.ndarray):
        G, g = real_numbers(G, "solve_contacts: G"), real_numbers(g, "solve_contacts: g")
        friction = real_numbers(friction, "solve_contacts: friction")
    if not (G.dtype is g.dtype is friction.dtype is DOUBLE):
        dtype = SINGLE if G.dtype == g.dtype == SINGLE else DOUBLE
        G, g, friction = G.astype(dtype), g.astype(dtype), friction.astype(dtype)
    size, contacts = g.shape[-1] if g.ndim else 0, friction.shape[-1] if friction.ndim else 0
    if size != rows + 3 * contacts or not size or ((lower is None or upper is None) and rows):
        refuse_sizes(g, friction, rows, lower, upper)
    problem, options, limits, none, no_ends = prepared(rows, contacts, g.dtype.char, law, method, max_turns, tolerance)
    low, high = (
        (no_ends, no_ends) if lower is upper is None else (numbers(lower, "lower", g), numbers(upper, "upper", g))
    )
    soft = none if compliance is None else numbers(compliance, "compliance", g)
    begin = none if start is None else numbers(start, "start", g)
    inputs = (options, G, g, friction, low, high, soft, begin, limits)
    impulses, rates, report = _solve_contacts.call(problem, inputs)
    if (report[6] == INVALID) if report.ndim == 1 else (report[..., 6] == INVALID).any():
        refuse_values(friction, soft, low, high)
    return ContactImpulses(impulses, rates, report, rows)


@lru_cache(256)
def prepared(
    rows: int, contacts: int, letter: str, law: str, method: str, max_turns: int, tolerance: float | None
) -> tuple[ContactProblem, Any, Array, Array, Array]:
    """What follows from sizes and choices: the problem, the kernel's `options` and `limits`, zeros for what is not given."""
    for name, value, known in (("law", law, LAWS), ("method", method, METHODS)):
        if value not in known:
            raise ValueError(f"solve_contacts: {name} is {value!r}, expected one of {', '.join(map(repr, known))}")
    if max_turns < 0:
        raise ValueError(f"solve_contacts: max_turns is {max_turns}, expected 0 or more")
    if tolerance is not None and not tolerance > 0:
        raise ValueError(f"solve_contacts: tolerance is {tolerance}, expected more than 0")
    options = np.array([LAWS[law], METHODS[method], max_turns], np.int32)
    limits = np.array([TOLERANCE[letter] if tolerance is None else tolerance, LEAST[letter]], letter)
    return problem_of(rows, contacts), options, limits, np.zeros(rows + 3 * contacts, letter), np.zeros(0, letter)


def refuse_sizes(g: Array, friction: Array, rows: int, lower: ArrayLike | None, upper: ArrayLike | None) -> None:
    if rows and (lower is None or upper is None):
        raise ValueError(f"solve_contacts: {rows} rows of joints, but no {'lower' if lower is None else 'upper'} ends")
    raise ValueError(
        f"solve_contacts: g has the shape {g.shape} and friction {friction.shape}, "
        f"expected (..., {rows} + 3 nk) and (..., nk)"
    )


def refuse_values(friction: Array, compliance: Array, lower: Array, upper: Array) -> None:
    """Say what no contact can have; nothing, if that is not why there is no answer."""
    for name, values in (("friction", friction), ("compliance", compliance)):
        if (values < 0).any():
            raise ValueError(f"solve_contacts: {name} has the entry {values[values < 0].flat[0]:g}, expected 0 or more")
    if (lower > upper).any():
        raise ValueError("solve_contacts: a row's lower end lies above its upper one")


def numbers(value: ArrayLike, name: str, like: Array) -> Array:
    """An array of the same type of numbers; infinite ones as what kernels take for them."""
    return np.clip(real_numbers(value, f"solve_contacts: {name}"), -BEYOND, BEYOND).astype(like.dtype)
