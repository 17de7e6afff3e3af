"""The closed queue of `closed_queue.rs` written for SimPy: the same customers, times and server.

One line of JSON.
"""

import json
import random
import sys
import time
from collections.abc import Generator
from typing import Any

import simpy  # type: ignore[import-not-found]

THINK_S, SERVICE_S = 0.1, (0.001, 0.007)


def run(customers: int, requests: int) -> dict[str, float]:
    """Simulate until so many requests are served."""
    draw = random.Random(1)
    world = simpy.Environment()
    server = simpy.Resource(world, capacity=1)
    done = world.event()
    count, response_s = 0, 0.0

    def customer() -> Generator[Any, Any, None]:
        nonlocal count, response_s
        while True:
            yield world.timeout(draw.expovariate(1 / THINK_S))
            asked = world.now
            with server.request() as turn:
                yield turn
                yield world.timeout(draw.uniform(*SERVICE_S))
            response_s += world.now - asked
            count += 1
            if count == requests:
                done.succeed()

    for _ in range(customers):
        world.process(customer())
    began = time.monotonic()
    world.run(until=done)
    wall_s = time.monotonic() - began
    return {
        "requests_per_second": count / wall_s,
        "response_ms": 1000 * response_s / count,
        "wall_s": wall_s,
    }


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))))
