// Operations that a thread issues to the tensor core of Blackwell: products, copies into tensor
// memory, and the commits that signal their completion.
#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/element.hpp"
#include "emulator/async/matrix_math.hpp"
#include "emulator/async/matrix_operand.hpp"
#include "emulator/machine/machine.hpp"
#include "emulator/memory/tensor_memory.hpp"
#include "emulator/sync/barriers.hpp"

namespace pagoda::emulator {
namespace {

using arch::AccumulatorType;
using arch::DescriptorFormat;
using arch::InstructionDescriptorFields;
using arch::Major;
using arch::MmaForm;
using arch::MmaType;
using arch::TmemPtr;

constexpr int kOperandColumns = 8;  // the 32 bytes of K of an instruction
constexpr int kOperandBytes = 4 * kOperandColumns;

ElementType element_type_of(MmaType type) {
  switch (type) {
    case MmaType::kF16: return ElementType::kHalf;
    case MmaType::kBF16: return ElementType::kBFloat16;
    case MmaType::kTF32: return ElementType::kTFloat32;
    case MmaType::kE5M2: return ElementType::kFloat8E5M2;
    case MmaType::kU8: return ElementType::kUInt8;
    case MmaType::kS8: return ElementType::kInt8;
    default: return ElementType::kFloat8E4M3;
  }
}

// The CTAs of the group, that of even rank first.
std::vector<Cta*> group_of(Cta& cta, int cta_group) {
  if (cta_group == 1) return {&cta};
  const auto& members = cta.cluster->ctas;
  const auto even = static_cast<size_t>(cta.rank & ~1);
  return {members[even].get(), members[even + 1].get()};
}

const char* const kCopies = "copies";  // the pipeline that an MMA is ordered after

// Into `clocks`: that the operations of `pipeline` so far are complete.
void add_completion(const TensorMemory::Pipeline& pipeline, Clocks& clocks) {
  clocks.generic.set(pipeline.agent, pipeline.time);
  clocks.async.set(pipeline.agent, pipeline.time);
}

// What an MMA knows to have happened: what its thread knows, and the copies before it.
std::shared_ptr<const Clocks> known_to_mma(const Thread& thread,
                                           const TensorMemory::Issuer& issuer) {
  for (const TensorMemory::Pipeline& pipeline : issuer.pipelines) {
    if (pipeline.key != kCopies) continue;
    auto known = std::make_shared<Clocks>(*thread.clocks);
    add_completion(pipeline, *known);
    known->tensor.set(pipeline.agent, pipeline.time);
    return known;
  }
  return thread.clocks;
}

// Issues to the queue of the executing thread. `key`: of its pipeline where only some operations
// are ordered by their issue (MmaOrder::kIsa).
void submit_in_order(const char* primitive, const Where& where, const std::string& key,
                     std::string details, std::function<void(AsyncOperation&)> run) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  TensorMemory& memory = *thread.cta->tensor_memory;
  TensorMemory::Issuer& issuer = memory.issuer(thread);
  const bool by_isa = machine.options().mma_order == MmaOrder::kIsa;
  TensorMemory::Pipeline& pipeline = memory.pipeline(issuer, by_isa ? key : std::string());
  pipeline.primitive = primitive;
  pipeline.where = where;
  auto operation = std::make_unique<AsyncOperation>();
  operation->primitive = primitive;
  operation->details = std::move(details);
  operation->where = where;
  operation->issuer = &thread;
  operation->cta = thread.cta;
  operation->agent = pipeline.agent;
  operation->time = ++pipeline.time;
  operation->known = by_isa && key != kCopies ? known_to_mma(thread, issuer) : thread.clocks;
  issuer.known = thread.clocks;
  operation->run = std::move(run);
  thread.tick();
  machine.engines().submit(std::move(operation), &issuer.queue);
}

// --- products ----------------------------------------------------------------------------------

struct Product {
  MmaForm form;
  MmaOperands operands;
  InstructionDescriptorFields fields;
  ElementType a_type, b_type;
  int k;  // elements
  std::vector<Cta*> ctas;
};

// The pipeline of a product: by the ISA products are in order where all of this is equal.
std::string pipeline_of(const Product& product) {
  const auto number = [](auto value) { return std::to_string(static_cast<int64_t>(value)) + ' '; };
  const MmaOperands& operands = product.operands;
  return number(product.form.cta_group) + number(product.form.kind) + number(product.fields.m) +
         number(product.fields.n) + number(operands.d.lane()) + number(operands.d.column());
}

[[noreturn]] void fail_protocol(const char* primitive, const Where& where, std::string why) {
  Machine::current().reporter().fail(ReportKind::kProtocol, primitive, where, std::move(why));
}

Product check(const MmaForm& form, const MmaOperands& operands, const char* primitive,
              const Where& where) {
  if (const char* why = arch::validate(operands.instruction, form)) {
    fail_protocol(primitive, where, std::string("the instruction descriptor is invalid: ") + why);
  }
  Product product{.form = form,
                  .operands = operands,
                  .fields = arch::decode(operands.instruction, form.kind),
                  .a_type = {},
                  .b_type = {},
                  .k = 0,
                  .ctas = group_of(*Machine::current_thread().cta, form.cta_group)};
  const InstructionDescriptorFields& fields = product.fields;
  if (arch::type_bits(fields.a_type) < 8 || arch::type_bits(fields.b_type) < 8) {
    fail_protocol(primitive, where, "the emulator has no elements of 4 and 6 bits");
  }
  product.a_type = element_type_of(fields.a_type);
  product.b_type = element_type_of(fields.b_type);
  const int bytes = element_bytes(product.a_type);
  product.k = kOperandBytes / bytes;
  const auto check_shared = [&](const char* name, arch::SmemDescriptor descriptor, Major major) {
    if (const char* why = arch::validate(descriptor, DescriptorFormat::kSm100, major, bytes)) {
      fail_protocol(primitive, where,
                    std::string("the descriptor of ") + name + " is invalid: " + why);
    }
  };
  if (!form.is_a_in_tmem) check_shared("A", operands.a_shared, fields.a_major);
  check_shared("B", operands.b, fields.b_major);
  const bool is_half = form.cta_group == 1 && fields.m == 64;
  if (operands.d.lane() != 0 && !(is_half && operands.d.lane() == 16)) {
    fail_protocol(primitive, where,
                  "D begins at lane " + std::to_string(operands.d.lane()) +
                      (is_half ? ", not 0 or 16" : ", not 0"));
  }
  if (form.is_a_in_tmem && operands.a_tensor.lane() != 0) {
    fail_protocol(primitive, where,
                  "A begins at lane " + std::to_string(operands.a_tensor.lane()) + ", not 0");
  }
  return product;
}

// With cta_group 2 and M = 128 each half of the lanes contains half of the columns of D and its own
// copy of A: two parts. Every other shape is one part.
int parts_of(const Product& product) {
  return product.form.cta_group == 2 && product.fields.m == 128 ? 2 : 1;
}

arch::TmemAccumulatorIndex place_of(const Product& product, int row, int column) {
  return arch::tmem_accumulator(product.form, product.fields.m, product.fields.n, row, column);
}

std::vector<float> read_a(Machine& machine, const AsyncOperation& self, const Product& product,
                          int part) {
  const int m = product.fields.m;
  const int rows = m / product.form.cta_group;
  std::vector<float> panel(static_cast<size_t>(m * product.k));  // [m, k]
  if (!product.form.is_a_in_tmem) {
    for (int i = 0; i < product.form.cta_group; ++i) {
      read_operand(machine, self, *product.ctas[static_cast<size_t>(i)],
                   {.name = "A",
                    .descriptor = product.operands.a_shared,
                    .format = DescriptorFormat::kSm100,
                    .major = product.fields.a_major,
                    .type = product.a_type,
                    .mn = rows,
                    .k = product.k,
                    .mn_stride = product.k,
                    .k_stride = 1},
                   panel.data() + static_cast<ptrdiff_t>(i) * rows * product.k);
    }
    return panel;
  }
  const bool may_be_unwritten = !machine.options().report_unwritten_operands;
  const int columns = product.fields.n / parts_of(product);
  for (int row = 0; row < m; ++row) {
    const auto place =
        place_of(product, row, part * columns);  // row i of A is in the lane of row i of D
    TensorMemory& memory = *product.ctas[static_cast<size_t>(place.cta)]->tensor_memory;
    const uint32_t* const words =
        memory.read(place.at.lane, product.operands.a_tensor.column(), kOperandColumns,
                    self.access(Proxy::kTensor), may_be_unwritten);
    decode_elements(product.a_type, words, product.k, panel.data() + row * product.k);
  }
  return panel;
}

// Columns [part * n / parts, ...) of B; CTA i of a pair holds half i of all columns.
std::vector<float> read_b(Machine& machine, const AsyncOperation& self, const Product& product,
                          int part) {
  const int n = product.fields.n;
  const int columns = n / parts_of(product);                           // of the panel
  const int per_cta = n / product.form.cta_group;                      // columns of B in a CTA
  std::vector<float> panel(static_cast<size_t>(product.k * columns));  // [k, columns]
  for (int i = 0; i < product.form.cta_group; ++i) {
    if (parts_of(product) == 2 && i != part) continue;
    const int begin = parts_of(product) == 2 ? 0 : i * per_cta;
    read_operand(machine, self, *product.ctas[static_cast<size_t>(i)],
                 {.name = "B",
                  .descriptor = product.operands.b,
                  .format = DescriptorFormat::kSm100,
                  .major = product.fields.b_major,
                  .type = product.b_type,
                  .mn = per_cta,
                  .k = product.k,
                  .mn_stride = 1,
                  .k_stride = columns},
                 panel.data() + begin);
  }
  return panel;
}

float to_float(AccumulatorType type, uint32_t word) {
  return type == AccumulatorType::kF16 ? core::f16_to_float(static_cast<uint16_t>(word))
                                       : std::bit_cast<float>(word);
}

// The bits of D above 16 are unspecified where its type is f16: poison.
uint32_t to_word(AccumulatorType type, float value) {
  return type == AccumulatorType::kF16 ? 0xffff0000U | core::float_to_f16(value)
                                       : std::bit_cast<uint32_t>(value);
}

// `sums` [columns]: products of this instruction, exact in fp32; D need not be.
void store_integers(const float* sums, int columns, bool is_saturated, bool accumulates,
                    uint32_t* words) {
  for (int i = 0; i < columns; ++i) {
    auto value = static_cast<int64_t>(sums[i]);
    if (accumulates) value += static_cast<int32_t>(words[i]);
    if (is_saturated) value = std::clamp<int64_t>(value, INT32_MIN, INT32_MAX);
    words[i] = static_cast<uint32_t>(value);
  }
}

void multiply_part(Machine& machine, const AsyncOperation& self, const Product& product, int part) {
  const InstructionDescriptorFields& fields = product.fields;
  const MmaOperands& operands = product.operands;
  const int columns = fields.n / parts_of(product);
  std::vector<float> a = read_a(machine, self, product, part);
  const std::vector<float> b = read_b(machine, self, product, part);
  if (fields.is_a_negated != fields.is_b_negated) {
    for (float& value : a) value = -value;
  }
  const bool is_integer = fields.d_type == AccumulatorType::kS32;
  const Access access = self.access(Proxy::kTensor);

  std::vector<uint32_t*> rows(static_cast<size_t>(fields.m));
  std::vector<float> sums(static_cast<size_t>(fields.m * columns));
  for (int row = 0; row < fields.m; ++row) {
    const auto place = place_of(product, row, part * columns);
    TensorMemory& memory = *product.ctas[static_cast<size_t>(place.cta)]->tensor_memory;
    const int lane = operands.d.lane() + place.at.lane;
    const int column = operands.d.column() + place.at.column;
    if (operands.accumulates) memory.check_written(lane, column, columns, access);
    uint32_t* const words = memory.write(lane, column, columns, access);
    rows[static_cast<size_t>(row)] = words;
    if (!operands.accumulates || is_integer) continue;
    for (int i = 0; i < columns; ++i) {
      sums[static_cast<size_t>(row * columns + i)] = to_float(fields.d_type, words[i]);
    }
  }
  multiply_accumulate(fields.m, columns, product.k, a.data(), b.data(), sums.data());
  for (int row = 0; row < fields.m; ++row) {
    const float* const from = sums.data() + static_cast<ptrdiff_t>(row) * columns;
    uint32_t* const words = rows[static_cast<size_t>(row)];
    if (is_integer) {
      store_integers(from, columns, fields.is_saturated, operands.accumulates, words);
      continue;
    }
    for (int i = 0; i < columns; ++i) words[i] = to_word(fields.d_type, from[i]);
  }
}

// For traces: first columns of D and A in tensor memory, addresses of A and B in shared memory.
std::string details_of(const Product& product) {
  const MmaOperands& operands = product.operands;
  const auto shared = [](arch::SmemDescriptor descriptor) {
    return "shared " + std::to_string(decode(descriptor, DescriptorFormat::kSm100).start_bytes);
  };
  return "D column " + std::to_string(operands.d.column()) + (operands.accumulates ? " +=" : " =") +
         " A " +
         (product.form.is_a_in_tmem ? "column " + std::to_string(operands.a_tensor.column())
                                    : shared(operands.a_shared)) +
         ", B " + shared(operands.b) + ", N " + std::to_string(product.fields.n);
}

}  // namespace

void tcgen05_mma(const MmaForm& form, const MmaOperands& operands, const Where& where) {
  const char* const primitive = form.is_a_in_tmem ? "UMma::ts" : "UMma::ss";
  Machine& machine = Machine::current();
  machine.scheduler().progress();
  TensorMemory::of(*Machine::current_thread().cta, form.cta_group, primitive, where);
  Product product = check(form, operands, primitive, where);
  for (Cta* cta : product.ctas) TensorMemory::of(*cta, form.cta_group, primitive, where);
  machine.engines().count_multiply_adds(static_cast<uint64_t>(product.fields.m) *
                                        static_cast<uint64_t>(product.fields.n) *
                                        static_cast<uint64_t>(product.k));
  const std::string pipeline = pipeline_of(product);
  std::string details = machine.trace().is_tracing() ? details_of(product) : std::string();
  submit_in_order(primitive, where, pipeline, std::move(details),
                  [&machine, product = std::move(product)](AsyncOperation& self) {
                    for (int part = 0; part < parts_of(product); ++part) {
                      multiply_part(machine, self, product, part);
                    }
                  });
}

// --- copies ------------------------------------------------------------------------------------

void tmem_copy(arch::TmemCopyShape shape, int cta_group, TmemPtr to, arch::SmemDescriptor from,
               const Where& where) {
  constexpr const char* kPrimitive = "tmem_copy";
  Machine& machine = Machine::current();
  machine.scheduler().progress();
  Cta& mine = *Machine::current_thread().cta;
  TensorMemory::of(mine, cta_group, kPrimitive, where);
  const std::vector<Cta*> ctas = group_of(mine, cta_group);
  for (Cta* cta : ctas) TensorMemory::of(*cta, cta_group, kPrimitive, where);
  if (const char* why = arch::validate(from, DescriptorFormat::kSm100, Major::kK, 1)) {
    fail_protocol(kPrimitive, where, std::string("the descriptor is invalid: ") + why);
  }
  if (to.lane() != 0) {
    fail_protocol(kPrimitive, where,
                  "the address names lane " + std::to_string(to.lane()) + ", not 0");
  }
  submit_in_order(
      kPrimitive, where, kCopies, {}, [&machine, ctas, shape, to, from](AsyncOperation& self) {
        const int rows = arch::tmem_copy_rows(shape);
        const int columns = arch::tmem_copy_columns(shape);
        for (Cta* cta : ctas) {
          const int row_bytes = 4 * columns;
          std::vector<float> values(static_cast<size_t>(rows * row_bytes));
          read_operand(machine, self, *cta,
                       {.name = "of the copy",
                        .descriptor = from,
                        .format = DescriptorFormat::kSm100,
                        .major = Major::kK,
                        .type = ElementType::kUInt8,
                        .mn = rows,
                        .k = row_bytes,
                        .mn_stride = row_bytes,
                        .k_stride = 1},
                       values.data());
          const std::vector<uint8_t> bytes(values.begin(), values.end());
          for (int lane = 0; lane < arch::kTmemLanes; ++lane) {
            const int row = arch::tmem_copy_row(shape, lane);
            if (row < 0) continue;
            uint32_t* const target =
                cta->tensor_memory->write(lane, to.column(), columns, self.access(Proxy::kTensor));
            std::memcpy(target, bytes.data() + static_cast<ptrdiff_t>(row) * row_bytes,
                        static_cast<size_t>(row_bytes));
          }
        }
      });
}

// --- commits -----------------------------------------------------------------------------------

void tcgen05_commit(int cta_group, void* barrier_address, uint16_t cta_mask, const char* primitive,
                    const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  void* const beside = barrier_beside(barrier_address);
  const Mutation mutation = machine.mutations().at(
      primitive, where,
      Mutation::kDrop | (beside != nullptr ? Mutation::kOtherBarrier : Mutation::kNone));
  if (mutation == Mutation::kDrop) return;
  if (mutation == Mutation::kOtherBarrier) barrier_address = beside;
  TensorMemory& memory = TensorMemory::of(*thread.cta, cta_group, primitive, where);
  struct Target {
    MBarrierState* barrier;
    const Cta* owner;
  };
  std::vector<Target> barriers;
  const auto add = [&](void* at) {
    barriers.push_back(
        {&machine.mbarriers().find_for_copy(at, primitive, where), machine.memory().find_cta(at)});
  };
  if (cta_mask == 0) add(barrier_address);
  for (int rank = 0; rank < 16; ++rank) {
    if ((cta_mask >> rank & 1) == 0) continue;
    add(map_shared(barrier_address, rank, where));
  }
  TensorMemory::Issuer& issuer = memory.issuer(thread);
  // The engine releases the end of the products, and what happened before them, at the CTA of
  // the barrier. What the thread has acquired since is released at the thread's CTA.
  Clocks done;
  if (issuer.known) done = *issuer.known;
  for (const TensorMemory::Pipeline& pipeline : issuer.pipelines) add_completion(pipeline, done);
  Clocks known = *thread.clocks;
  publish_tensor_accesses(thread, known);
  const uint32_t cta = thread.cta->index;
  auto operation = machine.engines().make_operation(
      primitive, where, thread,
      [&machine, barriers, done = std::move(done), known = std::move(known), cta, primitive,
       where](AsyncOperation&) {
        for (const Target& target : barriers) {
          if (target.owner->running == 0) {
            machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                                    "arrival at mbarrier " + target.barrier->name + " of CTA " +
                                        std::to_string(target.owner->index) + ", which has ended");
          }
          MBarrierState& barrier = *target.barrier;
          Released released{done, barrier.cta, Scope::kCluster, primitive, where};
          if (cta == barrier.cta) {
            released.clocks.join(known);
          } else {
            Scopes::release_to(barrier.gathering_from_others,
                               {known, cta, Scope::kCluster, primitive, where});
          }
          machine.mbarriers().arrive(barrier, 1, released);
        }
      });
  operation->is_detached = true;
  machine.engines().submit(std::move(operation), &issuer.queue);
}

}  // namespace pagoda::emulator
