"""How a program ends, for scripts: `plimsoll` itself, and the processes that a study starts."""

PASS, FAIL, USAGE, INCONCLUSIVE, INTERRUPTED, INTERNAL = range(6)
BY_RESULT = {"pass": PASS, "fail": FAIL, "inconclusive": INCONCLUSIVE}
#: Of several runs the worst decides.
WORST_FIRST = (INTERRUPTED, USAGE, FAIL, INCONCLUSIVE, PASS)
