"""Evaluation: pipelines scored on data, variants compared, a verdict.

    from attractor_nb.evaluation import agreement, equals, judge

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.lazy_imports import deferred

if TYPE_CHECKING:
    from attractor_nb.evaluation.comparison import compare_scored as compare_scored
    from attractor_nb.evaluation.judging import judge as judge
    from attractor_nb.evaluation.label_agreement import agreement as agreement
    from attractor_nb.evaluation.rows_of_runs import rows_from as rows_from
    from attractor_nb.evaluation.scored_rows import read_baseline as read_baseline
    from attractor_nb.evaluation.scorers import Score as Score
    from attractor_nb.evaluation.scorers import Scorer as Scorer
    from attractor_nb.evaluation.scorers import contains as contains
    from attractor_nb.evaluation.scorers import cost as cost
    from attractor_nb.evaluation.scorers import equals as equals
    from attractor_nb.evaluation.scorers import json_schema as json_schema
    from attractor_nb.evaluation.scorers import latency as latency
    from attractor_nb.evaluation.scorers import matches as matches
    from attractor_nb.evaluation.scorers import route as route
    from attractor_nb.evaluation.scorers import visits as visits
else:
    __getattr__ = deferred(
        __name__,
        {
            "compare_scored": "evaluation.comparison",
            "judge": "evaluation.judging",
            "agreement": "evaluation.label_agreement",
            "rows_from": "evaluation.rows_of_runs",
            "read_baseline": "evaluation.scored_rows",
            "Score": "evaluation.scorers",
            "Scorer": "evaluation.scorers",
            "contains": "evaluation.scorers",
            "cost": "evaluation.scorers",
            "equals": "evaluation.scorers",
            "json_schema": "evaluation.scorers",
            "latency": "evaluation.scorers",
            "matches": "evaluation.scorers",
            "route": "evaluation.scorers",
            "visits": "evaluation.scorers",
        },
    )

__all__ = [
    "Score",
    "Scorer",
    "agreement",
    "compare_scored",
    "contains",
    "cost",
    "equals",
    "json_schema",
    "judge",
    "latency",
    "matches",
    "read_baseline",
    "route",
    "rows_from",
    "visits",
]
