// Finds, checks and decodes the 16-byte chunks of an operand.
#include "emulator/async/matrix_operand.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace pagoda::emulator {
namespace {

constexpr uint32_t kChunkBytes = 16;  // contiguous under every swizzle

// Records the reads, neighbouring chunks as one.
void record_reads(Machine& machine, const AsyncOperation& operation, const Cta& cta,
                  std::vector<uint32_t> chunks) {
  const Access access = operation.access();
  const bool may_be_unwritten = !machine.options().report_unwritten_operands;
  std::sort(chunks.begin(), chunks.end());
  for (size_t i = 0; i < chunks.size();) {
    const uint32_t begin = chunks[i];
    uint32_t end = begin;
    for (; i < chunks.size() && chunks[i] <= end; ++i) end = chunks[i] + kChunkBytes;
    machine.memory().access_shared(cta.shared + begin, end - begin, false, access,
                                   may_be_unwritten);
  }
}

}  // namespace

void read_operand(Machine& machine, const AsyncOperation& operation, const Cta& cta,
                  const MatrixOperand& operand, float* panel) {
  const arch::SmemDescriptorFields fields = arch::decode(operand.descriptor, operand.format);
  const int bytes = element_bytes(operand.type);
  const int elements = static_cast<int>(kChunkBytes) / bytes;
  const bool is_k_major = operand.major == arch::Major::kK;
  const int lines = is_k_major ? operand.mn : operand.k;
  const int line_elements = is_k_major ? operand.k : operand.mn;
  const int chunks_a_line = (line_elements + elements - 1) / elements;

  std::vector<uint32_t> chunks;  // offsets in the CTA's shared memory
  chunks.reserve(static_cast<size_t>(lines) * static_cast<size_t>(chunks_a_line));
  for (int line = 0; line < lines; ++line) {
    for (int chunk = 0; chunk < chunks_a_line; ++chunk) {
      const int mn = is_k_major ? line : chunk * elements;
      const int k = is_k_major ? chunk * elements : line;
      const uint32_t address = arch::element_offset(fields, operand.major, mn, k, bytes);
      const uint32_t offset = address - kSharedWindowStart;
      if (address < kSharedWindowStart || offset + kChunkBytes > machine.shape().shared_bytes) {
        machine.reporter().fail(
            ReportKind::kBounds, operation.primitive, operation.where,
            std::string("element (") + std::to_string(mn) + ", " + std::to_string(k) +
                ") of operand " + operand.name + " lies at address " + std::to_string(address) +
                ", outside of the CTA's shared memory (" + std::to_string(kSharedWindowStart) +
                " .. " + std::to_string(kSharedWindowStart + machine.shape().shared_bytes - 1) +
                ")\n  the descriptor starts at " + std::to_string(fields.start_bytes) +
                ", leading offset " + std::to_string(fields.leading_bytes) + ", stride offset " +
                std::to_string(fields.stride_bytes));
      }
      chunks.push_back(offset);
    }
  }
  record_reads(machine, operation, cta, chunks);

  const int line_stride = is_k_major ? operand.mn_stride : operand.k_stride;
  const int element_stride = is_k_major ? operand.k_stride : operand.mn_stride;
  const uint32_t* next = chunks.data();
  for (int line = 0; line < lines; ++line) {
    for (int chunk = 0; chunk < chunks_a_line; ++chunk) {
      decode_elements(
          operand.type, cta.shared + *next++, std::min(elements, line_elements - chunk * elements),
          panel + line * line_stride + chunk * elements * element_stride, element_stride);
    }
  }
}

}  // namespace pagoda::emulator
