// Staged: allocation and copies.
#include "testing/mirror/block.hpp"

#include "testing/mirror/host_space.hpp"

namespace pagoda::mirror {

void Staged::reserve(int64_t bytes) {
  if (there_.bytes() >= bytes) return;
  there_ = Block(*space_, bytes);
  if (!space_->is_host()) here_ = Block(host_space(), bytes);
}

void Staged::send(int64_t bytes) const {
  if (!space_->is_host()) space_->copy_in(there_.data(), here_.data(), bytes);
}

}  // namespace pagoda::mirror
