"""Medians, spreads, ratios and percentiles."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """The median of repeats, and how far they lie apart."""

    median: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        return {"median": self.median, "min": self.low, "max": self.high}


def spread_of(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def paired_ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Repeat by repeat, because the two values of one repeat were taken close together on the same noisy machine."""
    return tuple(our / their for our, their in zip(ours, theirs, strict=True))


PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}


def percentiles(samples: Sequence[float]) -> dict[str, float]:
    """Each of `PERCENTILES`: the smallest sample that at least that share of the samples does not exceed."""
    ordered = sorted(samples)
    return {name: ordered[max(0, -int(-share * len(ordered) // 1) - 1)] for name, share in PERCENTILES.items()}
