"""Six forces: a 6x6 matrix by its columns, which maps a motion of one body to a force on another."""

from __future__ import annotations

import operator
from typing import NamedTuple

from saltus.kernel import defines, kernel
from saltus.model.joint_kernels import component
from saltus.spatial.algebra import Force, Mat3, Sym3, Vec3, act_force, power
from saltus.spatial.inertia import Sym6


class Six(NamedTuple):
    """Columns, linear ones first."""

    a: Force
    b: Force
    c: Force
    d: Force
    e: Force
    f: Force


@defines(operator.add, Six, Six)
def _(s, t):
    return Six(s.a + t.a, s.b + t.b, s.c + t.c, s.d + t.d, s.e + t.e, s.f + t.f)


@kernel
def row(s, axis):
    """Row `axis` (0 to 5, linear first)."""
    return Force(
        Vec3(component(s.a, axis), component(s.b, axis), component(s.c, axis)),
        Vec3(component(s.d, axis), component(s.e, axis), component(s.f, axis)),
    )


@kernel
def transposed(s):
    return Six(row(s, 0), row(s, 1), row(s, 2), row(s, 3), row(s, 4), row(s, 5))


@kernel
def less_product(s, k, u):
    """S - k u^T"""
    x, y = u.lin, u.ang
    return Six(s.a - k * x.x, s.b - k * x.y, s.c - k * x.z, s.d - k * y.x, s.e - k * y.y, s.f - k * y.z)


@kernel
def act_six(X, s):
    """The forces on a child frame, seen from its parent."""
    return Six(
        act_force(X, s.a), act_force(X, s.b), act_force(X, s.c), act_force(X, s.d), act_force(X, s.e), act_force(X, s.f)
    )


@kernel
def apply(s, f):
    """S f"""
    return s.a * f.lin.x + s.b * f.lin.y + s.c * f.lin.z + s.d * f.ang.x + s.e * f.ang.y + s.f * f.ang.z


@kernel
def apply_transposed(s, m):
    """S^T m"""
    return Force(
        Vec3(power(m, s.a), power(m, s.b), power(m, s.c)), Vec3(power(m, s.d), power(m, s.e), power(m, s.f))
    )


@kernel
def symmetric_part(s):
    """S + S^T"""
    a, b, c, d, e, f = s.a, s.b, s.c, s.d, s.e, s.f
    return Sym6(
        Sym3(
            a.lin.x + a.lin.x, b.lin.x + a.lin.y, c.lin.x + a.lin.z,
            b.lin.y + b.lin.y, c.lin.y + b.lin.z, c.lin.z + c.lin.z,
        ),
        Mat3(
            d.lin.x + a.ang.x, e.lin.x + a.ang.y, f.lin.x + a.ang.z,
            d.lin.y + b.ang.x, e.lin.y + b.ang.y, f.lin.y + b.ang.z,
            d.lin.z + c.ang.x, e.lin.z + c.ang.y, f.lin.z + c.ang.z,
        ),
        Sym3(
            d.ang.x + d.ang.x, e.ang.x + d.ang.y, f.ang.x + d.ang.z,
            e.ang.y + e.ang.y, f.ang.y + e.ang.z, f.ang.z + f.ang.z,
        ),
    )  # fmt: skip
