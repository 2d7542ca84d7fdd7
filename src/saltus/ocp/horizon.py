"""The sizes of a horizon, as kernels see them.

| name | what |
|---|---|
| `ot`, `op` | running nodes T; all nodes T + 1 |
| `ox`, `on`, `ou` | nx, ndx, nu |
| `od` | numbers that a node brings along: references, weights, masks ... |
| `om`, `our` | nu and ndx, up to multiples of four |
| `ow` | numbers in a row of [Fu Fx], up to a multiple of eight |
| `orx`, `orn`, `oru` | nx, ndx, nu again, for what rollouts keep to themselves |
| `ofw`, `ofp`, `ohw`, `ovv`, `omm`, `ovs` | of matrices in workspaces, and of vectors |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from saltus.kernel import Layout, Part, Tables
from saltus.kernel.tables import Filled, FilledPart
from saltus.model.tree import CONFIGURATIONS


def quads(n: int) -> int:
    """n up to a multiple of four."""
    return -(-n // 4) * 4


class Horizon:
    """What stands in the place of a model for kernels that know a problem by its sizes alone."""

    specialised = varied = weightless = False
    coupling = None

    def __init__(
        self, T: int, nx: int, ndx: int, nu: int, node_data: int = 1, blocks: Sequence[tuple[int, int]] = ()
    ) -> None:
        self.name = f"{T} nodes of {nx} states and {nu} controls"
        self.T, self.nx, self.ndx, self.nu, self.node_data = T, nx, ndx, nu, node_data
        self.blocks = tuple(blocks)
        """Joints whose configurations are no vectors (euler_structure.py): first degree of freedom and size."""
        self.filled: dict[Tables, Filled] = {}
        self.quick: dict[Any, Any] = {}
        self.parts: dict[Part, FilledPart] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Horizon, (
            self.T,
            self.nx,
            self.ndx,
            self.nu,
            self.node_data,
            self.blocks,
        )  # what is filled has addresses


def measure_horizon(horizon: Any) -> Mapping[str, int]:
    """Of anything that has T, nx, ndx, nu and `node_data`."""
    n, m = quads(horizon.ndx), quads(horizon.nu)
    width = -(-(n + m) // 8) * 8
    return {
        "ot": horizon.T, "op": horizon.T + 1, "ox": horizon.nx, "on": horizon.ndx, "ou": horizon.nu,
        "od": horizon.node_data, "om": m, "our": n, "ow": width,
        "orx": horizon.nx, "orn": horizon.ndx, "oru": horizon.nu, "ofw": n * width, "ofp": max(n, m) * width,
        "ohw": (n + m) * width, "ovv": n * n, "ovs": 15 * width, "omm": 2 * m * m,
    }  # fmt: skip


def fill_nothing(horizon: Any, ints: Any, reals: Any) -> None:
    """All is said by sizes."""


HORIZON = Part(tuple(measure_horizon(Horizon(1, 1, 1, 1))), Layout(), Layout(), measure_horizon, fill_nothing)
HORIZON_TABLES = Tables([HORIZON], CONFIGURATIONS)
