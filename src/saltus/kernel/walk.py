"""The compiler's front end: a kernel's syntax tree is walked forward, and LLVM's language comes out.

Kernels are a small language (docs/kernel-language.md): functions over numbers and named tuples, loops and branches on
integers, memory by `ld`, `st` and fields. So types are followed along the way; only a loop that ends with other types than
it began with is walked again. A variable is the value that it has at a place; where ways meet, values that differ become
LLVM's phi, and numbers are as wide as the widest among them. What Python knows (literals, constants of modules, what
closures hold, tuples of such) stays known as long as it can: branches on it are taken here, and loops over it are unrolled.
A function is compiled once for each combination of its arguments' types, and inlined by LLVM.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from saltus.kernel import primitives
from saltus.kernel.assembly import Module
from saltus.kernel.expressions import Conflict, Expressions
from saltus.kernel.sources import names_of, syntax_of
from saltus.kernel.values import INT, Group, Known, RefusedError, Span, Value, common_type, is_integer, rebuilt
from saltus.kernel.words import described


class Made(NamedTuple):
    """A compiled function."""

    name: str
    result: Any


class Compiler:
    """A module, and the functions that are in it."""

    def __init__(self, gpu: bool = False, walk: type[Walk] | None = None, triple: str = "") -> None:
        self.module = Module(gpu, triple)
        self.walk = walk or Walk
        self.limbs = False
        """Whether numbers are those of one sample, so that vectors are free for what is equal in it (limbs.py)."""
        self.bits = 64
        self.made: dict[Any, Made] = {}
        self.begun: set[Any] = set()

    def function(self, function: Any, types: tuple[Any, ...]) -> Made:
        key = (function, types)
        if key not in self.made:
            walk = self.walk(self, function, types)
            if key in self.begun:
                walk.refuse(walk.tree, "calls itself, directly or through others")
            self.begun.add(key)
            try:
                self.made[key] = walk.run(f"{function.__name__}.{len(self.begun)}")
            except RecursionError:
                walk.refuse(walk.tree, "calls itself with ever new literals, or is nested too deeply")
        return self.made[key]

    def entry(self, function: Any, types: tuple[Any, ...], symbol: str) -> None:
        """A function that is visible from outside, under a name; it returns an integer or nothing."""
        numbers = [ty.number for ty in types if isinstance(ty, Span) and not ty.number.integer]
        self.bits = min((number.bits for number in numbers), default=64)
        self.walk(self, function, types).run(symbol, inner=False)


UNBOUND = Conflict("not bound on every way that leads here")


class Loop(NamedTuple):
    """Where `continue` and `break` lead, and with what."""

    again: str
    after: str
    continued: list[tuple[str, dict[str, Any]]]
    broken: list[tuple[str, dict[str, Any]]]


class Walk(Expressions):
    """One function for given types of its arguments."""

    def __init__(self, compiler: Compiler, function: Any, types: tuple[Any, ...]) -> None:
        super().__init__(compiler.module)
        self.compiler, self.function, self.types = compiler, function, types
        self.tree, self.file = syntax_of(function)
        self.outside, self.own = names_of(function), frozenset(function.__code__.co_varnames)
        self.bits = compiler.bits
        self.env: dict[str, Any] = {}
        self.loops: list[Loop] = []
        self.returned: list[tuple[str, Any]] = []

    # ------------------------------------------------------------------------------------------------ functions

    def run(self, name: str, inner: bool = True) -> Made:
        parameters = self.parameters(len(self.types))
        leaves = [leaf for ty in self.types for leaf in (ty.leaves if inner else ty.parameters)]
        texts = [f"%a{k}" for k in range(len(leaves))]
        head = ", ".join(f"{leaf} {text}" for leaf, text in zip(leaves, texts, strict=True))
        for parameter, ty in zip(parameters, self.types, strict=True):
            self.env[parameter] = rebuilt(ty, texts)
        self.body()
        result = self.leave()
        kind = "internal" if inner else "ptx_kernel" if self.module.gpu else ""
        back = returned_as(result.type.leaves)
        attributes = "alwaysinline " if inner else ""
        first = f"define {kind} {back} @{quoted(name)}({head}) {attributes}{{"
        self.module.functions.append("\n".join([first, "entry:", *self.arranged(), "}"]))
        return Made(name, result.type)

    def parameters(self, given: int) -> list[str]:
        """Their names."""
        arguments = self.tree.args
        names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
            self.refuse(self.tree, "has parameters with *, ** or defaults, expected plain ones")
        if len(names) != given:
            self.refuse(self.tree, f"is called with {given} arguments, expected {len(names)}")
        return names

    def body(self) -> None:
        self.block(self.tree.body)
        if self.open:
            self.end(Known(None))

    def end(self, value: Any) -> None:
        """A return."""
        self.returned.append((self.label, value))
        self.jump("exit")

    def answer(self) -> Any:
        """The value of all returns, where they meet."""
        result = self.united(self.returned)
        if isinstance(result, Conflict):
            self.refuse(self.tree, f"returns {result.why}")
        return result

    def arranged(self) -> Sequence[str]:
        """The lines, as they are to stand in the function."""
        return list(filter(None, self.lines))

    def leave(self) -> Any:
        """The end of the function, where all its returns meet."""
        self.start("exit")
        if not self.returned:
            self.do("unreachable")
            return Known(None)
        result = self.answer()
        texts, leaves = list(result.texts), result.type.leaves
        if not leaves:
            self.do("ret void")
        elif len(leaves) == 1:
            self.do(f"ret {leaves[0]} {texts[0]}")
        else:
            back, whole = returned_as(leaves), "undef"
            for k, (leaf, text) in enumerate(zip(leaves, texts, strict=True)):
                whole = self.op(f"insertvalue {back} {whole}, {leaf} {text}, {k}")
            self.do(f"ret {back} {whole}")
        return result

    def call(self, function: Any, values: Sequence[Any]) -> Any:
        made = self.compiler.function(function, tuple(value.type for value in values))
        arguments = ", ".join(
            f"{leaf} {text}" for value in values for leaf, text in zip(value.type.leaves, value.texts, strict=True)
        )
        leaves = made.result.leaves
        if not leaves:
            self.do(f"call void @{quoted(made.name)}({arguments})")
            return made.result if isinstance(made.result, Known) else rebuilt(made.result, [])
        back = returned_as(leaves)
        answer = self.op(f"call {back} @{quoted(made.name)}({arguments})")
        if len(leaves) == 1:
            return rebuilt(made.result, [answer])
        return rebuilt(made.result, [self.op(f"extractvalue {back} {answer}, {k}") for k in range(len(leaves))])

    def place_of(self, node: ast.AST) -> str:
        line = getattr(node, "lineno", self.tree.lineno)
        return f"{self.file}:{line}: kernel {self.function.__name__}"

    # ------------------------------------------------------------------------------------------------ where ways meet

    def fit_at(self, label: str, value: Any, ty: Any) -> tuple[str, ...]:
        """The same as `fit`, at the end of a block that was left already."""
        lines, self.lines = self.lines, []
        texts = self.fit(value, ty)
        if self.lines:
            place = self.ends[label]
            lines[place] = "\n".join([*filter(None, [lines[place]]), *self.lines])
        self.lines = lines
        return texts

    def united(self, arrivals: Sequence[tuple[str, Any]]) -> Any:
        """One value of those that come from several blocks, in the block that has just been started."""
        first = arrivals[0][1]
        if all(value is first for _, value in arrivals):
            return first
        for _, value in arrivals:
            if isinstance(value, Conflict):
                return value
        types = {value.type for _, value in arrivals}
        if len(types) == 1 and isinstance(first, Known):
            return first
        if all(isinstance(value, Group) for _, value in arrivals):
            shapes = {(value.cls, len(value.parts)) for _, value in arrivals}
            if len(shapes) == 1:
                parts = [
                    self.united([(label, value.parts[k]) for label, value in arrivals]) for k in range(len(first.parts))
                ]
                wrong = next((part for part in parts if isinstance(part, Conflict)), None)
                return wrong or Group(first.cls, tuple(parts))
        ty = common_type(types, self.bits)
        if ty is None:
            return Conflict(" or ".join(sorted(map(str, types))) + ", depending on the way taken")
        labels = [label for label, _ in arrivals]
        columns = zip(*(self.fit_at(label, value, ty) for label, value in arrivals), strict=True)
        pairs = zip(ty.leaves, columns, strict=True)
        return rebuilt(ty, [self.phi(leaf, list(zip(texts, labels, strict=True))) for leaf, texts in pairs])

    def meet(self, arrivals: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        """The names after several ways; what one of them does not bind is not bound."""
        if len(arrivals) == 1:
            return self.copied(arrivals[0][1])
        names = dict.fromkeys(name for _, env in arrivals for name in env)
        return {name: self.united([(label, env.get(name, UNBOUND)) for label, env in arrivals]) for name in names}

    # ------------------------------------------------------------------------------------------------ statements

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if not self.open:
                return
            method = getattr(self, "do_" + type(statement).__name__, None)
            if method is None:
                self.refuse(statement, f"the language has no {described(statement)}")
            try:
                method(statement)
            except RefusedError as error:
                self.refuse(statement, str(error))

    def do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.put(target, value)

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        old = ast.copy_location(as_load(node.target), node)
        self.put(node.target, self.value(ast.copy_location(ast.BinOp(old, node.op, node.value), node)))

    def put(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.env[target.id] = value
        elif isinstance(target, ast.Tuple):
            if starred := [each for each in target.elts if isinstance(each, ast.Starred)]:
                self.put(starred[0], value)
            parts = self.parts(target, value)
            if len(parts) != len(target.elts):
                self.refuse(target, f"unpacks {len(parts)} values into {len(target.elts)} names")
            for name, part in zip(target.elts, parts, strict=True):
                self.put(name, part)
        elif isinstance(target, ast.Subscript):
            owner, index = self.value(target.value), self.value(target.slice)
            if isinstance(owner, Group):
                self.refuse(target, f"changes {owner.type}, expected an array or a field")
            self.check_index(target, owner, index)
            primitives.store_at(self, owner, index, value)
        else:
            wanted = "expected names or elements of arrays"
            self.refuse(target, f"the language has no {described(target)} on the left of =, {wanted}")

    def do_Return(self, node: ast.Return) -> None:
        self.end(Known(None) if node.value is None else self.value(node.value))

    def do_If(self, node: ast.If) -> None:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            self.block(node.body if condition else node.orelse)
            return
        self.branch(condition, self.block, node.body, node.orelse)

    def do_For(self, node: ast.For) -> None:
        if node.orelse:
            self.refuse(node, "the language has no else of a loop")
        around = node.iter
        if isinstance(around, ast.Call) and not around.keywords and self.value(around.func) == Known(range):
            self.count(node, self.values(around.args))
        else:
            self.unroll(node, self.parts(around, self.value(around)))

    def unroll(self, node: ast.For, parts: Sequence[Any]) -> None:
        """A loop over a tuple."""
        after, broken = self.new_label(), list[tuple[str, dict[str, Any]]]()
        for part in parts:
            if not self.open:
                break
            self.begin_round()
            loop = Loop(self.new_label(), after, [], broken)
            self.loops.append(loop)
            self.put(node.target, part)
            self.block(node.body)
            self.loops.pop()
            self.gather(loop.again, loop.continued)
        self.gather(after, broken)

    def begin_round(self) -> None:
        """Of a loop that is unrolled."""

    def gather(self, label: str, arrivals: list[tuple[str, dict[str, Any]]]) -> None:
        """Go on where others have jumped to, if any have."""
        if arrivals:
            if self.open:
                arrivals.append((self.label, self.env))
                self.jump(label)
            self.start(label)
            self.env = self.meet(arrivals)

    def count(self, node: ast.For, ends: list[Any]) -> None:
        """A loop over a range."""
        if not isinstance(node.target, ast.Name):
            self.refuse(node, "a loop over a range has one name")
        if not (1 <= len(ends) <= 3 and all(map(is_integer, ends))):
            self.refuse(node, "a range takes one to three integers")
        start, stop, step = [Known(0), *ends, Known(1)] if len(ends) == 1 else [*ends, Known(1)][:3]
        if isinstance(step, Known) and not step.value:
            self.refuse(node, "the step of a range is 0")
        first, end, by, origin = self.integer(start), self.integer(stop), self.integer(step), self.label
        name, index = node.target.id, self.new_name()
        line = 0

        def begin() -> str:
            nonlocal line
            line = len(self.lines)
            self.lines.append(f"  {index} = phi i64 [{first}, %{origin}]")
            self.env[name] = Conflict("the index of a loop that has ended")
            if isinstance(step, Known):
                return self.op(f"icmp {'slt' if step.value > 0 else 'sgt'} i64 {index}, {end}")
            up, down = (self.op(f"icmp {sign} i64 {index}, {end}") for sign in ("slt", "sgt"))
            return self.op(f"select i1 {self.op(f'icmp sgt i64 {by}, 0')}, i1 {up}, i1 {down}")

        def body() -> None:
            self.env[name] = Value(INT, index)
            self.block(node.body)

        def again() -> None:
            self.lines[line] += f", [{self.calculate('add', index, by)}, %{self.label}]"

        self.repeat(node, begin, body, again, {name})

    def do_While(self, node: ast.While) -> None:
        if node.orelse:
            self.refuse(node, "the language has no else of a loop")
        self.repeat(node, lambda: self.condition(node.test), lambda: self.block(node.body), lambda: None, set())

    def repeat(
        self, node: ast.For | ast.While, begin: Callable[[], bool | str], body: Callable[[], None],
        again: Callable[[], None], own: set[str],
    ) -> None:  # fmt: skip
        """A loop. If a round leaves names with other types than it found, the loop is walked again: with types that both
        can have, or, if there are none, without those names, which is refused where they are read."""
        label, lines, returned = self.label, len(self.lines), len(self.returned)
        changed = sorted(assigned(node.body) - own)
        before = self.env | {name: UNBOUND for name in changed if name not in self.env}
        tried = {name: [self.solid(before[name]).type] for name in changed if not isinstance(before[name], Conflict)}
        while True:
            now = {name: rebuilt(types[-1], list(self.fit(before[name], types[-1]))) for name, types in tried.items()}
            self.env = before | now
            differing = self.attempt(list(tried), begin, body, again)
            if not differing:
                return
            wider = {name: self.both(before[name], last) for name, last in differing.items()}
            wider = {name: ty for name, ty in wider.items() if ty not in (None, *tried[name])}
            for name, ty in wider.items():
                tried[name].append(ty)
            if not wider:
                for name, last in differing.items():
                    found = last.why if isinstance(last, Conflict) else last.type
                    before[name] = Conflict(f"{tried.pop(name)[0]} before the loop, and at its end {found}")
            self.label, self.open = label, True
            del self.lines[lines:], self.returned[returned:]

    def both(self, first: Any, last: Any) -> Any:
        """A type that two values can have, or None."""
        return None if isinstance(last, Conflict) else common_type({first.type, last.type}, self.bits)

    def attempt(
        self, changed: list[str], begin: Callable[[], bool | str], body: Callable[[], None], again: Callable[[], None]
    ) -> dict[str, Any]:
        """A loop that carries along what it changes: each such name comes from before it, or from its last round. Returns
        what its last round leaves of those whose types differ."""
        origin, check, inside, latch, after = self.label, *(self.new_label() for _ in range(4))
        before, carried = self.env, dict[str, tuple[Any, int]]()
        self.env = self.copied(before)
        self.jump(check)
        self.start(check)
        for name in changed:
            held = rebuilt(before[name].type, [self.new_name() for _ in before[name].texts])
            carried[name] = held, len(self.lines)
            columns = zip(held.texts, held.type.leaves, before[name].texts, strict=True)
            self.lines.extend(f"  {text} = phi {leaf} [{first}, %{origin}]" for text, leaf, first in columns)
            self.env[name] = held
        condition = begin()
        leaving = [] if condition is True else [(self.label, self.copied(self.env))]
        loop = Loop(latch, after, [], leaving)
        if isinstance(condition, bool):
            self.jump(inside if condition else after)
        else:
            self.fork(condition, inside, after)
        if condition is not False:
            self.start(inside)
            self.loops.append(loop)
            body()
            self.loops.pop()
        if self.open:
            loop.continued.append((self.label, self.env))
            self.jump(latch)
        differing = {}
        if loop.continued:
            self.start(latch)
            self.env = self.meet(loop.continued)
            for name, (held, line) in carried.items():
                last = self.env[name]
                if self.both(held, last) != held.type:
                    differing[name] = last
                    continue
                for k, text in enumerate(self.fit(last, held.type)):
                    self.lines[line + k] += f", [{text}, %{self.label}]"
            again()
            self.jump(check)
        if leaving:
            self.start(after)
            self.env = self.meet(leaving)
        return differing

    def do_Continue(self, node: ast.Continue) -> None:
        self.loops[-1].continued.append((self.label, self.env))
        self.jump(self.loops[-1].again)

    def do_Break(self, node: ast.Break) -> None:
        self.loops[-1].broken.append((self.label, self.env))
        self.jump(self.loops[-1].after)


def returned_as(leaves: Sequence[str]) -> str:
    return "void" if not leaves else leaves[0] if len(leaves) == 1 else f"{{{', '.join(leaves)}}}"


def quoted(name: str) -> str:
    return f'"{name}"'


def assigned(statements: Sequence[ast.stmt]) -> set[str]:
    return {
        node.id for statement in statements for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }  # fmt: skip


def as_load(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    if isinstance(node, ast.Subscript):
        return ast.Subscript(node.value, node.slice, ast.Load())
    return node
