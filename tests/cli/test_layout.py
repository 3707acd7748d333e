"""The verb layout: files, standard output, numbers, keys and wrong arguments."""

from __future__ import annotations

from pathlib import Path

from tests import requirements
from tests.cli.running import Runner


def test_pictures_are_written(command: Runner, in_examples: Path, tmp_path: Path) -> None:
    page, image = tmp_path / "a.html", tmp_path / "a.svg"
    assert command("layout", "items.parquet", "-o", str(page)).code == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert command("layout", "items.parquet", "-o", str(image), "-w", "price < 2.5").code == 0
    assert image.read_text().startswith("<svg")
    assert "filter: price &lt; 2.5" in image.read_text()
    assert command.binary("layout", "items.parquet", "-o", "-", "-f", "svg").startswith(b"<svg")


def test_a_png_image(command: Runner, in_examples: Path, tmp_path: Path) -> None:
    requirements.needs_png()
    image = tmp_path / "a.png"
    assert command("layout", "items.parquet", "-o", str(image), "-w", "price < 2.5").code == 0
    assert image.read_bytes().startswith(b"\x89PNG")
    assert command.binary("layout", "items.parquet", "-o", "-", "-f", "png").startswith(b"\x89PNG")


def test_numbers_without_a_picture(command: Runner, in_examples: Path) -> None:
    code, out, _ = command("layout", "items.parquet")
    assert code == 0
    assert "chunks with a bloom filter" in out
    facts = command("layout", "items.parquet", "--json").json
    assert sum(facts["bytes"].values()) == facts["size"] == Path("items.parquet").stat().st_size
    assert facts["picture"] is None


def test_an_encrypted_footer_without_a_key(command: Runner, in_examples: Path, tmp_path: Path) -> None:
    page = tmp_path / "sealed.html"
    code, out, _ = command("layout", "sealed.parquet", "-o", str(page))
    assert code == 0
    assert "AES_GCM_V1" in out
    assert "kf" in out
    assert "master keys" in page.read_text()


def test_wrong_arguments(command: Runner, in_examples: Path, tmp_path: Path) -> None:
    code, _, err = command("layout", "items.parquet", "-o", str(tmp_path / "a.jpeg"))
    assert code == 2
    assert "html, svg or png" in err
    assert command("layout", "cut.parquet", "-o", str(tmp_path / "a.svg")).code == 3
    assert command("layout", "items.parquet", "-o", str(tmp_path / "a.svg"), "-w", "wrong < 1").code == 2
    assert not [*tmp_path.iterdir()]
    for name in ("one.svg", "one.html", "one.png"):
        code, _, err = command("layout", "items.parquet", name)
        assert code == 2
        assert err.splitlines() == [f"fastpq: {name} is not a Parquet file", f"  hint: -o {name} writes the picture there"]


def test_a_folder_is_one_picture(command: Runner, in_examples: Path, tmp_path: Path) -> None:
    page = tmp_path / "folder.html"
    code, out, _ = command("layout", "folder", "-o", str(page), "-w", "id < 400")
    assert code == 0
    assert "1 of 2 files" in out
    assert "part-1.parquet" in page.read_text()
    facts = command("layout", "folder", "--json").json
    assert facts["size"] == sum(path.stat().st_size for path in Path("folder").iterdir())
    assert command("layout", "folder/part-0.parquet", "folder/part-1.parquet", "--json").json["size"] == facts["size"]
    code, _, err = command("layout", "folder", "--measure")
    assert code == 2
    assert "one file" in err


def test_why_of_a_folder_has_a_line_for_each_file(command: Runner, in_examples: Path, tmp_path: Path) -> None:
    code, out, _ = command("why", "folder", "-w", "id < 400", "--count")
    assert code == 0
    assert "reads 1 of 2 files" in out
    lines = [line.split() for line in out.splitlines() if "part-" in line]
    assert [line[:2] for line in lines] == [["part-0.parquet", "kept"], ["part-1.parquet", "dropped"]]
    assert "400" in lines[0]
    assert "statistics" in lines[1][-4:] or "statistics:" in lines[1]
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        (tmp_path / f"year={year}" / "x.parquet").write_bytes(Path("folder/part-0.parquet").read_bytes())
    code, out, _ = command("why", str(tmp_path), "-w", "year == 2024")
    assert code == 0
    assert "not opened" in out
    assert "reads 1 of 2 files" in out
    code, out, _ = command("why", str(tmp_path), "-w", "year == 2024", "--json")
    assert '"left_out": "partition values or missing columns"' in out
