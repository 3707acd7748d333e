"""The picture in a real browser: three widths, light and dark, the keyboard, no requests and no errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fastpq
from tests.picture.browser import Browser, opened_browser
from tests.picture.test_file_picture import items

WIDTHS = (420, 1000, 1800)
LEAST_CONTRAST = 4.5        # of text, WCAG 2.2, 1.4.3

# The texts that are shown and have too little contrast with the page, or stand outside of their drawing.
CONTRASTS = """
(() => {
  const channel = value => { value /= 255; return value <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4; };
  const luminance = rgb => .2126 * channel(rgb[0]) + .7152 * channel(rgb[1]) + .0722 * channel(rgb[2]);
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const behind = each => {      // the nearest background that is not transparent
    for (; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (parse(colour)[3] !== 0) return luminance(parse(colour));
    }
    return 1;
  };
  const bad = [];
  for (const each of document.querySelectorAll("h1,h2,p,td,th,dt,dd,label,svg text")) {
    const style = getComputedStyle(each), box = each.getBoundingClientRect();
    if (!box.width || style.visibility === "hidden" || !each.textContent.trim()) continue;
    if (each.closest("g.c, .g") || each.classList.contains("g")) continue;    // texts on coloured cells
    const page = behind(each), colour = luminance(parse(each instanceof SVGElement ? style.fill : style.color));
    const ratio = (Math.max(colour, page) + .05) / (Math.min(colour, page) + .05);
    if (ratio < LEAST) bad.push([each.textContent.slice(0, 40), Math.round(ratio * 10) / 10]);
  }
  return bad;
})()
""".replace("LEAST", str(LEAST_CONTRAST))
CHOSEN = 'document.querySelector("input[name]:checked").value'
SHOWN = """[...document.querySelectorAll("svg .d, svg")].filter(each => each.getBoundingClientRect().width > 0).length"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Pages of a file, of a filtered file, and of a dataset, as URLs."""
    folder = tmp_path_factory.mktemp("pages")
    options: Any = {"row_group_size": 4000, "data_page_size": 4096, "bloom_filter": {"user": True}, "compression": "zstd"}
    (folder / "data").mkdir()
    for part in range(3):
        fastpq.write_table(items(), folder / "data" / f"part-{part}.parquet", **options)
    with fastpq.ParquetFile(folder / "data" / "part-0.parquet") as file:
        (folder / "file.html").write_text(file.layout().to_html())
        (folder / "filtered.html").write_text(file.layout([("id", "<", 4000)]).to_html("pruning"))
    (folder / "dataset.html").write_text(fastpq.ParquetDataset(folder / "data").layout().to_html())
    return {path.stem: path.as_uri() for path in folder.glob("*.html")}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["file", "filtered", "dataset"])
def test_a_page_fits_and_is_readable(name: str, scheme: str, browser: Browser, pages: dict[str, str], tmp_path: Path) -> None:
    for width in WIDTHS:
        browser.show(pages[name], width, scheme)
        assert browser.value("document.documentElement.scrollWidth") <= width, (width, "the page is wider than the window")
        assert browser.value(CONTRASTS) == [], width
        background = browser.value("getComputedStyle(document.body).backgroundColor")
        shade = sum(int(part) for part in background.strip("rgba() ").split(",")[:3])
        assert (shade > 500) == (scheme == "light"), background
        (tmp_path / f"{name}-{scheme}-{width}.png").write_bytes(browser.screenshot())
        assert not browser.named_events("Runtime.exceptionThrown")
        assert [entry["entry"]["text"] for entry in browser.named_events("Log.entryAdded")] == []
        requests = [each["request"]["url"] for each in browser.named_events("Network.requestWillBeSent")]
        assert requests == [pages[name]]


@pytest.mark.slow
def test_the_keyboard_chooses_a_lens(browser: Browser, pages: dict[str, str]) -> None:
    browser.show(pages["file"], 1000, "light")
    assert browser.value(CHOSEN) == "bytes"
    for _ in range(20):
        browser.press("Tab")
        if browser.value('document.activeElement.matches("input[type=radio]")'):
            break
    else:
        pytest.fail("Tab does not reach the lenses")
    outline = browser.value(
        "(() => { const it = document.activeElement, near = [it, it.nextElementSibling, it.parentElement, it.labels[0]]; "
        'return near.some(each => each && getComputedStyle(each).outlineStyle !== "none"); })()')
    assert outline, "nothing shows where the keyboard is"
    lenses = [browser.value(CHOSEN)]
    for _ in range(2):
        browser.press("ArrowRight")
        lenses.append(browser.value(CHOSEN))
    assert lenses == ["bytes", "time", "pruning"]
    assert browser.value(SHOWN) > 0
    facts = "document.querySelector('output, .fq-facts, [aria-live]').textContent"
    before = browser.value(facts)
    for _ in range(20):
        browser.press("Tab")
        if browser.value('document.activeElement.closest("svg") !== null'):
            break
    browser.press("ArrowRight")
    assert browser.value(facts) != before


@pytest.mark.slow
def test_an_image_is_drawn_alone(browser: Browser, tmp_path: Path) -> None:
    fastpq.write_table(items(), tmp_path / "x.parquet", row_group_size=4000)
    image = tmp_path / "x.svg"
    with fastpq.ParquetFile(tmp_path / "x.parquet") as file:
        image.write_text(file.layout().to_svg())
    browser.show(image.as_uri(), 1000, "dark")
    assert browser.value("document.documentElement.tagName") == "svg"
    assert browser.value('document.querySelectorAll("parsererror").length') == 0
    assert browser.value("document.documentElement.getBoundingClientRect().width") > 300
