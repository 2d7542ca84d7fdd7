"""What the kernel language has not is refused by its place and by name."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from saltus.kernel.compile import assembly
from saltus.kernel.sources import KernelError
from saltus.kernel.target import packet
from tests.kernel.language import INTEGERS, MODEL, MODULE, NUMBERS, load

NAMES = """
SCALE, LIST, TABLE = 2.0, [1, 2], np.zeros(3)

class Pair(NamedTuple):
    a: Scalar
    b: Scalar

def unmarked(x):
    return x

"""

ERRORS: dict[str, tuple[str, str]] = {
    # What numbers do not do: lanes may disagree.
    "less_by_sign": (
        "if ld(v, 0) < 0.0: #!\n    pass",
        r"compares a number .* with 0.0, expected integers; numbers have `less`",
    ),
    "equal_by_sign": ("x = ld(v, 0) == ld(v, 1) #!", "compares a number .* with a number .*, expected integers"),
    "number_with_integer": ("if ld(v, 0) > n[0]: #!\n    pass", "compares a number .* with an integer"),
    "number_as_condition": (
        "if ld(v, 0): #!\n    pass",
        "a number .* as a condition, expected integers; numbers have `select` and `some`",
    ),
    "less_as_condition": (
        "if less(ld(v, 0), 0.0): #!\n    pass",
        "a comparison of numbers as a condition, expected integers; .* `some`",
    ),
    "while_on_numbers": (
        "x = ld(v, 0)\nwhile less(x, 9.0): #!\n    x = x + 1.0",
        "a comparison of numbers as a condition",
    ),
    "not_of_a_number": ("x = not ld(v, 0) #!", "a number .* as a condition"),
    "or_of_integers": (
        "k = n[0] or 5 #!",
        "an integer as an operand of a logical operator whose value is kept, expected a condition",
    ),
    "condition_as_number": ("st(y, 0, n[0] < 3) #!", "st: expected a number, found a condition"),
    "is_with_a_number": (
        "if n[0] is n[1]: #!\n    pass",
        "asks whether an integer is an integer, expected None on one side",
    ),
    "membership": ("if n[0] in (1, 2): #!\n    pass", "the language has no operator in"),
    "none_is_less": ("if None < 3: #!\n    pass", "'<' not supported between instances of 'NoneType' and 'int'"),
    # What Python has and the language has not.
    "list_comprehension": ("x = [k for k in range(3)] #!", "the language has no list comprehension"),
    "generator": ("x = sum(k for k in range(3)) #!", "the language has no generator"),
    "set_comprehension": ("x = {k for k in range(3)} #!", "the language has no set comprehension"),
    "dict_comprehension": ("x = {k: k for k in range(3)} #!", "the language has no dictionary comprehension"),
    "list": ("x = [1, 2] #!", "the language has no list"),
    "dictionary": ("x = {1: 2} #!", "the language has no dictionary"),
    "set": ("for k in {1, 2}: #!\n    pass", "the language has no set"),
    "lambda": ("f = lambda x: x #!", "the language has no lambda"),
    "try": ("try: #!\n    st(y, 0, 1.0)\nexcept ValueError:\n    pass", "the language has no try"),
    "raise": ("raise ValueError #!", "the language has no raise"),
    "assert": ("assert n[0] > 0 #!", "the language has no assert"),
    "with": ("with open('f'): #!\n    pass", "the language has no with"),
    "del": ("x = 1\ndel x #!", "the language has no del"),
    "global": ("global LIST #!\nLIST = 1", "the language has no global"),
    "import": ("import os #!", "the language has no import"),
    "from_import": ("from os import path #!", "the language has no import"),
    "function_within": (
        "def f(x): #!\n    return x\nst(y, 0, f(1.0))",
        "the language has no function within a function",
    ),
    "nonlocal": ("def f(): #!\n    nonlocal n", "the language has no function within a function"),
    "class_within": ("class A: #!\n    pass", "the language has no class"),
    "match": ("match n[0]: #!\n    case 1:\n        pass", "the language has no match"),
    "walrus": ("if (k := n[0]) > 1: #!\n    pass", "the language has no assignment within an expression"),
    "annotation": ("x: float = 1.0 #!", "the language has no annotated assignment"),
    "yield": ("yield 1 #!", "the language has no yield"),
    "yield_from": ("yield from (1, 2) #!", "the language has no yield"),
    "formatted_string": ("x = f'{n[0]}' #!", "the language has no formatted string"),
    "else_of_for": ("for k in range(3): #!\n    pass\nelse:\n    pass", "the language has no else of a loop"),
    "else_of_while": ("while n[0] > 9: #!\n    pass\nelse:\n    pass", "the language has no else of a loop"),
    "power": ("x = ld(v, 0) ** 2 #!", r"the language has no power \*\*"),
    "shift": ("k = n[0] << 2 #!", "the language has no operator <<"),
    "exclusive_or": ("k = n[0] ^ 2 #!", r"the language has no operator \^"),
    "plus_sign": ("x = +ld(v, 0) #!", r"the language has no sign \+"),
    "complement": ("k = ~n[0] #!", "the language has no operator ~"),
    "slice": ("x = v[1:3] #!", "the language has no slice"),
    "slice_of_a_tuple": ("x = (1, 2, 3)[1:] #!", "the language has no slice"),
    "starred_target": (
        "a, *b = (1, 2, 3) #!",
        "the language has no star on the left of =, expected names or elements of arrays",
    ),
    "attribute_target": ("w.memory = 1.0 #!", "the language has no attribute on the left of ="),
    "list_target": ("[a, b] = (1, 2) #!", "the language has no list on the left of ="),
    # Arithmetic.
    "quotient_of_integers": (
        "k = n[0] / 2 #!",
        "the language has no quotient of integers; // rounds down, and `1.0 \\* k` is a number",
    ),
    "remainder_of_numbers": ("x = ld(v, 0) % 2 #!", "the language has no remainder of a number .* and 2"),
    "whole_quotient_of_numbers": ("x = 2 // ld(v, 0) #!", "the language has no whole quotient of 2 and a number"),
    "matrix_product_of_numbers": (
        "x = ld(v, 0) @ ld(v, 1) #!",
        "the language has no matrix product of a number .* and a number",
    ),
    "bits_of_numbers": ("x = ld(v, 0) | 1 #!", r"the language has no operator \| of a number .* and 1"),
    "division_by_zero": ("k = n[0] // 0 #!", "integer division by zero"),
    "known_division_by_zero": ("x = 1.0 / 0 #!", "(float )?division by zero"),
    "sum_with_none": ("x = ld(v, 0) + None #!", "the language has no sum of a number .* and None"),
    "sum_with_text": ("x = ld(v, 0) + 'a' #!", "the language has no sum of a number .* and 'a'"),
    "sum_of_what_is_known": ("x = 1 + 'a' #!", "unsupported operand type"),
    "sum_with_an_array": ("x = v + 1.0 #!", "the language has no sum of an array and 1.0"),
    "sum_with_a_function": (
        "x = 2 * ld(v, 0) + sqrt #!",
        "the language has no sum of a number .* and the function sqrt",
    ),
    "negative_none": ("x = -None #!", "the language has no sign - of None"),
    "negative_condition": ("x = -(n[0] < 1) #!", "the language has no sign - of a condition"),
    "operator_that_is_not_defined": ("p = Vec3(ld(v, 0), 0.0, 0.0) + 1.0 #!", r"add is not defined for a Vec3, 1.0"),
    "tuple_times_number": ("p = (ld(v, 0), 1) * 2 #!", "mul is not defined for a tuple \\(a number .*, 1\\), 2"),
    "vector_with_none": ("p = None * Vec3(ld(v, 0), 0.0, 0.0) #!", "mul is not defined for None, a Vec3"),
    "integer_too_large": (
        "k = n[0] + 99999999999999999999 #!",
        "the integer 99999999999999999999 does not fit into 64 bits",
    ),
    "literal_too_large": (f"x = ld(v, 0) * 1{'0' * 400} #!", "the integer 10+ is larger than any number"),
    # Names.
    "undefined": ("x = velocty #!", "velocty is not bound"),
    "bound_on_one_way": ("if n[0] > 0:\n    x = 1.0\nst(y, 0, x) #!", "x is not bound on every way that leads here"),
    "bound_in_a_loop": (
        "for k in range(n[0]):\n    x = 1.0\nst(y, 0, x) #!",
        "x is not bound on every way that leads here",
    ),
    "bound_later": ("st(y, 0, SCALE) #!\nSCALE = 2.0", "SCALE is not bound"),
    "bound_where_nobody_goes": ("if False:\n    sum = 1.0\nst(y, 0, sum) #!", "sum is not bound"),
    "index_after_the_loop": ("for k in range(3):\n    pass\nst(y, 0, k) #!", "k is the index of a loop that has ended"),
    "two_types": (
        "if n[0] > 0:\n    x = 1\nelse:\n    x = Vec3(0.0, 0.0, 0.0)\nst(y, 0, x) #!",
        "x is 1 or a Vec3, depending on the way taken",
    ),
    "two_lengths": (
        "t = (1, 2) if n[0] > 0 else (1, 2, 3) #!",
        "the choice is a tuple \\(1, 2\\) or a tuple \\(1, 2, 3\\), depending on the way taken",
    ),
    "choice_of_functions": (
        "f = sqrt if n[0] > 0 else fabs #!",
        "the choice is the function fabs or the function sqrt, depending on the way taken",
    ),
    "type_that_changes": (
        "k = n[0]\nfor _ in range(3):\n    k = (k, 1) #!",
        r"k is an integer before the loop, and at its end a tuple \(an integer, 1\)",
    ),
    "type_that_changes_behind": (
        "x = n[0]\nfor i in range(2):\n    for k in range(2):\n        x = x + 1 #!\n    st(y, i, x)\n    x = Pair(x, 1)",
        "x is an integer before the loop, and at its end a Pair",
    ),
    "type_that_changes_after_branches": (
        "x = n[0]\nfor i in range(2):\n    if n[1] > 0:\n        x = 5\n    st(y, i, x) #!\n    x = Vec3(0.0, 0.0, 0.0)",
        "x is an integer before the loop, and at its end a Vec3",
    ),
    "type_that_changes_on_one_way": (
        "x = n[0]\nfor i in range(2):\n    st(y, i, x) #!\n    if n[1] > 0:\n        x = None",
        "x is an integer before the loop, and at its end None or an integer, depending on the way taken",
    ),
    "integer_that_becomes_a_number": (
        "k = n[0]\nfor _ in range(3):\n    st(y, n[k], 1.0) #!\n    k = 0.5 * k",
        "a number .* as an index, expected an integer",
    ),
    "none_that_changes": (
        "x = None\nfor k in range(3):\n    if x is not None: #!\n        st(y, 0, x)\n    x = ld(v, k)",
        "x is None before the loop, and at its end a number .*",
    ),
    # Tuples.
    "too_few_names": ("a, b = (1, 2, 3) #!", "unpacks 3 values into 2 names"),
    "too_many_names": ("a, b, c = Vec3(0.0, 0.0, 0.0), 1 #!", "unpacks 2 values into 3 names"),
    "unpacked_number": ("a, b = ld(v, 0) #!", "expected a tuple, found a number"),
    "starred_array": ("x = maximum(*v) #!", "expected a tuple, found an array"),
    "variable_index_of_a_tuple": (
        "t = (1, 2)\nst(y, 0, t[n[0]]) #!",
        "an integer as the index of a tuple \\(1, 2\\), expected a literal within it",
    ),
    "index_beyond_a_tuple": ("x = (1, 2)[2] #!", "2 as the index of a tuple \\(1, 2\\), expected a literal within it"),
    "attribute_of_a_tuple": ("x = Vec3(0.0, 0.0, 0.0).w #!", "a Vec3 has no attribute w"),
    "method_of_a_tuple": ("x = Vec3(0.0, 0.0, 0.0)._replace(x=1.0) #!", "a Vec3 has no attribute _replace"),
    "attribute_of_a_field": ("x = w.memry[0] #!", "a View has no attribute memry"),
    "attribute_of_an_array": ("k = v.shape #!", "an array has no attribute shape"),
    "attribute_of_a_module": ("x = math.tau2 #!", "the module math has no attribute tau2"),
    "parts_of_a_class": ("p = Vec3(0.0, 0.0) #!", "Vec3 has 3 parts, found 2"),
    "tuple_as_condition": ("if Vec3(0.0, 0.0, 0.0): #!\n    pass", "a Vec3 as a condition"),
    "tuples_compared": (
        "if (n[0], 1) == (1, 1): #!\n    pass",
        "compares a tuple \\(an integer, 1\\) with a tuple \\(1, 1\\), expected integers",
    ),
    # Memory.
    "index_by_a_number": ("x = v[1.0] #!", "1.0 as an index, expected an integer"),
    "index_by_a_variable_number": ("x = ld(v, ld(v, 0)) #!", "ld: expected an integer as the index, found a number"),
    "two_indices": ("x = v[0, 1] #!", "a tuple \\(0, 1\\) as an index, expected an integer"),
    "negative_index": ("x = v[-1] #!", "the index -1, expected one from 0 on: arrays do not know where they end"),
    "index_of_a_number": ("x = ld(v, 0)[0] #!", "a number .* has no elements, expected an array, a field or a tuple"),
    "index_of_a_list": ("x = LIST[0] #!", "a list has no elements, expected an array, a field or a tuple"),
    "index_of_a_table": ("x = TABLE[n[0]] #!", "a ndarray has no elements"),
    "none_as_array": ("x = ld(None, 0) #!", "ld: expected an array, found None"),
    "class_that_is_none": ("x = ld(v, 0, n[0]) #!", "ld: expected a class of tuples, found an integer"),
    "class_of_python": ("x = ld(v, 0, float) #!", "ld: expected a class of tuples, found the class float"),
    "class_of_a_field": ("x = ld(w.point, 0, Pair) #!", "ld: a field of Vec3 has no other class"),
    "few_arguments_of_ld": ("x = ld(v) #!", "ld: found 1 arguments, expected 2 or 3"),
    "many_arguments_of_ld": ("x = ld(v, 0, Vec3, 1) #!", "ld: found 4 arguments, expected 2 or 3"),
    "few_arguments_of_st": ("st(y, 0) #!", "st: found 2 arguments, expected 3"),
    "text_in_memory": ("st(y, 0, 'a') #!", "st: expected a number, found 'a'"),
    "none_in_memory": ("st(y, 0, (1.0, None)) #!", "st: expected a number, found None"),
    "array_in_memory": ("st(y, 0, v) #!", "st: expected a number, found an array"),
    "another_class_in_a_field": ("w.point[0] = Pair(1.0, 2.0) #!", "writes a Pair, expected a Vec3"),
    "number_in_a_field_of_tuples": ("w.point[0] = 1.0 #!", "writes 1.0, expected a Vec3"),
    "number_in_a_field_by_st": ("st(w.point, 0, ld(v, 0)) #!", "st: writes a number .*, expected a Vec3"),
    "tuple_in_a_field_of_numbers": ("w.memory[0] = Pair(1.0, 2.0) #!", "writes a Pair, expected a number"),
    "number_in_a_field_of_integers": ("w.count[0] = 1.0 #!", "writes 1.0, expected an integer"),
    "variable_number_in_a_field_of_integers": (
        "st(w.count, 0, ld(v, 0)) #!",
        "st: writes a number .*, expected an integer",
    ),
    "number_added_to_a_field_of_integers": (
        "w.count[0] = 0\nw.count[0] += ld(v, 0) #!",
        "writes a number .*, expected an",
    ),
    "comparison_in_a_field_of_integers": (
        "w.count[0] = less(ld(v, 0), 1.0) #!",
        "writes a comparison of numbers, expected an integer",
    ),
    "tuple_in_a_field_of_integers": ("w.count[0] = (1, 2) #!", r"writes a tuple \(1, 2\), expected an integer"),
    "condition_in_a_field_of_numbers": ("w.memory[0] = n[0] < 3 #!", "writes a condition, expected a number"),
    "integer_in_a_field_of_tuples": ("w.point[0] = n[0] #!", "writes an integer, expected a Vec3"),
    "field_of_integers_as_numbers": (
        "x = zero(w.count) #!",
        "zero: expected an array of numbers, found one of integers",
    ),
    "class_of_a_field_of_integers": ("x = ld(w.count, 0, Vec3) #!", "ld: a field of integers has no other class"),
    "class_int": ("x = ld(w.count, 0, int) #!", "ld: expected a class of tuples, found the class int"),
    "symmetric_integers": (
        "st_symmetric(w.count, 2, 1, 0, 1.0) #!",
        "st_symmetric: expected an array or a field of numbers, found one of integers",
    ),
    "symmetric_in_a_field_of_tuples": (
        "st_symmetric(w.point, 2, 1, 0, 1.0) #!",
        "st_symmetric: expected an array or a field of numbers, found one of Vec3",
    ),
    "integer_that_is_too_large": (f"w.count[0] = {2**63} #!", f"the integer {2**63} does not fit into 64 bits"),
    "tuple_of_wrong_parts": (
        "w.point[0] = Vec3(Pair(1.0, 2.0), 3.0, 4.0) #!",
        "writes a Vec3 of a Pair, a number .*, a number .*, expected a Vec3",
    ),
    "tuple_in_an_array": ("y[0] = Pair(1.0, 2.0) #!", "writes a Pair, expected a number"),
    "writes_to_the_model": ("tree.parent[0] = 1 #!", "writes to what is constant: the model, or an input of integers"),
    "writes_to_integers": ("n[0] += 1 #!", "writes to what is constant"),
    "writes_to_a_tuple": ("t = (1, 2)\nt[0] = 3 #!", "changes a tuple \\(1, 2\\), expected an array or a field"),
    "zero_of_integers": ("k = zero(n) #!", "zero: expected an array of numbers, found one of integers"),
    "zero_of_a_number": ("k = zero(1.0) #!", "zero: expected an array, found 1.0"),
    "tail_of_a_field": (
        "x = tail(w.point, 1) #!",
        "tail: expected an array, or a field of numbers that has its group to itself, found a field",
    ),
    "symmetric_tuple": (
        "st_symmetric(y, 3, 1, 0, (1.0, 2.0)) #!",
        "st_symmetric: expected a number, found a tuple \\(1.0, 2.0\\)",
    ),
    # Calls.
    "numpy": (
        "x = np.sin(ld(v, 0)) #!",
        "calls np.sin, which is no kernel, expected one, or a function of saltus.kernel",
    ),
    "math": ("x = math.sin(ld(v, 0)) #!", "calls math.sin, which is no kernel"),
    "print": ("print(n[0]) #!", "calls print, which is no kernel"),
    "abs": ("x = abs(ld(v, 0)) #!", "calls abs, which is no kernel"),
    "float": ("x = float(n[0]) #!", "calls float, which is no kernel"),
    "enumerate": ("for k, x in enumerate((1, 2)): #!\n    pass", "calls enumerate, which is no kernel"),
    "not_marked": ("x = unmarked(1.0) #!", "calls unmarked, which is no kernel"),
    "list_called": ("x = LIST(1) #!", "calls LIST, which is no kernel"),
    "number_called": ("x = ld(v, 0)\nx(1) #!", "calls a number .*, expected a function"),
    "by_name": ("st(y, 0, value=1.0) #!", "the language has no arguments by name"),
    "dictionary_of_arguments": ("st(y, 0, **{}) #!", "the language has no arguments by name"),
    "sqrt_of_an_array": ("x = sqrt(v) #!", "sqrt is not defined for an array"),
    "sqrt_of_a_condition": ("x = sqrt(n[0] < 1) #!", "sqrt is not defined for a condition"),
    "sqrt_of_two": ("x = sqrt(1.0, 2.0) #!", "sqrt: found 2 arguments, expected 1"),
    "sincos_of_two": ("x = sincos(1.0, 2.0) #!", "sincos: found 2 arguments, expected 1"),
    "less_of_tuples": ("x = less((1, n[0]), 2) #!", "less is not defined for a tuple \\(1, an integer\\), 2"),
    "select_by_an_integer": ("x = select(n[0], 1.0, 2.0) #!", "select: expected a condition, found an integer"),
    "select_by_a_number": ("x = select(ld(v, 0), 1.0, 2.0) #!", "select: expected a condition, found a number"),
    "select_of_two": ("x = select(less(ld(v, 0), 0.0), 1.0) #!", "select: found 2 arguments, expected 3"),
    "select_of_tuples": (
        "x = select(less(ld(v, 0), 0.0), (1, 2), (1, n[0])) #!",
        "select is not defined for a comparison of numbers, a tuple \\(1, 2\\), a tuple \\(1, an integer\\)",
    ),
    "some_of_a_number": ("x = some(ld(v, 0)) #!", "some: expected a condition, found a number"),
    "zero_of_a_tuple": ("x = is_zero((1.0, 2.0)) #!", r"is_zero: expected a number, found a tuple \(1.0, 2.0\)"),
    "zero_of_none": ("x = is_zero(None) #!", "is_zero: expected a number, found None"),
    "zero_of_an_array": ("x = is_zero(v) #!", "is_zero: expected a number, found an array"),
    "zero_of_a_condition": ("x = is_zero(n[0] < 1) #!", "is_zero: expected a number, found a condition"),
    "largest_of_one": ("x = largest(ld(v, 0)) #!", "largest: found 1 arguments, expected 2"),
    "lift_of_none": ("x = lift(None, ld(v, 0)) #!", "lift: expected numbers, found None and a number"),
    "min_of_numbers": ("x = min(ld(v, 0), 1) #!", r"min: expected integers \(numbers have `minimum`\), found a number"),
    "min_of_three": ("x = min(1, 2, n[0]) #!", "min: found 3 arguments, expected 2"),
    "min_of_nothing": ("x = min(None, 1) #!", "min: expected integers .*, found None"),
    "length_of_an_array": ("x = len(v) #!", "len: expected a tuple, found an array"),
    "root_of_a_number": ("x = math.isqrt(ld(v, 0)) #!", "math.isqrt: expected an integer, found a number"),
    "root_of_a_negative": ("x = math.isqrt(-4) #!", "math.isqrt: expected an integer from 0 on, found -4"),
    "four_of_a_number": ("x = four(ld(v, 0)) #!", "four: expected a Quad, found a number"),
    # Loops.
    "range_of_numbers": ("for k in range(2.0): #!\n    pass", "a range takes one to three integers"),
    "range_of_variable_numbers": ("for k in range(ld(v, 0)): #!\n    pass", "a range takes one to three integers"),
    "range_of_nothing": ("for k in range(): #!\n    pass", "a range takes one to three integers"),
    "range_of_four": ("for k in range(1, 2, 3, 4): #!\n    pass", "a range takes one to three integers"),
    "range_by_name": ("for k in range(stop=3): #!\n    pass", "the language has no arguments by name"),
    "step_zero": ("for k in range(0, 3, 0): #!\n    pass", "the step of a range is 0"),
    "step_false": ("for k in range(0, 3, False): #!\n    pass", "the step of a range is 0"),
    "two_indices_of_a_range": ("for i, k in range(3): #!\n    pass", "a loop over a range has one name"),
    "range_as_a_value": ("x = range(3) #!", "calls range, which is no kernel"),
    "over_a_list": ("for x in [1, 2]: #!\n    pass", "the language has no list"),
    "over_a_known_list": ("for x in LIST: #!\n    pass", "expected a tuple, found a list"),
    "over_an_array": ("for x in v: #!\n    pass", "expected a tuple, found an array"),
    "over_an_integer": ("for x in n[0]: #!\n    pass", "expected a tuple, found an integer"),
    # Functions.
    "keyword_only": (
        "@kernel\ndef helper(x, *, y): #!\n    return x\n---\nhelper(1.0)",
        r"has parameters with \*, \*\* or defaults, expected plain ones",
    ),
    "defaults": ("@kernel\ndef helper(x, y=1.0): #!\n    return x\n---\nhelper(1.0)", "has parameters with"),
    "any_number_of_arguments": ("@kernel\ndef helper(*x): #!\n    return x\n---\nhelper(1.0)", "has parameters with"),
    "arguments_by_any_name": ("@kernel\ndef helper(**x): #!\n    return 1.0\n---\nhelper()", "has parameters with"),
    "few_arguments": (
        "@kernel\ndef helper(x, z): #!\n    return x\n---\nhelper(1.0)",
        "is called with 1 arguments, expected 2",
    ),
    "many_arguments": (
        "@kernel\ndef helper(x): #!\n    return x\n---\nhelper(1.0, *(2, 3))",
        "is called with 3 arguments, expected 1",
    ),
    "recursion": (
        "@kernel\ndef helper(x): #!\n    return helper(x) + 1\n---\nst(y, 0, helper(n[0]))",
        "calls itself, directly or through others",
    ),
    "recursion_in_a_round": (
        "@kernel\ndef helper(x): #!\n    return other(x)\n@kernel\ndef other(x):\n    return helper(x)\n---\n"
        "st(y, 0, helper(n[0]))",
        "calls itself, directly or through others",
    ),
    "recursion_without_end": (
        "@kernel\ndef helper(k): #!\n    return helper(k + 1)\n---\nst(y, 0, helper(0))",
        "calls itself with ever new literals, or is nested too deeply",
    ),
    "returns_two_things": (
        "@kernel\ndef helper(k): #!\n    if k > 0:\n        return 1.0\n    return (1, 2)\n---\nhelper(n[0])",
        "returns 1.0 or a tuple \\(1, 2\\), depending on the way taken",
    ),
    "returns_or_not": (
        "@kernel\ndef helper(k): #!\n    if k > 0:\n        return 1.0\n---\nst(y, 0, helper(n[0]))",
        "returns 1.0 or None, depending on the way taken",
    ),
    "wrapped": (
        "def logged(f):\n    def wrapper(*args): #!\n        return f(*args)\n    return wrapper\n"
        "@kernel\n@logged\ndef helper(x):\n    return x\n---\nhelper(1.0)",
        "has parameters with",
    ),
    "none_in_a_sum": (
        "@kernel\ndef helper(x):\n    return x + 1.0 #!\n---\nst(y, 0, helper(None))",
        "unsupported operand type.*NoneType",
    ),
}
"""By name: the body of a kernel, after others that it calls (---), with a mark at the line to blame; what is said of it."""


@pytest.mark.parametrize("name", ERRORS)
def test_refused(name: str, tmp_path: Path) -> None:
    """For one sample and for packets; the message has the file, the line and the kernel."""
    code, words = ERRORS[name]
    before, _, body = code.rpartition("---\n")
    header = f"@declared\ndef _{name}(tree, n, v, w, y):\n"
    text = MODULE + NAMES + before + header + textwrap.indent(body, "    ") + "\n"
    line = text[: text.index("#!")].count("\n") + 1
    blamed = f"_{name}" if "#!" in body else re.findall(r"def (\w+)", before[: before.index("#!")])[-1]
    place = re.escape(f"{tmp_path / f'_{name}.py'}:{line}: kernel {blamed}: ")
    wrong = load(tmp_path, f"_{name}", text)
    for _ in range(2):
        with pytest.raises(KernelError, match=f"^{place}{words}"):
            wrong.call(MODEL, (INTEGERS[0], NUMBERS[0]))
    with pytest.raises(KernelError, match=f"^{place}{words}"):
        assembly(wrong, packet(64), wrong.present(2), "many", "symbol")


WAY = """
@kernel
def inner(x):
    return x < 1.0  # 1

@defines(operator.add, Pair, Pair)
def _(p, q):
    return inner(p.a)  # 2

@kernel
def outer(x):
    p = Pair(x, x)
    return p + p  # 3

@declared
def _way(tree, n, v, w, y):
    for k in range(3):
        st(y, k, outer(
            ld(v, k)))  # 4
"""


def test_the_way_to_an_error(tmp_path: Path) -> None:
    """From where it is to the algorithm, through operators and loops; of a call of many lines, the first."""
    text = MODULE + "import operator\n" + NAMES + WAY
    file, lines = tmp_path / "_way.py", text.splitlines()
    inner, plus, outer, way = ((next(k for k, line in enumerate(lines, 1) if f"# {n}" in line)) for n in (1, 2, 3, 4))
    with pytest.raises(KernelError, match=f"^{re.escape(str(file))}:{inner}: kernel inner: compares") as caught:
        load(tmp_path, "_way", text).call(MODEL, (INTEGERS[0], NUMBERS[0]))
    told = [
        f"called from {file}:{line}: kernel {name}" for line, name in ((plus, "_"), (outer, "outer"), (way - 1, "_way"))
    ]
    assert caught.value.__notes__[:3] == told and len(caught.value.__notes__) == 4
