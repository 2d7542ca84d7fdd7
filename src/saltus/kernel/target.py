"""The processor that native code is made for: the one at hand, or a narrower one that it can stand for.

`SALTUS_TARGET` chooses one of x86-64's levels, so that a machine gives the numbers, and has the packets, of older ones.
"""

from __future__ import annotations

import functools
import os
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from saltus.kernel.number import Number

V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
V3 = (*V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
V4 = (*V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")

LEVELS = {"x86-64-v2": (128, V2), "x86-64-v3": (256, V3), "x86-64-v4": (512, V4)}
"""By name: the bits of a vector register, and what a processor must have, in the words of LLVM."""

NATIVE = "native"


class Target(NamedTuple):
    cpu: str
    features: str
    register: int
    """Bits of a vector register."""


@functools.cache
def target() -> Target:
    """What `SALTUS_TARGET` says when it is first asked for."""
    name = os.environ.get("SALTUS_TARGET") or NATIVE
    features = llvm.get_host_cpu_features()
    if name == NATIVE:
        register = 512 if features.get("avx512f") else 256 if features.get("avx") else 128
        return Target(llvm.get_host_cpu_name(), features.flatten(), register)
    if name not in LEVELS:
        raise ValueError(f"SALTUS_TARGET is {name!r}, expected one of {', '.join((NATIVE, *LEVELS))}")
    if missing := lacking(name):
        raise ValueError(f"SALTUS_TARGET is {name!r}, but this machine lacks {', '.join(missing)}")
    return Target(name, "", LEVELS[name][0])


def lacking(name: str) -> list[str]:
    """What this machine has not got of a level."""
    features = llvm.get_host_cpu_features()
    return [feature for feature in LEVELS[name][1] if not features.get(feature)]


def target_machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=target().cpu, features=target().features, opt=3, codemodel="jitdefault", jit=True
    )


def packet(bits: int) -> Number:
    """The packet that fills a vector register: 512 bits with AVX-512, 256 with AVX, else 128."""
    return Number(bits, target().register // bits)
