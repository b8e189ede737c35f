"""Points: the figures that a part of a rule comes to, and how each lies to its bounds."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from intervals import Curve, jackknife, ratio, ratio_of_sums, student, widened
from runs import is_base, is_meant, without

FOR_A_VERDICT = 8  # blocks
CONFIDENCE = 0.95  # of what no plan has
COUNTS = ["flows", "chain", "ports", "rules", "queues", "queue_threads", "queue_length", "guest_cpus"]


@dataclass
class Point:
    """A figure: a function from a confidence to an interval, and what an interval does not say of it."""

    interval: Callable
    windows: list = None  # (value, was it disturbed?) of what should not be there
    at_least: bool = False  # it is known to be at least that, and no more


@dataclass
class Gathered:
    """What a part of a rule comes to."""

    points: list = field(default_factory=list)
    confidence: float = CONFIDENCE
    refuted: bool = False  # without any interval
    unshown: bool = False  # it cannot hold
    is_diluted: bool = False  # what is asked of one end is of both
    lacks: bool = False  # something of it cannot be tested
    figures: int = 0  # how many the rule is about, missing ones too
    chosen_of: int = 1  # the best of so many is in the figures


def shared(members):
    """Values of several series in the blocks that all have."""
    blocks = sorted(set.intersection(*(set(one) for one in members)))
    return [[one[block] for block in blocks] for one in members]


def geometric_mean(values):
    return values[0] if len(values) == 1 else math.exp(math.fsum(map(math.log, values)) / len(values))


WIDTHS = {"ratio": 2, "share": 3, "corrected": 4}  # cells of one figure; else one


def beside_of(run, own, to):
    """What a cell is compared with."""
    cells = enumerate(run.cells)
    return next((at for at, other in cells if at != own and is_base(run.cells[own], other, to)), None)


def members(check, run):
    """The cells that a check is about, each with what it is compared with."""
    kind, to = check["judge"], check.get("to", [])
    bases = {"share": [check.get("without"), check.get("base")], "corrected": [*to, check.get("less")]}
    width = WIDTHS.get(kind, 2 if to else 1)
    for own, cell in enumerate(run.cells):
        if not is_meant(check["cells"], cell):
            continue
        beside = [beside_of(run, own, base) for base in bases.get(kind, to)]
        beside = [at for at in beside if at is not None]
        if kind == "corrected" and len(beside) == 2:
            fourth = beside_of(run, beside[1], to[0])
            beside += [] if fourth is None else [fourth]
        found = [[own, base] for base in beside] if kind == "ratio" else [[own, *beside]]
        yield from (one for one in found if len(one) == width)


def groups(check, run):
    """Cells of each figure; the members of a mean are together."""
    over, found = check.get("mean_over", []), {}
    for member in members(check, run):
        place = json.dumps([without(run.cells[at], over) for at in member], sort_keys=True)
        found.setdefault(place, []).append(member)
    return list(found.values())


def of_group(check, run, group):
    """The figure of a group of cells; None where one of them has no values."""
    kind, quantity, width = check["judge"], check["quantity"], len(group[0])
    alone = group[0][0] if kind == "level" and len(group) == 1 else None
    if alone is not None and quantity == "settling_s" and (least := run.settled_at_least(alone)):
        return Point(lambda confidence: student(least, confidence), at_least=True)
    of_base = check.get("to_quantity", quantity)  # of a ratio alone
    series = [[run.counting(at, quantity if own == 0 else of_base) for own, at in enumerate(member)] for member in group]
    if not all(one for member in series for one in member):
        return None
    if kind == "ratio" and of_base == quantity:
        series = [run.paired(*member, quantity) for member in group]
    flat = shared([one for member in series for one in member])
    # A mean has no logarithm of what is 0.
    if len(group) > 1 and min((v for one in flat for v in one), default=1) <= 0:
        return None
    sides = [[geometric_mean(values) for values in zip(*flat[side::width])] for side in range(width)]
    windows = None
    if kind == "ratio" and of_base.startswith("share ") and len(group) == 1 and sum(v > 0 for v in sides[1]) < 2:
        base, blocks = group[0][1], sorted(set(series[0][0]) & set(series[0][1]))
        sides[1] = [run.a_sample_at_least(base, block, of_base) for block in blocks]
        return Point(lambda confidence: ratio_of_sums(*sides, confidence), at_least=True)
    if alone is not None and asks_for_none(check):
        disturbed, blocks = run.disturbed(alone), sorted(series[0][0])
        windows = [(value, block in disturbed) for value, block in zip(sides[0], blocks)]
    if check.get("geometric") and windows is None:
        kind, sides = "ratio", [sides[0], [1.0] * len(sides[0])]
    if kind == "level" and quantity in SHARES:
        return Point(lambda confidence: not_below_zero(student(sides[0], confidence)), windows)
    return Point(figure(kind, sides), windows)


def of_groups(check, run, premise):
    gathered = Gathered()
    for group in groups(check, run):
        cells = {at for member in group for at in member}
        gathered.figures += 1
        point = of_group(check, run, group) if premise is None or premise(cells) else None
        if point is None:
            gathered.lacks = True
        else:
            gathered.points.append(point)
    return gathered


SHARES = {"lost_ratio", "unfinished_ratio"}  # one window may show a little less than none


def not_below_zero(interval):
    return interval and interval._replace(**{end: max(getattr(interval, end), 0) for end in ("value", "low", "high")})


def asks_for_none(bounds):
    return bounds.get("at_most") == 0 and "at_least" not in bounds and not bounds.get("beyond")


def figure(kind, sides):
    if kind == "ratio":
        return lambda confidence: ratio(*sides, confidence)
    if kind == "level":
        return lambda confidence: student(sides[0], confidence)

    def corrected(blocks):
        cell, base, less, base_less = (sum(side[i] for i in blocks) for side in sides)
        return (cell - (less - base_less)) / base if base > 0 else None

    def share(blocks):
        cell, less, base = (sum(side[i] for i in blocks) for side in sides)
        return (cell - less) / (cell - base) if cell > base else None

    of_sums = share if kind == "share" else corrected
    return lambda confidence: jackknife(len(sides[0]), of_sums, confidence)


def of_peak(check, run):
    """The last value of the axis over the best of those below the number of CPUs. One that is not is refuted where it is higher, and
    the peak is shown where each of them is lower."""
    axis, cpus, quantity = check["axis"], run.header["environment"]["cpus"], check["quantity"]
    gathered, along, confidence = Gathered(), {}, run.header["confidence"]
    for (at,) in members(check, run):
        cell = run.cells[at]
        if axis not in cell:
            continue
        if not run.counting(at, quantity):
            gathered.lacks = True
            continue
        along.setdefault(json.dumps(without(cell, [axis]), sort_keys=True), {})[int(cell[axis])] = at

    def height(at):
        values = run.counting(at, quantity).values()
        return sum(values) / len(values)

    for places in along.values():
        below = [n for n in places if n < cpus]
        if not below or check["last"] not in places:
            gathered.lacks = True
            continue
        best = places[max(below, key=lambda n: height(places[n]))]

        def over_best(n):
            return figure("ratio", shared(run.paired(places[n], best, quantity)))

        gathered.chosen_of = max(gathered.chosen_of, len(below))
        above = [over_best(n) for n in places if n >= cpus]
        one_of_them = 1 - (1 - confidence) / max(len(above), 1)
        all_of_them = 1 - (1 - confidence) / max(len(below), 1)
        for other in above:
            wide, own = other(one_of_them), other(all_of_them)
            if wide and wide.n >= FOR_A_VERDICT and wide.low > 1:
                gathered.refuted = True
            elif not (own and own.n >= FOR_A_VERDICT and own.high < 1):
                gathered.unshown = True
        gathered.points.append(Point(over_best(check["last"])))
    return gathered


SHAPES = {
    "fullness": lambda curve, check: curve.full(),
    "leap": lambda curve, check: curve.leap(check.get("at_least")),
    "slopes": lambda curve, check: curve.slopes(20),
    "knee": lambda curve, check: curve.knee(),
    "line": lambda curve, check: curve.r_squared(),
}


def curves(check, run):
    """Every curve of three counts or more, as (its first cell, its shape); of those alone all of whose cells have values that count."""
    quantity, confidence, seed = check["quantity"], run.header["confidence"], run.header["seed"]
    for axis in COUNTS:
        found = {}
        for at, cell in enumerate(run.cells):
            if axis in cell:
                place = json.dumps(without(cell, [axis]), sort_keys=True)
                found.setdefault(place, []).append((float(cell[axis]), at))
        for cells in map(sorted, found.values()):
            series = [run.counting(at, quantity) for _, at in cells]
            if len(cells) < 3 or not all(series):
                continue
            rows = list(zip(*shared(series)))
            if rows:
                curve = Curve([x for x, _ in cells], rows, confidence, seed)
                yield run.cells[cells[0][1]], SHAPES[check["shape"]](curve, check)


def of_curves(check, run):
    found, gathered, known_at = list(curves(check, run)), Gathered(), run.header["confidence"]
    about = {at for member in members(check, run) for at in member}
    gathered.lacks = not all(run.counting(at, check["quantity"]) for at in about)
    for cell, shape in found:
        if not is_meant(check["cells"], cell):
            continue
        if to := check.get("to"):
            others = [other for base, other in found if is_base(cell, base, to[0])]
            shape = over(shape, others[0]) if others else None
        if shape is None:
            # Measured at too few counts, it is no curve of that shape; one that is compared, or leaps or climbs, is missed.
            gathered.lacks |= "to" in check or check["shape"] == "leap"
        else:
            gathered.points.append(Point(lambda confidence, shape=shape: widened(shape, known_at, confidence)))
    return gathered


def over(own, base):
    """The place of one curve over that of another: both intervals count."""
    if own is None or base is None:
        return None
    return type(own)(own.value / base.value, own.low / base.high, own.high / base.low, min(own.n, base.n))


def position(check, interval):
    low, high = check.get("at_least", -math.inf), check.get("at_most", math.inf)
    between, apart = ("outside", "inside") if check.get("beyond") else ("inside", "outside")
    if low <= interval.low and interval.high <= high:
        return between
    return apart if interval.high < low or high < interval.low else "across"


def place(bounds, point, own, wide):
    """Within by its own interval, outside by that of simultaneous confidence."""
    if point.windows is not None and asks_for_none(bounds):
        # A single window that nothing disturbed shows that there is some.
        above = [disturbed for value, disturbed in point.windows if value > 0]
        if not all(above):
            return "outside"
        return "across" if above or own.n < FOR_A_VERDICT else "inside"
    if own.n < FOR_A_VERDICT:
        return "across"
    if point.at_least:
        own, wide = (interval._replace(high=math.inf) for interval in (own, wide))
    lies = position(bounds, own)
    if lies != "inside":
        return "outside" if position(bounds, wide) == "outside" else "across"
    return lies
