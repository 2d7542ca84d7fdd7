"""Which rounds of a loop count as limbs: those that follow from each other do not."""

from __future__ import annotations

from saltus.kernel.limbs import are_apart, given_first


def limbs(*texts: str) -> list[list[list[list[str]]]]:
    """The names of each line, of limbs of one round."""
    return [[[given_first(f"  {line.strip()}") for line in text.split("\n")]] for text in texts]


def test_what_a_line_gives() -> None:
    assert given_first("  %1 = fmul double %x, %2") == ["%1", "%x", "%2"]
    assert given_first("  store double %x, ptr %p, align 8") == ["", "%x", "%p"]


def test_what_limbs_write_is_not_theirs() -> None:
    """A number that is there before all of them is given by none, wherever they store it."""
    assert are_apart(limbs(*(f"store double %x, ptr %p{k}, align 8\n%{k} = fmul double %x, %{k}0" for k in range(4))))


def test_limbs_that_follow_from_each_other() -> None:
    assert not are_apart(limbs("%0 = fneg double %x", *(f"%{k} = fneg double %{k - 1}" for k in range(1, 4))))
