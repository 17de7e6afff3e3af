"""A comparison with a modelled side bears the mark on every page."""

from plimsoll.pages.sheet import Sheet, render_sheet


def test_a_sheet_with_modelled_figures_is_marked_on_screen_and_paper() -> None:
    """Whoever is handed one printed page of a comparison must see that a side of it was simulated,
    and only then.
    """
    plain = Sheet(
        "product", "title", "where", "neutral", "headline", [], [], [], "plimsoll compare"
    )
    marked = Sheet(
        *[getattr(plain, name) for name in list(plain.__dataclass_fields__)[:9]],
        modelled="MODELLED: one side",
    )
    assert "MODELLED" not in render_sheet(plain) and 'class="modelled"' not in render_sheet(plain)
    page = render_sheet(marked)
    assert "<title>MODELLED" in page and '<p class="modelled">MODELLED: one side.</p>' in page
    assert "position: fixed" in page
