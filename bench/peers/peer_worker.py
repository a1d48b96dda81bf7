"""One peer in a separate process: answers the requests of pagoda's bench worker.

usage: peer_worker.py onnxruntime|torch THREADS

PEER_CPUS lists the CPUs to use, as many as threads. The driver has set the OpenMP variables that
pin PyTorch's threads; this pins the calling thread.
"""

import importlib
import json
import os
import sys


def answer(peer, module, request):
    if request["op"] == "version":
        return {"version": module.VERSION}
    if request["op"] == "prepare":
        return peer.prepare(request["problem"])
    if request["op"] == "run":
        return {"seconds": peer.run(request["iterations"])}
    return {"error": f"no such operation: {request['op']}"}


def main():
    name, threads = sys.argv[1], int(sys.argv[2])
    module = importlib.import_module(f"peer_{name}")
    cpus = [int(cpu) for cpu in os.environ["PEER_CPUS"].split(",")]
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries must not mix with the replies
    peer = module.Peer(threads)
    os.sched_setaffinity(0, {cpus[0]})
    for line in sys.stdin:
        try:
            reply = answer(peer, module, json.loads(line))
        except Exception as error:  # the driver reports it in the peer's row
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
