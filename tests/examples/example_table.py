"""The expectations for each example: findings, path, inputs.

A finding that is expected stands here; every other example has none at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from attractor_nb import Attachment

INVOICE = Attachment(b"%PDF-1.7 an invoice", "march.pdf")


@dataclass(frozen=True)
class Example:
    """The expectations for one file.

    Attributes:
        name: The file's stem.
        path: The stages that a simulated run completes, in order, every gate auto-approved.
        findings: Rule and node or edge of each diagnostic.
        params: The inputs that it cannot do without.
    """

    name: str
    path: str
    findings: tuple[tuple[str, str], ...] = ()
    params: dict[str, object] = field(default_factory=dict)


TABLE = [
    Example(
        "spec_2_10_subgraph",
        "start Plan Implement exit",
        (("prompt_on_llm_nodes", "Plan"), ("prompt_on_llm_nodes", "Implement")),
    ),
    Example("models_of_two_providers", "start plan write review done"),
    Example("spec_2_13_simple", "start run_tests report exit"),
    Example("release_notes", "start changes breaking upgrade highlights notes translate done"),
    Example("spec_2_13_branch", "start plan implement validate gate exit"),
    Example(
        "spec_2_13_human_gate",
        "start review_gate ship_it exit",
        (("implicit_node", "ship_it"), ("implicit_node", "fixes")),
    ),
    Example(
        "spec_8_6_stylesheet",
        "start plan implement critical_review exit",
        (
            ("prompt_on_llm_nodes", "plan"),
            ("prompt_on_llm_nodes", "implement"),
            ("prompt_on_llm_nodes", "critical_review"),
            ("unused_class", "plan"),
        ),
    ),
    Example("spec_11_13_smoke", "start plan implement review done", (("goal_gate_has_retry", "implement"),)),
    Example("verification_3_goal_gate", "start implement test done"),
    Example("verification_4_multi_path", "start check next_step done"),
    Example("demo", "start plan implement measure long_enough review done"),
    Example("code_review_loop", "start plan implement review is_accepted merge_gate summarize done"),
    Example("hand_over", "start answer review done"),
    Example("fix_loop", "start write test done"),
    Example(
        "ticket_to_release",
        "start research reviewers plan judge test approve done",
        params={"ticket": "0.1 + 0.2 is printed as 0.30000000000000004"},
    ),
    Example("research_fact_check", "start questions research draft check_claims polish done"),
    Example("data_pipeline", "start extract clean check report comment done"),
    Example("release_approval", "start draft_notes seal product_gate operations_gate verify announce finished"),
    Example("measure_texts", "start measure is_counted summarize done", params={"text": "One day."}),
    Example("answer_ticket", "start sort answer is_good done", params={"ticket": "It blinks.", "product": "LX-4"}),
    Example("read_invoice", "start read check done", params={"invoice": INVOICE}),
    Example("bug_triage", "start classify triage_gate ask_reporter done"),
    Example("spec_to_code", "start requirements completeness tests_first implement no_placeholders audit done"),
    Example("write_article", "start outline draft check done"),
    Example("supervised_article", "start editor publish done"),
    Example("article_and_summary", "start choose article summary done"),
    Example(
        "review_files",
        "start review sum_up done",
        params={"files": [{"name": "a.py", "text": "x = 1"}, {"name": "b.py", "text": "import os"}]},
    ),
    Example("route_ticket", "start sort support done", params={"ticket": "I was charged twice."}),
    Example("fan_out", "start readers best summary done"),
    Example("first_success", "start ways explain done", (("branch_condition", "ways"),)),
]
