"""Figures are legible for all readers, the same in every build, and can be traced and cited."""

import io
import itertools
import json
import math
import re
import subprocess
import sys
from hashlib import sha256
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb

from auditkit import citable as package_citable
from auditkit.experiment import experiment, stored
from auditkit.figures import (
    GREY,
    INK,
    PALETTE,
    Citable,
    citable,
    diagram,
    draw,
    house_style,
    spread,
    svg,
    table,
)
from auditkit.figures import (
    style as looks,
)

MODULE = sys.modules["auditkit.figures.address"]
LIGHT, DARK = "#ffffff", ("#121212", "#14181e")
ALT = "The bound rises with the true value and stays below it."
DATA = {"epsilon": [0.5, 1.0], "bound": [0.41, 0.87]}


@pytest.fixture(autouse=True)
def nothing_read(monkeypatch):
    monkeypatch.setattr(MODULE, "READ", set())


@pytest.fixture(autouse=True)
def style():
    with mpl.rc_context():
        house_style()
        yield
    plt.close("all")


def drawn(**changes):
    figure, axes = plt.subplots()
    for shift, role in enumerate(PALETTE):
        axes.plot(DATA["epsilon"], DATA["bound"], label=role, **PALETTE[role])
        axes.scatter(DATA["epsilon"], np.add(DATA["bound"], shift))
    axes.set(xlabel=r"true $\varepsilon$", ylabel="bound", **changes)
    axes.axhline(0.0, color="black")
    axes.legend()
    return figure


def cited(folder, id="FND-F1", **changes):  # noqa: A002
    words = {"title": "Bounds", "answers": "OBS Figure 2", "alt": ALT, "directory": folder}
    return citable(drawn(), id, DATA, **{**words, **changes})


# --- the palette ---------------------------------------------------------------------------------

LINEAR_SRGB_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
LMS_TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
# Machado, Oliveira and Fernandes (2009), severity 1
SIGHT = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def linear(color):
    channels = np.array(to_rgb(color))
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    weights = (0.2126, 0.7152, 0.0722)
    low, high = sorted(float(linear(color) @ weights) for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def seen(color, sight):
    light = np.clip(SIGHT[sight] @ linear(color), 0, 1)
    return LMS_TO_OKLAB @ np.cbrt(LINEAR_SRGB_TO_LMS @ light)


@pytest.mark.parametrize("role", PALETTE)
@pytest.mark.parametrize("page", [LIGHT, *DARK])
def test_every_role_stands_out_from_the_page(role, page):
    assert contrast(PALETTE[role]["color"], page) >= 3.0


@pytest.mark.parametrize("role", PALETTE)
@pytest.mark.parametrize(
    ("page", "ink"), [(LIGHT, "#323232"), *((dark, "#ced6dd") for dark in DARK)]
)
def test_a_label_can_be_read_on_the_page(role, page, ink):
    own, text = np.array(to_rgb(PALETTE[role]["color"])), np.array(to_rgb(ink))
    assert contrast(looks.LABEL_SHARE * own + (1 - looks.LABEL_SHARE) * text, page) >= 4.5


def test_a_label_in_colour_is_mixed_with_the_text_around_it():
    figure = plt.figure()
    figure.text(0.5, 0.5, "ours", color=PALETTE["ours"]["color"])
    figure.text(0.5, 0.1, "plain", color=INK)
    drawn = svg(figure, "mixed", "Two words.")
    assert drawn.count("color-mix(in srgb, #0064de 60%, currentColor)") == 1
    assert drawn.count("color-mix") == 1


@pytest.mark.parametrize("sight", SIGHT)
def test_no_two_roles_look_alike_to_anybody(sight):
    for one, other in itertools.combinations(PALETTE, 2):
        apart = seen(PALETTE[one]["color"], sight) - seen(PALETTE[other]["color"], sight)
        # 0.02 is about what can just be told apart
        assert np.linalg.norm(apart) >= 0.09, (one, other)


def test_marker_and_line_say_the_role_without_colour():
    for sign in ("marker", "linestyle"):
        assert len({str(look[sign]) for look in PALETTE.values()}) == len(PALETTE)


def test_text_reaches_the_best_that_one_grey_can_and_ink_is_dark():
    assert min(contrast(GREY, page) for page in (LIGHT, *DARK)) > 4.15
    assert contrast(INK, LIGHT) > 12


def test_the_house_style_sets_ink_and_the_cycle_of_colours():
    assert mpl.rcParams["text.color"] == INK
    cycle = [item["color"] for item in mpl.rcParams["axes.prop_cycle"]]
    assert cycle[:2] == [PALETTE["ours"]["color"], PALETTE["paper"]["color"]]
    assert sorted(cycle) == sorted(look["color"] for look in PALETTE.values())


def test_nothing_heavy_is_loaded_until_something_is_drawn():
    code = (
        "import sys, auditkit.figures;"
        "heavy = {'matplotlib', 'pandas', 'torch', 'sklearn', 'IPython'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- the files -----------------------------------------------------------------------------------


def test_the_package_offers_citable():
    assert package_citable is citable


def test_a_figure_leaves_picture_numbers_and_provenance(tmp_path):
    figure = cited(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"FND-F1.{kind}" for kind in ("csv", "json", "png", "svg")
    ]
    assert (tmp_path / "FND-F1.csv").read_text() == "epsilon,bound\n0.5,0.41\n1.0,0.87\n"
    about = json.loads((tmp_path / "FND-F1.json").read_text())
    for kind in ("svg", "png", "csv"):
        content = (tmp_path / f"FND-F1.{kind}").read_bytes()
        assert about["sha256"][kind] == sha256(content).hexdigest()
        assert about[kind] == getattr(figure, kind) == f"figures/FND-F1.{kind}"
    assert about["provenance"] == "figures/FND-F1.json"
    assert (about["id"], about["title"], about["answers"]) == ("FND-F1", "Bounds", "OBS Figure 2")
    assert about["alt"] == ALT
    assert set(about) >= {"versions", "machine", "experiments", "command", "bibtex"}
    assert str(tmp_path) not in json.dumps(about)


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    for folder in ("a", "b"):
        cited(tmp_path / folder)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name
    assert not re.search(rb"20\d\d-\d\d-\d\d", (tmp_path / "a/FND-F1.svg").read_bytes())


def test_the_svg_is_transparent_stands_alone_and_has_its_alt_text(tmp_path):
    cited(tmp_path, alt='Lines & "points" <rise> with the index.')
    text = (tmp_path / "FND-F1.svg").read_text()
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'Lines & "points" <rise> with the index.'
    assert (root.get("color"), root.get("fill")) == (GREY, "currentColor")
    background = root.find(".//*[@id='FND-F1-patch_1']/*")
    assert "fill: none" in background.get("style")
    assert INK not in text
    assert "#000000" not in text
    assert "<style" not in text
    assert "<text" not in text
    for look in PALETTE.values():
        assert look["color"] in text


def test_two_figures_of_a_page_share_no_id_and_refer_to_their_own(tmp_path):
    texts = [cited(tmp_path, name).html for name in ("FND-F1", "FND-F2")]
    ids = [re.findall(r'\bid="([^"]+)"', text) for text in texts]
    assert len(set(ids[0] + ids[1])) == len(ids[0]) + len(ids[1])
    for text, own in zip(texts, ids, strict=True):
        used = set(re.findall(r'xlink:href="#([^"]+)"|url\(#([^)]+)\)', text))
        assert used
        assert {one or other for one, other in used} <= set(own)


def test_the_png_is_on_white_with_text_in_ink(tmp_path):
    cited(tmp_path)
    pixels = plt.imread(io.BytesIO((tmp_path / "FND-F1.png").read_bytes()))
    assert (pixels[0, 0] == 1.0).all()
    assert (pixels[..., 3] == 1.0).all()
    assert (np.abs(pixels[..., :3] - to_rgb(INK)).max(axis=-1) < 0.01).any()


def test_a_figure_is_closed_so_that_a_notebook_shows_it_once(tmp_path):
    cited(tmp_path)
    assert plt.get_fignums() == []


def test_files_go_where_the_environment_says_and_else_to_build(tmp_path, monkeypatch):
    monkeypatch.setenv("AUDITKIT_FIGURES", str(tmp_path / "site"))
    cited(None)
    assert (tmp_path / "site/FND-F1.svg").exists()
    monkeypatch.delenv("AUDITKIT_FIGURES")
    monkeypatch.setattr(MODULE, "home", lambda: tmp_path)
    cited(None)
    assert (tmp_path / "_build/figures/FND-F1.svg").exists()


def double(n):
    return {"twice": 2 * n}


def test_the_experiments_behind_a_figure_are_named_with_hashes_and_a_command(tmp_path, monkeypatch):
    monkeypatch.setenv("AUDITKIT_PROFILE", "paper")
    runs = [experiment(f"E-{i}", double, {"n": [1, 2]}, store=tmp_path) for i in range(2)]
    citable(None, "FND-T1", runs[0], title="Twice", sources=runs[1:], directory=tmp_path)
    about = json.loads((tmp_path / "FND-T1.json").read_text())
    assert [source["id"] for source in about["experiments"]] == ["E-0", "E-1"]
    assert about["experiments"][0]["csv_sha256"] == runs[0].attrs["csv_sha256"]
    assert about["command"] == "python -m experiments run E-0 E-1"
    assert (tmp_path / "FND-T1.csv").read_text().startswith("n,twice,seconds\n1,2,")


def test_a_figure_without_a_source_on_a_page_that_reads_stored_results_is_refused(tmp_path):
    run = experiment("E-1", double, {"n": [1, 2]}, store=tmp_path)
    rows = [{"twice": int(run["twice"].sum())}]
    MODULE.READ.add("E-1")
    with pytest.raises(ValueError, match="FND-T1 does not say where its numbers come from"):
        citable(None, "FND-T1", rows, title="Twice", directory=tmp_path)
    for sources, named in (([run], ["E-1"]), ([], [])):
        citable(None, "FND-T1", rows, title="Twice", sources=sources, directory=tmp_path)
        about = json.loads((tmp_path / "FND-T1.json").read_text())
        assert [source["id"] for source in about["experiments"]] == named
    with pytest.raises(ValueError, match="sources must be tables as stored returns them"):
        citable(None, "FND-T1", rows, title="Twice", sources=[pd.DataFrame()], directory=tmp_path)


def test_what_has_been_read_is_remembered():
    assert stored("pan-known").attrs["id"] in sys.modules["auditkit.experiment.provenance"].READ


# --- the data ------------------------------------------------------------------------------------


def test_columns_rows_and_frames_give_the_same_numbers(tmp_path):
    rows = [{"a": 1.5, "b": None}, {"a": 2.5, "b": "x"}]
    columns = {"a": np.array([1.5, 2.5]), "b": [None, "x"]}
    texts = set()
    for data in (rows, columns, pd.DataFrame(rows)):
        citable(None, "FND-T1", data, title="A table", directory=tmp_path)
        texts.add((tmp_path / "FND-T1.csv").read_text())
    assert texts == {"a,b\n1.5,\n2.5,x\n"}


def test_what_pandas_calls_nan_is_an_empty_field(tmp_path):
    data = {"a": [math.nan, np.float32("nan"), 1.0]}
    citable(None, "FND-T1", data, title="A table", directory=tmp_path)
    assert (tmp_path / "FND-T1.csv").read_text() == 'a\n""\n""\n1.0\n'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": [1, 2], "b": [1]}, "columns of the same length, got {'a': 2, 'b': 1}"),
        ({}, "at least one row"),
        ({"a": []}, "at least one row"),
        ([], "at least one row"),
        ([{}], "at least one row"),
        ([1, 2], "columns by name, or rows that are mappings"),
        ("text", "data must be a table, columns by name, or rows, got 'text'"),
        (3, "data must be a table, columns by name, or rows, got 3"),
        (None, "data must be a table, columns by name, or rows, got None"),
        ({"a": 1}, r"data\['a'\] must be a column of values, got 1"),
        ([{"a": [1, 2]}], r"data\['a'\] must hold numbers and texts, got \[1, 2\]"),
    ],
)
def test_data_that_are_no_table_are_turned_away(tmp_path, data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        citable(None, "FND-T1", data, title="A table", directory=tmp_path)
    assert not list(tmp_path.iterdir())


# --- the page ------------------------------------------------------------------------------------


def test_the_page_has_an_anchor_the_picture_and_links_that_exist(tmp_path):
    html = cited(tmp_path / "figures", title="Bounds & <tests>")._repr_html_()
    assert html.startswith('<figure class="auditkit-figure" id="FND-F1">')
    assert "Bounds &amp; &lt;tests&gt;. Answers OBS Figure 2." in html
    assert "<code>make book</code>" in html
    assert "<?xml" not in html
    assert '<svg style="color: inherit; max-width: 100%; height: auto" role="img"' in html
    links = re.findall(r'<a href="([^"]+)" aria-label="([^"]+)" download>([^<]+)</a>', html)
    assert [name for _, _, name in links] == ["SVG", "PNG", "CSV", "provenance"]
    (tmp_path / "chapters").mkdir()
    for href, label, name in links:
        assert (tmp_path / "chapters" / href).exists()
        assert label == f"FND-F1: {name}"
    ElementTree.fromstring(html.replace(" download>", ' download="">'))


def test_panels_stand_below_each_other_on_a_phone(tmp_path):
    figure, panels = plt.subplots(1, 2, sharex=True, sharey=True)
    panels[0].set(xlabel="ε", ylabel="bound")
    panels[1].plot([0, 1], [0, 1])
    html = citable(
        figure,
        "FND-F2",
        {"a": [1]},
        title="Two panels",
        alt="Two panels with a line in the second one.",
        sources=[],
        directory=tmp_path,
    )._repr_html_()
    assert html.startswith('<figure class="auditkit-figure panels" id="FND-F2">')
    assert html.count("<svg ") == html.count('aria-label="Two panels with a line') == 2
    assert 'style="color: inherit; display: none"' in html
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    upper, lower = (axes.get_position() for axes in panels)
    assert lower.y1 < upper.y0
    assert panels[1].get_ylabel() == "bound"
    assert all(label.get_visible() for label in panels[1].get_yticklabels())
    # what is kept for slides and papers stays as it was
    box = ElementTree.parse(tmp_path / "FND-F2.svg").getroot().attrib["viewBox"].split()
    assert float(box[2]) > float(box[3])


def test_a_single_panel_is_drawn_once(tmp_path):
    assert cited(tmp_path)._repr_html_().count("<svg ") == 1


def test_an_interval_in_a_table_does_not_break_before_its_sign(tmp_path):
    data = [{"bound": "0.50 ± 0.10"}]
    table = citable(None, "FND-T1", data, title="A bound", directory=tmp_path)
    assert "<td>0.50\N{NO-BREAK SPACE}± 0.10</td>" in table._repr_html_()
    assert "0.50 ± 0.10" in (tmp_path / "FND-T1.csv").read_text()


@pytest.mark.parametrize(("rows", "folded"), [(12, False), (13, True)])
def test_a_table_of_more_than_twelve_rows_is_folded(tmp_path, rows, folded):
    data = pd.DataFrame({"run": range(rows)})
    drawn = citable(None, "FND-T9", data, title="Runs", sources=[], directory=tmp_path)
    assert (f"<details><summary>All {rows} rows</summary>" in drawn.html) is folded


def test_a_table_is_readable_as_it_is_and_has_no_picture(tmp_path):
    data = [{"name": "<one>", "value": 0.123456}, {"name": "two", "value": math.inf}, {"n": 12345}]
    table = citable(None, "FND-T1", data, title="Two values", directory=tmp_path)
    assert (table.svg, table.png) == (None, None)
    about = json.loads((tmp_path / "FND-T1.json").read_text())
    assert (about["svg"], about["png"]) == (None, None)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv", ".json"]
    html = table._repr_html_()
    assert '<th scope="col">name</th><th scope="col">value</th><th scope="col">n</th>' in html
    assert "<td>&lt;one&gt;</td><td>0.1235</td><td></td>" in html
    assert "<td>two</td><td>∞</td><td></td>" in html
    assert "<td>1.234e+04</td>" in html
    assert 'role="region" aria-label="Two values" tabindex="0"' in html
    assert "Answers" not in html
    assert re.findall(r"download>(\w+)<", html) == ["CSV", "provenance"]
    ElementTree.fromstring(html.replace(" download>", ' download="">'))


def test_the_object_says_little_but_its_name(tmp_path):
    assert repr(cited(tmp_path)) == "Citable(id='FND-F1', title='Bounds')"
    assert isinstance(cited(tmp_path), Citable)


# --- the citation --------------------------------------------------------------------------------


def test_the_entry_takes_what_the_citation_file_says(tmp_path, monkeypatch):
    monkeypatch.setattr(MODULE, "home", lambda: tmp_path)
    (tmp_path / "CITATION.cff").write_text(
        'cff-version: 1.2.0\ntitle: "Auditing: a book"\nauthors:\n  - name: us\n'
        "version: 1.2.3\ndate-released: '2031-05-06'\n"
        "repository-code: https://code.example/r\nurl: https://book.example/\n"
    )
    assert cited(tmp_path, title="Noise & 5% of a_b").bibtex == (
        "@misc{auditkit-FND-F1,\n"
        "  author = {{The auditkit authors}},\n"
        "  title = {Noise \\& 5\\% of a\\_b},\n"
        "  note = {Figure FND-F1, version 1.2.3, answers OBS Figure 2},\n"
        "  howpublished = {Auditing: a book},\n"
        "  year = {2031},\n"
        "  url = {https://book.example/book/figures.html#FND-F1},\n"
        "}"
    )


def test_without_a_citation_file_the_entry_holds_what_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(MODULE, "home", lambda: tmp_path)
    table = citable(None, "FND-T1", DATA, title="Bounds", directory=tmp_path)
    assert table.bibtex == (
        "@misc{auditkit-FND-T1,\n"
        "  author = {{The auditkit authors}},\n"
        "  title = {Bounds},\n"
        "  note = {Table FND-T1},\n"
        "}"
    )


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "fnd-f1", "FND-1", "FND-F", "../FND-F1", "FND-F1.svg", 1])
def test_an_id_has_chapter_kind_and_number(tmp_path, name):
    with pytest.raises(ValueError, match="id must be as in"):
        cited(tmp_path, name)


@pytest.mark.parametrize("name", ["OBS-F2", "OBS-F12a", "SUB-FA1", "PAN-T3", "PRED-F21"])
def test_ids_follow_the_papers_numbers(tmp_path, name):
    assert citable(None, name, DATA, title="Bounds", directory=tmp_path).id == name


@pytest.mark.parametrize("title", ["", "  ", "Bounds.", None, 3])
def test_a_title_is_words_without_a_full_stop(tmp_path, title):
    with pytest.raises(ValueError, match="title must be words"):
        cited(tmp_path, title=title)


@pytest.mark.parametrize("answers", ["", " ", 2])
def test_what_it_answers_is_words_or_none(tmp_path, answers):
    with pytest.raises(ValueError, match="answers must be as in"):
        cited(tmp_path, answers=answers)


@pytest.mark.parametrize("alt", [None, "", "figure.svg", "A plot of bounds", "Bounds.", 3])
def test_a_picture_needs_a_sentence_for_those_who_cannot_see_it(tmp_path, alt):
    with pytest.raises(ValueError, match="alt must be at least one sentence"):
        cited(tmp_path, alt=alt)


def test_a_table_needs_none(tmp_path):
    with pytest.raises(ValueError, match="alt must be left out for a table"):
        citable(None, "FND-T1", DATA, title="Bounds", alt=ALT, directory=tmp_path)


def test_a_figure_is_one_of_matplotlib(tmp_path):
    with pytest.raises(TypeError, match="figure must be a matplotlib Figure, or None"):
        citable("plot.svg", "FND-F1", DATA, title="Bounds", alt=ALT, directory=tmp_path)


# --- spread, draw, table -------------------------------------------------------------------------

ROWS = pd.DataFrame(
    [
        {"epsilon": epsilon, "audit": audit, "seed": seed, "game": game, "bound": bound}
        for epsilon in (2.0, 1.0)
        for audit, shift in (("ours", 0.0), ("null", -1.0))
        for seed in range(4)
        for game in range(3)
        for bound in [epsilon + shift + seed + 0.1 * game]
    ]
)


def test_an_error_bar_is_the_t_interval_of_the_mean_over_repetitions_and_not_over_games():
    found = spread(ROWS, ["epsilon", "audit"], "bound")
    assert list(found) == ["epsilon", "audit", "mean", "half_width", "repetitions"]
    assert found["epsilon"].tolist() == [2.0, 2.0, 1.0, 1.0]
    assert found["repetitions"].tolist() == [4] * 4
    assert found["mean"].tolist() == pytest.approx([3.6, 2.6, 2.6, 1.6])
    # four trainings 0, 1, 2, 3: 3.182 · 1.291 / 2
    assert found["half_width"].tolist() == pytest.approx([2.0543] * 4, rel=1e-4)
    # more games of the same trainings make nobody surer
    assert spread(pd.concat([ROWS, ROWS]), "epsilon", "bound")["half_width"].tolist() == (
        pytest.approx(spread(ROWS, "epsilon", "bound")["half_width"].tolist())
    )


def test_an_interval_holds_the_true_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    draws = pd.DataFrame({"audit": np.repeat(np.arange(4000), 5), "seed": np.tile(range(5), 4000)})
    found = spread(draws.assign(bound=rng.normal(size=20_000)), "audit", "bound")
    assert (found["mean"].abs() <= found["half_width"]).mean() == pytest.approx(0.95, abs=0.01)


def test_one_repetition_has_no_interval_and_no_setting_is_one_row():
    alone = spread(ROWS.query("seed == 0"), "epsilon", "bound")
    assert alone["half_width"].isna().all()
    assert len(spread(ROWS, [], "bound")) == 1
    assert spread(ROWS, [], "bound", over=None)["half_width"].isna().all()


def test_where_numbers_come_from_goes_along():
    known = stored("pan-known")
    assert spread(known, "noise", "difference", over=None).attrs == known.attrs
    assert table(known, "noise", "epsilon", "difference", over=None).attrs == known.attrs
    assert draw(known, "noise", "difference", over=None).data.attrs == known.attrs


@pytest.mark.parametrize("wrong", ["delta", "seeds"])
def test_a_column_that_is_not_there_is_named(wrong):
    with pytest.raises(ValueError, match=f"frame has no column '{wrong}'; it has epsilon, audit"):
        spread(ROWS, "epsilon", "bound", over=wrong)


def test_a_table_is_compact_and_keeps_the_order():
    found = table(ROWS, "epsilon", "audit", "bound")
    assert list(found) == ["epsilon", "ours", "null"]
    assert found["epsilon"].tolist() == [2.0, 1.0]
    assert found["ours"].tolist() == ["3.60 ± 2.05", "2.60 ± 2.05"]
    assert list(table(ROWS, "audit", "epsilon", "bound")) == ["audit", "epsilon = 2", "epsilon = 1"]
    both = table(ROWS, ["epsilon", "audit"], [], ["bound", "game"], digits=1)
    assert list(both) == ["epsilon", "audit", "bound", "game"]
    assert both["game"].tolist() == ["1.0 ± 0.0"] * 4


def test_a_drawing_has_means_bars_and_what_stands_beside_them(tmp_path):
    drawing = draw(ROWS, "epsilon", "bound", "audit", names={"epsilon": "ε"})
    drawing.truth(lambda epsilon: epsilon, "true ε").ceiling(9.0).paper({1.0: 2.0, 2.0: 3.0})
    figure = drawing.finished()
    (axes,) = figure.axes
    bars = {bar.get_label(): bar for bar in axes.containers}
    assert list(bars) == ["ours", "null"]
    assert bars["null"].lines[0].get_color() == PALETTE["null"]["color"]
    assert bars["ours"].lines[0].get_ydata().tolist() == pytest.approx([2.6, 3.6])
    assert axes.get_xlabel() == "ε"
    assert {text.get_text() for text in axes.texts} == {
        "ours",
        "null",
        "true ε",
        "ceiling",
        "paper",
    }
    citable(drawing, "FND-F1", title="Bounds", alt=ALT, directory=tmp_path)
    assert (tmp_path / "FND-F1.csv").read_text().startswith("epsilon,audit,mean,half_width,rep")


def test_names_of_lines_that_end_together_stand_apart():
    rows = ROWS.assign(bound=1.0)
    figure = draw(rows, "epsilon", "bound", "audit").null(1.0).finished()
    heights = sorted(text.xy[1] for text in figure.axes[0].texts)
    assert min(np.diff(heights)) * figure.axes[0].bbox.height > 9


def test_words_on_the_axis_make_points_side_by_side_and_panels_say_their_value():
    drawing = draw(ROWS, "audit", "bound", "game", col="epsilon").null()
    figure = drawing.finished()
    assert [axes.get_title() for axes in figure.axes] == ["ε = 1", "ε = 2"]
    places = [bar.lines[0].get_xdata()[0] for bar in figure.axes[0].containers]
    assert places == sorted(set(places))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["0", "1", "2"]
    assert repr(drawing) == "Drawing(2 panels of bound by audit)"


def test_a_column_of_truths_is_drawn_in_the_panel_it_belongs_to():
    figure = draw(ROWS, "game", "bound", col="epsilon").truth("epsilon").finished()
    for axes, epsilon in zip(figure.axes, (1.0, 2.0), strict=True):
        assert set(axes.lines[-1].get_ydata()) == {epsilon}


def test_more_roles_than_can_be_told_apart_are_refused():
    rows = pd.DataFrame({"x": 1.0, "y": 1.0, "seed": 0, "who": list("abcdefg")})
    with pytest.raises(ValueError, match="role must be a column of at most 6 values"):
        draw(rows, "x", "y", "who")


def test_a_diagram_has_boxes_and_arrows():
    figure = diagram(
        {"a": (0, 0, "a member", "ours"), "b": (1, 0, "model")}, [("a", "b", "trains")]
    )
    assert {text.get_text() for text in figure.axes[0].texts} >= {"a member", "model", "trains"}
    with pytest.raises(ValueError, match="role must be one of"):
        diagram({"a": (0, 0, "a", "blue")}, [])


def test_a_picture_for_a_page_of_ones_own_is_a_part_of_it():
    text = svg(drawn(), "scores", ALT)
    assert text.startswith("<svg style=")
    assert plt.get_fignums() == []
    ElementTree.fromstring(text)
