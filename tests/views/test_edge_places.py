"""Places of small things beside edges, in drawings so dense that they would take minutes to search."""

from attractor_nb.views.drawings.edge_places import Ground
from attractor_nb.views.layout.skeleton import Layout, Route, straight
from attractor_nb.views.outlines import Link, Scene


def lines(count, gap, length=1_000.0):
    """Ground with vertical lines beside one another."""
    routes = [
        Route((straight((100 + gap * number, 10.0), (100 + gap * number, length)),), (0, 0), (0, 0), (0, 0))
        for number in range(count)
    ]
    layout = Layout(200 + gap * count, length + 20, (), tuple(routes), ())
    return Ground(Scene((), tuple(Link(0, 0, number) for number in range(count))), layout)


def test_a_cell_crowded_with_lines_has_no_free_place():
    area = (112.0, 500.0, 114.0, 504.0)
    assert lines(2, 60.0).is_free(area)
    assert not lines(200, 1.0).is_free(area)


def test_points_of_long_lines_are_bounded():
    ground = lines(1_000, 5.0, length=20_000.0)
    assert 150_000 < sum(len(line) for line in ground.lines) <= 201_000
    short = lines(10, 5.0)
    assert sum(len(line) for line in short.lines) == 10 * 199
