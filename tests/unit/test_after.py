"""A test that goes on from others of its file is not run without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests import after
from tests.conftest import with_those_before


class Item:
    """As pytest has one, of a test or one of its cases."""

    def __init__(self, test: Callable[..., object]) -> None:
        self.function, self.nodeid = test, test.__name__

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        return (mark for mark in getattr(self.function, "pytestmark", ()) if mark.name == name)


def first() -> None: ...


def alone() -> None: ...


@after(first)
def second() -> None: ...


@after(second, alone)
def third() -> None: ...


def test_who_chooses_a_test_gets_those_that_it_goes_on_from_and_no_others() -> None:
    collected: list[Any] = [Item(each) for each in (first, first, alone, second, third)]  # of the first two cases

    def chosen(*tests: Callable[..., object]) -> list[str]:
        found = with_those_before([each for each in collected if each.function in tests], collected)
        return [each.nodeid for each in collected if each in found]

    assert chosen(alone) == ["alone"]
    assert chosen(second) == ["first", "first", "second"]
    assert chosen(third) == ["first", "first", "alone", "second", "third"]
    assert chosen(first, alone) == ["first", "first", "alone"]


def test_a_test_that_is_collected_without_what_it_goes_on_from_is_refused() -> None:
    collected: list[Any] = [Item(second)]
    with pytest.raises(pytest.UsageError, match=r"second goes on from first, which is not collected\. Choose it by -k\."):
        with_those_before(collected, collected)
