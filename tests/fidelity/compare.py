"""Compares what ld.so did (truth.Truth) with the tables that `cohabit replay` wrote."""
import collections

Difference = collections.namedtuple("Difference", "kind at real simulated")


def read_rows(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        return [tuple(line.rstrip("\n").split("\t")) for line in f]


def unique(rows):
    return list(dict.fromkeys(rows))


def first_difference(kind, real, simulated):
    if real == simulated:
        return None
    at = next((i for i, (a, b) in enumerate(zip(real, simulated)) if a != b), min(len(real), len(simulated)))
    return Difference(kind, at, real[at:at + 2], simulated[at:at + 2])


def compare_bindings(truth, rows, lazy):
    real = truth.distinct_bindings(lazy)
    if lazy:  # libc and the driver call through their own PLT when nothing is asked of them
        fixed = {r[0] for r in rows} - truth.made
        rows = [r for r in rows if r[0] not in fixed]
        real = [r for r in real if r[0] not in fixed and r[0] in truth.made]
    rows = [tuple(r[:5]) for r in rows]
    if real == rows or unique(real) == unique(rows):
        return None
    return first_difference("bindings", unique(real), unique(rows))


def expected_results(truth, traced):
    """Per call of the trace: outcome and error; None where the run says nothing."""
    out = []
    for event in traced:
        if event.outcome in (None, "fault"):
            out.append((None, ""))
        elif event.source == "s":
            out.append((event.outcome, event.error))
        else:
            out.append(("ok" if event.opened else None, ""))
    return out


def compare_results(truth, traced, rows):
    real = expected_results(truth, traced)
    if len(real) != len(rows):
        return Difference("results", "count", len(real), len(rows))
    for at, ((outcome, error), row) in enumerate(zip(real, rows)):
        if outcome is None or (row[0] != "failed" and outcome == "ok" and traced[at].call in ("bind", "dlclose")):
            continue
        if outcome == "none elsewhere" and row[0] != "ok":
            continue
        said = (row[0], row[1] if len(row) > 1 else "")
        if (outcome, error) != said:
            return Difference("results", at, (outcome, error), said)
    return None


def compare_start(truth, rows):
    """A process that never reached main: the reason."""
    failed = bool(rows) and rows[0][0] == "start"
    if truth.started or truth.events:
        return Difference("start", 0, "started", rows[0]) if failed else None
    if not failed:
        return Difference("start", 0, truth.reason(), "started")
    if truth.reason() != rows[0][1]:
        return Difference("start", 0, truth.reason(), rows[0][1])
    return None


def compare_loads(truth, rows):
    real = [l[:4] for l in truth.loads]
    rows = [r[:2] + ("?", l[3]) if l[2] == "?" else r for r, l in zip(rows, real)] + rows[len(real):]
    return first_difference("loads", real, rows)


def compare_tables(truth, tables):
    """Loads and all bindings: for a trace that was recorded, not written from what the world says."""
    return compare_loads(truth, read_rows(tables[0])) or compare_bindings(truth, read_rows(tables[1]), False)


def compare(truth, traced, tables, lazy):
    loads, bindings, results = (read_rows(t) for t in tables)
    return (compare_loads(truth, loads)
            or compare_bindings(truth, bindings, lazy)
            or compare_start(truth, results)
            or (compare_results(truth, traced, results) if truth.started or truth.events else None))
