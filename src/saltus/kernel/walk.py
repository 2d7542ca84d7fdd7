"""The compiler's front end: a kernel's syntax tree is walked once, forward, and LLVM's language comes out.

Kernels are a small language (docs/kernel-language.md): functions over numbers and named tuples, loops and branches on
integers, memory by `ld`, `st` and fields. So types are followed along the way, and nothing is inferred. A variable is the
value that it has at a place; where ways meet, values that differ become LLVM's phi. What Python knows (literals, constants
of modules, what closures hold, tuples of such) stays known as long as it can: branches on it are taken here, and loops over
it are unrolled. A function is compiled once for each combination of its arguments' types, and inlined by LLVM.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from saltus.kernel import primitives
from saltus.kernel.assembly import Module
from saltus.kernel.expressions import Conflict, Expressions, is_integer
from saltus.kernel.sources import names_of, syntax_of
from saltus.kernel.values import INT, Group, Known, Record, Value, common_type, rebuilt, settled
from saltus.kernel.words import described


class Made(NamedTuple):
    """A compiled function."""

    name: str
    result: Any


class Compiler:
    """A module, and the functions that are in it."""

    def __init__(self) -> None:
        self.module = Module()
        self.made: dict[Any, Made] = {}
        self.begun: set[Any] = set()

    def function(self, function: Any, types: tuple[Any, ...]) -> Made:
        key = (function, types)
        if key not in self.made:
            walk = Walk(self, function, types)
            if key in self.begun:
                walk.refuse(walk.tree, "calls itself")
            self.begun.add(key)
            self.made[key] = walk.run(f"{function.__name__}.{len(self.begun)}")
        return self.made[key]

    def entry(self, function: Any, types: tuple[Any, ...], symbol: str) -> None:
        """A function that is visible from outside, under a name; it returns an integer or nothing."""
        Walk(self, function, types).run(symbol, inner=False)


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
        self.outside = names_of(function)
        self.env: dict[str, Any] = {}
        self.loops: list[Loop] = []
        self.returned: list[tuple[str, Any]] = []
        self.watched: dict[int, bool] = {}

    # ------------------------------------------------------------------------------------------------ functions

    def run(self, name: str, inner: bool = True) -> Made:
        arguments = self.tree.args
        parameters = [each.arg for each in arguments.args]
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
            self.refuse(self.tree, "has parameters with *, ** or defaults, expected plain ones")
        if len(parameters) != len(self.types):
            self.refuse(self.tree, f"is called with {len(self.types)} arguments, expected {len(parameters)}")
        leaves = [leaf for ty in self.types for leaf in ty.leaves]
        texts = [f"%a{k}" for k in range(len(leaves))]
        head = ", ".join(f"{leaf} {text}" for leaf, text in zip(leaves, texts, strict=True))
        for parameter, ty in zip(parameters, self.types, strict=True):
            self.env[parameter] = rebuilt(ty, texts)
        self.block(self.tree.body)
        if self.open:
            self.returned.append((self.label, Known(None)))
            self.open = False
            self.lines.append("  br label %exit")
        result = self.leave()
        kind = "internal" if inner else ""
        back = returned_as(result.type.leaves)
        attributes = "alwaysinline " if inner else ""
        whole = [f"define {kind} {back} @{quoted(name)}({head}) {attributes}{{", "entry:", *self.lines, "}"]
        self.module.functions.append("\n".join(whole))
        return Made(name, result.type)

    def leave(self) -> Any:
        """The end of the function, where all its returns meet."""
        self.start("exit")
        if not self.returned:
            self.do("unreachable")
            return Known(None)
        result = self.united(self.returned)
        if isinstance(result, Conflict):
            self.refuse(self.tree, f"returns {result.why}")
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

    def united(self, arrivals: Sequence[tuple[str, Any]]) -> Any:
        """One value of those that come from several blocks, in the block that has just been started."""
        first = arrivals[0][1]
        if all(value is first for _, value in arrivals):
            return first
        types = {value.type for _, value in arrivals if not isinstance(value, Conflict)}
        for _, value in arrivals:
            if isinstance(value, Conflict):
                return value
        if len(types) == 1 and isinstance(first, Known):
            return first
        if all(isinstance(value, Group) for _, value in arrivals):
            shapes = {(value.cls, len(value.parts)) for _, value in arrivals}
            if len(shapes) == 1:
                columns = [
                    self.united([(label, value.parts[k]) for label, value in arrivals]) for k in range(len(first.parts))
                ]
                wrong = next((part for part in columns if isinstance(part, Conflict)), None)
                return wrong or Group(first.cls, tuple(columns))
        ty = common_type(types)
        if ty is None:
            return Conflict(" or ".join(sorted(map(str, types))) + ", depending on the way taken")
        texts = []
        for k, leaf in enumerate(ty.leaves):
            texts.append(self.phi(leaf, [(settled(value, ty)[k], label) for label, value in arrivals]))
        return Value(ty, *texts)

    def meet(self, arrivals: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        """The names after several ways; what one of them does not bind is not bound."""
        if len(arrivals) == 1:
            return dict(arrivals[0][1])
        names = dict.fromkeys(name for _, env in arrivals for name in env)
        unbound = Conflict("not bound on every way that leads here")
        return {name: self.united([(label, env.get(name, unbound)) for label, env in arrivals]) for name in names}

    # ------------------------------------------------------------------------------------------------ statements

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if not self.open:
                return
            method = getattr(self, "do_" + type(statement).__name__, None)
            if method is None:
                self.refuse(statement, f"the language has no {described(statement)}")
            method(statement)

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
            parts = self.parts(target, value)
            if len(parts) != len(target.elts):
                self.refuse(target, f"unpacks {len(parts)} values into {len(target.elts)} names")
            for name, part in zip(target.elts, parts, strict=True):
                self.put(name, part)
        elif isinstance(target, ast.Subscript):
            owner, index = self.value(target.value), self.value(target.slice)
            self.check_index(target, owner, index)
            primitives.store_at(self, owner, index, value)
        else:
            self.refuse(target, f"assigns to {described(target)}, expected a name, names, or an element of an array")

    def do_Return(self, node: ast.Return) -> None:
        value = Known(None) if node.value is None else self.value(node.value)
        self.returned.append((self.label, value))
        self.jump("exit")

    def do_If(self, node: ast.If) -> None:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            self.block(node.body if condition else node.orelse)
            return
        yes, no, after = self.new_label(), self.new_label(), self.new_label()
        self.fork(condition, yes, no)
        before, arrivals = self.env, []
        for label, body in ((yes, node.body), (no, node.orelse)):
            self.env = dict(before)
            self.start(label)
            self.block(body)
            if self.open:
                arrivals.append((self.label, self.env))
                self.jump(after)
        if arrivals:
            self.start(after)
            self.env = self.meet(arrivals)

    def do_For(self, node: ast.For) -> None:
        if node.orelse:
            self.refuse(node, "the language has no else of a loop")
        around = node.iter
        if (
            isinstance(around, ast.Call)
            and isinstance(around.func, ast.Name)
            and self.name(around.func) == Known(range)
        ):
            self.count(node, [self.value(each) for each in around.args])
            return
        self.unroll(node, self.parts(around, self.value(around)))

    def unroll(self, node: ast.For, parts: Sequence[Any]) -> None:
        """A loop over a tuple."""
        after, broken = self.new_label(), list[tuple[str, dict[str, Any]]]()
        for part in parts:
            if not self.open:
                break
            loop = Loop(self.new_label(), after, [], broken)
            self.loops.append(loop)
            self.put(node.target, part)
            self.block(node.body)
            self.loops.pop()
            self.gather(loop.again, loop.continued)
        self.gather(after, broken)

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
        if step == Known(0):
            self.refuse(node, "the step of a range is 0")
        down = isinstance(step, Known) and step.value < 0  # one that is not known goes up
        first, end, origin = self.integer(start), self.integer(stop), self.label
        name, index = node.target.id, self.new_name()
        line = 0

        def begin() -> str:
            nonlocal line
            line = len(self.lines)
            self.lines.append("")  # the index's phi, once the next one is known
            self.env[name] = Conflict("the index of a loop that has ended")
            return self.op(f"icmp {'sgt' if down else 'slt'} i64 {index}, {end}")

        def body() -> None:
            self.env[name] = Value(INT, index)
            self.block(node.body)

        def again() -> None:
            following = self.calculate("add", index, self.integer(step))
            self.lines[line] = f"  {index} = phi i64 [{first}, %{origin}], [{following}, %{self.label}]"

        self.repeat(node, begin, body, again, {name})

    def do_While(self, node: ast.While) -> None:
        if node.orelse:
            self.refuse(node, "the language has no else of a loop")

        def begin() -> str:
            condition = self.condition(node.test)
            return {True: "true", False: "false"}[condition] if isinstance(condition, bool) else condition

        self.repeat(node, begin, lambda: self.block(node.body), lambda: None, set())

    def repeat(
        self, node: ast.For | ast.While, begin: Callable[[], str], body: Callable[[], None], again: Callable[[], None],
        own: set[str],
    ) -> None:  # fmt: skip
        """A loop: what it changes comes from before it, or from its last round."""
        changed = sorted(assigned(node.body) - own)
        for name in changed:
            if name in self.env and not isinstance(self.env[name], Conflict):
                self.env[name] = self.solid(self.env[name])
        origin, before = self.label, dict(self.env)
        check, inside, latch, after = (self.new_label() for _ in range(4))
        self.jump(check)
        self.start(check)
        carried: dict[str, tuple[Any, int]] = {}
        for name in changed:
            value = before.get(name)
            if value is None or isinstance(value, Conflict):
                continue
            known = isinstance(value, Known)
            held = Known(value.value) if known else rebuilt(value.type, [self.new_name() for _ in value.texts])
            carried[name] = held, len(self.lines)
            self.lines.extend("" for _ in value.texts)  # their phis, once the last round is known
            self.env[name] = held
            self.watched[id(held)] = False
        condition = begin()
        head, at_head = self.label, dict(self.env)
        self.fork(condition, inside, after)
        self.start(inside)
        loop = Loop(latch, after, [], [])
        self.loops.append(loop)
        body()
        self.loops.pop()
        if self.open:
            loop.continued.append((self.label, self.env))
            self.jump(latch)
        self.start(latch)
        self.env = self.meet(loop.continued) if loop.continued else dict(at_head)
        for name, (held, line) in carried.items():
            self.carry(node, name, held, line, (origin, before[name]))
            if isinstance(self.env.get(name), Conflict):
                at_head[name] = self.env[name]
        again()
        self.jump(check)
        self.start(after)
        self.env = self.meet([(head, at_head), *loop.broken])

    def carry(self, node: ast.AST, name: str, held: Any, line: int, start: tuple[str, Any]) -> None:
        """Fill in the phis of a name that a loop changes; self.env is that at the end of its body."""
        origin, first = start
        last = self.env.get(name)
        back = None if last is None or isinstance(last, Conflict) else self.as_type(last, held.type)
        if back is None:
            if self.watched[id(held)]:
                found = "not bound" if last is None else last.why if isinstance(last, Conflict) else last.type
                self.refuse(node, f"{name} is {held.type} before the loop and {found} at its end")
            self.env[name] = Conflict(f"{held.type} before the loop, and another thing after it")
            leaves = zip(held.type.leaves, held.texts, first.texts, first.texts, strict=True)
        else:
            leaves = zip(held.type.leaves, held.texts, first.texts, back.texts, strict=True)
        for k, (leaf, text, one, other) in enumerate(leaves):
            self.lines[line + k] = f"  {text} = phi {leaf} [{one}, %{origin}], [{other}, %{self.label}]"

    def as_type(self, value: Any, ty: Any) -> Any:
        """The value, if it has this type, or is a literal that can have it; else None."""
        if value.type == ty:
            return value
        if isinstance(value, Known) and common_type({value, ty}) == ty:
            return Value(ty, *settled(value, ty))
        if (
            isinstance(value, Group)
            and isinstance(ty, Record)
            and value.cls is ty.cls
            and len(value.parts) == len(ty.parts)
        ):
            parts = [self.as_type(part, each) for part, each in zip(value.parts, ty.parts, strict=True)]
            return None if None in parts else Group(value.cls, tuple(parts))
        return None

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
