from coxfield.plotting.figures import COLOURS, MARKERS, style


def test_no_two_of_the_first_64_classes_look_alike():
    assert len({style(code) for code in range(64)}) == 64
    assert style(0) == (COLOURS[0], MARKERS[0])


def test_the_ninth_class_has_another_colour_than_the_first():
    assert len({style(code)[0] for code in range(16)}) == 16
