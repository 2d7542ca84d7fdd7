"""An algorithm with slopes of its own: analytical derivatives along directions, beside those by dual numbers.

    @directional(base, slopes=Layout(...), prepare=kernel, work=Layout(...))
    def along(tree, *inputs, *dinputs, w, d, *outputs, *doutputs): ...

`prepare` (tree, *inputs, w, *outputs), the algorithm itself unless another is named, runs once a sample on plain numbers,
then `along` once for as many directions as a register has lanes. `w` is the workspace of values, which the first leaves to
the second, `d` that of slopes. A configuration's slope is a tangent vector: where q has the shape nq, dq has nv. Inputs that
are not given are None, and so are their slopes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saltus.kernel.algorithm import Algorithm, Spec
from saltus.kernel.memory import Layout
from saltus.kernel.tables import Tables
from saltus.kernel.tuples import kernel as mark_kernel


class Directional(Algorithm):
    """Run it by `push`, or `push_forward`."""

    def __init__(
        self, base: Algorithm, tables: Tables, prepare: Callable[..., Any], along: Callable[..., Any], work: Layout,
        slopes: Layout,
    ) -> None:  # fmt: skip
        inputs, outputs = ({spec.name: spec.declaration for spec in specs} for specs in (base.inputs, base.outputs))
        super().__init__(prepare, tables, inputs, outputs, work, base.inverts_inertia)
        self.name, self.along, self.slopes = base.name, mark_kernel(along), slopes
        self.signature += f"{along.__module__}.{along.__qualname__}{slopes.fields}"

    @property
    def kernels(self) -> tuple[Callable[..., Any], ...]:
        return (self.kernel, self.along)

    def tangent(self, spec: Spec) -> Spec:
        return spec._replace(shape=("nv",)) if spec.configuration else spec


DIRECTIONAL: list[Directional] = []
"""All of them, for tests that go through them."""


def directional(
    base: Algorithm,
    slopes: Layout,
    prepare: Callable[..., Any] | None = None,
    work: Layout | None = None,
    tables: Tables | None = None,
) -> Callable[[Callable[..., Any]], Directional]:
    """The decorator that gives slopes to an algorithm; what is not named is as it has it."""

    def decorate(along: Callable[..., Any]) -> Directional:
        made = Directional(base, tables or base.tables, prepare or base.kernel, along, work or base.work, slopes)
        DIRECTIONAL.append(made)
        return made

    return decorate
