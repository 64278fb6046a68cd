"""The gate refuses every single change of a good tree that an official checker refuses, with the right rule."""

import json
import re

import pytest
from changes import JSON_LOG, O_ACC, put
from disagreements import CASES
from forgeries_of_chance import of_chance
from forgeries_of_models import of_models
from forgeries_of_results import results
from forgeries_of_vendors import of_vendors
from gate_support import refusing_rules, verdict
from mutations import MUTATIONS, Mutation
from tree_builder import DATA

VERDICTS = json.loads((DATA / "verdicts.json").read_text())
NEEDED_MUTATIONS = 120


def is_refused_officially(name: str) -> bool:
    return any(word != "accepts" for word in VERDICTS[name].values())


def test_every_change_has_the_recorded_verdict_of_both_official_checkers():
    assert {mutation.name for mutation in MUTATIONS} == set(VERDICTS)
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


def test_at_least_120_of_the_changes_are_refused_by_an_official_checker():
    assert sum(map(is_refused_officially, VERDICTS)) >= NEEDED_MUTATIONS


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_changed_tree_gets_its_rule_and_a_good_one_none(mutation: Mutation, trees):
    with trees.changed(mutation.tree, mutation.change) as root:
        found = verdict(root)
    rules = refusing_rules(found)
    assert "GATE-001" not in rules
    assert [one for one in found.findings if re.search(r"\bNone\b", f"{one.found} {one.allowed}")] == []
    if mutation.rule is None:
        assert not is_refused_officially(mutation.name)
        assert (found.is_accepted, rules) == (True, set())
    else:
        assert not found.is_accepted
        assert mutation.rule in rules


def test_every_rule_that_refuses_has_a_change_that_meets_it():
    from crowdperf.gate.rulebook import RULES, Severity

    met = {mutation.rule for mutation in (*MUTATIONS, *results(), *of_models(), *of_chance(), *of_vendors())}
    elsewhere = {  # rules that no single change of these trees meets; each has a test of its own
        "NAME-003", "FILE-004", "FILE-006", "MEAS-006", "ACC-008", "ACC-016", "RUN-018", "RUN-020",
        "TEST-013", "TEST-020", "FIG-012", "SYN-005",
        "TIME-008", "SET-016", "SYS-014", "SYS-016", "MEAS-011",  # test_gate_evidence.py
    }  # fmt: skip
    refusing = {name for name, rule in RULES.items() if rule.severity is Severity.ERROR}
    assert refusing - met - {case.rule for case in CASES.values()} == elsewhere


def test_a_rehearsal_may_have_a_whole_accuracy_log_of_few_samples_but_none_without_any(trees):
    few = '[\n{ "seq_id" : 0, "qsl_idx" : 1, "data" : "0000C842" }\n]\n'
    for content, refusing in ((few, {False: True, True: False}), ("[\n]\n", {False: True, True: True})):
        with trees.changed("open", put(f"{O_ACC}/{JSON_LOG}", content)) as root:
            for is_rehearsal, is_refused in refusing.items():
                found = refusing_rules(verdict(root, is_rehearsal=is_rehearsal))
                assert ("ACC-012" in found) is is_refused


def test_a_rehearsal_may_compare_test01_with_an_accuracy_run_of_few_samples(trees):
    (change,) = (one for one in MUTATIONS if one.name.endswith("compared with a part of the accuracy run"))
    with trees.changed(change.tree, change.change) as root:
        for is_rehearsal in (False, True):
            assert ("TEST-010" in refusing_rules(verdict(root, is_rehearsal=is_rehearsal))) is not is_rehearsal
