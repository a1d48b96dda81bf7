// Status as a C struct. Messages name fields as C++ spells them; pagoda.h spells some otherwise.
#include "c_api/status.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "c_api/structs.hpp"

namespace pagoda::c_api {
namespace {

// Each C++ spelling before those that it contains.
constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {
    {"mask.nodes().size()", "mask.num_nodes"},
    {"workspace.size()", "workspace_bytes"},
    {"workspace.data()", "workspace"},
    {".size()", ".shape[0]"},
    {".rank", ".ndim"},
    {"kv.table.pages.rows", "kv.block_table.shape[0]"},
    {"kv.table.pages.columns", "kv.block_table.shape[1]"},
    {"pages.columns", "block_table.shape[1]"},
    {"kv.table.pages.row_stride", "kv.block_table.strides[0]"},
    {"kv.table.pages", "kv.block_table"},
    {"kv.table.", "kv."},
    {"kv.table", "kv.block_table"},
};

std::string respell(std::string text) {
  if (text.empty()) return text;
  for (const auto& [from, to] : kSpellings) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
      text.replace(at, from.size(), to);
      at += to.size();
    }
  }
  return text;
}

// `text` and its terminating zero, cut to `size` bytes.
void copy_text(std::string_view text, char* to, size_t size) {
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  std::memset(to + length, 0, size - length);
}

}  // namespace

bool is_writable(const pagoda_status* status) {
  if (status == nullptr) return true;
  size_t size = 0;
  std::memcpy(&size, status, sizeof size);
  return size > kMessageOffset && size % 8 == 0 && size <= kMostStructBytes;
}

pagoda_status_code write_status(const Status& from, pagoda_status* status) noexcept {
  if (status == nullptr) return static_cast<pagoda_status_code>(from.code());
  status->code = static_cast<pagoda_status_code>(from.code());
  const size_t message_bytes =
      std::min(status->struct_size - kMessageOffset, sizeof status->message);
  try {
    copy_text(respell(from.field()), status->field, sizeof status->field);
    copy_text(respell(from.message()), status->message, message_bytes);
  } catch (const std::bad_alloc&) {  // the C++ words will do
    copy_text(from.field(), status->field, sizeof status->field);
    copy_text(from.message(), status->message, message_bytes);
  }
  return status->code;
}

}  // namespace pagoda::c_api
