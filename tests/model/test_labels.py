"""Labels as routing keys (spec 3.3, 4.6)."""

import pytest

from attractor_nb.model.vocabulary.value_forms import accelerator_key, label_text, normalize_label


@pytest.mark.parametrize(
    ("label", "normalized", "key", "text"),
    [
        ("[Y] Yes, deploy", "yes, deploy", "Y", "Yes, deploy"),
        ("Y) Yes, deploy", "yes, deploy", "Y", "Yes, deploy"),
        ("Y - Yes, deploy", "yes, deploy", "Y", "Yes, deploy"),
        ("Yes, deploy", "yes, deploy", "Y", "Yes, deploy"),
        ("  Yes ", "yes", "Y", "Yes"),
        ("[OK] Ship", "ship", "OK", "Ship"),
        ("fix", "fix", "F", "fix"),
        ("[Y]", "[y]", "Y", "[Y]"),
        ("re-run", "re-run", "R", "re-run"),
        ("A -b", "a -b", "A", "A -b"),
        ("", "", "", ""),
        ("…", "…", "…", "…"),
    ],
)
def test_labels_are_read_with_and_without_accelerator(label, normalized, key, text):
    assert (normalize_label(label), accelerator_key(label), label_text(label)) == (normalized, key, text)
