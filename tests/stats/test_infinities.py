"""Infinities and zeros in statistics: wrong bounds of pyarrow before 25, and signs that bounds do not tell."""

from __future__ import annotations

import base64
import io
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.index.chunk_claims import ChunkMetadataClaims
from fastpq.stats.total_order import is_largest_finite
from fastpq.stats.usable_statistics import usable_statistics_of
from tests.narrowing import present

# Written by pyarrow 23.0.1, one row group and two data pages of 2 rows a column, with page indexes:
#   big = float(np.finfo(dtype).max)
#   values = {"up": [inf] * 4, "down": [-inf] * 4, "mixed": [inf, inf, 1.5, -inf], "nan": [nan, inf, inf, nan],
#             "zeros": [0.0, -0.0, 0.0, -0.0], "largest": [big, big, -big, -big]}
#   a column f"{name}_{kind}" of each kind for half (float16), single and double; struct: {"up": double_up, "down": single_down}
#   pq.write_table(table, path, write_page_index=True, compression="none", use_dictionary=["double_up"], store_schema=False,
#                  data_page_size=1, write_batch_size=2)
WRITTEN_BY_PYARROW_23 = zlib.decompress(base64.b85decode(
    'c-pm=L1-IC6oyCZjl7a=S(Y_hZL7478*d$OLfzIm37hoLQz^lRUW;lgi9xYkSx!oAVo`kX!IV%+2&I%Bd@wzP5_~Wv6ca)YCiE0a=*i@eQ)x{O!Ng0p@6F'
    '84&N?H-mRo6eXXc-`-~V=Yc6QI78y}{GW@&banox<;I3Wfh#Eg*zvd}`8N4yrgngB-|pLMNShSwT(5mG;Vmp|{%H|pB+_dv<hyarfb#J%NiANQ8Ko5MH9n'
    'x4J+>dZGAce7u;wQk>ET*SR`w~ssMX`23+8kA%Nk?i0}8JZbloytiulQiuaqC*YR-0_3*KM7k@5^Wr|J9Z%2?!jn*>2C8d`Kuo-%xAxU7K5^Rm>-n-Fymn'
    '3rVG<d9;5j~BfFgwhT#kv{yc0@k_FhP;kbmH`iPkD7XieB4FmUJ(**#51t4LRn%aO@Skz&|5>sqo;qL{d#=^vBi5;Mh4=y`sNT~blz)$koK^Mq~B2W-F$B'
    't-C>g>SlgdG}MV_s@qV{HYqPgXz+CWowO9D+VyRzjFBE4mY<qjKUt$KA32AyrbBl~5zH(lpiJdUV=RQ@y}$<AG+E3>~s9de$by9)$uV5NcfbIVP3u7?*As'
    'QhH!;>FYKrZM1Re?@(Gbx%8(grR&G&C`!L$$)%Mzm$u?kT5jjk{dOrWSzNknNvWRT(r*bVc|!U%DW%m8`T<IhuoRA+^b?jBmRwrv;?lD&DcwtP>Dz88ZFh'
    '6&R$5A4noC<fQo5Pp(vyso)_ZwgPkVV@aIZakgyiD06PHSti_|4F1&gDRYrj-1U-)cprtINV;#z`fla;H}s+wf#<*6@Ald5bndAg{H{i;;0%&KxHlgq{G#'
    'nNnzcUS}9H#;?bv0Q>Ic)LTiF$1o23Wd3IDJdjyj>a%oE~SJd90^UL+hk?#bK!>V4$<arsB{WNxS^C35_3~ygd0jJAq8$D1`KztIyX_HCXX<JD>RvzZ8>?'
    'z%eo{_Q_et~IPz{#=(Edq*|iEecyHuj@wdsKsP*&^Cr|OK#w3MPad^Ps$+Um!r~URXS^6PSc;TIt#2OI&J)n9><TX9<Za+O~Kix-EW`RU*$3&K#$!mJ%lY'
    'Z*j>om%gQ%DjY7ze)YmA8TTjOwyv_eL@|+K@?LuQMjA>6y2YxnW0{k;yBmt0s=;JdP<FPgc`YA0hR5K()jjl5?LS7wiT1`msWey-0KH4G37JrANO&^qtq}'
    'xQbREBMD!L7Z}KA7CyqmmL9%(65!wDqVUKQDe24YGWCESw)FHZq;Kz|D-XA1FIk5kmK|i@cJ!Htvjge%1f#>OV4o?R9<=oI8v{UJdOb?tx8z8^m*C^h^9{'
    'ybwDkNt$p0hYC!G-zPdm!;#n|7)U~^YH+}&h8C*ROH`ThnYjf#f+<Jdsgbj0^D`mVh}tHPI0CS{dm#y`Yhb5}YGlIlx;ygZGnzszM9?7q)O?IKIC;<wgSP'
    '_I(;ds)@{-9o>W<553leOKJ>r3!}|)0f>IqT7q(`l}14AottumVPkx<X2zlr>c6t=jgZdX4G%rn@Mr>(&7CJuSLCoirV1C^A0#Zek<ZQC|-Pqn5Eq8X66X'
    'Pd6s?h+V|1zVIRGsJamDZ8CmJpdk?YF3Ho11-#S4*CH7j@wp<GeGT1j$tbQ?9s-2#gnK@moRx4Ngu9T{?Q<dqy_ufDA?wMhDiRTGvc_Tk22swXleE45#?e'
    'Hf'
))
DTYPES: dict[str, Any] = {"half": np.float16, "single": np.float32, "double": np.float64}
INF = math.inf


@pytest.mark.parametrize("name", DTYPES)
def test_infinities_of_pyarrow_before_25(name: str, tmp_path: Path) -> None:
    """apache/arrow#50182: the minimum of infinities alone is the largest finite number, and marked as exact."""
    big = float(np.finfo(DTYPES[name]).max)
    expected = {"up": (INF, INF), "down": (-INF, -INF), "mixed": (-INF, INF), "nan": (INF, INF), "largest": (-big, big)}
    (tmp_path / "a.parquet").write_bytes(WRITTEN_BY_PYARROW_23)
    with fastpq.ParquetFile(WRITTEN_BY_PYARROW_23) as file:
        assert "23.0.1" in present(file.metadata.created_by)
        dataset = fastpq.ParquetDataset(tmp_path)
        for kind, bounds in expected.items():
            column = f"{name}_{kind}"
            assert file.min_max(column) == bounds
            assert dataset.min_max(column) == bounds
            statistics = present(file.metadata.row_group(0).column(file.schema.column(column).index).statistics)
            assert statistics.is_min_exact is (kind not in ("up", "nan"))
            assert statistics.is_max_exact is (kind != "down")


@pytest.mark.parametrize("name", DTYPES)
def test_filters_on_infinities(name: str) -> None:
    """Bounds of chunks and of pages: the same rows as by the values, however the bounds are wrong."""
    big = float(np.finfo(DTYPES[name]).max)
    with fastpq.ParquetFile(WRITTEN_BY_PYARROW_23) as file:
        for kind in ("up", "down", "mixed", "nan", "zeros", "largest"):
            column = f"{name}_{kind}"
            values = file.read([column])[column].to_numpy().astype(np.float64)
            for value in (INF, -INF, big, -big, 1.5, 0.0):
                above = (values > value) | np.isnan(values)     # NaN is the largest number
                for op, expected in (
                    ("==", values == value), ("!=", values != value), ("<", values < value), (">", above), ("<=", ~above),
                    (">=", above | (values == value)), ("in", np.isin(values, [value, 7])),
                    ("not in", ~np.isin(values, [value, 7])),
                ):
                    filters = [(column, op, [value, 7] if op.endswith("in") else value)]
                    assert file.count(filters) == expected.sum(), (column, op, value)
                    assert file.read([column], filters=filters).num_rows == expected.sum()
                    assert file.explain(filters).row_groups[0].rows >= expected.sum()


def test_nested_infinities() -> None:
    with fastpq.ParquetFile(WRITTEN_BY_PYARROW_23) as file:
        metadata = file.metadata
        for path, exact in ((("struct", "up"), (None, INF)), (("struct", "down"), (-INF, None))):
            column = file.schema.column(path)
            chunk = metadata.row_group(0).column(column.index)
            bounds = ChunkMetadataClaims(column, 4, chunk.metadata, usable_statistics_of(metadata, column)).exact_bounds
            dtype = present(column.type.dtype)
            assert tuple(None if bound is None else float(np.frombuffer(bound, dtype)[0]) for bound in bounds) == exact
            assert file.count([(path, "==", INF)]) == (4 if path[1] == "up" else 0)


@pytest.mark.parametrize("name", DTYPES)
def test_zeros(name: str, tmp_path: Path) -> None:
    """Statistics of zeros tell no sign (parquet.thrift, ColumnOrder): the answer is 0.0, from statistics and from values."""
    sink = io.BytesIO()
    dtype = DTYPES[name]
    columns = {"x": np.array([-0.0, 0.0], dtype), "negative": np.array([-0.0, -0.0], dtype)}
    fastpq.write_table(columns, sink, write_statistics=False)
    (tmp_path / "a.parquet").write_bytes(WRITTEN_BY_PYARROW_23)
    with fastpq.ParquetFile(sink.getvalue()) as without, fastpq.ParquetFile(WRITTEN_BY_PYARROW_23) as file:
        found = [without.min_max("x"), without.min_max("negative"), file.min_max(f"{name}_zeros")]
        found.append(fastpq.ParquetDataset(tmp_path).min_max(f"{name}_zeros"))
    for bounds in found:
        assert [math.copysign(1, bound) for bound in bounds] == [1, 1]
        assert bounds == (0, 0)


def test_later_versions_are_believed() -> None:
    """A file of today's pyarrow has infinities as bounds, and they are exact."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": np.array([INF, INF])}), sink)
    with fastpq.ParquetFile(sink.getvalue()) as file:
        assert present(file.metadata.row_group(0).column(0).statistics).is_min_exact
        assert file.min_max("x") == (INF, INF)


def test_the_largest_finite_numbers() -> None:
    for name, dtype in DTYPES.items():
        big = float(np.finfo(dtype).max)
        for value, sign in ((big, 1), (-big, -1), (INF, 0), (0.0, 0), (1.0, 0), (math.nan, 0)):
            stored = np.array(value, dtype).tobytes()
            assert [is_largest_finite(stored, 1), is_largest_finite(stored, -1)] == [sign == 1, sign == -1], (name, value)
