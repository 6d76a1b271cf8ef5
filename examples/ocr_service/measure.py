"""Posts a picture again and again to a running service: python measure.py URL PICTURE [ROUNDS] [CLIENTS]

Prints the median and the longest time of a request in milliseconds, and requests per second with several clients.
"""
from __future__ import annotations

import statistics
import sys
import threading
import time
import urllib.request
from pathlib import Path


def post(url: str, data: bytes) -> float:
    begin = time.perf_counter()
    with urllib.request.urlopen(urllib.request.Request(url + "/read", data=data), timeout=300) as answer:
        answer.read()
    return (time.perf_counter() - begin) * 1000


def main() -> None:
    url, data = sys.argv[1], Path(sys.argv[2]).read_bytes()
    rounds, clients = (int(value) for value in (sys.argv[3:] + ["20", "4"])[:2])
    post(url, data)
    times = [post(url, data) for _ in range(rounds)]
    begin = time.perf_counter()
    threads = [threading.Thread(target=lambda: [post(url, data) for _ in range(rounds)]) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = rounds * clients / (time.perf_counter() - begin)
    print(f"one client: median {statistics.median(times):.0f} ms, longest {max(times):.0f} ms; {clients} clients: {rate:.1f} requests/s")


if __name__ == "__main__":
    main()
