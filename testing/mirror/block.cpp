// Staged: allocation and copies.
#include "testing/mirror/block.hpp"

namespace pagoda::mirror {

void Staged::reserve(int64_t bytes) {
  if (there_.bytes() >= bytes) return;
  there_ = Block(*space_, bytes);
  if (space_->is_host()) return;
  here_ = {space_->allocate_staging(bytes > 0 ? bytes : 1), StagingReleaser{space_}};
}

void Staged::send(int64_t bytes) const {
  if (!space_->is_host()) space_->copy_in(there_.data(), here_.get(), bytes);
}

}  // namespace pagoda::mirror
