// `pagoda bench --worker`: measures on request, so that the driver in bench/peers can alternate
// Pagoda with its peers.
#pragma once

#include <string>

namespace pagoda::cli {

// Reads one JSON object a line from stdin until its end, answers each with one line on stdout:
//   {"op": "prepare", "problem": {...}, "threads": N}  answers with the facts of the problem;
//                                                      optional: "kernel", "schedule", "kv-splits"
//   {"op": "run", "iterations": K}                     {"seconds": [...]} of the prepared problem
//   {"op": "back_to_back", "iterations": K}            seconds a run of K that follow each other
//   {"op": "plan", "iterations": K}                    the same of plan()
//   {"op": "ceilings", "threads": N}                   the measured ceilings
//   {"op": "release"}                                  frees the problem
// A request that cannot be served is answered with {"error": "..."}.
void run_bench_worker(const std::string& backend);

}  // namespace pagoda::cli
