#!/usr/bin/env python3
"""Time to load GPU code: cuModuleLoadData of each fat binary given (nvcc -fatbin), and its size.
With --compress-mode=size and =none it is what compression costs at the first call of a kernel.
Prints JSON, or says that there is no NVIDIA driver and exits with 77."""

import ctypes
import json
import pathlib
import statistics
import sys
import time

EXIT_SKIPPED = 77
ROUNDS = 9


def load_times(cuda, code):
    """Milliseconds of each round."""
    times = []
    for _ in range(ROUNDS):
        module = ctypes.c_void_p()
        begin = time.perf_counter()
        check(cuda.cuModuleLoadData(ctypes.byref(module), code), "cuModuleLoadData")
        times.append((time.perf_counter() - begin) * 1e3)
        check(cuda.cuModuleUnload(module), "cuModuleUnload")
    return times


def check(error, call):
    if error != 0:
        sys.exit(f"{call}: error {error}")


def main():
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        print(f"no NVIDIA driver here: {error}")
        sys.exit(EXIT_SKIPPED)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    check(cuda.cuInit(0), "cuInit")
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    rows = []
    for path in map(pathlib.Path, sys.argv[1:]):
        code = path.read_bytes()
        times = load_times(cuda, code)
        rows.append({"file": path.name, "bytes": len(code), "first_ms": round(times[0], 2),
                     "median_ms": round(statistics.median(times), 2)})  # fmt: skip
    print(json.dumps({"loads": rows}))


if __name__ == "__main__":
    main()
