"""Figures with intervals, as docs/method.md ("Statistics") and docs/curves.md describe them.

Nothing here is taken from hopyard: t by its closed form for whole degrees of freedom (Abramowitz and Stegun 26.7.3),
least squares by projection. Where a docs page says that blocks are drawn, they are drawn by the generator it names, so that
both judges see the same draws.
"""

import functools
import math
from operator import mul
from statistics import fmean, median, stdev
from typing import NamedTuple

RESAMPLES, DRAWS, FEWEST = 1000, 400, 6  # docs/curves.md


class Interval(NamedTuple):
    value: float
    low: float
    high: float
    n: int


@functools.cache
def t_value(confidence, df):
    """The t that |T| stays below with this probability."""

    def within(angle):
        sine, cosine = math.sin(angle), math.cos(angle)
        first = cosine if df % 2 else 1.0
        total, term = 0.0, first
        for place in range(df // 2):
            total += term
            term *= cosine**2 * (2 * place + (2 if df % 2 else 1)) / (2 * place + (3 if df % 2 else 2))
        return (2 / math.pi) * (angle + sine * total) if df % 2 else sine * total

    low, high = 0.0, math.pi / 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) < confidence else (low, middle)
    return math.sqrt(df) * math.tan(low)


def student(values, confidence):
    """The mean with its t interval; None of fewer than two values."""
    if len(values) < 2:
        return None
    centre, n = fmean(values), len(values)
    half = t_value(confidence, n - 1) * stdev(values) / math.sqrt(n)
    return Interval(centre, centre - half, centre + half, n)


def jackknife(n, figure, confidence):
    """A figure of all blocks; its interval from the figures without each one of them (Tukey)."""
    whole, parts = figure(range(n)), [figure([i for i in range(n) if i != out]) for out in range(n)]
    if n < 2 or whole is None or None in parts:
        return None
    half = t_value(confidence, n - 1) * (n - 1) * stdev(parts) / math.sqrt(n)
    return Interval(whole, whole - half, whole + half, n)


def location(values):
    """The median of the means of all pairs (Hodges and Lehmann); None of nothing, or of what is no number."""
    if not values or any(map(math.isnan, values)):
        return None
    means = ((one + two) / 2 for at, one in enumerate(values) for two in values[at:])
    means = [mean for mean in means if not math.isnan(mean)]
    return median(means) if means else None


def exp(interval):
    return interval and Interval(*map(math.exp, interval[:3]), interval.n)


def ratio(own, base, confidence):
    """Paired within blocks on the log scale; a value of 0 has no logarithm, and then it is the ratio of the sums."""
    if min(own + base, default=1) > 0:
        return exp(student([math.log(a) - math.log(b) for a, b in zip(own, base)], confidence))
    return ratio_of_sums(own, base, confidence)


def ratio_of_sums(own, base, confidence):
    def of_sums(blocks):
        sums = [sum(side[i] for i in blocks) for side in (own, base)]
        return math.log(sums[0] / sums[1]) if min(sums) > 0 else None

    return exp(jackknife(len(own), of_sums, confidence)) if min(base) >= 0 else None


def widened(interval, known_at, confidence):
    """An interval that is known at one confidence, at another: both sides by Student's t."""
    if interval is None or interval.n < 2:
        return None
    factor = t_value(confidence, interval.n - 1) / t_value(known_at, interval.n - 1)
    value, low, high, n = interval
    return Interval(value, value - factor * (value - low), value + factor * (high - value), n)


# Draws: ChaCha with 8 rounds, its key filled from the seed by PCG32.


def words(seed):
    """Its 32-bit words."""
    mask, key = 0xFFFFFFFF, []
    for _ in range(8):
        seed = (seed * 0x5851F42D4C957F2D + 0xA17654E46FBE17F3) % 2**64
        mixed, turn = (((seed >> 18) ^ seed) >> 27) & mask, seed >> 59
        key.append((mixed >> turn | mixed << (32 - turn)) & mask)
    quarters = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
    quarters += [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    count = 0
    while True:
        start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *key, count & mask, count >> 32, 0, 0]
        x = list(start)
        for _ in range(4):
            for a, b, c, d in quarters:
                for one, two, three, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                    x[one] = (x[one] + x[two]) & mask
                    turned = x[three] ^ x[one]
                    x[three] = (turned << by | turned >> (32 - by)) & mask
        yield from ((now + before) & mask for now, before in zip(x, start))
        count += 1


def pick(source, n):
    """One of n, by the upper half of a product with n; a second word where the lower half may hide a carry."""
    product = next(source) * n
    place, rest = product >> 32, product & 0xFFFFFFFF
    return place + (rest + (next(source) * n >> 32) >> 32) if rest > 2**32 - n else place


@functools.cache
def resamples(seed, n):
    source = words(seed)
    return [[pick(source, n) for _ in range(n)] for _ in range(RESAMPLES)]


@functools.cache
def turned_draws(seed, n):
    source = words(seed ^ 0x6B6E656500)
    return [[(pick(source, n), 1 if next(source) >> 31 else -1) for _ in range(n)] for _ in range(DRAWS)]


class Curve:
    """A quantity at rising counts, a row for each block."""

    def __init__(self, counts, rows, confidence, seed):
        self.counts, self.rows, self.confidence, self.seed = counts, rows, confidence, seed
        self.mean = [fmean(column) for column in zip(*rows)]

    def ends(self, figure):
        """The interval of a figure of the mean curve: percentiles of resampled blocks, moved out to where t would put them."""
        n = len(self.rows)
        if n < FEWEST:
            return None
        drawn = [figure([sum(v) / n for v in zip(*(self.rows[i] for i in blocks))]) for blocks in resamples(self.seed, n)]
        if None in drawn:
            return None
        reach = math.sqrt(n / (n - 1)) * t_value(self.confidence, n - 1)
        k = math.floor(0.5 * math.erfc(reach / math.sqrt(2)) * (RESAMPLES + 1))
        drawn.sort()
        return (drawn[k - 1], drawn[-k]) if k else None

    def estimate(self, figure):
        value = figure(self.mean)
        ends = value is not None and self.ends(figure)
        return Interval(value, min(ends[0], value), max(ends[1], value), len(self.rows)) if ends else None

    def full(self):
        """The first count at which the mean is 99 % or more, or any above the last one at which it is less: what lies between two
        counts was not measured. An end beyond the last count is the last."""

        def first(mean):
            return next((x for x, y in zip(self.counts, mean) if y >= 0.99), math.inf)

        found = self.estimate(first)
        if not found or found.value == math.inf:
            return None
        less = max((x for x in self.counts if x < found.low), default=0)
        return found._replace(low=min(less + 1, found.low), high=min(found.high, self.counts[-1]))

    def leap(self, least=None):
        """The largest change between neighbours: first of those wholly beyond 40 points, by size. Where a rise of at least so much is
        asked for, the largest rise: first of those wholly beyond that; where none is, any of them may be the largest. A rise of that
        size over counts that are not next to each other may be a climb: of such a curve nothing is known."""
        places = len(self.counts) - 1
        each = 1 - (1 - self.confidence) / places
        steps = [student([row[i + 1] - row[i] for row in self.rows], each) for i in range(places)]
        if None in steps:
            return None
        if least is not None:
            large = [step.low >= least for step in steps]
            near = [b - a <= 1 for a, b in zip(self.counts, self.counts[1:])]
            leaps = [step for step, is_large, is_near in zip(steps, large, near) if is_large and is_near]
            if any(large) and not leaps:
                return None
            best = max(leaps or steps, key=lambda step: step.value)
            return best if leaps else best._replace(high=max(step.high for step in steps))
        return max(steps, key=lambda step: (max(step.low, -step.high) >= 0.4, abs(step.value)))

    def r_squared(self):
        line = Projection(self.counts)

        def share(mean):
            about, left = line.squares_about_mean(mean), line.squares_left(mean)
            return min(max(1 - left / about, 0.0), 1.0) if about > 0 else None

        return self.estimate(share)

    def slopes(self, place):
        """The slope after a place less twice that before it, of two lines that meet there."""
        if min(sum(x <= place for x in self.counts), sum(x >= place for x in self.counts)) < 2:
            return None
        line = Projection(self.counts)
        hinge = line.hinge(place)

        def after_less_twice_before(row):
            bend = line.along(hinge, row)
            before = line.slope(row) - bend * line.slope([max(0.0, x - place) for x in self.counts])
            return bend - before

        return student([after_less_twice_before(row) for row in self.rows], self.confidence)

    def knee(self):
        """Where two lines meet that fit best, if they are better than one (docs/curves.md, "The knee's test")."""
        x, n = self.counts, len(self.rows)
        if len(x) < 5 or n < FEWEST:
            return None
        line = Projection(x)
        places = [a + (b - a) / 8 * i for a, b in zip(x[1:-2], x[2:-1]) for i in range(8)] + [x[-2]]
        hinges = [(place, line.unit(line.hinge(place))) for place in places]

        def best(mean):
            gain, place = max((sum(map(mul, unit, mean)) ** 2, place) for place, unit in hinges)
            noise = 1e-20 * sum(y * y for y in mean)
            left = max(line.squares_left(mean) - gain, noise)
            return place, (gain if gain > noise else 0.0) / 2 / (left / (len(x) - 4))

        found, seen = self.estimate(lambda mean: best(mean)[0]), best(self.mean)[1]
        straight = line.fitted(self.mean)
        widen = math.sqrt(n / (n - 1)) / n
        off = [[(y - mean) * widen for y, mean in zip(row, self.mean)] for row in self.rows]
        larger = 0
        for draw in turned_draws(self.seed, n):
            noise = [sum(side * off[block][i] for block, side in draw) for i in range(len(x))]
            larger += best([a + b for a, b in zip(straight, noise)])[1] >= seen * (1 - 1e-9)  # rounding breaks no tie
        return found if larger / (DRAWS + 1) < 1 - self.confidence else None


class Projection:
    """What a straight line over some counts makes of values."""

    def __init__(self, x):
        self.x = x
        self.off = [one - fmean(x) for one in x]
        self.squares = sum(o * o for o in self.off)

    def slope(self, y):
        return sum(o * v for o, v in zip(self.off, y)) / self.squares

    def fitted(self, y):
        slope, centre = self.slope(y), sum(y) / len(y)
        return [centre + slope * o for o in self.off]

    def squares_left(self, y):
        return sum((v - f) ** 2 for v, f in zip(y, self.fitted(y)))

    def squares_about_mean(self, y):
        return sum((v - sum(y) / len(y)) ** 2 for v in y)

    def hinge(self, place):
        """max(0, x - place), less what a line makes of it."""
        bent = [max(0.0, x - place) for x in self.x]
        return [b - f for b, f in zip(bent, self.fitted(bent))]

    def along(self, rest, y):
        return sum(map(mul, rest, y)) / sum(r * r for r in rest)

    def unit(self, rest):
        length = math.sqrt(sum(r * r for r in rest))
        return [r / length for r in rest]
