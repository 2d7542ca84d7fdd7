"""An algorithm: a kernel with its inputs, outputs and workspace declared once, callable for every target.

    @algorithm(inputs={"q": "nq", "v": "nv"}, outputs={"tau": "nv"}, work=Layout(nj={"force": Force}))
    def rnea(tree, q, v, w, tau): ...

A declaration is the shape of one sample, by names of sizes or by numbers, with the words `optional` (inputs at the end
only; None in the kernel where it is not given), `=1` (an input whose numbers are all that unless it is given, which code
for one model knows: it may then be left out), `int` (an array of integers, the same for all samples), `zeroed` (an
output of which the kernel writes only entries that depend on the model's structure) and `symmetric` (a square output that
the kernel writes by `st_symmetric` alone). Called with arrays that have leading axes in front of these shapes, the
algorithm runs once for every sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from saltus.kernel.lending import lend
from saltus.kernel.memory import Layout
from saltus.kernel.number import F64, Number
from saltus.kernel.poison import POISONED
from saltus.kernel.tables import Filled, Tables
from saltus.kernel.tuples import kernel as mark_kernel

FLAGS = {"int": "integer", "optional": "optional", "zeroed": "zeroed", "symmetric": "symmetric"}
"""The words of a declaration, and what they set."""


class Spec(NamedTuple):
    """One array argument of a kernel."""

    name: str
    shape: tuple[str | int, ...]
    integer: bool = False
    optional: bool = False
    zeroed: bool = False
    symmetric: bool = False
    default: float | None = None

    @property
    def configuration(self) -> bool:
        return self.shape in (("nq",), ("free_nq",))

    @classmethod
    def parse(cls, name: str, declaration: str) -> Spec:
        words = declaration.split()
        shape = tuple(int(w) if w.isdigit() else w for w in words if w not in FLAGS and w[0] != "=")
        default = next((float(w[1:]) for w in words if w[0] == "="), None)
        return cls(name, shape, **{flag: word in words for word, flag in FLAGS.items()}, default=default)

    @property
    def declaration(self) -> str:
        """What `parse` makes this of."""
        words = (word for word, flag in FLAGS.items() if getattr(self, flag))
        default = () if self.default is None else (f"={self.default:g}",)
        return " ".join((*map(str, self.shape), *words, *default))

    def resolve(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(size if isinstance(size, int) else sizes[size] for size in self.shape)


def decline(*arguments: Any) -> int:
    """What stands for a builtin that was not made yet."""
    return -1


def _short_way() -> bool:
    """Whether there may be builtins: they know how arrays look in memory, and fill none with NaN."""
    from saltus.kernel import fastcall

    return fastcall.layout_is_known() and not POISONED


class Algorithm:
    """A kernel and its declaration. Run it by `call(model, inputs, out)`, with the inputs that there are."""

    def __init__(
        self,
        kernel: Callable[..., Any],
        tables: Tables,
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
        work: Layout | None = None,
        inverts_inertia: bool = False,
        own_code: int = 0,
        double_only: bool = False,
        sloped: bool = True,
        unchecked: int = 0,
        waiting: str = "",
        valued: bool = True,
    ) -> None:
        self.kernel, self.tables = mark_kernel(kernel), tables
        self.name = kernel.__name__.strip("_")
        self.inputs = tuple(Spec.parse(*item) for item in inputs.items())
        self.outputs = tuple(Spec.parse(*item) for item in outputs.items())
        self.arguments = self.inputs + self.outputs
        self.required = sum(not spec.optional for spec in self.inputs)
        self.integers = frozenset(k for k, spec in enumerate(self.inputs) if spec.integer)
        self.numbers = frozenset(k for k, spec in enumerate(self.inputs) if spec.shape == ())
        self.work = Layout(nj={}) if work is None else work
        self.signature = (
            f"{kernel.__module__}.{kernel.__qualname__}{self.arguments}{self.work.fields}{tables.signature}"
        )
        """What compiled code depends on beside the sources of its kernels: where in memory things are."""
        self.unchecked = unchecked
        """So many of the first inputs are not looked through for NaN and infinity: the kernel tells of them by itself."""
        if unchecked:
            self.signature += f"{unchecked} unchecked"
        self.waiting = tuple(waiting.split())
        """Fields of the workspace whose numbers wait long: code of one robot on GPUs has them in memory that is near, those
        of the first fields first (room.py)."""
        if waiting:
            self.signature += f"{waiting} wait"
        self.own_code = own_code
        """Up to which extent of a model (tables.py) it pays to compile for that model alone; 0: never."""
        self.general, self.varies = self, False
        self.known: Filled | None = None
        """The tables that its code is compiled for; None: for those of any model."""
        self.double_only = double_only
        """Whether what is given in single precision is computed in double: nothing else is compiled ahead."""
        self.sloped = sloped
        """Whether a public function asks for its slopes along directions: otherwise none are compiled ahead."""
        self.valued = valued
        """The same of its values by themselves."""
        self.inverts_inertia = inverts_inertia
        """Whether it divides by inertias, so that models with joints that have none are refused."""
        self.quick_push: Callable[..., Any] = decline
        """The builtin of the last `push`, which may take the next one as well."""
        self._push: dict[int, dict[int, Any]] = {}
        self.when_coupled: Callable[..., Any] | None = None
        """What to do instead if the model has mimic joints (see model/coupling.py)."""
        self.coupled: Algorithm | None = None
        """What runs in its place then, with the same inputs, if there is something that does."""

    def call(self, model: Any, inputs: tuple[Any, ...], out: Any = None, on_invalid: str = "raise") -> Any:
        """Run on NumPy or CUDA arrays. One sample of contiguous float64 arrays takes the shortest way there is; once there
        is one, what finds it is a builtin in the place of this method (front.py).

        on_invalid: "raise", or "mark" for NaN in all outputs of samples whose inputs are not valid (see marking.py).
        """
        if self.coupled is not None and getattr(model, "coupling", None) is not None:
            return self.coupled.call(model, inputs, out, on_invalid)
        if on_invalid != "raise":
            from saltus.kernel.marking import call_marking, check_choice

            check_choice(on_invalid, self.name)
            return call_marking(self, model, inputs, out)
        filled = self.filled(model)
        if self.inverts_inertia and model.weightless:
            model.refuse_weightless(self.name)
        own = self if filled.special is None else filled.special.get(self) or self.special(filled)
        if model.varied and self.reads_varied:
            own, inputs = own.varied, (model.inertias_for(inputs), *inputs)
        for number, way in filled.ways.get((own, len(inputs)), {}).items():
            answer = way(inputs, out) if number is F64 else way(inputs, out, lend())
            if answer.__class__ is not int:
                return answer
        from saltus.kernel.launch import launch

        return launch(own, model, inputs, out)

    long_call = call
    """The same, once `call` is a builtin: what that falls back on."""

    @cached_property
    def reads_varied(self) -> bool:
        """Whether a kernel names a field that may vary: kinematics know nothing of inertias."""
        from saltus.kernel.sources import kernels_of

        fields = set() if self.tables.varied is None else set(self.tables.varied.fields)
        return any(not fields.isdisjoint(each.__code__.co_names) for each in kernels_of(self.kernel))

    @cached_property
    def varied(self) -> Algorithm:
        """The same with what may vary from sample to sample as its first input, in the place of the model's."""
        varied = self.tables.varied
        inputs = {varied.name: varied.shape} | {spec.name: spec.declaration for spec in self.inputs}  # type: ignore[union-attr]
        outputs = {spec.name: spec.declaration for spec in self.outputs}
        made = Algorithm(self.kernel, self.tables, inputs, outputs, self.work, self.inverts_inertia)
        made.name, made.varies, made.known, made.required = self.name, True, self.known, self.required + 1
        return made

    def take_for_coupled(self, other: Algorithm) -> None:
        """Another algorithm, with the same inputs, stands in for this one if a model has mimic joints."""
        self.coupled, other.general, other.name = other, self, self.name

    def filled(self, model: Any) -> Filled:
        """What the algorithm's kernels see of a model, in memory."""
        try:
            kept: dict[Tables, Filled] = model.filled
        except AttributeError:
            raise TypeError(f"{self.name}: the model is a {type(model).__name__}, expected a saltus.Model") from None
        return kept.get(self.tables) or kept.setdefault(self.tables, Filled(self.tables, model))

    def special(self, filled: Filled) -> Algorithm:
        """The same algorithm, compiled for these tables alone, if that pays."""
        own = self
        if self.tables.extent(filled) <= self.own_code:
            own = copy(self)
            own.known = filled
            own.__dict__.pop("varied", None)
            own.required = sum(not spec.optional and spec.default is None for spec in self.inputs)
        kept: dict[Algorithm, Algorithm] = filled.special  # type: ignore[assignment]
        return kept.setdefault(self, own)

    def knows_defaults(self, model: Any) -> bool:
        """Whether inputs that have a default may be left out, since the code is for this model alone."""
        filled = self.filled(model)
        return filled.special is not None and (filled.special.get(self) or self.special(filled)).known is not None

    def sizes(self, model: Any, inputs: Sequence[Any]) -> dict[str, int]:
        """The model's sizes, and those that integer inputs bring."""
        sizes = dict(self.filled(model).sizes)
        for spec, value in zip(self.inputs, inputs, strict=False):
            if spec.integer:
                sizes |= {n: s for n, s in zip(spec.shape, np.shape(value), strict=True) if isinstance(n, str)}
        return sizes

    @property
    def kernels(self) -> tuple[Callable[..., Any], ...]:
        """Those whose sources compiled code depends on."""
        return (self.kernel,)

    def tangent(self, spec: Spec) -> Spec:
        """What a direction of an argument looks like: for dual numbers, as the argument does."""
        return spec

    def present(self, given: int) -> tuple[bool, ...]:
        """Which arguments a call with so many inputs has."""
        return tuple(k < given for k in range(len(self.inputs))) + (True,) * len(self.outputs)

    def variants(self) -> list[int]:
        """The numbers of inputs with which the algorithm can be called."""
        return list(range(self.required, len(self.inputs) + 1))

    def prepare(self, model: Any, given: int, number: Number = F64) -> Any:
        """The builtin for calls with so many inputs, of one sample, or of batches of packets with one leading axis: made on
        first use. None if there is no short way."""
        filled, key = self.filled(model), (self, given)
        ways = filled.ways.get(key, {})
        if number not in ways and filled.handle is not None and _short_way():
            from saltus.kernel import fastcall, front, native

            form = "one" if number == F64 else "many"
            address = native.address(self, number, self.present(given), form, native.CALL)
            way = fastcall.builtin(address, self.name, filled.handle)
            # A new dictionary: other threads may be going through the old one.
            ways = filled.ways[key] = filled.ways.get(key, {}) | {number: way}
            if form == "one":
                front.install(Algorithm)
                kept = model.quick.get(self.general, (decline,) * (len(self.inputs) + 1))
                model.quick[self.general] = (*kept[:given], way, *kept[given + 1 :])
                front.note_anew(model)
        return ways.get(number)

    def push(self, model: Any, inputs: tuple[Any, ...], slopes: tuple[Any, ...]) -> Any:
        """The outputs for one sample and their slopes along directions of the inputs, as `push_forward` has them, by the
        shortest way: of contiguous float64 arrays, once that way is made. An integer if it cannot be.

        Both are an array, or a tuple if there are several. One direction needs no axis in front of its slopes.
        """
        handle = self.filled(model).handle
        if model.varied and self.reads_varied:
            return -1
        if self.inverts_inertia and model.weightless:
            model.refuse_weightless(self.name)
        answer = self.quick_push(handle, inputs, slopes)
        if answer.__class__ is tuple:
            return answer
        for function in self._push.get(len(inputs), {}).values():
            answer = function(handle, inputs, slopes)
            if answer.__class__ is tuple:
                self.quick_push = function  # the next call is likely to be of the same kind
                break
        return answer

    def prepare_push(self, given: int, lanes: int) -> None:
        """The builtin for slopes of one sample, so many at a time."""
        from saltus.kernel import fastcall, native

        made = self._push.get(given, {})
        if lanes not in made and _short_way():
            address = native.address(self, Number(64, 1, lanes), self.present(given), native.PUSH, native.CALL)
            # A new dictionary: other threads may be going through the old one.
            self._push[given] = dict(sorted((made | {lanes: fastcall.builtin(address, self.name)}).items()))


ALGORITHMS: list[Algorithm] = []
"""All algorithms of the package, for warming up and for tests that go through them."""


def declare(
    tables: Tables,
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    work: Layout | None = None,
    inverts_inertia: bool = False,
    own_code: int = 0,
    double_only: bool = False,
    sloped: bool = True,
    unchecked: int = 0,
    waiting: str = "",
    valued: bool = True,
) -> Callable[[Callable[..., Any]], Algorithm]:
    """The decorator that makes an algorithm of a kernel (tree, *inputs, workspace, *outputs)."""

    def decorate(kernel: Callable[..., Any]) -> Algorithm:
        made = Algorithm(
            kernel,
            tables,
            inputs,
            outputs,
            work,
            inverts_inertia,
            own_code,
            double_only,
            sloped,
            unchecked,
            waiting,
            valued,
        )
        ALGORITHMS.append(made)
        return made

    return decorate
