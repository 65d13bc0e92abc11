"""How much later small programs end with the preload: measured in pairs, in turn, and told as the median of the differences."""
import statistics

from checks import FRONT

COMMANDS = (("/bin/true",), ("/bin/bash", "-c", ":"), ("/usr/bin/python3", "-c", "pass"))
PAIRS = 300

# Runs inside the root, so that entering it is not measured.
INSIDE = """
import os, sys, time
words, front, pairs = sys.argv[3:], sys.argv[1], int(sys.argv[2])
def once(environment):
    begin = time.perf_counter_ns()
    os.waitpid(os.posix_spawn(words[0], words, environment), 0)
    return time.perf_counter_ns() - begin
for _ in range(pairs):
    print(once({"PATH": "/bin"}), once({"PATH": "/bin", "LD_PRELOAD": front}))
"""


def show(root):
    for words in COMMANDS:
        _, output, _ = root.run("/usr/bin/python3", "-c", INSIDE, FRONT, PAIRS, *words)
        pairs = [tuple(map(int, line.split())) for line in output.splitlines()]
        differences = [preloaded - plain for plain, preloaded in pairs]
        print(f"{root.name:>10}  {' '.join(words)}: {min(plain for plain, _ in pairs) / 1000:.0f} us at best without, "
              f"{min(preloaded for _, preloaded in pairs) / 1000:.0f} us with; median of the differences {statistics.median(differences) / 1000:.0f} us")
