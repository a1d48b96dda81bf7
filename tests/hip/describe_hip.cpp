// Prints what backends() says of back end hip: "available: ..." or "unavailable: ...".
#include <cstdio>

#include "pagoda/backend.hpp"

int main() {
  for (const pagoda::BackendInfo& info : pagoda::backends()) {
    if (info.name != "hip") continue;
    std::printf("%s: %s\n", info.is_available ? "available" : "unavailable",
                info.description.c_str());
  }
}
