"""Start one program on some processors, and tell what the kernel says it took.

    python -I -S launcher.py FD PROCESSOR,... COMMAND...

A process of next to no memory in between: the kernel counts to a program's largest size what its
parent had at the fork. Writes to FD, as JSON: status, wall, cpu, and the peak in bytes. Standard
library only, and of that as little as can be.
"""

import os
import sys
import time


def main() -> None:
    answer, processors, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    os.set_inheritable(answer, False)
    os.sched_setaffinity(0, {int(each) for each in processors.split(",")})
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(127)
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - began
    told = [os.waitstatus_to_exitcode(status), wall, usage.ru_utime + usage.ru_stime]
    os.write(answer, f"{[*told, usage.ru_maxrss * 1024]}".encode())


if __name__ == "__main__":
    main()
