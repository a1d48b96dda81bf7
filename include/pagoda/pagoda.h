// The C ABI of Pagoda: paged flash attention for C11 and every language that calls C.
//
//   O = softmax(mask(softmax_scale * Q K^T) + bias) V
//
// The functions and structs are those of the C++ API, with the same names and rules: attention.hpp,
// kv_cache.hpp, mask.hpp and score_mod.hpp define shapes, masks, placement and edge cases.
//
// Structs. Every struct but pagoda_tensor, pagoda_dtype and pagoda_device (which have DLPack's
// layout) begins with struct_size = sizeof(the struct). Zero is the default of every other field,
// so that C's designated initialisers need to name only the fields that differ. A field that is
// named `reserved` must be zero.
//
// Compatibility. libpagoda.so.N keeps this ABI; N changes when it breaks. Until then a version may
// add functions, enumerators, and fields at the end of a struct or in place of `reserved`. A
// program that was compiled with an older header passes a smaller struct_size: the fields that it
// lacks have their defaults. A program that was compiled with a newer header passes a larger one:
// the fields that this library lacks must be zero, otherwise the call is refused.
//
// Memory. The caller owns all memory that it passes, the library frees none of it, and no call
// keeps a pointer after it has returned, except pagoda_executor::context and
// pagoda_host_allocator. A handle that the library returns is freed by its destroy function, which
// accepts null; the strings of a handle live as long as the handle.
//
// Threads. Every function may be called from any thread at any time. One handle may be used by
// several threads at once; destroying it must come last. No C++ exception leaves a function.
#ifndef PAGODA_PAGODA_H_
#define PAGODA_PAGODA_H_

// NOLINTBEGIN(modernize-*,readability-identifier-naming,google-runtime-int): C
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagoda/version.h"

#if defined(__GNUC__)
#define PAGODA_API __attribute__((visibility("default")))
#else
#define PAGODA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// PAGODA_VERSION of the library.
PAGODA_API uint32_t pagoda_version(void);

// --- status -------------------------------------------------------------------------------------

typedef int32_t pagoda_status_code;
enum {
  PAGODA_OK = 0,
  PAGODA_INVALID_ARGUMENT = 1,  // the message names field, value and limit; nothing was written
  PAGODA_UNSUPPORTED = 2,       // a valid call that no kernel of the chosen back end serves here
  PAGODA_NOT_FOUND = 3,         // no back end or kernel has that name
  PAGODA_OUT_OF_MEMORY = 4,     // an allocation failed
  PAGODA_INTERNAL = 5,          // a defect of Pagoda itself
  PAGODA_STREAM_CAPTURING = 6,  // the stream is captured and the library keeps no workspace for it
};

// The outcome of a call, in the caller's memory: every function that can fail returns its code and
// writes the rest here. The argument may be null. A struct_size without room for `message` is
// refused with PAGODA_INVALID_ARGUMENT alone.
typedef struct pagoda_status {
  size_t struct_size;
  pagoda_status_code code;
  char field[116];    // the invalid argument, as this header spells it: "kv.k.shape[1]"
  char message[896];  // one line; empty if the call succeeded, cut at the end if it is longer
} pagoda_status;

// --- tensors ------------------------------------------------------------------------------------

// Where memory is; DLPack's DLDevice.
typedef struct pagoda_device {
  int32_t device_type;  // 0 = PAGODA_CPU
  int32_t device_id;
} pagoda_device;

// DLPack's DLDeviceType. Pinned host memory counts as host memory, managed memory as GPU memory.
enum {
  PAGODA_CPU = 1,
  PAGODA_CUDA = 2,
  PAGODA_CUDA_HOST = 3,
  PAGODA_ROCM = 10,
  PAGODA_ROCM_HOST = 11,
  PAGODA_CUDA_MANAGED = 13,
};

// An element type; DLPack's DLDataType. PAGODA_FLOAT32 and its like below are the known ones.
typedef struct pagoda_dtype {
  uint8_t code;  // 0 int, 1 uint, 2 float, 4 bfloat, 6 bool, 10 float8_e4m3fn
  uint8_t bits;
  uint16_t lanes;  // 1
} pagoda_dtype;

// A view of memory with the layout of DLPack's DLTensor: a DLTensor* may be cast to it. All arrays
// of a call are such views: Q, K, V and O, and also lengths, offsets, page tables and scales, whose
// comments give type and shape. The last stride must be 1. A null pointer to a tensor means that
// the tensor is absent.
typedef struct pagoda_tensor {
  void* data;
  pagoda_device device;
  int32_t ndim;
  pagoda_dtype dtype;
  const int64_t* shape;    // [ndim]
  const int64_t* strides;  // [ndim], in elements; null = row-major without gaps
  uint64_t byte_offset;    // from data to the first element
} pagoda_tensor;

#ifdef __cplusplus
#define PAGODA_DTYPE(code, bits) (pagoda_dtype{code, bits, 1})
#else
#define PAGODA_DTYPE(code, bits) ((pagoda_dtype){code, bits, 1})

// A pointer to a struct that begins with its size: PAGODA_ARG(pagoda_kv_cache, .k = k, .v = v).
// Like that of PAGODA_TENSOR it lives until the end of the enclosing block.
#define PAGODA_ARG(type, ...) (&(type){.struct_size = sizeof(type), __VA_ARGS__})

// A pointer to a row-major view of host memory: PAGODA_TENSOR(q, PAGODA_BFLOAT16, batch, 1, 32,
// 128). PAGODA_TENSOR_ON takes a pagoda_device first.
#define PAGODA_TENSOR_ON(where, pointer, type, ...)                                        \
  (&(pagoda_tensor){.data = (void*)(pointer),                                              \
                    .device = (where),                                                     \
                    .ndim = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                    .dtype = (type),                                                       \
                    .shape = (int64_t[]){__VA_ARGS__}})
#define PAGODA_TENSOR(pointer, type, ...) \
  PAGODA_TENSOR_ON(((pagoda_device){PAGODA_CPU, 0}), pointer, type, __VA_ARGS__)
#endif

#define PAGODA_FLOAT32 PAGODA_DTYPE(2, 32)
#define PAGODA_FLOAT16 PAGODA_DTYPE(2, 16)
#define PAGODA_BFLOAT16 PAGODA_DTYPE(4, 16)
#define PAGODA_FLOAT8_E4M3FN PAGODA_DTYPE(10, 8)
#define PAGODA_INT32 PAGODA_DTYPE(0, 32)
#define PAGODA_INT64 PAGODA_DTYPE(0, 64)
#define PAGODA_UINT32 PAGODA_DTYPE(1, 32)
#define PAGODA_UINT8 PAGODA_DTYPE(1, 8)
#define PAGODA_BOOL PAGODA_DTYPE(6, 8)

// --- attention ----------------------------------------------------------------------------------

typedef int32_t pagoda_page_layout;
enum {
  PAGODA_NHD = 0,  // [num_pages, page_size, num_kv_heads, head_dim]
  PAGODA_HND = 1,  // [num_pages, num_kv_heads, page_size, head_dim]
};

// Keys and values (kv_cache.hpp). The arrays that are given decide the kind:
//   cu_seqlens_kv                   ragged: k [total_kv, num_kv_heads, head_dim_qk]; with
//                                   seqlens_kv, the keys of a sequence that are used
//   block_table and seqlens_kv      paged, k by `layout`
//   indptr, indices, last_page_len  paged in compressed rows, k by `layout`
//   none, or seqlens_kv alone       dense: k [batch, max_seqlen_kv, num_kv_heads, head_dim_qk]
typedef struct pagoda_kv_cache {
  size_t struct_size;
  const pagoda_tensor* k;
  const pagoda_tensor* v;  // the shape of k with head_dim_vo
  pagoda_page_layout layout;
  int32_t page_size;                   // 0 = by the shape of k; otherwise it must equal that
  const pagoda_tensor* seqlens_kv;     // int32 [batch], used keys of each sequence
  const pagoda_tensor* cu_seqlens_kv;  // int32 [batch + 1], starts at 0, non-decreasing
  const pagoda_tensor* block_table;    // int32 [batch, max_pages_per_seq], page index in k and v
  const pagoda_tensor* indptr;         // int32 [batch + 1], starts at 0, non-decreasing
  const pagoda_tensor* indices;        // int32 [indptr[batch]], page index in k and v
  const pagoda_tensor* last_page_len;  // int32 [batch], 1..page_size
} pagoda_kv_cache;

// Dequantisation of a cache: value = scale * stored element.
typedef struct pagoda_kv_scales {
  size_t struct_size;
  float k, v;                       // 0 = 1
  const pagoda_tensor* k_per_head;  // fp32 [num_kv_heads] or [batch, num_kv_heads], any strides;
                                    // replaces k
  const pagoda_tensor* v_per_head;  // the same; replaces v
} pagoda_kv_scales;

typedef int32_t pagoda_mask_kind;
enum {
  PAGODA_MASK_NONE = 0,           // every key
  PAGODA_MASK_CAUSAL = 1,         // k <= q
  PAGODA_MASK_WINDOW = 2,         // q - left <= k <= q + right
  PAGODA_MASK_CHUNKED = 3,        // floor(k / chunk) == floor(q / chunk)
  PAGODA_MASK_PADDING = 4,        // k < valid_lengths[sequence]
  PAGODA_MASK_ADDITIVE = 5,       // adds `tensor` to the score
  PAGODA_MASK_RELATIVE_BIAS = 6,  // adds tensor[head, k - q + extent] where |k - q| <= extent
  PAGODA_MASK_BITS = 7,           // bit k of a row of words
  PAGODA_MASK_FUNCTOR = 8,        // the caller's predicate (back ends in host memory)
  PAGODA_MASK_AND = 9,            // of the two expressions before it
  PAGODA_MASK_OR = 10,            // of the two expressions before it, which have no bias
};

// Decides one (query, key) pair. Must be pure and safe to call from several threads.
typedef bool (*pagoda_mask_functor)(void* context, int32_t sequence, int32_t q_head,
                                    int64_t q_position, int64_t k_position);

// One mask or operator. Fields of other kinds are ignored.
typedef struct pagoda_mask_node {
  size_t struct_size;
  pagoda_mask_kind kind;
  int32_t reserved;
  int64_t left, right;                 // WINDOW: inclusive; negative = open
  int64_t chunk;                       // CHUNKED: tokens
  const pagoda_tensor* valid_lengths;  // PADDING: int32 [batch]
  const pagoda_tensor* tensor;         // ADDITIVE: fp32 [batch, (num_q_heads,) seqlen_q, seqlen_kv]
                                       // RELATIVE_BIAS: fp32 [num_q_heads, 2 * extent + 1]
  const pagoda_tensor* words;          // BITS: uint32 [num_words] (mask.hpp, Mask::bits)
  const pagoda_tensor* row_offsets;    // BITS: int64 [batch + 1], in words
  pagoda_mask_functor functor;         // FUNCTOR
  void* context;                       // FUNCTOR
} pagoda_mask_node;

// An expression of at most 16 nodes in postfix order: {CAUSAL, WINDOW, AND}. The nodes have one
// struct_size, which is also the distance from one to the next.
typedef struct pagoda_mask {
  size_t struct_size;
  const pagoda_mask_node* nodes;
  int64_t num_nodes;
} pagoda_mask;

// Returns the new value of one score. Must be pure and safe to call from several threads.
typedef float (*pagoda_score_functor)(void* context, float score, int32_t sequence, int32_t q_head,
                                      int64_t q_position, int64_t k_position);

// Changes a score between Q K^T and the softmax (score_mod.hpp).
typedef struct pagoda_score_mod {
  size_t struct_size;
  float softcap;  // 0 = off
  int32_t reserved;
  const pagoda_tensor* alibi_slopes;  // fp32 [num_q_heads]
  pagoda_score_functor functor;       // back ends in host memory
  void* context;
} pagoda_score_mod;

// The base of the logarithms in an LSE.
typedef int32_t pagoda_log_base;
enum {
  PAGODA_LOG_E = 0,
  PAGODA_LOG_2 = 1,
};

// The arguments of one call (attention.hpp). Required: q, kv, out.
typedef struct pagoda_attention {
  size_t struct_size;
  const pagoda_tensor*
      q;  // ragged [total_q, num_q_heads, head_dim_qk], where cu_seqlens_q is given
          // padded [batch, seqlen_q, num_q_heads, head_dim_qk]
  const pagoda_tensor* cu_seqlens_q;  // int32 [batch + 1], starts at 0, non-decreasing
  const pagoda_tensor* seqlens_q;     // int32 [batch], used rows of each sequence
  const pagoda_kv_cache* kv;
  const pagoda_kv_scales* kv_scales;
  const pagoda_tensor* cache_lengths;   // int32 [batch], position of each sequence's first query
  int32_t max_seqlen_q, max_seqlen_kv;  // 0 = not given
  float softmax_scale;                  // 0 = 1 / sqrt(head_dim_qk)
  float q_scale;                        // fp8 queries: value = q_scale * stored element; 0 = 1
  const pagoda_mask* mask;              // null = every key is visible
  const pagoda_score_mod* score_mod;
  const pagoda_tensor* sinks;    // fp32 [num_q_heads]
  const pagoda_tensor* out;      // the shape of q with head_dim_vo; of any dtype
  const pagoda_tensor* lse;      // optional, fp32, the shape of q without its last dimension; any
                                 // strides
  const pagoda_tensor* row_max;  // optional, fp32, as lse
  pagoda_log_base lse_base;
  float out_scale;                        // fp8 out: stored element = value / out_scale; 0 = 1
  const pagoda_tensor* leftpad_kv;        // int32 [batch], rows of K and V before the first key
  const pagoda_tensor* q_scale_per_head;  // fp8 queries, replaces q_scale: fp32 [num_q_heads] or
                                          // [num_kv_heads], or [batch, either]; any strides
  int32_t zero_padding_rows;              // 1: writes rows past cu_seqlens_q[batch] as padding rows
  int32_t reserved;
} pagoda_attention;

// --- options ------------------------------------------------------------------------------------

// The caller's threads, for back ends in host memory. `parallel` calls body(body_context, i) once
// for every i in [0, n), n <= workers, and returns when all have returned; on any threads, in any
// order. A plan copies the struct: `context` must outlive the plan.
typedef struct pagoda_executor {
  size_t struct_size;
  void* context;
  void (*parallel)(void* context, int32_t n, void (*body)(void* body_context, int32_t i),
                   void* body_context);
  int32_t workers;  // at least 1
  int32_t reserved;
} pagoda_executor;

// How a GPU kernel assigns work tiles to CTAs (attention.hpp, Schedule).
typedef int32_t pagoda_schedule;
enum {
  PAGODA_SCHEDULE_AUTOMATIC = 0,
  PAGODA_SCHEDULE_TRANSIENT = 1,
  PAGODA_SCHEDULE_PERSISTENT = 2,
  PAGODA_SCHEDULE_QUEUE = 3,
  PAGODA_SCHEDULE_STREAM_K = 4,
};

// How a call runs. A null pagoda_options* means the defaults.
typedef struct pagoda_options {
  size_t struct_size;
  const char* backend;  // a name that pagoda_backends() lists; null or "" = the memory of the
                        // call's first tensor selects it
  const char* kernel;   // the name of a kernel, or how names begin and a *; null = any
  const pagoda_executor* executor;  // null = one worker per CPU
  void* stream;                     // GPU: a cudaStream_t or hipStream_t; null = the default stream
  int32_t is_batch_invariant;       // 1: a result does not depend on the rest of the batch
  int32_t checks_indices;  // 1: checks the contents of page tables, or where device pointers point
  pagoda_schedule schedule;
  int32_t num_kv_splits;  // of the keys of a work tile: 0 = the kernel chooses, 1 = none
} pagoda_options;

// --- calls --------------------------------------------------------------------------------------

// Plans and runs in one call. The library keeps one workspace per thread, on a GPU one per stream;
// a capture needs one that is there already.
PAGODA_API pagoda_status_code pagoda_run(const pagoda_attention* attention,
                                         const pagoda_options* options, pagoda_status* status);

// A prepared call, immutable: valid for every pagoda_attention of the same shapes, lengths, strides
// and types. Pointers may differ as in attention.hpp; so may lengths in GPU memory, up to maxima.
typedef struct pagoda_plan pagoda_plan;

// Validates the call and decides how it will run. Sets *plan to null where it fails.
PAGODA_API pagoda_status_code pagoda_plan_create(const pagoda_attention* attention,
                                                 const pagoda_options* options, pagoda_plan** plan,
                                                 pagoda_status* status);
PAGODA_API void pagoda_plan_destroy(pagoda_plan* plan);

// Runs a planned call. `workspace` has at least pagoda_plan_info::workspace_bytes bytes of the back
// end's memory, aligned to 64. On a GPU the call launches into `stream` and returns; it can be
// captured. Runs that may overlap need separate workspaces.
PAGODA_API pagoda_status_code pagoda_plan_run(const pagoda_plan* plan,
                                              const pagoda_attention* attention, void* workspace,
                                              int64_t workspace_bytes, void* stream,
                                              pagoda_status* status);

// The caller sets struct_size, pagoda_plan_get_info the other fields (attention.hpp, Plan).
typedef struct pagoda_plan_info {
  size_t struct_size;
  const char* kernel;  // lives as long as the plan
  int64_t workspace_bytes;
  int64_t zeroed_workspace_bytes;  // at its start; must be zero before the first run
  int64_t worker_scratch_bytes;
  int64_t num_work_items;
  int64_t num_split_rows;
  double flops;
  double kv_bytes;
} pagoda_plan_info;
PAGODA_API pagoda_status_code pagoda_plan_get_info(const pagoda_plan* plan, pagoda_plan_info* info,
                                                   pagoda_status* status);

// Writes new keys and values into a paged cache, converting to the cache's type.
typedef struct pagoda_append_kv_args {
  size_t struct_size;
  const pagoda_tensor* k_new;         // [num_tokens, num_kv_heads, head_dim_qk]
  const pagoda_tensor* v_new;         // [num_tokens, num_kv_heads, head_dim_vo]
  const pagoda_tensor* slot_mapping;  // int64 [num_tokens]: page * page_size + row; < 0 = skip
  const pagoda_tensor* k_cache;       // by `layout`
  const pagoda_tensor* v_cache;       // by `layout`
  pagoda_page_layout layout;
  int32_t reserved;
  const pagoda_kv_scales* kv_scales;  // fp8: stored element = value / scale
} pagoda_append_kv_args;
PAGODA_API pagoda_status_code pagoda_append_kv(const pagoda_append_kv_args* append,
                                               const pagoda_options* options,
                                               pagoda_status* status);

// Merges attention over disjoint sets of keys, in the order of the parts.
typedef struct pagoda_merge_states_args {
  size_t struct_size;
  const pagoda_tensor* partial_out;  // [num_parts, total_q, num_q_heads, head_dim_vo]
  const pagoda_tensor* partial_lse;  // fp32 [num_parts, total_q, num_q_heads]
  const pagoda_tensor* out;          // [total_q, num_q_heads, head_dim_vo]
  const pagoda_tensor* lse;          // optional, fp32 [total_q, num_q_heads]
  pagoda_log_base lse_base;          // of partial_lse and lse
  int32_t reserved;
  const pagoda_tensor* row_mask;  // optional, uint8 or bool [total_q]: 0 = the row is skipped
} pagoda_merge_states_args;
PAGODA_API pagoda_status_code pagoda_merge_states(const pagoda_merge_states_args* merge,
                                                  const pagoda_options* options,
                                                  pagoda_status* status);

// --- back ends and kernels ----------------------------------------------------------------------

// Every registered back end, including those that can't run on this machine.
typedef struct pagoda_backend_list pagoda_backend_list;
typedef struct pagoda_backend_info {
  size_t struct_size;       // set by the caller
  const char* name;         // the strings live as long as the list
  const char* description;  // the device it runs on, or the reason why it can't run
  int32_t is_available;     // 0 or 1
  int32_t memory;           // PAGODA_CPU, PAGODA_CUDA or PAGODA_ROCM: where every tensor must be
} pagoda_backend_info;

PAGODA_API pagoda_status_code pagoda_backends(pagoda_backend_list** list, pagoda_status* status);
PAGODA_API int64_t pagoda_backend_list_size(const pagoda_backend_list* list);
// PAGODA_INVALID_ARGUMENT: index is not in [0, size).
PAGODA_API pagoda_status_code pagoda_backend_list_get(const pagoda_backend_list* list,
                                                      int64_t index, pagoda_backend_info* info,
                                                      pagoda_status* status);
PAGODA_API void pagoda_backend_list_destroy(pagoda_backend_list* list);

// Every kernel of the call's back end in order of preference, with the decision on each.
typedef struct pagoda_kernel_list pagoda_kernel_list;
typedef struct pagoda_kernel_info {
  size_t struct_size;  // set by the caller
  const char* name;    // the strings live as long as the list
  const char* backend;
  const char* reason;  // why not selected; selected: empty, or why no faster kernel is
  int32_t is_selected;
  int32_t can_run;
} pagoda_kernel_info;

PAGODA_API pagoda_status_code pagoda_explain(const pagoda_attention* attention,
                                             const pagoda_options* options,
                                             pagoda_kernel_list** list, pagoda_status* status);
PAGODA_API int64_t pagoda_kernel_list_size(const pagoda_kernel_list* list);
// PAGODA_INVALID_ARGUMENT: index is not in [0, size).
PAGODA_API pagoda_status_code pagoda_kernel_list_get(const pagoda_kernel_list* list, int64_t index,
                                                     pagoda_kernel_info* info,
                                                     pagoda_status* status);
PAGODA_API void pagoda_kernel_list_destroy(pagoda_kernel_list* list);

// --- process ------------------------------------------------------------------------------------

// Where the back ends in host memory get their large buffers: the kept workspaces of pagoda_run()
// and the scratch of worker threads. Handles, their strings and the work list of a plan come from
// operator new, and oneTBB allocates its own memory. `allocate` returns null where it fails.
typedef struct pagoda_host_allocator {
  size_t struct_size;
  void* context;
  void* (*allocate)(void* context, size_t bytes, size_t alignment);
  void (*deallocate)(void* context, void* memory, size_t bytes, size_t alignment);
} pagoda_host_allocator;

// Sets the allocator of buffers that are allocated from now on, for the whole process; null = the
// default. A buffer goes back to the allocator that it came from, at the latest when its thread
// exits: `context` must live until then.
PAGODA_API pagoda_status_code pagoda_set_host_allocator(const pagoda_host_allocator* allocator,
                                                        pagoda_status* status);

// Frees the workspaces that pagoda_run() keeps, of the calling thread and of all GPUs, after their
// work has ended. Graphs that captured such a run must not be launched any more.
PAGODA_API pagoda_status_code pagoda_release_workspaces(pagoda_status* status);

#ifdef __cplusplus
}  // extern "C"
#endif
// NOLINTEND(modernize-*,readability-identifier-naming,google-runtime-int)

#endif  // PAGODA_PAGODA_H_
