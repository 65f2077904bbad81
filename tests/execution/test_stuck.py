"""A program that is stuck is named, and Ctrl-C ends the run and the process all the same."""

import os
import signal
import subprocess
import sys
import threading
import time

SCRIPT = """
import time
import numpy as np, pseudo_extended as pe

calls = 0
def density(x):
    global calls
    calls += 1
    if calls > 300:
        print("asleep", flush=True)
        time.sleep(10_000)
    return -0.5 * float(np.sum(x**2))

method = pe.Plain(pe.RandomWalk())
pe.sample(density, np.zeros(2), method=method, draws=10**6, warmup=5, chains=2, seed=0, progress=False)
"""


def interrupt_again(process):
    while process.poll() is None:
        time.sleep(5)
        process.send_signal(signal.SIGINT)


def test_a_host_function_that_never_returns_is_named_and_ctrl_c_ends_it():
    environment = os.environ | {"PSEUDO_EXTENDED_PATIENCE": "4"}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stderr is not None
    limit = threading.Timer(600, process.kill)
    limit.start()
    try:
        assert process.stdout.readline().startswith("asleep")  # both chains may say so at once
        said = process.stderr.readline()
        assert said.startswith("pseudo-extended: warm-up and draws: no progress for "), said
        process.send_signal(signal.SIGINT)  # the chunks under way never end
        # As a user would, who presses it again; on a busy machine two signals that are too close count as one.
        threading.Thread(target=interrupt_again, args=(process,), daemon=True).start()
        errors = process.communicate(timeout=120)[1]
    finally:
        limit.cancel()
        process.kill()
    assert "KeyboardInterrupt" in errors
    assert process.returncode not in (0, -signal.SIGKILL)
