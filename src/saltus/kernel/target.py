"""The processors that native code is made for.

| level | who has it | packets |
|---|---|---|
| x86-64-v4 | AVX-512: servers since 2017, AMD since 2022 | 512 bits |
| x86-64-v3 | AVX2 and FMA: nearly everything since 2015 | 256 bits |
| x86-64-v2 | older ones | 128 bits |
| aarch64 | ARM, 64 bits | 128 bits |
| nvptx | GPUs of NVIDIA since 2018, whose driver makes their own code of it | |

Code is made for the widest level that the machine has, so that machines of a level share it, and a wheel can bring it along.
`SALTUS_TARGET` chooses another level, or `native`: for the processor at hand and no other.
"""

from __future__ import annotations

import functools
import os
import platform
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from saltus.kernel.number import Number

V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
V3 = (*V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
V4 = (*V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")

NATIVE = "native"


class Target(NamedTuple):
    """What LLVM is told of a processor."""

    name: str
    triple: str
    cpu: str
    features: str
    register: int
    """Bits of a vector register."""
    needed: tuple[str, ...] = ()
    """What a processor must have, in the words of LLVM."""


X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"

GPU = Target("nvptx", "nvptx64-nvidia-cuda", "sm_75", "+ptx77", 0)

LEVELS = {
    level.name: level
    for level in (
        Target("x86-64-v4", X86, "x86-64-v4", "-prefer-256-bit", 512, V4),
        Target("x86-64-v3", X86, "x86-64-v3", "", 256, V3),
        Target("x86-64-v2", X86, "x86-64-v2", "", 128, V2),
        Target("aarch64", ARM, "generic", "+neon", 128),
    )
}
"""The widest first."""

_forced: list[Target] = []


@functools.cache
def target() -> Target:
    """What `SALTUS_TARGET` says when it is first asked for, or the widest level that this machine has."""
    if _forced:
        return _forced[-1]
    name = os.environ.get("SALTUS_TARGET") or next((level for level in LEVELS if not lacking(level)), NATIVE)
    if name == NATIVE:
        features = llvm.get_host_cpu_features()
        register = 512 if features.get("avx512f") else 256 if features.get("avx") else 128
        return Target(NATIVE, llvm.get_default_triple(), llvm.get_host_cpu_name(), features.flatten(), register)
    if name not in LEVELS:
        raise ValueError(f"SALTUS_TARGET is {name!r}, expected one of {', '.join((NATIVE, *LEVELS))}")
    if missing := lacking(name):
        raise ValueError(f"SALTUS_TARGET is {name!r}, but this machine lacks {', '.join(missing)}")
    return LEVELS[name]


def lacking(name: str) -> list[str]:
    """What this machine has not got of a level."""
    machine, level = platform.machine(), LEVELS[name]
    if not level.triple.startswith("x86_64" if machine in ("x86_64", "AMD64") else machine):
        return [level.triple.partition("-")[0]]
    features = llvm.get_host_cpu_features()
    return [feature for feature in level.needed if not features.get(feature)]


def force(level: str) -> None:
    """Compile for a level from now on, whether the machine can run it or not: to make code for others."""
    _forced.append(LEVELS[level])
    target.cache_clear()


def target_machine(made_for: Target) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    linked = {} if made_for is GPU else {"codemodel": "jitdefault", "jit": True}
    return llvm.Target.from_triple(made_for.triple).create_target_machine(
        cpu=made_for.cpu, features=made_for.features, opt=3, **linked
    )


def target_of(form: str) -> Target:
    """What a form of a function is compiled for."""
    return GPU if form == "gpu" else target()


def packet(bits: int) -> Number:
    """The packet that fills a vector register."""
    return Number(bits, target().register // bits)
