"""Newton's step of an interior point method: its matrix, what it asks for, how far it may go, and going there."""

from __future__ import annotations

from saltus.control.cones import (
    circle,
    circle_solved,
    inverted,
    scaled,
    scaling,
    unscaled,
    way_out,
)
from saltus.control.interior_program import (
    BEHIND,
    CHANGE,
    PLACE,
    PULL,
    PULL_STEP,
    SEATING,
    SLOPE,
    STEP,
    add,
    slack,
    to_lower,
    to_upper,
    vector,
)
from saltus.control.interior_system import solve_ahead, solve_behind, solve_loose
from saltus.kernel import fabs, kernel, ld, less, lift, maximum, select, tail, zero
from saltus.spatial.algebra import Vec3


@kernel
def measure(p, nc, nb):
    """The mean work of multipliers; and for all places 1 / (s z), for all cones their scaling."""
    o = zero(p.system)
    x = tail(p.vector, 0)
    work, ends = o, lift(1e-30, o)
    for k in range(nb):
        j = p.bounded[k]
        below, above, at = p.below[j], p.above[j], ld(x, j)
        here, there = p.has_lower[j], p.has_upper[j]
        p.room_below[j], p.room_above[j] = to_lower(p, j, at), to_upper(p, j, at)
        low, high = p.room_below[j] * below, p.room_above[j] * above
        p.inside[j], p.outside[j] = here / (low + (1.0 - here)), there / (high + (1.0 - there))
        work, ends = work + low + high, ends + here + there
    for c in range(nc):
        s, is_open = slack(p, c, x), p.open[c]
        apart = 1.0 - is_open
        s = Vec3(s.x + apart, s.y, s.z)  # of a cone that is shut, anything
        f = Vec3(p.reaction[c].x + apart, p.reaction[c].y, p.reaction[c].z)
        W = scaling(s, f, p.unit[0])
        balance = scaled(W, f)
        p.scaling[c], p.balance[c], p.inverse[c] = W, balance, inverted(balance, p.unit[0])
        work, ends = work + (s.x * f.x + s.y * f.y + s.z * f.z) * is_open, ends + is_open
    return work / ends


@kernel
def pulls(p, j, target):
    """What barriers ask of the multipliers of both ends."""
    if target is None:
        low = high = zero(p.system)
    else:
        low = (target - p.second_below[j]) * p.below[j] * p.inside[j]
        high = (target - p.second_above[j]) * p.above[j] * p.outside[j]
    return low, high


@kernel
def cone_pull(p, c, target):
    """The same of a cone, scaled: W z + W dz + W^-1 ds."""
    o = zero(p.system)
    if target is None:
        found = Vec3(o, o, o)
    else:
        second = p.second[c]
        found = circle_solved(p.balance[c], p.inverse[c], Vec3(target - second.x, -second.y, -second.z))
    return found


@kernel
def aim_step(p, n, nf, first, size, ahead, width, nb):
    """What Newton's step is to do but for barriers, loose variables taken out."""
    x, g, d, o = vector(p, PLACE, size), vector(p, SLOPE, size), vector(p, STEP, size), zero(p.system)
    for i in range(first):
        d[i] = -ld(g, i) if i < n else o
    for i in range(first, size):
        d[i] = ld(x, i) - ld(g, i) if i < first + nf and p.loose[i] <= 0 else o
    for k in range(nb):
        j = p.bounded[k]
        if j < first:
            d[j] = select(less(0.5, p.held[j]), o, ld(d, j))
    solve_ahead(p, size, ahead, width, d)


@kernel
def find_step(p, nc, first, size, ahead, width, nb, target, turned):
    """Newton's step towards products s z of `target`; without one, only of what has ends."""
    o = zero(p.system)
    d, l, aim, behind = vector(p, STEP, size), vector(p, PULL, size), vector(p, SEATING, size), vector(p, BEHIND, size)
    for k in range(ahead, width):
        behind[k] = ld(aim, k)
    for k in range(nb):
        j = p.bounded[k]
        low, high = pulls(p, j, target)
        if j < first:
            add(behind, p.seat[j], select(less(0.5, p.held[j]), o, low - high))
        else:
            add(behind, p.seat[j], softness(p, j) * (ld(l, j) + low - high))
    if target is not None:
        for c in range(nc):
            f = unscaled(p.scaling[c], cone_pull(p, c, target))
            add(behind, p.seat[p.fx[c]], f.y * p.open[c])
            add(behind, p.seat[p.fy[c]], f.z * p.open[c])
            add(behind, p.seat[p.fz[c]], f.x * p.mu[c] * p.open[c])
    solve_behind(p, nc, size, ahead, width, behind, turned)
    for k in range(ahead, width):
        d[p.seated[k]] = ld(behind, k)
    if target is not None:
        for k in range(ahead, width):
            aim[k] = ld(behind, k)
        solve_loose(p, size, ahead, width, d)
    for k in range(nb):
        j = p.bounded[k]
        if j >= first:
            low, high = pulls(p, j, target)
            change = ld(d, j)
            vector(p, PULL_STEP, size)[j] = change
            d[j] = softness(p, j) * (ld(l, j) + change + low - high)


@kernel
def softness(p, j):
    """D^-1 of a row; 0 of an equality."""
    stiff = p.below[j] * p.below[j] * p.inside[j] + p.above[j] * p.above[j] * p.outside[j]
    return select(less(0.5, p.held[j]), lift(0.0, stiff), 1.0 / maximum(stiff, lift(1e-25, stiff)))


@kernel
def reach(p, nc, size, nb, target):
    """1 / the longest step that stays inside; the changes of multipliers. Without a target, also what Newton neglects."""
    d, longest = vector(p, STEP, size), zero(p.system)
    for k in range(nb):
        j = p.bounded[k]
        below, above, ds = p.below[j], p.above[j], ld(d, j)
        per_low, per_high = below * p.inside[j], above * p.outside[j]  # 1 / s
        low, high = pulls(p, j, target)
        dl, du = low - below - below * per_low * ds, high - above + above * per_high * ds
        p.change_below[j], p.change_above[j] = dl, du
        if target is None:
            p.second_below[j], p.second_above[j] = ds * dl, -ds * du
        ends = maximum(-ds * per_low, ds * per_high)
        multipliers = maximum(-dl * (p.room_below[j] * p.inside[j]), -du * (p.room_above[j] * p.outside[j]))
        longest = maximum(longest, maximum(ends, multipliers))
    for c in range(nc):
        W, balance, inverse, is_open = p.scaling[c], p.balance[c], p.inverse[c], p.open[c]
        ds = slack(p, c, d)
        ds = unscaled(W, ds * is_open)
        dz = cone_pull(p, c, target) - balance - ds
        if target is None:
            p.second[c] = circle(ds, dz)
        p.change[c] = unscaled(W, dz) * is_open
        longest = maximum(longest, maximum(way_out(inverse, ds), way_out(inverse, dz)) * is_open)
    return longest


@kernel
def forget_second(p, nc, nb):
    o = zero(p.system)
    for k in range(nb):
        p.second_below[p.bounded[k]], p.second_above[p.bounded[k]] = o, o
    for c in range(nc):
        p.second[c] = Vec3(o, o, o)


@kernel
def keep_change(p, first, size, length):
    """It may be too small to be seen in x, but not in what depends on it."""
    d, change = vector(p, STEP, size), vector(p, CHANGE, size)
    for i in range(first):
        change[i] = select(less(0.0, length), length * ld(d, i), 0.0 * length)


@kernel
def move(p, nf, nc, first, size, nb, length):
    x, d, l, dl = vector(p, PLACE, size), vector(p, STEP, size), vector(p, PULL, size), vector(p, PULL_STEP, size)
    moves = less(0.0, fabs(length))
    for i in range(first + nf):
        x[i] = select(moves, ld(x, i) + length * ld(d, i), ld(x, i))
    for i in range(first, first + nf):
        l[i] = select(moves, ld(l, i) + length * ld(dl, i), ld(l, i))
    for k in range(nb):
        j = p.bounded[k]
        p.below[j] = select(moves, p.below[j] + length * p.change_below[j], p.below[j])
        p.above[j] = select(moves, p.above[j] + length * p.change_above[j], p.above[j])
    for c in range(nc):
        f, df = p.reaction[c], p.change[c]
        p.reaction[c] = Vec3(
            select(moves, f.x + length * df.x, f.x),
            select(moves, f.y + length * df.y, f.y),
            select(moves, f.z + length * df.z, f.z),
        )
