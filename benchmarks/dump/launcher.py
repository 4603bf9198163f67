"""Start one program on some processors, and report the kernel's figures of its resources.

    python -I -S launcher.py FD PROCESSOR,... COMMAND...

The launcher needs next to no memory itself, since the kernel counts the parent's memory at the fork
towards a program's peak. Children that the program leaves behind (PySpark leaves its Java) are
adopted and counted. It writes JSON to FD: status, wall, cpu, and the peak in bytes. It uses as
little of the standard library as possible.
"""

import ctypes
import os
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
LEFT_SECONDS = 20.0


def main() -> None:
    answer, processors, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    os.set_inheritable(answer, False)
    os.sched_setaffinity(0, {int(each) for each in processors.split(",")})
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
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
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
    while time.perf_counter() - began - wall < LEFT_SECONDS:
        try:
            left, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if left:
            cpu, peak = cpu + usage.ru_utime + usage.ru_stime, max(peak, usage.ru_maxrss)
        else:
            time.sleep(0.01)
    told = [os.waitstatus_to_exitcode(status), wall, cpu, peak * 1024]
    os.write(answer, f"{told}".encode())


if __name__ == "__main__":
    main()
