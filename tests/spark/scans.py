"""What the scans of executed plans did: their leaves and their metrics."""

from __future__ import annotations

from typing import Any


def leaves_of(frame: Any) -> list[Any]:
    """The leaves of an executed plan, those of its adaptive stages too."""
    found, waiting = [], [frame._jdf.queryExecution().executedPlan()]
    while waiting:
        plan = waiting.pop()
        name = plan.nodeName()
        if "AdaptiveSparkPlan" in name:
            waiting.append(plan.executedPlan())
        elif "QueryStage" in name:
            waiting.append(plan.plan())
        elif plan.children().isEmpty():
            found.append(plan)
        else:
            children = plan.children()
            waiting += [children.apply(number) for number in range(children.size())]
    return found


def scans_of(frame: Any) -> list[Any]:
    """The scans of files in an executed plan."""
    return [leaf for leaf in leaves_of(frame) if leaf.nodeName().startswith("Scan ")]


def metric(scan: Any, name: str) -> int:
    """The value of a scan's metric. The metrics of fastpq begin with ``fastpq.``."""
    return int(scan.metrics().apply(name).value())


def plan_of(frame: Any) -> str:
    """The physical plan as text."""
    return str(frame._jdf.queryExecution().executedPlan().toString())
