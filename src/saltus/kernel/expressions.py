"""The compiler's front end, expressions: a value for every node of the syntax tree, and the code that computes it."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from saltus.kernel import primitives
from saltus.kernel.assembly import FLAGS, Code
from saltus.kernel.sources import KernelError
from saltus.kernel.tuples import DEFINITIONS, NUMBER_CLASSES, is_kernel
from saltus.kernel.values import BOOL, INT, Column, Group, Known, Real, Span, Value, common_type, settled
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


class Conflict(NamedTuple):
    """What a name is after ways that gave it values of different types, or none."""

    why: str


class Expressions(Code):
    """Values of expressions, in the function that is being walked."""

    env: dict[str, Any]
    """What names stand for at this place."""
    outside: dict[str, Any]
    """What the function sees around it."""
    watched: dict[int, bool]
    """Values that a loop carries along, by identity: whether they were read."""

    def place_of(self, node: ast.AST) -> str:
        raise NotImplementedError

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        raise KernelError(f"{self.place_of(node)}: {why}")

    def call(self, function: Any, values: Sequence[Any]) -> Any:
        raise NotImplementedError

    def united(self, arrivals: Sequence[tuple[str, Any]]) -> Any:
        raise NotImplementedError

    def value(self, node: ast.expr) -> Any:
        method = getattr(self, "of_" + type(node).__name__, None)
        if method is None:
            self.refuse(node, f"the language has no {described(node)}")
        return method(node)

    def of_Constant(self, node: ast.Constant) -> Any:
        return Known(node.value)

    def of_Name(self, node: ast.Name) -> Any:
        return self.name(node)

    def name(self, node: ast.Name) -> Any:
        value = self.env.get(node.id)
        if value is None:
            if node.id in self.outside:
                return Known(self.outside[node.id])
            if hasattr(builtins, node.id):
                return Known(getattr(builtins, node.id))
            self.refuse(node, f"{node.id} is not bound")
        if isinstance(value, Conflict):
            self.refuse(node, f"{node.id} is {value.why}")
        if id(value) in self.watched:
            self.watched[id(value)] = True
        return value

    def of_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, Known):
            try:
                return Known(getattr(owner.value, node.attr))
            except AttributeError:
                self.refuse(node, f"{owner.value!r} has no attribute {node.attr}")
        if not isinstance(owner, Group) or owner.cls is None or node.attr not in owner.cls._fields:  # type: ignore[attr-defined]
            self.refuse(node, f"{owner.type} has no attribute {node.attr}")
        return owner.parts[owner.cls._fields.index(node.attr)]  # type: ignore[attr-defined]

    def of_Tuple(self, node: ast.Tuple) -> Any:
        parts = self.values(node.elts)
        if all(isinstance(part, Known) for part in parts):
            return Known(tuple(part.value for part in parts))
        return Group(None, tuple(parts))

    def values(self, nodes: Sequence[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found.extend(self.parts(node, self.value(node.value)))
            else:
                found.append(self.value(node))
        return found

    def parts(self, node: ast.AST, value: Any) -> tuple[Any, ...]:
        if isinstance(value, Group):
            return value.parts
        if isinstance(value, Known) and isinstance(value.value, tuple):
            return tuple(map(Known, value.value))
        self.refuse(node, f"expected a tuple, found {value.type}")

    def of_Subscript(self, node: ast.Subscript) -> Any:
        owner, index = self.value(node.value), self.value(node.slice)
        if isinstance(owner, Group) or (isinstance(owner, Known) and isinstance(owner.value, tuple)):
            parts = self.parts(node, owner)
            if not (
                isinstance(index, Known) and isinstance(index.value, int) and -len(parts) <= index.value < len(parts)
            ):
                self.refuse(node, f"{index.type} as the index of {owner.type}, expected a literal within it")
            return parts[index.value]
        self.check_index(node, owner, index)
        return primitives.load_at(self, owner, index)

    def check_index(self, node: ast.AST, owner: Any, index: Any) -> None:
        if not isinstance(owner.type, (Span, Column)):
            self.refuse(node, f"{owner.type} has no elements, expected an array or a field")
        if not is_integer(index):
            self.refuse(node, f"{index.type} as an index, expected an integer")

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return self.truth(self.condition(node))
        value = self.value(node.operand)
        if not isinstance(node.op, ast.USub):
            self.refuse(node, f"the language has no {described(node.op)}")
        if isinstance(value, Known):
            return Known(-value.value)
        if isinstance(value, Group):
            return self.defined(node, operator.neg, [value])
        if value.type == INT:
            return Value(INT, self.calculate("sub", 0, value.text))
        if not isinstance(value.type, Real):
            self.refuse(node, f"- of {value.type}")
        return Value(value.type, self.op(f"fneg {FLAGS} {value.type.leaves[0]} {value.text}"))

    def of_BinOp(self, node: ast.BinOp) -> Any:
        a, b = self.value(node.left), self.value(node.right)
        if type(node.op) not in OPERATORS:
            self.refuse(node, f"the language has no {described(node.op)}")
        known, real, integer = OPERATORS[type(node.op)]
        if isinstance(a, Known) and isinstance(b, Known):
            try:
                return Known(known(a.value, b.value))
            except (TypeError, ArithmeticError) as error:
                self.refuse(node, str(error))
        if isinstance(a, Group) or isinstance(b, Group):
            if known is operator.add and all(is_plain_tuple(x) for x in (a, b)):
                return Group(None, self.parts(node, a) + self.parts(node, b))
            return self.defined(node, known, [a, b])
        if is_integer(a) and is_integer(b):
            if integer is None:
                self.refuse(node, f"{described(node.op)} of integers")
            if {a.type, b.type} == {BOOL} and integer in ("or", "and"):
                return Value(BOOL, self.op(f"{integer} i1 {a.text}, {b.text}"))
            x, y = self.integer(a), self.integer(b)
            return Value(
                INT, self.floored(integer, x, y) if integer in ("sdiv", "srem") else self.calculate(integer, x, y)
            )
        ty = primitives.wider(a, b)
        if real is None or ty is None:
            self.refuse(node, f"{described(node.op)} of {a.type} and {b.type}")
        return self.arithmetic(real, a, b, ty)

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
        return self.truth(self.condition(node))

    def truth(self, condition: bool | str) -> Any:
        return Known(condition) if isinstance(condition, bool) else Value(BOOL, condition)

    def of_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            return self.value(node.body if condition else node.orelse)
        yes, no, after = self.new_label(), self.new_label(), self.new_label()
        self.fork(condition, yes, no)
        arrivals = []
        for label, choice in ((yes, node.body), (no, node.orelse)):
            self.start(label)
            value = self.value(choice)
            arrivals.append((self.label, value))
            self.jump(after)
        self.start(after)
        result = self.united(arrivals)
        if isinstance(result, Conflict):
            self.refuse(node, f"the choice is {result.why}")
        return result

    # ------------------------------------------------------------------------------------------------ conditions

    def condition(self, node: ast.expr) -> bool | str:
        """True or False, or an i1."""
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        if isinstance(node, ast.BoolOp):
            return self.junction(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            return not inner if isinstance(inner, bool) else self.op(f"xor i1 {inner}, true")
        value = self.value(node)
        if isinstance(value, Known):
            return bool(value.value)
        if value.type == BOOL:
            return str(value.text)
        if value.type == INT:
            return self.op(f"icmp ne i64 {value.text}, 0")
        self.refuse(node, f"{value.type} as a condition, expected integers; numbers have `select` and `some`")

    def comparison(self, node: ast.Compare) -> bool | str:
        result: bool | str = True
        left = self.value(node.left)
        for how, other in zip(node.ops, node.comparators, strict=True):
            right = self.value(other)
            result = self.both(result, self.compare(node, how, left, right))
            left = right
        return result

    def compare(self, node: ast.Compare, how: ast.cmpop, a: Any, b: Any) -> bool | str:
        if isinstance(how, (ast.Is, ast.IsNot)):
            same = isinstance(a, Known) and isinstance(b, Known) and a.value is b.value
            return same if isinstance(how, ast.Is) else not same
        if type(how) not in COMPARISONS:
            self.refuse(node, f"the language has no {described(how)}")
        known, sign = COMPARISONS[type(how)]
        if isinstance(a, Known) and isinstance(b, Known):
            return bool(known(a.value, b.value))
        if not (is_integer(a) and is_integer(b)):
            self.refuse(node, f"compares {a.type} with {b.type}, expected integers; numbers have `less`")
        return self.op(f"icmp {sign} i64 {self.integer(a)}, {self.integer(b)}")

    def both(self, a: bool | str, b: bool | str) -> bool | str:
        if isinstance(a, bool):
            return b if a else False
        if isinstance(b, bool):
            return a if b else False
        return self.op(f"and i1 {a}, {b}")

    def junction(self, node: ast.BoolOp) -> bool | str:
        """`and`, `or`: what stands behind is not looked at if it does not matter, for it may not be there."""
        settles = isinstance(node.op, ast.Or)
        after = self.new_label()
        arrivals: list[tuple[str, str]] = []
        for each in node.values[:-1]:
            condition = self.condition(each)
            if isinstance(condition, bool):
                if condition is settles:
                    if not arrivals:
                        return settles
                    arrivals.append((str(settles).lower(), self.label))
                    break
                continue
            following = self.new_label()
            arrivals.append((str(settles).lower(), self.label))
            self.fork(condition, *((after, following) if settles else (following, after)))
            self.start(following)
        else:
            last = self.condition(node.values[-1])
            if not arrivals:
                return last
            arrivals.append((str(last).lower() if isinstance(last, bool) else last, self.label))
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

    def apply(self, node: ast.AST, function: Any, values: list[Any]) -> Any:
        if isinstance(function, type) and issubclass(function, tuple) and hasattr(function, "_fields"):
            if len(values) != len(function._fields):
                self.refuse(node, f"{function.__name__} has {len(function._fields)} parts, found {len(values)}")
            return Group(function, tuple(map(self.solid, values)))
        emit = primitives.find(function)
        if emit is not None:
            try:
                answer = emit(self, *values)
            except (primitives.RefusedError, TypeError) as error:
                name = getattr(function, "__name__", function)
                self.refuse(node, f"{name}: {error}")
            if answer is not NotImplemented:
                return answer
        return self.enter(node, function, values) if is_kernel(function) else self.defined(node, function, values)

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
                return self.enter(node, function, [self.solid(value) for value in values])
        name = getattr(op, "__name__", op)
        if op not in DEFINITIONS:
            self.refuse(node, f"calls {name}, which is no kernel")
        self.refuse(node, f"{name} is not defined for {', '.join(str(value.type) for value in values)}")

    def solid(self, value: Any) -> Any:
        """A literal as a value."""
        if isinstance(value, Group):
            return Group(value.cls, tuple(map(self.solid, value.parts)))
        if isinstance(value, Known):
            ty = common_type({value})
            if ty is not None:
                return Value(ty, *settled(value, ty))
        return value


def is_integer(x: Any) -> bool:
    return isinstance(x.value, int) if isinstance(x, Known) else x.type in (INT, BOOL)


def is_scalar(x: Any) -> bool:
    return not isinstance(x, Group) or x.cls in NUMBER_CLASSES


def is_plain_tuple(x: Any) -> bool:
    return x.cls is None if isinstance(x, Group) else isinstance(x, Known) and type(x.value) is tuple
