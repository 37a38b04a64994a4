"""The covering problem as an integer programme, solved by HiGHS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import highspy
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.planning.covering import Column, Covering


def cheapest_by_highs(problem: Covering, columns: Sequence[Column]) -> float:
    """Return the least cost of whole nodes with these configurations that cover the demand."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy has no types
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    infinity = highspy.kHighsInf
    for need in problem.demand:
        solver.addRow(float(need), infinity, 0, np.array([]), np.array([]))
    limited = [type_ for type_ in problem.types if problem.supplies[type_] is not None]
    for type_ in limited:
        solver.addRow(0.0, float(problem.supplies[type_] or 0), 0, np.array([]), np.array([]))
    for number, column in enumerate(columns):
        entries = [(row, float(each)) for row, each in enumerate(column.counts) if each]
        if column.type in limited:
            entries.append((len(problem.demand) + limited.index(column.type), 1.0))
        rows = np.array([row for row, _ in entries], dtype=np.int32)
        values = np.array([value for _, value in entries])
        price = float(problem.prices[column.type])
        solver.addCol(price, 0.0, infinity, len(entries), rows, values)
        solver.changeColIntegrality(number, highspy.HighsVarType.kInteger)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal, "HiGHS finds an optimum"
    return float(solver.getInfo().objective_function_value)
