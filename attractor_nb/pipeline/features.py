"""What a pipeline and a run can do: each name is imported when it is first used.

The façade calls ``features.render_svg(graph)``, and a process loads what it needs. See ``deferred``.
"""
# ruff: noqa: PLC0414 - as in the package root, an alias says that a name is offered

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.deferred import deferred

if TYPE_CHECKING:
    from attractor_nb.backends.agents.list_prices import priced_model as priced_model
    from attractor_nb.backends.llm.prices import price_of as price_of
    from attractor_nb.backends.llm.tools.functions import checked_functions as checked_functions
    from attractor_nb.decisions.estimates import Assumptions as Assumptions
    from attractor_nb.decisions.joins import joins_of as joins_of
    from attractor_nb.decisions.plan import compile_plan as compile_plan
    from attractor_nb.handlers.forms import form_problems as form_problems
    from attractor_nb.handlers.registry import HandlerRegistry as HandlerRegistry
    from attractor_nb.handlers.schemas import checked_schemas as checked_schemas
    from attractor_nb.handlers.supervision import checked_guards as checked_guards
    from attractor_nb.languages.dot.writer import write_dot as write_dot
    from attractor_nb.lint.rules.handlers import HANDLER_MISSING as HANDLER_MISSING
    from attractor_nb.model.text_files import TEXT_FILE as TEXT_FILE
    from attractor_nb.model.text_files import with_literal_texts as with_literal_texts
    from attractor_nb.pipeline.changes import changes_of as changes_of
    from attractor_nb.pipeline.changes import place_facts as place_facts
    from attractor_nb.pipeline.checking import check_result as check_result
    from attractor_nb.pipeline.checking import read_expectation as read_expectation
    from attractor_nb.pipeline.estimating import estimate as estimate
    from attractor_nb.pipeline.execution import Execution as Execution
    from attractor_nb.pipeline.execution import of_kind as of_kind
    from attractor_nb.pipeline.families import Ancestry as Ancestry
    from attractor_nb.pipeline.families import Family as Family
    from attractor_nb.pipeline.families import FamilySearch as FamilySearch
    from attractor_nb.pipeline.families import foreign_origin as foreign_origin
    from attractor_nb.pipeline.launching import go_on as go_on
    from attractor_nb.pipeline.launching import options_for as options_for
    from attractor_nb.pipeline.launching import refuse_own_loop as refuse_own_loop
    from attractor_nb.pipeline.launching import resume_run as resume_run
    from attractor_nb.pipeline.launching import start_run as start_run
    from attractor_nb.pipeline.lint_report import LintReport as LintReport
    from attractor_nb.pipeline.lookback import look_back as look_back
    from attractor_nb.pipeline.maps.launch import MapWish as MapWish
    from attractor_nb.pipeline.maps.launch import continue_map as continue_map
    from attractor_nb.pipeline.maps.launch import start_map as start_map
    from attractor_nb.pipeline.maps.options import split_options as split_options
    from attractor_nb.pipeline.model_report import model_report as model_report
    from attractor_nb.pipeline.preflight import examine as examine
    from attractor_nb.pipeline.preparation import Preparation as Preparation
    from attractor_nb.pipeline.preparation import prepare as prepare
    from attractor_nb.pipeline.recording import cassette_options as cassette_options
    from attractor_nb.pipeline.resuming import check_own as check_own
    from attractor_nb.pipeline.resuming import complete_end as complete_end
    from attractor_nb.pipeline.resuming import continue_run as continue_run
    from attractor_nb.pipeline.resuming import with_recorded_plugs as with_recorded_plugs
    from attractor_nb.pipeline.rewinding import read_rewind as read_rewind
    from attractor_nb.pipeline.run import Run as Run
    from attractor_nb.pipeline.run_inputs import checked_inputs as checked_inputs
    from attractor_nb.pipeline.run_inputs import declared_inputs as declared_inputs
    from attractor_nb.pipeline.run_inputs import registered_inputs as registered_inputs
    from attractor_nb.pipeline.secrets import learn_environment as learn_environment
    from attractor_nb.pipeline.text_files import TextFiles as TextFiles
    from attractor_nb.pipeline.trust import absolute_origin as absolute_origin
    from attractor_nb.pipeline.why import why as why
    from attractor_nb.transforms.merge import replaced as replaced
    from attractor_nb.views.changes import Changes as Changes
    from attractor_nb.views.changes import cut_diff as cut_diff
    from attractor_nb.views.changes import read_numstat as read_numstat
    from attractor_nb.views.findings import findings_text as findings_text
    from attractor_nb.views.mermaid import to_mermaid as to_mermaid
    from attractor_nb.views.run_details import run_details as run_details
    from attractor_nb.views.spending import so_far as so_far
    from attractor_nb.views.still import picture_bundle as picture_bundle
    from attractor_nb.views.summary import duration_text as duration_text
    from attractor_nb.views.summary import run_summary as run_summary
    from attractor_nb.views.summary import usage_words as usage_words
    from attractor_nb.views.svg import render_svg as render_svg
    from attractor_nb.views.text_table import graph_text as graph_text
else:
    __getattr__ = deferred(
        __name__,
        {
            "priced_model": "backends.agents.list_prices",
            "price_of": "backends.llm.prices",
            "checked_functions": "backends.llm.tools.functions",
            "Assumptions": "decisions.estimates",
            "joins_of": "decisions.joins",
            "compile_plan": "decisions.plan",
            "form_problems": "handlers.forms",
            "HandlerRegistry": "handlers.registry",
            "checked_schemas": "handlers.schemas",
            "checked_guards": "handlers.supervision",
            "write_dot": "languages.dot.writer",
            "HANDLER_MISSING": "lint.rules.handlers",
            "TEXT_FILE": "model.text_files",
            "with_literal_texts": "model.text_files",
            "changes_of": "pipeline.changes",
            "place_facts": "pipeline.changes",
            "check_result": "pipeline.checking",
            "read_expectation": "pipeline.checking",
            "estimate": "pipeline.estimating",
            "Execution": "pipeline.execution",
            "of_kind": "pipeline.execution",
            "Ancestry": "pipeline.families",
            "Family": "pipeline.families",
            "FamilySearch": "pipeline.families",
            "foreign_origin": "pipeline.families",
            "go_on": "pipeline.launching",
            "options_for": "pipeline.launching",
            "refuse_own_loop": "pipeline.launching",
            "resume_run": "pipeline.launching",
            "start_run": "pipeline.launching",
            "LintReport": "pipeline.lint_report",
            "look_back": "pipeline.lookback",
            "MapWish": "pipeline.maps.launch",
            "continue_map": "pipeline.maps.launch",
            "start_map": "pipeline.maps.launch",
            "split_options": "pipeline.maps.options",
            "model_report": "pipeline.model_report",
            "examine": "pipeline.preflight",
            "Preparation": "pipeline.preparation",
            "prepare": "pipeline.preparation",
            "cassette_options": "pipeline.recording",
            "check_own": "pipeline.resuming",
            "complete_end": "pipeline.resuming",
            "continue_run": "pipeline.resuming",
            "with_recorded_plugs": "pipeline.resuming",
            "read_rewind": "pipeline.rewinding",
            "Run": "pipeline.run",
            "checked_inputs": "pipeline.run_inputs",
            "declared_inputs": "pipeline.run_inputs",
            "registered_inputs": "pipeline.run_inputs",
            "learn_environment": "pipeline.secrets",
            "TextFiles": "pipeline.text_files",
            "absolute_origin": "pipeline.trust",
            "why": "pipeline.why",
            "replaced": "transforms.merge",
            "Changes": "views.changes",
            "cut_diff": "views.changes",
            "read_numstat": "views.changes",
            "findings_text": "views.findings",
            "to_mermaid": "views.mermaid",
            "run_details": "views.run_details",
            "so_far": "views.spending",
            "picture_bundle": "views.still",
            "duration_text": "views.summary",
            "run_summary": "views.summary",
            "usage_words": "views.summary",
            "render_svg": "views.svg",
            "graph_text": "views.text_table",
        },
    )
