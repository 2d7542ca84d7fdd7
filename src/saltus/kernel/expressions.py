"""The compiler's front end, expressions: a value for every node of the syntax tree, and the code that computes it."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

from saltus.kernel import primitives
from saltus.kernel.assembly import FLAGS, Code
from saltus.kernel.sources import KernelError
from saltus.kernel.tuples import DEFINITIONS, NUMBER_CLASSES, is_kernel
from saltus.kernel.values import (
    BOOL,
    INT,
    VECTOR,
    Column,
    Group,
    Known,
    Mask,
    Real,
    Record,
    RefusedError,
    Span,
    Value,
    is_integer,
    is_plain,
    kind_of,
    known,
    register_of,
    settled,
    whole,
)
from saltus.kernel.words import described

OPERATORS: dict[type, tuple[Callable[..., Any], str | None, str | None]] = {
    ast.Add: (operator.add, "fadd", "add"),
    ast.Sub: (operator.sub, "fsub", "sub"),
    ast.Mult: (operator.mul, "fmul", "mul"),
    ast.Div: (operator.truediv, "fdiv", None),
    ast.MatMult: (operator.matmul, None, None),
    ast.Mod: (operator.mod, None, "srem"),
    ast.FloorDiv: (operator.floordiv, None, "sdiv"),
    ast.BitOr: (operator.or_, None, "or"),
    ast.BitAnd: (operator.and_, None, "and"),
}
"""By what Python knows, by numbers, by integers."""

COMPARISONS: dict[type, tuple[Callable[..., Any], str]] = {
    ast.Lt: (operator.lt, "slt"),
    ast.LtE: (operator.le, "sle"),
    ast.Gt: (operator.gt, "sgt"),
    ast.GtE: (operator.ge, "sge"),
    ast.Eq: (operator.eq, "eq"),
    ast.NotEq: (operator.ne, "ne"),
}


CHOSEN = "(chosen)"  # not the name of a variable
"""Where an environment has the value of the choice that is being made."""


class Conflict(NamedTuple):
    """What a name is after ways that gave it values of different types, or none."""

    why: str


class Expressions(Code):
    """Values of expressions, in the function that is being walked."""

    env: dict[str, Any]
    """What names stand for at this place."""
    own: frozenset[str]
    """Names that the function binds somewhere: those that are not bound yet are not looked for outside."""
    outside: dict[str, Any]
    """What the function sees around it."""
    keeps = False
    """Whether numbers that are known stay so in tuples, and where they are computed with."""
    bits: int
    """Of the numbers that the module is compiled for: what literals become."""

    def place_of(self, node: ast.AST) -> str:
        raise NotImplementedError

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        raise KernelError(f"{self.place_of(node)}: {why}")

    def call(self, function: Any, values: Sequence[Any]) -> Any:
        raise NotImplementedError

    def meet(self, arrivals: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        raise NotImplementedError

    def copied(self, env: dict[str, Any]) -> dict[str, Any]:
        """For one of several ways from here."""
        return dict(env)

    def branch(self, condition: str, walk: Callable[[Any], None], yes: Any, no: Any) -> None:
        """One of two ways."""
        labels, after = (self.new_label(), self.new_label()), self.new_label()
        self.fork(condition, *labels)
        before, arrivals = self.env, list[tuple[str, dict[str, Any]]]()
        for label, way in zip(labels, (yes, no), strict=True):
            self.env = self.copied(before)
            self.start(label)
            walk(way)
            if self.open:
                arrivals.append((self.label, self.env))
                self.jump(after)
        if arrivals:
            self.start(after)
            self.env = self.meet(arrivals)

    def value(self, node: ast.expr) -> Any:
        method = getattr(self, "of_" + type(node).__name__, None)
        if method is None:
            self.refuse(node, f"the language has no {described(node)}")
        try:
            return method(node)
        except RefusedError as error:
            self.refuse(node, str(error))

    def of_Constant(self, node: ast.Constant) -> Any:
        return Known(node.value)

    def of_Name(self, node: ast.Name) -> Any:
        value = self.env.get(node.id)
        if value is None and node.id not in self.own:
            if node.id in self.outside:
                return known(self.outside[node.id])
            if hasattr(builtins, node.id):
                return Known(getattr(builtins, node.id))
        if value is None:
            self.refuse(node, f"{node.id} is not bound")
        if isinstance(value, Conflict):
            self.refuse(node, f"{node.id} is {value.why}")
        return value

    def of_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, Known) and hasattr(owner.value, node.attr):
            return known(getattr(owner.value, node.attr))
        fields = getattr(owner.cls, "_fields", ()) if isinstance(owner, Group) else ()
        if node.attr not in fields:
            self.refuse(node, f"{owner.type} has no attribute {node.attr}")
        return owner.parts[fields.index(node.attr)]

    def of_Tuple(self, node: ast.Tuple) -> Any:
        return Group(None, tuple(self.values(node.elts)))

    def values(self, nodes: Sequence[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found.extend(self.parts(node, self.value(node.value)))
            else:
                found.append(self.value(node))
        return found

    def parts(self, node: ast.AST, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, Group):
            self.refuse(node, f"expected a tuple, found {value.type}")
        return value.parts

    def of_Subscript(self, node: ast.Subscript) -> Any:
        owner, index = self.value(node.value), self.value(node.slice)
        if not isinstance(owner, Group):
            self.check_index(node, owner, index)
            return primitives.load_at(self, owner, index)
        count = len(owner.parts)
        if not (isinstance(index, Known) and is_integer(index) and -count <= index.value < count):
            self.refuse(node, f"{index.type} as the index of {owner.type}, expected a literal within it")
        return owner.parts[index.value]

    def check_index(self, node: ast.AST, owner: Any, index: Any) -> None:
        if not isinstance(owner.type, (Span, Column)):
            self.refuse(node, f"{owner.type} has no elements, expected an array, a field or a tuple")
        if not is_integer(index):
            self.refuse(node, f"{index.type} as an index, expected an integer")

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return self.truth(self.condition(node))
        value = self.value(node.operand)
        if not isinstance(node.op, ast.USub):
            self.refuse(node, f"the language has no {described(node.op)}")
        if isinstance(value, Group):
            return self.defined(node, operator.neg, [value])
        if not is_plain(value):
            self.refuse(node, f"the language has no sign - of {value.type}")
        if isinstance(value, Known):
            return Known(-value.value)
        if value.type == INT:
            return Value(INT, self.calculate("sub", 0, value.text))
        return self.signed(value)

    def signed(self, value: Any) -> Any:
        return Value(value.type, self.op(f"fneg {FLAGS} {value.type.leaves[0]} {value.text}"))

    def of_BinOp(self, node: ast.BinOp) -> Any:
        return self.operate(node, self.value(node.left), self.value(node.right))

    def operate(self, node: ast.BinOp, a: Any, b: Any) -> Any:
        if type(node.op) not in OPERATORS:
            self.refuse(node, f"the language has no {described(node.op)}")
        python, real, integer = OPERATORS[type(node.op)]
        if isinstance(a, Known) and isinstance(b, Known):
            try:
                return known(python(a.value, b.value))
            except (TypeError, ValueError, ArithmeticError) as error:
                self.refuse(node, str(error))
        if isinstance(a, Group) or isinstance(b, Group):
            if python is operator.add and all(isinstance(x, Group) and x.cls is None for x in (a, b)):
                return Group(None, self.parts(node, a) + self.parts(node, b))
            return self.defined(node, python, [a, b])
        if VECTOR in (a.type, b.type):
            return self.vectors(node, a, b)
        if is_integer(a) and is_integer(b):
            return self.whole_numbers(node, integer, a, b)
        ty = primitives.wider(self, a, b)
        if real is None or ty is None:
            self.refuse(node, f"the language has no {described(node.op)} of {a.type} and {b.type}")
        return self.arithmetic(real, a, b, ty)

    def whole_numbers(self, node: ast.BinOp, instruction: str | None, a: Any, b: Any) -> Any:
        if instruction is None:
            instead = "; // rounds down, and `1.0 * k` is a number" if isinstance(node.op, ast.Div) else ""
            self.refuse(node, f"the language has no {described(node.op)} of integers{instead}")
        if a.type == b.type == BOOL and instruction in ("or", "and"):
            return Value(BOOL, self.op(f"{instruction} i1 {a.text}, {b.text}"))
        x, y = self.integer(a), self.integer(b)
        if instruction not in ("sdiv", "srem"):
            return Value(INT, self.calculate(instruction, x, y))
        if y == "0":
            self.refuse(node, "integer division by zero")
        return Value(INT, self.floored(instruction, x, y))

    def vectors(self, node: ast.BinOp, a: Any, b: Any) -> Any:
        """What quads have definitions of, where they are tuples."""
        if a.type == b.type == VECTOR and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            return self.arithmetic(str(OPERATORS[type(node.op)][1]), a, b, VECTOR)
        if a.type == VECTOR and is_plain(b) and isinstance(node.op, ast.Mult):
            return self.arithmetic("fmul", a, Value(VECTOR, self.real(b, VECTOR)), VECTOR)
        self.refuse(node, f"the language has no {described(node.op)} of {a.type} and {b.type}")

    def floored(self, instruction: str, a: str, b: str) -> str:
        """Whole quotients and remainders as Python has them: LLVM rounds towards zero."""
        found, rest = self.op(f"{instruction} i64 {a}, {b}"), self.op(f"srem i64 {a}, {b}")
        apart = self.op(f"icmp slt i64 {self.op(f'xor i64 {rest}, {b}')}, 0")
        off = self.op(f"and i1 {apart}, {self.op(f'icmp ne i64 {rest}, 0')}")
        other = self.calculate("sub", found, 1) if instruction == "sdiv" else self.calculate("add", found, b)
        return self.op(f"select i1 {off}, i64 {other}, i64 {found}")

    def of_Compare(self, node: ast.Compare) -> Any:
        return self.truth(self.condition(node))

    def of_BoolOp(self, node: ast.BoolOp) -> Any:
        return self.truth(self.junction(isinstance(node.op, ast.Or), [partial(self.boolean, x) for x in node.values]))

    def boolean(self, node: ast.expr) -> bool | str:
        """An operand of `and` or `or` where their value matters: in Python, that is one of the operands itself."""
        value = self.value(node)
        if isinstance(value, Known) and isinstance(value.value, bool):
            return value.value
        if value.type != BOOL:
            self.refuse(
                node, f"{value.type} as an operand of a logical operator whose value is kept, expected a condition"
            )
        return str(value.text)

    def truth(self, condition: bool | str) -> Any:
        return Known(condition) if isinstance(condition, bool) else Value(BOOL, condition)

    def of_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            return self.value(node.body if condition else node.orelse)

        def choose(choice: ast.expr) -> None:
            self.env[CHOSEN] = self.value(choice)

        self.branch(condition, choose, node.body, node.orelse)
        result = self.env.pop(CHOSEN)
        if isinstance(result, Conflict):
            self.refuse(node, f"the choice is {result.why}")
        return result

    # ------------------------------------------------------------------------------------------------ conditions

    def condition(self, node: ast.expr) -> bool | str:
        """True or False, or an i1."""
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        if isinstance(node, ast.BoolOp):
            return self.junction(isinstance(node.op, ast.Or), [partial(self.condition, x) for x in node.values])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            return not inner if isinstance(inner, bool) else self.op(f"xor i1 {inner}, true")
        value = self.value(node)
        if isinstance(value, Known):
            return bool(value.value)
        if isinstance(value, Group) and value.cls is None:
            return bool(value.parts)
        if value.type == BOOL:
            return str(value.text)
        if value.type == INT:
            return self.op(f"icmp ne i64 {value.text}, 0")
        self.refuse(node, f"{value.type} as a condition, expected integers; numbers have `select` and `some`")

    def comparison(self, node: ast.Compare) -> bool | str:
        left = self.value(node.left)

        def compare(how: ast.cmpop, other: ast.expr) -> bool | str:
            nonlocal left
            a, left = left, self.value(other)
            return self.compare(node, how, a, left)

        pairs = zip(node.ops, node.comparators, strict=True)
        return self.junction(False, [partial(compare, how, other) for how, other in pairs])

    def compare(self, node: ast.Compare, how: ast.cmpop, a: Any, b: Any) -> bool | str:
        both_known = isinstance(a, Known) and isinstance(b, Known)
        if isinstance(how, (ast.Is, ast.IsNot)):
            if not both_known and Known(None) not in (a, b):
                self.refuse(node, f"asks whether {a.type} is {b.type}, expected None on one side")
            same = both_known and a.value is b.value
            return same if isinstance(how, ast.Is) else not same
        if type(how) not in COMPARISONS:
            self.refuse(node, f"the language has no {described(how)}")
        python, sign = COMPARISONS[type(how)]
        if both_known:
            try:
                return bool(python(a.value, b.value))
            except (TypeError, ValueError) as error:
                self.refuse(node, str(error))
        if not (is_integer(a) and is_integer(b)):
            self.refuse(node, f"compares {a.type} with {b.type}, expected integers; numbers have `less`")
        return self.op(f"icmp {sign} i64 {self.integer(a)}, {self.integer(b)}")

    def junction(self, settles: bool, conditions: Sequence[Callable[[], bool | str]]) -> bool | str:
        """The first condition that is `settles`, or else the last one: what stands behind is not looked at, for it may not
        be there."""
        after, arrivals = self.new_label(), list[tuple[str, str]]()
        found: bool | str = not settles
        for ask in conditions:
            found = ask()
            if found is settles:
                break
            if isinstance(found, bool) or ask is conditions[-1]:
                continue
            following = self.new_label()
            arrivals.append((str(settles).lower(), self.label))
            self.fork(found, *((after, following) if settles else (following, after)))
            self.start(following)
        if not arrivals:
            return found
        arrivals.append((str(found).lower() if isinstance(found, bool) else found, self.label))
        self.jump(after)
        self.start(after)
        return self.phi("i1", arrivals)

    # ------------------------------------------------------------------------------------------------ calls

    def of_Call(self, node: ast.Call) -> Any:
        callee = self.value(node.func)
        if not isinstance(callee, Known):
            self.refuse(node, f"calls {callee.type}, expected a function")
        if node.keywords:
            self.refuse(node, "the language has no arguments by name")
        return self.apply(node, callee.value, self.values(node.args))

    def apply(self, node: ast.Call, function: Any, values: list[Any]) -> Any:
        if isinstance(function, type) and issubclass(function, tuple) and hasattr(function, "_fields"):
            if len(values) != len(function._fields):
                self.refuse(node, f"{function.__name__} has {len(function._fields)} parts, found {len(values)}")
            return Group(function, tuple(map(self.kept, values)))
        try:
            answer = primitives.apply(self, function, values)
        except RefusedError as error:
            self.refuse(node, f"{ast.unparse(node.func)}: {error}")
        if answer is not NotImplemented:
            return answer
        if is_kernel(function):
            return self.enter(node, function, values)
        if not isinstance(function, Hashable) or function not in DEFINITIONS:
            name = ast.unparse(node.func)
            self.refuse(node, f"calls {name}, which is no kernel, expected one, or a function of saltus.kernel")
        return self.defined(node, function, values)

    def enter(self, node: ast.AST, function: Any, values: list[Any]) -> Any:
        """A call of a kernel; errors within it tell the way that led there."""
        try:
            return self.call(function, values)
        except KernelError as error:
            error.add_note(f"called from {self.place_of(node)}")
            raise

    def defined(self, node: ast.AST, op: Any, values: list[Any]) -> Any:
        """The definition of an operator or elementary function for these classes."""
        for operands, function in DEFINITIONS.get(op, ()):
            if len(operands) == len(values) and all(
                is_scalar(value) if cls is None else isinstance(value, Group) and value.cls is cls
                for value, cls in zip(values, operands, strict=True)
            ):
                return self.enter(node, function, list(map(self.kept, values)))
        self.refuse(node, f"{op.__name__} is not defined for {', '.join(str(value.type) for value in values)}")

    def kept(self, value: Any) -> Any:
        """What becomes a part of a tuple, or an operand: the types of those should be few."""
        return self.solid(value)

    def solid(self, value: Any) -> Any:
        """A literal as a value."""
        if isinstance(value, Group):
            return Group(value.cls, tuple(map(self.solid, value.parts)))
        if isinstance(value, Known):
            ty = register_of({kind_of(value)}, self.bits)
            if ty is not None:
                return Value(ty, *settled(value, ty))
        return value

    def fit(self, value: Any, ty: Any) -> tuple[str, ...]:
        """The LLVM values of a value as one of a type that it can have."""
        if value.type == ty:
            return tuple(value.texts)
        if isinstance(value, Known):
            return settled(value, ty)
        if isinstance(value, Group):
            pairs = zip(value.parts, ty.parts, strict=True)
            return tuple(text for part, each in pairs for text in self.fit(part, each))
        if isinstance(ty, Record):
            return self.fit(value, ty.parts[0]) + settled(Known(0.0), ty.parts[1])
        if isinstance(ty, Mask):
            return (value.text if ty.width == 1 else self.spread(value.text, ty),)
        return (self.real(value, ty),)

    # ------------------------------------------------------------------------------------------------ what is no number

    def integer(self, value: Any) -> str:
        return whole(value.value) if isinstance(value, Known) else super().integer(value)

    def real(self, value: Any, ty: Real) -> str:
        if value.type == ty:
            return str(value.text)
        if not is_plain(value) or (isinstance(value.type, Real) and value.type.width not in (1, ty.width)):
            raise RefusedError(f"expected a number, found {value.type}")
        return settled(value, ty)[0] if isinstance(value, Known) else super().real(value, ty)


def is_scalar(x: Any) -> bool:
    """What definitions take for a number, or for a condition."""
    if isinstance(x, Group):
        return x.cls in NUMBER_CLASSES
    return is_plain(x) if isinstance(x, Known) else not isinstance(x.type, (Span, Column))
