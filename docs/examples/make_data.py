"""Data for the examples. It is made from seeds, so that each run has the same values."""

import numpy as np


def trips(rows=400_000):
    """Return taxi trips in the order of their start, with the columns of New York's public records."""
    random = np.random.default_rng(1)
    second = np.timedelta64(1_000_000, "us")
    start = np.datetime64("2024-01-01", "us") + np.sort(random.integers(0, 31 * 86_400, rows)) * second
    minutes = random.gamma(3, 5, rows)
    distance = np.round(minutes * random.uniform(0.15, 0.4, rows), 2)
    return {
        "pickup": start,
        "dropoff": start + (minutes * 60).astype(np.int64) * second,
        "zone": random.zipf(1.4, rows) % 263 + 1,
        "passengers": random.choice(np.array([1, 1, 1, 1, 2, 2, 3, 4], np.int8), rows),
        "distance": distance,
        "fare": np.round(3 + 2.5 * distance + 0.5 * minutes, 2),
        "payment": random.choice(np.array(["card", "card", "card", "cash", "dispute"]), rows),
    }


def sensor(rows=200_000):
    """Return the readings of a sensor, ten in a second. Some are missing."""
    random = np.random.default_rng(2)
    seconds = np.arange(rows) / 10
    temperature = 20 + 5 * np.sin(seconds / 3000) + random.normal(0, 0.05, rows)
    return {
        "time": np.datetime64("2024-03-01", "ms") + (np.arange(rows) * 100) * np.timedelta64(1, "ms"),
        "temperature": np.ma.masked_array(temperature.astype(np.float32), random.random(rows) < 0.01),
        "vibration": random.normal(0, 1, rows),
    }


def patients(rows=5_000):
    """Return records of invented patients."""
    random = np.random.default_rng(3)
    names = np.array(["Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald"])
    return {
        "patient": np.arange(rows),
        "name": names[random.integers(0, 6, rows)],
        "born": np.datetime64("1940-01-01") + random.integers(0, 25_000, rows) * np.timedelta64(1, "D"),
        "diagnosis": np.array(["J45", "E11", "I10", "M54"])[random.integers(0, 4, rows)],
        "cost": np.round(random.gamma(2, 300, rows), 2),
    }


def embeddings(rows=5_000, size=64):
    """Return documents with vectors of length 1."""
    random = np.random.default_rng(4)
    vectors = random.normal(0, 1, (rows, size)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {"document": np.char.mod("doc-%05d", np.arange(rows)), "vector": list(vectors)}


def log_lines(day, rows=20_000):
    """Return the log of a day: time, level, request and message."""
    random = np.random.default_rng(day)
    requests = np.char.mod("%08x", random.integers(0, 1 << 32, rows))
    milliseconds = np.sort(random.integers(0, 86_400_000, rows))
    return {
        "time": np.datetime64(f"2024-05-{day:02d}", "ms") + milliseconds * np.timedelta64(1, "ms"),
        "level": random.choice(np.array(["INFO"] * 95 + ["WARN"] * 4 + ["ERROR"]), rows),
        "request": requests,
        "message": np.char.add("handled request ", requests),
    }
