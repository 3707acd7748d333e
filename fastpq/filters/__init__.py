"""Row filters: they are parsed, decided by statistics and page indexes where possible, and else evaluated on the values.

predicate parses filters into a tree of conditions. literals converts filter values to keys that can be compared. evidence gives
bounds, by which a condition may be decided without reading values. filtering evaluates the other conditions on values, and
compare does this for text and bytes. answers takes null counts, minima and maxima from statistics.
estimates says which share of the rows filters keep, for those who plan a read.
"""

from typing import TYPE_CHECKING

from fastpq.common.lazy import lazy_names

if TYPE_CHECKING:
    from fastpq.filters.combinations import is_condition, junction
    from fastpq.filters.estimates import FilterEstimate, estimate_filters
    from fastpq.filters.predicate import Outcome

__all__ = [
    "FilterEstimate",
    "Outcome",
    "estimate_filters",
    "is_condition",
    "junction",
]

# The names that each module defines. The module is imported when one of them is first used.
_NAMES_OF = {
    "fastpq.filters.combinations": ("is_condition", "junction"),
    "fastpq.filters.estimates": ("FilterEstimate", "estimate_filters"),
    "fastpq.filters.predicate": ("Outcome",),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_OF)
