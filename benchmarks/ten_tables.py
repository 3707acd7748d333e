"""Ten tables whose values are distributed as in practice, for the job file-size. Seeds make them the same in every run.

Each table has between half a million and two million values. Their columns are what people store: times that nearly ascend, names
that repeat by Zipf's law, prices in cents, readings of a converter with 12 bits, text with the statistics of a language.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

SEED = 20
SECONDS_A_DAY = 86_400
FIRST_SECOND = 1_767_225_600        # 2026-01-01 00:00 UTC

TRIP_ROWS, ZONES = 125_000, 263
LOG_ROWS, CLIENTS, AGENTS = 150_000, 20_000, 60
SENSOR_ROWS, DEVICES = 150_000, 20
PROSE_ROWS, PROSE_WORDS, VOCABULARY = 130_000, 40, 12_000
ID_ROWS = 200_000
UUID_ROWS, SESSIONS = 150_000, 20_000
VECTORS, DIMENSIONS, CLUSTERS = 3_000, 384, 40
TICKERS, TRADING_DAYS = 500, 400
JSON_ROWS = 170_000
BOOLEAN_ROWS, BOOLEAN_COLUMNS = 20_000, 100

Random = np.random.Generator


def trips(random: Random) -> pa.Table:
    """Taxi trips of a month, about in the order of their beginning."""
    hours = np.array([3, 2, 1, 1, 1, 1, 2, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 7, 8, 7, 7, 6, 5, 4])
    second = random.integers(0, 31, TRIP_ROWS) * SECONDS_A_DAY + random.choice(24, TRIP_ROWS, p=hours / hours.sum()) * 3600
    second = np.sort(second + random.integers(0, 3600, TRIP_ROWS)) + random.integers(0, 600, TRIP_ROWS)
    distance = np.round(random.lognormal(0.6, 0.85, TRIP_ROWS), 2)
    duration = (distance * 240 * random.lognormal(0, 0.3, TRIP_ROWS) + 60).astype(np.int64)
    fare = np.round(3 + 0.7 * np.floor(distance * 3.5 + duration / 180), 2)
    card = random.random(TRIP_ROWS) < 0.78
    share = random.choice([0, 0.15, 0.2, 0.25, 0.3], TRIP_ROWS, p=[0.1, 0.1, 0.5, 0.2, 0.1])
    tolls = np.where(random.random(TRIP_ROWS) < 0.06, 6.94, 0.0)
    extra = random.choice([0, 1, 2.5, 5], TRIP_ROWS, p=[0.4, 0.3, 0.25, 0.05])
    tip = np.where(card, np.round((fare + extra) * share, 2), 0.0)
    zones = random.permutation(ZONES) + 1
    unknown = random.random(TRIP_ROWS) < 0.04
    return pa.table(
        {
            "vendor": random.choice([1, 2, 6], TRIP_ROWS, p=[0.25, 0.74, 0.01]),
            "pickup": _microseconds(second * 1_000_000),
            "dropoff": _microseconds((second + duration) * 1_000_000),
            "passengers": pa.array(random.choice(6, TRIP_ROWS, p=[0.72, 0.16, 0.05, 0.03, 0.02, 0.02]) + 1, mask=unknown),
            "distance": distance,
            "rate": pa.array(random.choice([1, 2, 3, 5], TRIP_ROWS, p=[0.93, 0.04, 0.01, 0.02]), mask=unknown),
            "forwarded": pa.array(random.choice(["N", "Y"], TRIP_ROWS, p=[0.99, 0.01]), mask=unknown),
            "pickup_zone": zones[_zipf(random, ZONES, TRIP_ROWS)],
            "dropoff_zone": zones[_zipf(random, ZONES, TRIP_ROWS)],
            "payment": np.where(card, 1, random.choice([2, 3, 4], TRIP_ROWS, p=[0.9, 0.04, 0.06])),
            "fare": fare,
            "extra": extra,
            "tip": tip,
            "tolls": tolls,
            "total": np.round(fare + extra + tip + tolls + 1.0, 2),
        }
    )


def logs(random: Random) -> pa.Table:
    """Lines of web servers, with the columns that a collector takes out of them."""
    time = FIRST_SECOND * 1_000_000 + np.cumsum(random.exponential(60_000, LOG_ROWS).astype(np.int64))
    host = _texts("web-{:02}.eu-west-1.example.net", 12)[random.integers(0, 12, LOG_ROWS)]
    addresses = random.integers(1, 255, (CLIENTS, 4)).astype(str)
    clients = pc.binary_join_element_wise(*(pa.array(part) for part in addresses.T), ".")
    client = clients.take(_zipf_array(random, CLIENTS, LOG_ROWS))
    routes = pa.array(
        ["/api/v2/orders/", "/api/v2/customers/", "/assets/img/", "/search?q=", "/login?from=", "/health?n=", "/cart/items/"]
    ).take(_zipf_array(random, 7, LOG_ROWS))
    status = random.choice([200, 204, 301, 304, 400, 404, 500], LOG_ROWS, p=[0.8, 0.04, 0.03, 0.06, 0.02, 0.04, 0.01])
    agents = pa.array(
        [
            f"Mozilla/5.0 ({system}) AppleWebKit/537.{a} (KHTML, like Gecko) Chrome/{a + 90}.0.{b * 37}.{a} Safari/537.{a}"
            for a, b in random.integers(10, 40, (AGENTS // 3, 2)).tolist()
            for system in ("Windows NT 10.0; Win64; x64", "X11; Linux x86_64", "Macintosh; Intel Mac OS X 10_15_7")
        ]
    )
    line = pc.binary_join_element_wise(
        client, _repeat(" - - [", LOG_ROWS), *_log_moments(time // 1_000_000), _repeat(' +0000] "', LOG_ROWS),
        pa.array(["GET ", "POST ", "PUT "]).take(pa.array(random.choice(3, LOG_ROWS, p=[0.85, 0.12, 0.03]))),
        routes, _decimal_text((random.pareto(0.6, LOG_ROWS) * 50).astype(np.int64) % 1_000_000), _repeat(' HTTP/1.1" ', LOG_ROWS),
        _decimal_text(status), _repeat(" ", LOG_ROWS), _decimal_text(random.lognormal(8, 1.5, LOG_ROWS).astype(np.int64)),
        _repeat(' "-" "', LOG_ROWS), agents.take(_zipf_array(random, len(agents), LOG_ROWS)), _repeat('"', LOG_ROWS), "",
    )
    level = np.where(status >= 500, "ERROR", np.where(status >= 400, "WARN", "INFO"))
    return pa.table({"time": pa.array(time, pa.timestamp("us")), "host": host, "level": level, "status": status, "line": line})


def _log_moments(seconds: NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
    """Return the day and the time of day as web servers write them. PyArrow's strftime needs a database of time zones."""
    first_day = seconds[0] // SECONDS_A_DAY
    days = pa.array([f"{datetime.fromtimestamp(day * SECONDS_A_DAY, UTC):%d/%b/%Y:}"
                     for day in range(first_day, seconds[-1] // SECONDS_A_DAY + 1)])  # fmt: skip
    clock = pa.array([f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}" for second in range(SECONDS_A_DAY)])
    return days.take(pa.array(seconds // SECONDS_A_DAY - first_day)), clock.take(pa.array(seconds % SECONDS_A_DAY))


def sensors(random: Random) -> pa.Table:
    """Readings of devices that take turns: converter steps, smooth curves, and the noise of an accelerometer."""
    turns = SENSOR_ROWS // DEVICES

    def walk(step: float, scale: float, grid: float) -> NDArray[np.float64]:
        values = np.cumsum(random.normal(0, step, (turns, DEVICES)), axis=0) + random.normal(0, scale, DEVICES)
        return (np.round(values / grid) * grid).ravel()

    milliseconds = FIRST_SECOND * 1000 + np.repeat(np.arange(turns) * 1000, DEVICES) + random.integers(0, 40, SENSOR_ROWS)
    counts = np.clip(2048 + walk(3, 300, 1), 0, 4095)
    return pa.table(
        {
            "time": pa.array(milliseconds, pa.timestamp("ms")),
            "device": pa.array(np.tile(np.arange(DEVICES, dtype=np.int32), turns)),
            "temperature": (20 + walk(0.02, 5, 0.0625)).astype(np.float32),
            "humidity": np.round(55 + walk(0.05, 10, 0.01), 2),
            "pressure": 1013.25 + walk(0.01, 8, 0.000_001),
            "voltage": (counts * (3.3 / 4096)).astype(np.float32),
            **{f"acceleration_{axis}": random.normal(0, 0.3, SENSOR_ROWS).astype(np.float32) for axis in "xyz"},
            "signal": pa.array(np.round(-60 + walk(0.3, 6, 1)).astype(np.int32)),
        }
    )


def prose(random: Random) -> pa.Table:
    """Paragraphs, in which a word depends on the word before it, by made-up words with the frequencies of a language."""
    words = _vocabulary(random, VOCABULARY)
    followers = np.minimum(random.zipf(1.35, (VOCABULARY, 24)) * random.integers(1, 60, (VOCABULARY, 24)), VOCABULARY) - 1
    lengths = random.integers(PROSE_WORDS // 2, PROSE_WORDS * 3 // 2, PROSE_ROWS)
    word = _zipf(random, VOCABULARY, PROSE_ROWS)
    sentences: list[pa.Array] = []
    capital = pc.utf8_capitalize(words)
    starts = np.ones(PROSE_ROWS, bool)
    for place in range(int(lengths.max())):
        ends = (random.random(PROSE_ROWS) < 0.07) | (lengths == place + 1)
        text = pc.if_else(pa.array(starts), capital.take(pa.array(word)), words.take(pa.array(word)))
        text = pc.binary_join_element_wise(text, pc.if_else(pa.array(ends), ". ", " "), "")
        sentences.append(pc.if_else(pa.array(lengths > place), text, ""))
        starts = ends
        follows = random.random(PROSE_ROWS) < 0.65
        word = np.where(follows, followers[word, _zipf(random, 24, PROSE_ROWS)], _zipf(random, VOCABULARY, PROSE_ROWS))
    title = pc.binary_join_element_wise(*(capital.take(_zipf_array(random, VOCABULARY, PROSE_ROWS)) for _ in range(4)), " ")
    authors = pc.binary_join_element_wise(capital.slice(500, 3000), capital.slice(4000, 3000), " ")
    return pa.table(
        {
            "document": np.arange(PROSE_ROWS) + 1,
            "author": authors.take(_zipf_array(random, len(authors), PROSE_ROWS)),
            "title": title,
            "body": pc.utf8_rtrim_whitespace(pc.binary_join_element_wise(*sentences, "")),
        }
    )


def ids(random: Random) -> pa.Table:
    """Keys: counted up, referred to, made of a time, hashed, and written as text."""
    number = np.cumsum(random.choice([1, 1, 1, 1, 2, 5], ID_ROWS)) + 7_000_000
    milliseconds = np.cumsum(random.exponential(90, ID_ROWS).astype(np.int64)) + 300_000_000_000
    snowflake = (milliseconds << 22) | (random.integers(0, 16, ID_ROWS) << 12) | random.integers(0, 3, ID_ROWS)
    letters = np.array(list("ABCDEFGHKLMNPRSTUVXZ"))[random.integers(0, 20, (30_000, 2))]
    digits = _decimal_text(random.integers(10_000, 100_000, 30_000))
    sku = pc.binary_join_element_wise(pa.array(letters[:, 0]), pa.array(letters[:, 1]), _repeat("-", 30_000), digits, "")
    return pa.table(
        {
            "order": number,
            "customer": random.permutation(80_000)[_zipf(random, 80_000, ID_ROWS)] + 100_000,
            "product": random.integers(1, 100_000, ID_ROWS).astype(np.int32),
            "event": snowflake,
            "hash": random.integers(-(2**63), 2**63 - 1, ID_ROWS),
            "parent": number - random.integers(1, 400, ID_ROWS),
            "order_number": pc.binary_join_element_wise(_repeat("ORD-2026-", ID_ROWS), _decimal_text(number), ""),
            "sku": sku.take(_zipf_array(random, 30_000, ID_ROWS)),
        }
    )


def uuids(random: Random) -> pa.Table:
    """Random UUIDs as text and as bytes, UUIDs that begin with a time, and sessions that come back."""
    sessions = _uuid_texts(_random_uuids(random, SESSIONS))
    by_time = _random_uuids(random, UUID_ROWS)
    milliseconds = FIRST_SECOND * 1000 + np.cumsum(random.exponential(40, UUID_ROWS).astype(np.int64))
    by_time[:, :6] = milliseconds.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]
    by_time[:, 6] = (by_time[:, 6] & 0x0F) | 0x70
    as_bytes = pa.Array.from_buffers(
        pa.binary(16), UUID_ROWS, [None, pa.py_buffer(_random_uuids(random, UUID_ROWS).tobytes())]
    )
    return pa.table(
        {
            "id": _uuid_texts(_random_uuids(random, UUID_ROWS)),
            "event": _uuid_texts(by_time),
            "session": sessions.take(_zipf_array(random, SESSIONS, UUID_ROWS)),
            "bytes": as_bytes,
        }
    )


def embeddings(random: Random) -> pa.Table:
    """Vectors of length 1 around some centres, with a number and a label."""
    cluster = random.integers(0, CLUSTERS, VECTORS)
    vectors = random.normal(0, 1, (CLUSTERS, DIMENSIONS))[cluster] + random.normal(0, 0.7, (VECTORS, DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    values = pa.array(vectors.astype(np.float32).ravel())
    offsets = pa.array(np.arange(VECTORS + 1, dtype=np.int32) * DIMENSIONS)
    label = _texts("topic {:02}", CLUSTERS)[cluster]
    return pa.table({"id": np.arange(VECTORS), "label": label, "vector": pa.ListArray.from_arrays(offsets, values)})


def prices(random: Random) -> pa.Table:
    """Daily prices of shares in cents, with the mean price as an exact decimal."""
    rows = TICKERS * TRADING_DAYS
    moves = np.cumsum(random.normal(0.0003, 0.018, (TICKERS, TRADING_DAYS)), axis=1)
    close = np.exp(moves + random.normal(3.8, 0.9, TICKERS)[:, None])
    start, spread = close * np.exp(random.normal(0, 0.008, close.shape)), np.abs(random.normal(0, 0.01, close.shape))
    high, low = np.maximum(start, close) * (1 + spread), np.minimum(start, close) * (1 - spread)
    letters = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))[random.integers(0, 26, (TICKERS, 4))]
    ticker = pc.binary_join_element_wise(*(pa.array(part) for part in letters.T), "")
    days = np.arange(TRADING_DAYS) + np.arange(TRADING_DAYS) // 5 * 2 + 20_090
    mean = np.round((start + high + low + close).ravel() * 2500).astype(np.int64)
    return pa.table(
        {
            "ticker": ticker.take(pa.array(np.repeat(np.arange(TICKERS), TRADING_DAYS))),
            "day": pa.array(np.tile(days, TICKERS).astype(np.int32)).cast(pa.date32()),
            **{
                name: np.round(values.ravel(), 2)
                for name, values in (("open", start), ("high", high), ("low", low), ("close", close))
            },
            "mean": _decimals(mean),
            "volume": (random.lognormal(13, 1.2, rows) // 100 * 100).astype(np.int64),
        }
    )


def json(random: Random) -> pa.Table:
    """Events as JSON texts of some kinds, with a number and a time."""
    rows = JSON_ROWS
    kind = random.choice(4, rows, p=[0.6, 0.25, 0.1, 0.05])
    name = pa.array(["page_view", "add_to_cart", "purchase", "sign_up"]).take(pa.array(kind))
    microseconds = FIRST_SECOND * 1_000_000 + np.cumsum(random.exponential(150_000, rows).astype(np.int64))
    words = _vocabulary(random, 3000)
    country = pa.array(["US", "DE", "IN", "BR", "JP", "FR", "GB", "PL"]).take(_zipf_array(random, 8, rows))
    amount = random.lognormal(3.4, 0.8, rows)
    parts: list[pa.Array] = [
        _repeat('{"event": "', rows), name, _repeat('", "user": {"id": ', rows),
        _decimal_text(_zipf(random, 60_000, rows) * 7919 % 1_000_003),
        _repeat(', "country": "', rows), country, _repeat('", "premium": ', rows),
        pa.array(["false", "true"]).take(pa.array((random.random(rows) < 0.12).astype(np.int64))),
        _repeat('}, "page": "/', rows), words.take(_zipf_array(random, 3000, rows)), _repeat("/", rows),
        words.take(_zipf_array(random, 3000, rows)), _repeat('", "tags": ["', rows), words.take(_zipf_array(random, 200, rows)),
        _repeat('", "', rows), words.take(_zipf_array(random, 200, rows)), _repeat('"], "amount": ', rows),
        _decimal_text(amount.astype(np.int64)), _repeat(".", rows), _decimal_text(random.integers(10, 100, rows)),
        _repeat(', "session": "', rows), pc.utf8_slice_codeunits(_uuid_texts(_random_uuids(random, rows)), 0, 13),
        _repeat('"}', rows),
    ]
    payload = pc.binary_join_element_wise(*parts, "")
    return pa.table({"id": np.arange(rows) + 1, "time": pa.array(microseconds, pa.timestamp("us")), "payload": payload})


def booleans(random: Random) -> pa.Table:
    """Flags: rare ones, frequent ones, some in runs as sorted rows have them, and some with nulls."""
    columns: dict[str, pa.Array] = {}
    for number in range(BOOLEAN_COLUMNS):
        share = random.beta(0.35, 0.8)
        if number % 4 == 3:
            runs = random.geometric(1 / random.integers(5, 400), BOOLEAN_ROWS)
            values = np.repeat(random.random(BOOLEAN_ROWS) < share, np.minimum(runs, BOOLEAN_ROWS))[:BOOLEAN_ROWS]
        else:
            values = random.random(BOOLEAN_ROWS) < share
        columns[f"flag_{number:03}"] = pa.array(values, mask=random.random(BOOLEAN_ROWS) < 0.02 if number % 10 == 7 else None)
    return pa.table(columns)


_MAKERS: dict[str, Callable[[Random], pa.Table]] = {
    "trips": trips, "logs": logs, "sensors": sensors, "prose": prose, "ids": ids, "uuids": uuids, "embeddings": embeddings,
    "prices": prices, "json": json, "booleans": booleans,
}
TEN_TABLES: dict[str, Callable[[], pa.Table]] = {
    name: partial(lambda make, number: make(np.random.default_rng([SEED, number])), make, number)
    for number, (name, make) in enumerate(_MAKERS.items())
}


def _zipf(random: Random, count: int, rows: int) -> NDArray[np.int64]:
    """Return numbers below count. A number n has the frequency 1 / (n + 2.7)."""
    weights = np.cumsum(1 / (np.arange(count) + 2.7))
    numbers: NDArray[np.int64] = np.searchsorted(weights, random.random(rows) * weights[-1]).astype(np.int64)
    return numbers


def _zipf_array(random: Random, count: int, rows: int) -> pa.Array:
    return pa.array(_zipf(random, count, rows))


def _microseconds(since: NDArray[np.int64]) -> pa.Array:
    return pa.array(since + FIRST_SECOND * 1_000_000, pa.timestamp("us"))


def _texts(pattern: str, count: int) -> NDArray[np.str_]:
    return np.array([pattern.format(number) for number in range(count)])


def _repeat(text: str, rows: int) -> pa.Array:
    return pa.repeat(text, rows)


def _decimal_text(numbers: NDArray[np.int64]) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _decimals(ten_thousandths: NDArray[np.int64]) -> pa.Array:
    """Return decimals with 18 digits, 4 of them behind the point."""
    words = np.stack([ten_thousandths, ten_thousandths >> 63], axis=1)
    return pa.Array.from_buffers(pa.decimal128(18, 4), len(ten_thousandths), [None, pa.py_buffer(words.tobytes())])


def _random_uuids(random: Random, rows: int) -> NDArray[np.uint8]:
    """Return UUIDs of version 4, shape (rows, 16)."""
    values = random.integers(0, 256, (rows, 16), np.uint8)
    values[:, 6] = (values[:, 6] & 0x0F) | 0x40
    values[:, 8] = (values[:, 8] & 0x3F) | 0x80
    return values


def _uuid_texts(values: NDArray[np.uint8]) -> pa.Array:
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.full((len(values), 36), ord("-"), np.uint8)
    places = [place for place in range(36) if place not in (8, 13, 18, 23)]
    text[:, places[::2]], text[:, places[1::2]] = digits[values >> 4], digits[values & 15]
    offsets = pa.py_buffer((np.arange(len(values) + 1, dtype=np.int32) * 36).tobytes())
    return pa.Array.from_buffers(pa.string(), len(values), [None, offsets, pa.py_buffer(text.tobytes())])


def _vocabulary(random: Random, count: int) -> pa.Array:
    """Return made-up words, the short ones first, as frequent words are short."""
    onsets = ["b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "ch", "sh", "pl", "gr"]
    vowels = ["a", "e", "i", "o", "u", "ea", "ou", "ai"]
    codas = ["", "", "n", "r", "s", "t", "l", "nd", "ng", "ck"]
    words: dict[str, None] = {}
    while len(words) < count:
        syllables = 1 + min(3, len(words) * 5 // count + int(random.integers(0, 2)))
        word = "".join(
            onsets[random.integers(len(onsets))] + vowels[random.integers(len(vowels))] + codas[random.integers(len(codas))]
            for _ in range(syllables)
        )
        words.setdefault(word)
    return pa.array(list(words))
