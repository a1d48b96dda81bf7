// What SM100MHA2Q does for one work tile with two halves, read from the emulator's trace: the order
// of its products (KVConsumerPipeline), their columns of tensor memory, the arrivals of its
// barriers, and the copies of K and V.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/trace/trace.hpp"
#include "kernels/mha_sm100/kernel.hpp"
#include "testing/emulate/attention_case.hpp"

namespace pagoda::emulate {
namespace {

using emulator::TraceEvent;

// The tile of sm100.d64.bf16: rings of K and of V.
struct Depth64 {
  using T = arch::BFloat16;
  using Out = arch::BFloat16;
  static constexpr mha_sm100::TileConfig tile =
      mha_sm100::tile_of(2, 64, mha_sm100::ScoreClass::kPlain);
  static_assert(!tile.has_shared_ring());
};
// K and V in one ring of three stages, whole or in two parts: a swizzle of 64 bytes is half of a
// row of K.
template <int parts>
struct SharedRingOf {
  using T = arch::BFloat16;
  using Out = arch::BFloat16;
  static constexpr mha_sm100::TileConfig tile{
      .depth = 64,
      .BN = 32,
      .slots = 3,
      .swizzle = parts == 1 ? arch::Swizzle::k128B : arch::Swizzle::k64B};
  static_assert(tile.has_shared_ring() && tile.num_mma_stages() == parts);
};
using SharedRing = SharedRingOf<1>;
using SharedRingInParts = SharedRingOf<2>;

template <class Config_>
struct Traits {
  using Config = Config_;
  using Kernel = mha_sm100::SM100MHA2Q<Config>;
  static constexpr int block_rows = mha_sm100::kRows, blocks = mha_sm100::kHalves;
  static constexpr bool fuses_heads = true;
};

// One sequence of 256 rows: one work tile, whose last rows see all of its `keys` keys.
template <class Config>
std::vector<TraceEvent> trace(int keys, uint64_t seed = 5) {
  const AttentionShape shape{.kernel = "sm100/order",
                             .sequences = {{256, keys}},
                             .num_kv_heads = 1,
                             .group = 1,
                             .ctas = 1};
  emulator::Tracer tracer;
  AttentionCase attention(shape, seed);
  attention.kv_eviction = arch::Eviction::kLast;
  const Outcome outcome = attention.run<Traits<Config>>(
      {.mode = emulator::Mode::kRandom, .seed = seed, .tracer = &tracer});
  EXPECT_TRUE(outcome.is_right()) << outcome.first_mismatch;
  return tracer.events();
}

// One product: consecutive MMAs with the same D and the same kind of A.
struct Product {
  bool is_pv = false;
  int d = -1;               // first column
  int n = 0;                // columns
  int a = -1;               // P: first column
  uint32_t b = 0;           // address of K or V
  bool accumulates = true;  // from the first MMA on
  int mmas = 0;
  uint64_t issued = 0;  // step of the first MMA
};

// In the order of issue.
std::vector<Product> products_of(std::vector<TraceEvent> events) {
  std::stable_sort(events.begin(), events.end(), [](const TraceEvent& a, const TraceEvent& b) {
    return a.operation < b.operation;
  });
  std::vector<Product> products;
  for (const TraceEvent& event : events) {
    const bool is_pv = event.name == "UMma::ts";
    if (event.kind != TraceEvent::Kind::kOperation || (!is_pv && event.name != "UMma::ss")) {
      continue;
    }
    Product one{.is_pv = is_pv, .issued = event.operation};
    char sign[3] = "";
    unsigned q = 0, b = 0;
    const int fields =
        is_pv ? std::sscanf(event.details.c_str(), "D column %d %2s A column %d, B shared %u, N %d",
                            &one.d, sign, &one.a, &b, &one.n)
              : std::sscanf(event.details.c_str(), "D column %d %2s A shared %u, B shared %u, N %d",
                            &one.d, sign, &q, &b, &one.n);
    EXPECT_EQ(fields, 5) << event.details;
    one.b = b;
    one.accumulates = sign[0] == '+';
    if (products.empty() || products.back().is_pv != is_pv || products.back().d != one.d) {
      products.push_back(one);
    }
    ++products.back().mmas;
  }
  return products;
}

// "S0 S1 O0 ..": the products by their columns of tensor memory.
std::string names_of(const std::vector<Product>& products, const mha_sm100::TmemMap& map) {
  std::string names;
  for (const Product& product : products) {
    const int* const columns = product.is_pv ? map.o : map.s;
    names += names.empty() ? "" : " ";
    names += product.is_pv ? "O" : "S";
    names += product.d == columns[0] ? "0" : product.d == columns[1] ? "1" : "?";
  }
  return names;
}

// S0 S1 O0  { S0 O1 S1 O0 } for each further tile  O1
std::string documented_order(int tiles) {
  std::string order = "S0 S1 O0";
  for (int n = 1; n < tiles; ++n) order += " S0 O1 S1 O0";
  return order + " O1";
}

template <class Config>
void expect_documented_order(int tiles) {
  constexpr mha_sm100::TileConfig tile = Config::tile;
  const std::vector<Product> products = products_of(trace<Config>(tiles * tile.BN));
  ASSERT_EQ(names_of(products, tile.tmem()), documented_order(tiles));
  // K(n) for S0 and S1, V(n) for O0 and O1; the next tile is in another stage.
  std::array<std::vector<uint32_t>, 4> operands;  // of S0, S1, O0, O1
  for (const Product& product : products) {
    const auto half =
        static_cast<size_t>(product.d == (product.is_pv ? tile.tmem().o : tile.tmem().s)[1]);
    std::vector<uint32_t>& of = operands[(product.is_pv ? 2 : 0) + half];
    EXPECT_EQ(product.n, product.is_pv ? tile.depth : tile.BN);
    EXPECT_EQ(product.mmas, (product.is_pv ? tile.BN : tile.depth) / tile.mma_k());
    // S is new, the first O is; later ones accumulate. P starts where its S does.
    EXPECT_EQ(product.accumulates, product.is_pv && !of.empty());
    if (product.is_pv) {
      EXPECT_EQ(product.a, tile.tmem().s[half]);
    }
    of.push_back(product.b);
  }
  EXPECT_EQ(operands[0], operands[1]);
  EXPECT_EQ(operands[2], operands[3]);
  for (size_t n = 0; n < operands[0].size(); ++n) {
    EXPECT_NE(operands[0][n], operands[2][n]);
    if (n > 0) {
      EXPECT_NE(operands[0][n], operands[0][n - 1]);
      EXPECT_NE(operands[2][n], operands[2][n - 1]);
    }
  }
}

TEST(SM100MHA2QOrder, products_follow_the_documented_order_in_two_rings) {
  for (const int tiles : {2, 3}) expect_documented_order<Depth64>(tiles);
}
TEST(SM100MHA2QOrder, products_follow_the_documented_order_in_a_shared_ring) {
  for (const int tiles : {8, 9, 11}) {
    expect_documented_order<SharedRing>(tiles);
    expect_documented_order<SharedRingInParts>(tiles);
  }
}

// The check itself: two products that change places have another order.
TEST(SM100MHA2QOrder, exchanged_products_are_found) {
  constexpr mha_sm100::TileConfig tile = SharedRing::tile;
  const std::vector<Product> products = products_of(trace<SharedRing>(8 * tile.BN));
  for (size_t i = 0; i + 1 < products.size(); ++i) {
    std::vector<Product> exchanged = products;
    std::swap(exchanged[i], exchanged[i + 1]);
    EXPECT_NE(names_of(exchanged, tile.tmem()), documented_order(8)) << i;
  }
}

// The columns that the documentation gives for depth 64 and 128.
TEST(SM100MHA2QOrder, halves_have_the_documented_columns) {
  std::map<int, int> columns;  // first, number
  for (const Product& product : products_of(trace<Depth64>(2 * Depth64::tile.BN))) {
    columns[product.d] = product.n;
  }
  EXPECT_EQ(columns, (std::map<int, int>{{0, 192}, {192, 192}, {384, 64}, {448, 64}}));
}

// Arrivals that end a phase, by barrier.
TEST(SM100MHA2QOrder, barriers_count_the_documented_arrivals) {
  std::map<std::string, std::set<std::string>> arrivals;
  for (const TraceEvent& event : trace<SharedRing>(8 * SharedRing::tile.BN)) {
    if (event.kind != TraceEvent::Kind::kFlowStart) continue;
    arrivals[event.name.substr(0, event.name.find('['))].insert(event.details);
  }
  const std::map<std::string, std::set<std::string>> expected{
      {"kv full", {"1 arrivals"}},             // the load warp, with the copies' bytes
      {"kv empty", {"1 arrivals"}},            // tcgen05.commit
      {"q full", {"1 arrivals"}},              // the lane that loads Q, with the copies' bytes
      {"q empty", {"1 arrivals"}},             // a correction lane
      {"s full", {"1 arrivals"}},              // tcgen05.commit
      {"p full, o rescaled", {"8 arrivals"}},  // 4 softmax and 4 correction warps
      {"p rest full", {"4 arrivals"}},         // 4 softmax warps
      {"o full", {"1 arrivals"}},              // tcgen05.commit
      {"factor 0 full", {"4 arrivals"}},       // 4 softmax warps
      {"factor 0 empty", {"4 arrivals"}},      // 4 correction warps
      {"factor 1 full", {"4 arrivals"}},       //
      {"factor 1 empty", {"4 arrivals"}},      //
      {"work full", {"1 arrivals"}},           // the scheduler
      {"work empty", {"448 arrivals"}},        // 32 lanes of 14 warps
      {"v tail", {"1 arrivals"}}};             // the load warp, with the copies' bytes
  for (const auto& [name, counts] : arrivals) {
    const auto documented = expected.find(name);
    ASSERT_NE(documented, expected.end()) << name;
    EXPECT_EQ(counts, documented->second) << name;
  }
  for (const auto& [name, counts] : expected) {
    // No V ends inside a tile here.
    if (name != "v tail") {
      EXPECT_EQ(arrivals.count(name), 1U) << name;
    }
  }
}

// How many S0 and O0 were issued before the last part of their K, V or P was there.
struct Early {
  int k = 0, v = 0, p = 0;
};
template <class Config>
Early early_products() {
  constexpr mha_sm100::TileConfig tile = Config::tile;
  constexpr int parts = tile.num_mma_stages(), tiles = 9;
  Early early;
  // In seed 27 the load warp is slow: the parts of a tile land one after the other.
  for (const uint64_t seed : {9, 27}) {
    const std::vector<TraceEvent> events = trace<Config>(tiles * tile.BN, seed);
    std::map<std::string, std::vector<uint64_t>> ends;  // steps of the ends of phases, by barrier
    for (const TraceEvent& event : events) {
      if (event.kind == TraceEvent::Kind::kFlowStart) ends[event.name].push_back(event.step);
    }
    // K and V alternate in the stages of the ring.
    const auto landed = [&](size_t stage) {
      const size_t barrier = stage % tile.slots * parts + parts - 1;
      return ends.at("kv full[" + std::to_string(barrier) + "]").at(stage / tile.slots);
    };
    size_t k = 0, v = 0;
    for (const Product& product : products_of(events)) {
      if (!product.is_pv && product.d == tile.tmem().s[0]) {
        early.k += product.issued < landed(2 * k++);
      } else if (product.is_pv && product.d == tile.tmem().o[0]) {
        early.v += product.issued < landed(2 * v + 1);
        early.p += product.issued < ends.at("p rest full[0]").at(v++);
      }
    }
    EXPECT_EQ(k, size_t{tiles});
    EXPECT_EQ(v, size_t{tiles});
  }
  return early;
}
TEST(SM100MHA2QOrder, products_start_on_the_first_part_of_k_v_and_p) {
  const Early whole = early_products<SharedRing>(), parts = early_products<SharedRingInParts>();
  EXPECT_EQ(whole.k, 0);
  EXPECT_EQ(whole.v, 0);
  EXPECT_GT(whole.p, 0);
  EXPECT_GT(parts.k, 0);
  EXPECT_GT(parts.v, 0);
  EXPECT_GT(parts.p, 0);
}

// Copies of the load warp: one for each page that holds a key, with the policy of the call.
TEST(SM100MHA2QOrder, only_pages_with_keys_are_loaded_and_with_the_policy_of_the_call) {
  constexpr int kPage = 16, BN = SharedRing::tile.BN;
  static_assert(BN == 2 * kPage);
  const auto copies = []<class Config>(int keys, Config) {
    int count = 0;
    for (const TraceEvent& event : trace<Config>(keys)) {
      if (event.kind != TraceEvent::Kind::kOperation || event.name != "tma_load") continue;
      if (event.role != "load") continue;
      EXPECT_EQ(event.details, "evict last");
      ++count;
    }
    return count;
  };
  for (const int keys : {256, 257, 271, 272, 273, 287}) {
    const int pages = (keys + kPage - 1) / kPage;
    EXPECT_EQ(copies(keys, SharedRing()), 2 * pages) << keys << " keys";         // of K and of V
    EXPECT_EQ(copies(keys, SharedRingInParts()), 4 * pages) << keys << " keys";  // two panels each
  }
}

}  // namespace
}  // namespace pagoda::emulate
