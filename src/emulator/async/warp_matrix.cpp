// The last lane to arrive reads the operands of all lanes and writes their results.
#include "emulator/async/warp_matrix.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "arch/layout/fragment_layout.hpp"
#include "arch/layout/mfma_layout.hpp"

namespace pagoda::emulator {
namespace {

constexpr int kLanes = 32;        // of an NVIDIA warp
constexpr int kRows = 8;          // of a matrix
constexpr size_t kRowBytes = 16;  // 8 elements of 16 bits

// Calls execute(arguments of all lanes, their threads) when all `size` lanes of the warp have
// arrived.
template <int size = kLanes, class Arguments, class Execute>
void with_all_lanes(const char* primitive, const Where& where, Arguments& mine, Execute execute) {
  Machine& machine = Machine::current();
  const Thread& thread = Machine::current_thread();
  if (thread.warp_size != size || machine.shape().threads - thread.warp() * size < size) {
    machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                            "the warp does not have all " + std::to_string(size) + " lanes");
  }
  machine.collectives().warp(kAllLanes, primitive, where, &mine, [&](Collective& group) {
    Arguments* lanes[size];
    for (size_t i = 0; i < size; ++i) lanes[i] = static_cast<Arguments*>(group.arguments[i]);
    execute(lanes, group.threads.data());
  });
}

struct RowAndRegisters {
  std::byte* row;
  uint32_t* registers;
  int count;
  bool is_transposed;
};

// An access to one row, by the lane that has its address.
void access_row(Thread& lane, const std::byte* row, bool is_write, const char* primitive,
                const Where& where) {
  Machine& machine = Machine::current();
  const Reporter::OnBehalfOf who(machine.reporter(), &lane);
  if (reinterpret_cast<uintptr_t>(row) % kRowBytes != 0) {
    machine.reporter().fail(ReportKind::kBounds, primitive, where,
                            "the address of a row is not aligned to 16 bytes");
  }
  const bool may_be_unwritten = !machine.options().report_unwritten_operands;
  machine.memory().access_shared(row, kRowBytes, is_write, lane.access(primitive, where),
                                 may_be_unwritten);
}

// on_element(register half, element in shared memory) for every element of all matrices.
template <class OnElement>
void for_each_element(RowAndRegisters** lanes, OnElement on_element) {
  for (int matrix = 0; matrix < lanes[0]->count; ++matrix) {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int e = 0; e < 2; ++e) {
        const arch::MatrixIndex index = lanes[0]->is_transposed
                                            ? arch::matrix_element_transposed(lane, e)
                                            : arch::matrix_element(lane, e);
        std::byte* const row = lanes[arch::matrix_row_lane(matrix, index.row)]->row;
        on_element(reinterpret_cast<std::byte*>(lanes[lane]->registers + matrix) + 2 * e,
                   row + 2 * index.column);
      }
    }
  }
}

}  // namespace

void load_matrices(uint32_t* registers, int count, const void* row, bool is_transposed,
                   const char* primitive, const Where& where) {
  RowAndRegisters mine{static_cast<std::byte*>(const_cast<void*>(row)), registers, count,
                       is_transposed};
  with_all_lanes(primitive, where, mine, [&](RowAndRegisters** lanes, Thread** threads) {
    for (int i = 0; i < kRows * count; ++i) {
      access_row(*threads[i], lanes[i]->row, false, primitive, where);
    }
    for_each_element(
        lanes, [](std::byte* half, const std::byte* element) { std::memcpy(half, element, 2); });
  });
}

void store_matrices(const uint32_t* registers, int count, void* row, bool is_transposed,
                    const char* primitive, const Where& where) {
  RowAndRegisters mine{static_cast<std::byte*>(row), const_cast<uint32_t*>(registers), count,
                       is_transposed};
  with_all_lanes(primitive, where, mine, [&](RowAndRegisters** lanes, Thread** threads) {
    for (int i = 0; i < kRows * count; ++i) {
      access_row(*threads[i], lanes[i]->row, true, primitive, where);
    }
    for_each_element(
        lanes, [](const std::byte* half, std::byte* element) { std::memcpy(element, half, 2); });
  });
}

void multiply_in_warp(ElementType type, int k, float* d, const uint32_t* a, const uint32_t* b,
                      const char* primitive, const Where& where) {
  constexpr int kM = 16, kN = 8, kMaxK = 32;
  struct Operands {
    float* d;
    const uint32_t *a, *b;
  } mine{d, a, b};
  with_all_lanes(primitive, where, mine, [&](Operands** lanes, Thread**) {
    float panel_a[kM * kMaxK], panel_b[kMaxK * kN], panel_d[kM * kN];
    const bool is_8bit = element_bytes(type) == 1;
    const int a_elements = kM * k / kLanes, b_elements = k * kN / kLanes;
    float values[16];
    for (int lane = 0; lane < kLanes; ++lane) {
      decode_elements(type, lanes[lane]->a, a_elements, values);
      for (int e = 0; e < a_elements; ++e) {
        const arch::MatrixIndex at =
            is_8bit ? arch::mma_a_8bit(lane, e) : arch::mma_a_16bit(lane, e);
        panel_a[at.row * k + at.column] = values[e];
      }
      decode_elements(type, lanes[lane]->b, b_elements, values);
      for (int e = 0; e < b_elements; ++e) {
        const arch::MatrixIndex at =
            is_8bit ? arch::mma_b_8bit(lane, e) : arch::mma_b_16bit(lane, e);
        panel_b[at.row * kN + at.column] = values[e];
      }
      for (int i = 0; i < 4; ++i) {
        const arch::MatrixIndex at = arch::mma_accumulator(lane, i);
        panel_d[at.row * kN + at.column] = lanes[lane]->d[i];
      }
    }
    multiply_accumulate(kM, kN, k, panel_a, panel_b, panel_d);
    Machine::current().engines().count_multiply_adds(static_cast<uint64_t>(kM * kN * k));
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const arch::MatrixIndex at = arch::mma_accumulator(lane, i);
        lanes[lane]->d[i] = panel_d[at.row * kN + at.column];
      }
    }
  });
}

void multiply_in_wave(ElementType type, int size, float* d, const uint32_t* a, const uint32_t* b,
                      const char* primitive, const Where& where) {
  constexpr int kWave = 64, kElements = 4;  // of A and B, a lane
  constexpr int kMaxM = 32, kMaxK = 16;
  struct Operands {
    float* d;
    const uint32_t *a, *b;
  } mine{d, a, b};
  with_all_lanes<kWave>(primitive, where, mine, [&](Operands** lanes, Thread**) {
    float panel_a[kMaxM * kMaxK], panel_b[kMaxK * kMaxM], panel_d[kMaxM * kMaxM];
    const int k = kWave * kElements / size, registers = size * size / kWave;
    float values[kElements];
    for (int lane = 0; lane < kWave; ++lane) {
      decode_elements(type, lanes[lane]->a, kElements, values);
      for (int e = 0; e < kElements; ++e) {
        const arch::MatrixIndex at = arch::mfma_a(size, lane, e);
        panel_a[at.row * k + at.column] = values[e];
      }
      decode_elements(type, lanes[lane]->b, kElements, values);
      for (int e = 0; e < kElements; ++e) {
        const arch::MatrixIndex at = arch::mfma_b(size, lane, e);
        panel_b[at.row * size + at.column] = values[e];
      }
      for (int i = 0; i < registers; ++i) {
        const arch::MatrixIndex at = arch::mfma_accumulator(size, lane, i);
        panel_d[at.row * size + at.column] = lanes[lane]->d[i];
      }
    }
    multiply_accumulate(size, size, k, panel_a, panel_b, panel_d);
    Machine::current().engines().count_multiply_adds(static_cast<uint64_t>(size * size * k));
    for (int lane = 0; lane < kWave; ++lane) {
      for (int i = 0; i < registers; ++i) {
        const arch::MatrixIndex at = arch::mfma_accumulator(size, lane, i);
        lanes[lane]->d[i] = panel_d[at.row * size + at.column];
      }
    }
  });
}

}  // namespace pagoda::emulator
