"""The picture of a file: the owner of each byte, the chunks, bounds and filters, as HTML and SVG."""

from __future__ import annotations

import re
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.common.display import of_bytes
from fastpq.errors import KeyAccessError, ParquetError, UnsupportedError
from fastpq.io.source_opening import open_source
from fastpq.options import DEFAULT_TAIL_READ
from fastpq.picture import file_picture
from fastpq.picture.byte_owners import ByteKind, Claim, byte_map
from fastpq.picture.file_picture import FilePicture, sealed_picture
from fastpq.picture.page_bars import share_for_random_value
from tests import requirements

FOOTER_KEY, PRICE_KEY, USER_KEY = b"0123456789012345", b"1234567890123450", b"1234567890123451"
MOST_NODES, MOST_BYTES, MOST_SECONDS = 5000, 2_000_000, 1.0
SVG = "{http://www.w3.org/2000/svg}"


def items(rows: int = 20_000) -> dict[str, Any]:
    """Return a sorted column, two random ones and text."""
    random = np.random.default_rng(1)
    return {
        "id": np.arange(rows),
        "price": np.round(random.random(rows) * 100, 2),
        "user": random.integers(0, 10**12, rows),
        "name": np.array(["a", "bb", "ccc", "dddd"])[random.integers(0, 4, rows)],
    }


@pytest.fixture
def file(tmp_path: Path) -> fastpq.ParquetFile:
    """A file of five row groups with page indexes and a bloom filter."""
    fastpq.write_table(
        items(), tmp_path / "items.parquet", row_group_size=4000, data_page_size=4096, bloom_filter={"user": True},
        compression="zstd")
    return fastpq.ParquetFile(tmp_path / "items.parquet")


def nodes_of(html: str) -> int:
    """Count the elements in HTML, without the text of scripts and styles."""
    return len(re.findall(r"<[a-zA-Z]", re.sub(r"<(script|style)>.*?</\1>", "<x>", html, flags=re.DOTALL)))


def drawings(html: str) -> list[ElementTree.Element]:
    """Return the SVG elements in HTML, parsed as XML."""
    return [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]


def classes(picture: FilePicture, lens: Any = "bytes") -> list[str]:
    """Return the class of each drawn chunk."""
    (svg,) = drawings(picture.to_svg(lens))
    return [each.get("class", "") for each in svg.iter(f"{SVG}rect") if each.get("class", "").startswith("c ")]


def test_each_byte_has_one_owner(file: fastpq.ParquetFile) -> None:
    with file:
        picture = file.layout()
    owners = picture.owners
    ends = owners.starts + owners.lengths
    assert owners.starts[0] == 0
    assert ends[-1] == owners.size
    assert (owners.starts[1:] == ends[:-1]).all()
    assert sum(picture.bytes_by_part.values()) == owners.size
    assert {"data pages", "dictionary pages", "bloom filters", "column indexes", "offset indexes", "footer"} <= {
        *picture.bytes_by_part
    }
    assert not owners.overlap
    assert not owners.outside
    assert not any("gaps" in part for part in picture.bytes_by_part)


def test_owners_of_claims_that_overlap_and_leave_the_file() -> None:
    claims = [
        Claim(0, 4, ByteKind.MAGIC),
        Claim(10, 10, ByteKind.DATA, 0),
        Claim(15, 10, ByteKind.DATA, 1),
        Claim(12, 3, ByteKind.DICTIONARY, 2),
        Claim(90, 20, ByteKind.FOOTER),
        Claim(-5, 2, ByteKind.DATA, 3),
        Claim((1 << 63) - 1, (1 << 63) - 1, ByteKind.DATA, 4),
        Claim(30, -7, ByteKind.DATA, 5),
    ]
    owners = byte_map(claims, 100, has_sealed_parts=False)
    assert owners.bytes_by_kind() == {ByteKind.MAGIC: 4, ByteKind.FOOTER: 10, ByteKind.DATA: 15, ByteKind.GAP: 71}
    assert (owners.starts + owners.lengths).tolist()[:-1] == owners.starts.tolist()[1:]
    assert owners.overlap == 8
    assert owners.outside > 10
    assert byte_map([], 0, has_sealed_parts=False).bytes_by_kind() == {}
    assert byte_map([], 7, has_sealed_parts=True).bytes_by_kind() == {ByteKind.SEALED: 7}


@requirements.needs_data
@pytest.mark.slow
def test_bytes_add_up_to_the_size_of_each_test_file() -> None:
    paths = [path for path in requirements.DATA.rglob("*") if path.suffix in (".parquet", ".encrypted") and path.is_file()]
    drawn = 0
    for path in paths:
        try:
            file = fastpq.ParquetFile(path)
        except KeyAccessError:
            with open_source(path) as source:
                picture = sealed_picture(source, [])
        except ParquetError:
            continue
        else:
            with file:
                picture = file.layout()
        assert sum(picture.bytes_by_part.values()) == path.stat().st_size, path
        html = picture.to_html("pruning")
        drawings(html)
        assert nodes_of(html) <= MOST_NODES, path
        drawn += 1
    assert drawn > 0.9 * len(paths)


def test_the_page_loads_nothing(file: fastpq.ParquetFile) -> None:
    with file:
        html = file.layout().to_html()
    assert not re.search(r'(src|href)=|@import|url\((?!#)|fetch\(|XMLHttp', html)
    assert "prefers-color-scheme:dark" in html
    assert "data-jp-theme-light" in html
    assert html.startswith("<!DOCTYPE html>")


def test_a_notebook_gets_a_fragment_that_stands_alone(file: fastpq.ParquetFile) -> None:
    with file:
        html = file.layout()._repr_html_()
        filtered = file.layout([("id", "<", 10)])._repr_html_()
    assert html.startswith('<form class="fq"')
    assert html.endswith("</form>")
    assert 'value="bytes" id="fq-bytes' in html
    assert 'value="pruning"' in html
    assert re.search(r'value="pruning" id="[^"]*" checked', filtered)


def test_a_filter_lights_what_is_read(file: fastpq.ParquetFile) -> None:
    with file:
        picture = file.layout([("id", "<", 4000)])
        cells = classes(picture, "pruning")
        assert {name.split()[-1] for name in cells} == {"p4", "p6"}
        assert picture.pruning is not None
        assert picture.pruning.groups_read == 1
        assert picture.pruning.bytes_read == file.explain([("id", "<", 4000)]).bytes_read
        svg = picture.to_svg("pruning")
        assert "row group left out: id &lt; 4000: no row by statistics" in svg
        assert "q0 k" in svg
        assert "q2 k" in svg
        absent = file.layout([("user", "==", -1 + int(items()["user"].max()))])
        assert absent.pruning is not None
        assert {*absent.pruning.kinds} & {"bloom filter", "statistics"}
        one_column = file.layout([("id", "<", 4000)], ["price"])
        assert one_column.pruning is not None
        assert one_column.pruning.bytes_read < picture.pruning.bytes_read


def test_sorted_values_are_a_staircase_and_random_ones_full_bars(file: fastpq.ParquetFile) -> None:
    with file:
        bars = {each.column.name: each for each in file.layout()._bars}
    assert bars["id"].unit == "page"
    assert bars["id"].share_for_value == pytest.approx(1 / len(bars["id"].lows))
    assert (bars["id"].lows[1:] >= bars["id"].highs[:-1]).all()
    assert bars["user"].share_for_value > 0.95
    assert (bars["id"].first, bars["id"].last) == ("0", "19999")
    assert bars["name"].is_ranked
    assert not bars["price"].is_ranked


def test_share_for_a_random_value() -> None:
    lows, highs = np.array([0.0, 0.5, 0.5]), np.array([0.4, 1.0, 1.0])
    assert share_for_random_value(lows, highs, np.array([1, 0, 0])) == pytest.approx(1 / 3)
    assert share_for_random_value(lows, highs, np.array([0, 1, 1])) == pytest.approx(2 / 3)


def test_time_is_estimated_or_measured(file: fastpq.ParquetFile) -> None:
    with file:
        estimated, measured = file.layout(), file.layout(measure=True)
    assert "estimated from a table" in estimated.to_svg("time")
    assert "measured here" in measured.to_svg("time")
    assert any(each.name == "chunks measured" and each.text == "20 of 20" for each in measured.numbers)


def test_numbers(file: fastpq.ParquetFile) -> None:
    with file:
        numbers = {each.name: each.text for each in file.layout().numbers}
    assert numbers["rows in a row group"] == "4,000"
    assert numbers["chunks with statistics"] == "20 of 20"
    assert numbers["chunks with a bloom filter"] == "5 of 20"
    assert numbers["gaps"] == "none"
    assert "rle_dictionary" in numbers["pages by encoding"]
    assert re.match(r"\d+ requests?, ", numbers["open and read one column"])


def test_a_network_read_takes_no_more_than_the_file(tmp_path: Path) -> None:
    """The column is read up to the end of the file with the gaps in it, where the first request has the last bytes already."""
    path = tmp_path / "wide.parquet"
    random = np.random.default_rng(3)
    fastpq.write_table(
        {"small": random.integers(0, 2, 60_000), "large": random.random(60_000)}, path, row_group_size=5_000, compression=None)
    with fastpq.ParquetFile(path) as file:
        start = file.metadata.row_group(0).column(1).byte_range[0]
        numbers = {each.name: each.text for each in file.layout().numbers}
    size = path.stat().st_size
    assert size > 4 * DEFAULT_TAIL_READ
    assert numbers["open and read one column"] == f"2 requests, {of_bytes(size - start)} (the column of median size, large)"


def test_names_and_values_are_escaped(tmp_path: Path) -> None:
    name = '<script>alert("1")</script>&\x1b[31m'
    path = tmp_path / "a'<b>&.parquet"
    fastpq.write_table({name: np.array(["<i>", "</svg>&"]), "x": np.arange(2)}, path)
    with fastpq.ParquetFile(path) as file:
        picture = file.layout([(name, "==", "<i>")])
    for text in (picture.to_html("pruning"), picture.to_svg("pruning")):
        assert "<script>alert" not in text
        assert "<i>" not in text
        assert "\x1b" not in text
        assert "<b>" not in text
        assert drawings(text)


def test_nested_columns_and_files_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "nested.parquet"
    fastpq.write_table({"a": [[1, 2], [], None, [3]], "b": [{"c": "x"}, {"c": None}, None, {"c": "y"}]}, path)
    with fastpq.ParquetFile(path) as file:
        picture = file.layout(measure=True)
        assert "a.list.element" in picture.to_html()
        assert sum(picture.bytes_by_part.values()) == path.stat().st_size
    fastpq.write_table({"a": np.arange(0)}, path)
    with fastpq.ParquetFile(path) as file:
        picture = file.layout()
        assert drawings(picture.to_html())
        assert sum(picture.bytes_by_part.values()) == path.stat().st_size


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_encrypted_columns_without_their_keys(tmp_path: Path, plaintext_footer: bool) -> None:
    path = tmp_path / "secret.parquet"
    keys = fastpq.FileEncryptionProperties(
        FOOTER_KEY, {"price": PRICE_KEY, "user": USER_KEY}, plaintext_footer=plaintext_footer, unlisted="plaintext")
    fastpq.write_table(items(), path, encryption_properties=keys, bloom_filter={"user": True})
    some_keys = fastpq.FileDecryptionProperties(FOOTER_KEY, {"price": PRICE_KEY})
    with fastpq.ParquetFile(path, decryption_properties=some_keys) as file:
        picture = file.layout()
        svg = picture.to_svg()
        assert "the key of column &#x27;user&#x27;" in svg
        assert {"fq-h0", "fq-h1"} <= {*re.findall(r'id="(fq-h\d)"', svg)}
        assert sum(picture.bytes_by_part.values()) == path.stat().st_size
        assert any(each.name == "unreadable chunks" and each.is_notable for each in picture.numbers)
        file.layout([("id", "<", 10)], ["id"])
        with pytest.raises(KeyAccessError):
            file.read(["user"])
    every_key = fastpq.FileDecryptionProperties(FOOTER_KEY, {"price": PRICE_KEY, "user": USER_KEY})
    with fastpq.ParquetFile(path, decryption_properties=every_key) as file:
        assert not any("sealed" in part or "gaps" in part for part in file.layout().bytes_by_part)


def test_a_sealed_footer_shows_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "sealed.parquet"
    fastpq.write_table(items(), path, encryption_properties=fastpq.FileEncryptionProperties(FOOTER_KEY))
    with open_source(path) as source:
        picture = sealed_picture(source, [("algorithm", "AES_GCM_V1")])
    assert sum(picture.bytes_by_part.values()) == path.stat().st_size
    assert picture.bytes_by_part["sealed: no key"] > 0.8 * path.stat().st_size
    assert "AES_GCM_V1" in picture.to_html()
    assert drawings(picture.to_html())


def test_an_unknown_lens_is_refused(file: fastpq.ParquetFile) -> None:
    with file, pytest.raises(ValueError, match="lens must be"):
        file.layout().to_svg("colour")      # type: ignore[arg-type]


@pytest.mark.slow
def test_thirty_thousand_chunks(tmp_path: Path) -> None:
    path = tmp_path / "many.parquet"
    rows, columns = 300 * 20, 100
    random = np.random.default_rng(1)
    table = {f"column {number}": random.integers(0, 1 << (number % 60), rows) for number in range(columns)}
    fastpq.write_table(table, path, row_group_size=20)
    with fastpq.ParquetFile(path) as file:
        file.layout().to_html()
        start = time.process_time()
        html = file.layout().to_html()
        seconds = time.process_time() - start
    assert nodes_of(html) <= MOST_NODES
    assert len(html) <= MOST_BYTES
    # The processor's time, and a margin: other tests may run on the same core.
    assert seconds <= 2 * MOST_SECONDS


def test_a_png_has_the_size_and_the_text_of_the_drawing(file: fastpq.ParquetFile) -> None:
    requirements.needs_png()
    picture = file.layout(filters=[("id", "<", 100)])
    image = picture.to_png("pruning", 1024)
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(image[place : place + 4], "big") for place in (16, 20))
    box = ElementTree.fromstring(picture.to_svg("pruning")).attrib["viewBox"]
    drawn_width, drawn_height = map(float, box.split()[2:])
    assert width == 1024
    assert abs(height - 1024 * drawn_height / drawn_width) < 2
    assert image != picture.to_png("bytes", 1024)
    with pytest.raises(ValueError, match="width"):
        picture.to_png("bytes", 0)
    with pytest.raises(ValueError, match="lens"):
        picture.to_png("colour")        # type: ignore[arg-type]


def test_a_png_without_a_font_is_refused(file: fastpq.ParquetFile, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements.needs_png()
    import resvg_py

    drawn = resvg_py.svg_to_bytes
    monkeypatch.setattr(resvg_py, "svg_to_bytes", lambda **options: drawn(**options, skip_system_fonts=True))
    file_picture._font.cache_clear()
    with pytest.raises(UnsupportedError, match=r"needs a font.*fonts-dejavu-core"):
        file.layout().to_png()
    file_picture._font.cache_clear()


def test_a_png_where_fontconfig_names_no_font(file: fastpq.ParquetFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """There resvg takes Arial, which Linux does not have."""
    requirements.needs_png()
    import resvg_py

    drawn, image = resvg_py.svg_to_bytes, file.layout().to_png()
    monkeypatch.setattr(resvg_py, "svg_to_bytes", lambda **options: drawn(**{"sans_serif_family": "no font", **options}))
    file_picture._font.cache_clear()
    assert len(file.layout().to_png()) > len(image) / 2     # with text
    file_picture._font.cache_clear()


def test_a_png_without_the_package_is_refused(file: fastpq.ParquetFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(UnsupportedError, match=r"a layout as PNG needs the package resvg-py \(pip install resvg-py\)"):
        file.layout().to_png()
