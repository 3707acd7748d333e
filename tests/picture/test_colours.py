"""Colours of the picture, as people with colour-blindness see them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fastpq.picture.colours import (
    BAR_SWATCHES,
    ENCODING_SWATCHES,
    EVIDENCE_SWATCHES,
    KIND_SWATCHES,
    READING_SWATCHES,
    TIME_SWATCHES,
    Swatch,
)

# Machado, Oliveira and Fernandes (2009), severity 1.0: linear RGB as it is seen.
VISIONS = {
    "full colour": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    "no colour": [[0.2126, 0.7152, 0.0722]] * 3,
}
# Classes whose colours stand in one drawing, and mean different things.
GROUPS: dict[str, tuple[Swatch, ...]] = {
    "encodings": tuple(ENCODING_SWATCHES.values()),
    "parts": tuple(KIND_SWATCHES.values()),
    "times": TIME_SWATCHES,
    "evidence": EVIDENCE_SWATCHES,
    "reading": READING_SWATCHES,
    "bars": BAR_SWATCHES,
}
LEAST_DISTANCE = 6.0        # CIE76 in CIELAB: two areas that touch are told apart from about 2.3 on
RATIO_TO_ORDER = 4.0        # of lightness between neighbours, for scales that go from light to dark


def linear(colour: str) -> NDArray[np.float64]:
    digits = colour.removeprefix("#")
    digits = "".join(digit * 2 for digit in digits) if len(digits) == 3 else digits
    values = np.array([int(digits[place : place + 2], 16) for place in (0, 2, 4)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(colour: str, vision: str) -> NDArray[np.float64]:
    """Return CIELAB coordinates of a colour as it is seen."""
    seen = np.clip(np.array(VISIONS[vision]) @ linear(colour), 0, 1)
    to_xyz = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
    ratios = to_xyz @ seen / np.array([0.95047, 1, 1.08883])
    x, y, z = np.where(ratios > 216 / 24389, np.cbrt(ratios), (24389 / 27 * ratios + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one: str, other: str, vision: str) -> float:
    return float(np.linalg.norm(lab(one, vision) - lab(other, vision)))


@pytest.mark.parametrize("page", ["light", "dark"])
@pytest.mark.parametrize("vision", ["full colour", "protanopia", "deuteranopia", "tritanopia"])
@pytest.mark.parametrize("group", GROUPS)
def test_colours_are_told_apart(group: str, vision: str, page: Any) -> None:
    close = []
    for one, other in combinations(GROUPS[group], 2):
        apart = distance(getattr(one, page), getattr(other, page), vision)
        if apart < LEAST_DISTANCE:
            close.append((one.text or one.name, other.text or other.name, round(apart, 1)))
    assert not close


@pytest.mark.parametrize("page", ["light", "dark"])
@pytest.mark.parametrize("vision", VISIONS)
def test_the_scale_of_time_is_ordered_by_lightness(vision: str, page: Any) -> None:
    lightness = [lab(getattr(swatch, page), vision)[0] for swatch in TIME_SWATCHES]
    steps = np.diff(lightness)
    assert (np.abs(steps) >= RATIO_TO_ORDER).all(), steps
    assert len({*np.sign(steps)}) == 1
