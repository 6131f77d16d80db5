"""Names are compared letter by letter only where one may be a slip of the other."""

import random

from attractor_nb.model import texts
from attractor_nb.model.texts import edit_distance, nearest


def test_names_that_have_too_little_in_common_are_not_compared(monkeypatch):
    compared = []
    monkeypatch.setattr(texts, "edit_distance", lambda *words: compared.append(words) or edit_distance(*words))
    known = [f"handler_{number:03}" for number in range(500)]
    assert [nearest(f"zz{number:03}xyqwu", known) for number in range(100)] == [""] * 100
    assert not compared
    assert nearest("handlr_250", known) == "handler_250"


def test_the_nearest_name_is_that_of_a_comparison_with_all():
    chance = random.Random(7)

    def word():
        return "".join(chance.choices("abAB_1", k=chance.randint(1, 8)))

    for _ in range(2_000):
        slip, known = word(), [word() for _ in range(4)]
        distances = {name: edit_distance(slip.casefold(), name.casefold()) for name in known}
        near = [name for name in known if distances[name] <= min(2, len(slip) - 1) and distances[name] < len(name)]
        assert nearest(slip, known) == min(near, key=distances.__getitem__, default="")
