#!/usr/bin/env python3
"""The second judge of published claims: docs/claims.md read once more, in another language.

    judge.py FILE.toml... --plans DIR --from DIR [--from DIR]...

reads files of claims (claims/*.toml), plans (for the confidence that they ask for) and stored runs, and prints each claim's verdict and figures, and the figures of each open
question with what is said of them, as JSON. Python 3.11, standard
library alone. crates/hopyard-claims/src/tests/twice.rs holds hopyard's own judge to it.
"""

import argparse
import json
import sys
import tomllib
from pathlib import Path

from points import CONFIDENCE, Gathered, Point, figure, groups, members, of_curves, of_group, of_groups, of_peak, place
from runs import Run


def gather(check, report, evidence):
    """What there is of a part of a rule."""
    runs, deeds, benches, guests = evidence
    kind = check["judge"]
    if kind == "bench":
        timed = benches.get(check["bench"], {}).get("Ok")
        if not timed:
            return Gathered(lacks=True)
        sides = [timed["values"]] + ([timed["base"]] if timed.get("base") else [])
        return Gathered([Point(figure("ratio" if len(sides) > 1 else "level", sides))])
    if kind in ("missing", "does"):
        return Gathered(lacks=kind == "missing")
    plan = check.get("plan", report["plan"])
    run, guest = runs.get(plan), guests.get(plan)
    own = of_run(check, run) if run and not is_emulated(run) else Gathered(lacks=True)
    return with_guest(check, own, run, guest) if guest else own


def is_emulated(run):
    model = run.header["environment"]["cpu_model"]
    return "QEMU TCG" in model or "QEMU Virtual CPU" in model


def with_guest(check, own, run, guest):
    """What a guest has of paths that this machine lacks counts, unless its CPU is a program."""
    here = {cell["path"] for cell in run.cells} if run else set()
    parts = parts_of(check, lambda path: path not in here)
    if not parts:
        return own
    there = [of_run(part, guest) for part in parts]
    if is_emulated(guest):
        own.lacks = True
        return own
    if not own.points:
        own.confidence = there[0].confidence
    # Of what was gathered here, the paths are no longer lacking; each part says what it lacks.
    own.lacks = bool(run) and of_run(check, run, but_paths=True).lacks
    if any(one.points for one in there):
        own.lacks |= any(one.lacks or not one.points for one in there)
        own.refuted |= any(one.refuted for one in there if one.points)
        own.is_diluted |= any(one.is_diluted for one in there if one.points)
        own.unshown |= any(one.unshown for one in there if one.points)
    else:
        own.lacks = True
    own.figures += sum(one.figures for one in there)
    own.points = own.points + [point for one in there for point in one.points]
    return own


def parts_of(check, wanted):
    """The check of those of its paths, and of ratios the other cells over those of its bases."""
    named = check["cells"].get("path", [])
    named = named if isinstance(named, list) else [named]
    own, others = [p for p in named if wanted(p)], [p for p in named if not wanted(p)]
    parts = [check | {"cells": check["cells"] | {"path": own}}] if own else []
    to = [base for base in check.get("to", []) if "=" not in base and wanted(base)]
    if check["judge"] == "ratio" and to and others:
        parts.append(check | {"to": to, "cells": check["cells"] | {"path": others}})
    return parts


def lost_paths(check, run):
    """Is there a path that the rule names and the run has not? A rule that names none is about all of the plan's."""
    named = check["cells"].get("path", [])
    named = named if isinstance(named, list) else [named]
    bases = [*check.get("to", []), check.get("without", "="), check.get("base", "=")]  # `less` is a value of an axis
    named = {*named, *(base for base in bases if "=" not in base)}
    return not named <= {cell["path"] for cell in run.cells} if named else bool(run.header.get("left_out"))


def of_run(check, run, but_paths=False):
    """What a run has: as `gather`, whose paths may be had elsewhere."""
    kind = check["judge"]
    premise = of_premise(check["given"], run) if "given" in check else None
    if check.get("cpus", 0) > run.header["environment"]["cpus"]:
        return Gathered(lacks=True)
    if kind in ("peak", "curve"):
        if premise and not premise({at for member in members(check, run) for at in member}):
            return Gathered(lacks=True)
        gathered = of_peak(check, run) if kind == "peak" else of_curves(check, run)
    else:
        gathered = of_groups(check, run, premise)
    gathered.is_diluted = check["quantity"].startswith("local ") and not run.has_clients_machine
    gathered.confidence = 1 - (1 - run.header["confidence"]) / gathered.chosen_of
    about = {at for member in members(check, run) for at in member}
    # A cell of which a window failed is not whole. Whether the run has all cells of its plan is known to hopyard alone.
    gathered.lacks |= bool(about & run.failed) or (lost_paths(check, run) and not but_paths)
    return gathered


def of_premise(given, run):
    """Is the premise shown to be so of a figure of some cells? Asked is what it says of any of them, or else of such cells."""
    check = given | {"judge": "ratio" if "to" in given else "level"}
    figures = []
    for group in groups(check, run):
        point = of_group(check, run, group)
        seen = point and point.interval(run.header["confidence"])
        is_so = bool(seen) and place(check, point, seen, seen) == "inside"
        figures.append(({at for member in group for at in member}, is_so))

    def kinds(cells):
        return {tuple(run.cells[at][key] for key in ("path", "peer", "load")) for at in cells}

    def is_so_of(cells):
        own = [is_so for of, is_so in figures if of & cells]
        own = own or [is_so for of, is_so in figures if kinds(of) & kinds(cells)]
        return bool(own) and all(own)

    return is_so_of


def is_most(check):
    return check.get("over") == "most"


def confidences(check, gathered, of_all):
    """That u of n figures lie within is wrong only where n - u + 1 do not: each of them has that part of the risk (Benjamini and Heller
    2008). So with u that are outside, of the risk that a part of a claim has by its number of figures."""
    risk, n = 1 - gathered.confidence, len(gathered.points)
    within, outside = (n // 2 + 1, (n + 1) // 2) if is_most(check) else (n, 1)
    of_part = risk * max(n, 1) / max(of_all, 1)
    return 1 - risk / max(n - within + 1, 1), 1 - of_part / max(n - outside + 1, 1)


def placed(check, bounds, gathered, of_all):
    """Intervals of points with how they lie; None of a point that has none."""
    within, outside = confidences(check, gathered, of_all)
    both = [(point, point.interval(within), point.interval(outside)) for point in gathered.points]
    return [(own, place(bounds, point, own, wide)) if own and wide else None for point, own, wide in both]


def together(places, most, figures):
    inside, outside, half = places.count("inside"), places.count("outside"), len(places) / 2
    # Half of those that were measured refutes no rule about the most of all.
    fails, holds = (outside >= max(len(places), figures) / 2, inside > half) if most else (outside > 0, inside == len(places))
    return "untestable" if not places else "fails" if fails else "holds" if holds else "undecided"


def decided(check, gathered, shown):
    """The verdict of a part, before what a deed says."""
    verdict = together([lies for _, lies in shown], is_most(check), gathered.figures)
    if gathered.refuted:
        return "fails"
    return "undecided" if gathered.unshown and verdict == "holds" else verdict


def is_withheld(check, verdict, is_diluted):
    """Are figures of what stands in unable to show that? Those of both ends are nearer to 1 than those of one."""
    least, most = check.get("at_least", 1), check.get("at_most", 1)
    near = {"fails": least > 1 or most < 1, "holds": least < 1 or most > 1}.get(verdict)
    return {"fails": "weaker", "holds": "stronger"}.get(verdict) in check or bool(is_diluted and near)


def judge_check(check, gathered, figures, evidence):
    all_points = placed(check, check, gathered, figures)
    shown = [one for one in all_points if one]
    lacks = gathered.lacks or None in all_points
    verdict, grade = decided(check, gathered, shown), check.get("grade")
    if grade and shown:
        grade = decided(check, gathered, [one for one in placed(check, grade, gathered, figures) if one])
    if check["judge"] == "does":
        seen = evidence[1].get(check["does"], {}).get("Ok")
        verdict = "untestable" if seen is None else "holds" if seen["passed"] else "fails"
    if is_withheld(check, verdict, gathered.is_diluted):
        verdict = "untestable"
    points = [{"lies": lies} | own._asdict() for own, lies in shown]
    lacks = lacks or verdict == "untestable"
    grade = ("untestable" if grade == "holds" and lacks else grade) if shown and grade else None
    return {"verdict": verdict, "points": points, "grade": grade, "lacks": lacks}


def judge_claim(claim, report, evidence):
    """All parts have to hold, with all that they are about: a claim that lacks something can fail, and cannot hold."""
    checks = claim.get("check", [])
    gathered = [gather(check, report, evidence) for check in checks]
    figures = sum(len(one.points) for one in gathered)
    judged = [judge_check(check, g, figures, evidence) for check, g in zip(checks, gathered)]
    verdicts = [one["verdict"] for one in judged]
    whole = "untestable" if any(one["lacks"] for one in judged) else "holds"
    verdict = next((v for v in ("fails", "undecided", whole) if v in verdicts), "untestable")
    return {"id": claim["id"], "verdict": verdict, "checks": judged}


SAYS = {"holds": "inside", "fails": "outside", "undecided": "across"}


def answer(question, report, evidence):
    """Each figure at the confidence of its run, and the words that go with how it lies."""
    gathered = [(asked, gather(asked, report, evidence)) for asked in question["figure"]]
    places = sum(len(one.points) for asked, one in gathered if "says" in asked)
    figures, said = [], []
    for asked, one in gathered:
        known = [interval for interval in (point.interval(one.confidence) for point in one.points) if interval]
        figures.append([interval._asdict() for interval in known])
        if "says" in asked:
            shown = [found for found in placed(asked, asked, one, places) if found]
            verdict = decided(asked, one, shown)
            said.append(None if is_withheld(asked, verdict, one.is_diluted) else asked["says"].get(SAYS.get(verdict)))
        else:
            said.append(None)
    return {"id": question["id"], "figures": figures, "said": said}


def read(directories):
    """Runs by plan, deeds, benches and runs in a guest; of two of a kind the first counts."""
    runs, deeds, benches, guests = {}, {}, {}, {}
    for directory in map(Path, directories):
        kept = None
        if (directory / "claims.json").exists():
            kept = json.loads((directory / "claims.json").read_text())
            deeds, benches = kept.get("done", {}) | deeds, kept.get("benched", {}) | benches
            # A deed has its verdict wherever it was done.
            guest = (kept.get("guest") or {}).get("done", {})
            deeds |= {name: done for name, done in guest.items() if "Ok" in done and "Ok" not in deeds.get(name, {})}
            for found in sorted(directory.glob("guest/*/run.json")) if "guest" in kept else []:
                run = Run(found.parent)
                guests.setdefault(run.header["plan"], run)
        whole = (directory / "run.json").exists()
        for found in [directory] if whole else sorted(file.parent for file in directory.glob("*/run.json")):
            run = Run(found)
            if runs.setdefault(run.header["plan"], run) is run:
                later = sorted(file.parent for file in directory.glob("further/*/run.json")) if kept else []
                run.append([more for more in map(Run, later) if more.header["plan"] == run.header["plan"]])
    return runs, deeds, benches, guests


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("files", nargs="+", metavar="FILE.toml")
    arguments.add_argument("--from", dest="directories", action="append", required=True, metavar="DIR")
    arguments.add_argument("--plans", required=True, type=Path, metavar="DIR")
    asked = arguments.parse_args()
    plans = [tomllib.loads(file.read_text()) for file in asked.plans.glob("*.toml")]
    texts = {plan["name"]: str(plan.get("confidence", CONFIDENCE)) for plan in plans}
    Run.asked = {name: float(text.removesuffix("%")) / (100 if "%" in text else 1) for name, text in texts.items()}
    evidence = read(asked.directories)
    reports = [tomllib.loads(Path(file).read_text()) for file in asked.files]
    judged = [judge_claim(claim, report, evidence) for report in reports for claim in report["claim"]]
    answers = [answer(question, report, evidence) for report in reports for question in report["question"]]
    json.dump({"claims": judged, "questions": answers}, sys.stdout)


if __name__ == "__main__":
    main()
