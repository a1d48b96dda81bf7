// Reference counts and the least-recently-used list.
#include "cli/replay/block_manager.hpp"

#include <cassert>
#include <fmt/format.h>
#include <unordered_set>

namespace pagoda::replay {

BlockManager::BlockManager(int32_t num_pages) : pages_(static_cast<size_t>(num_pages)) {
  free_.reserve(pages_.size());
  for (int32_t page = num_pages - 1; page >= 0; --page) free_.push_back(page);
}

int64_t BlockManager::find_prefix(std::span<const uint64_t> keys) const {
  int64_t found = 0;
  for (const uint64_t key : keys) {
    if (!page_of_key_.contains(key)) break;
    ++found;
  }
  return found;
}

int64_t BlockManager::count_cached(std::span<const uint64_t> keys) const {
  int64_t cached = 0;
  for (const uint64_t key : keys) {
    const auto it = page_of_key_.find(key);
    if (it != page_of_key_.end() && at(it->second).references == 0) ++cached;
  }
  return cached;
}

std::vector<int32_t> BlockManager::share(std::span<const uint64_t> keys) {
  std::vector<int32_t> pages;
  pages.reserve(keys.size());
  for (const uint64_t key : keys) {
    const int32_t page = page_of_key_.at(key);
    if (at(page).references++ == 0) unlink(page);
    pages.push_back(page);
  }
  return pages;
}

std::optional<std::vector<int32_t>> BlockManager::allocate(int64_t count) {
  if (count > available_pages()) return std::nullopt;
  std::vector<int32_t> pages;
  pages.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    if (free_.empty()) evict_oldest();
    const int32_t page = free_.back();
    free_.pop_back();
    at(page).references = 1;
    pages.push_back(page);
  }
  return pages;
}

void BlockManager::publish(int32_t page, uint64_t key) {
  Page& entry = at(page);
  assert(entry.references > 0 && !entry.is_published);
  if (!page_of_key_.try_emplace(key, page).second) return;
  entry.is_published = true;
  entry.key = key;
}

void BlockManager::release(std::span<const int32_t> pages) {
  for (size_t i = pages.size(); i-- > 0;) {
    const int32_t page = pages[i];
    Page& entry = at(page);
    assert(entry.references > 0);
    if (--entry.references > 0) continue;
    if (entry.is_published) {
      push_newest(page);
    } else {
      free_.push_back(page);
    }
  }
}

void BlockManager::push_newest(int32_t page) {
  Page& entry = at(page);
  entry.older = newest_;
  entry.newer = kNone;
  if (newest_ != kNone) at(newest_).newer = page;
  newest_ = page;
  if (oldest_ == kNone) oldest_ = page;
  ++num_cached_;
}

void BlockManager::unlink(int32_t page) {
  Page& entry = at(page);
  (entry.older == kNone ? oldest_ : at(entry.older).newer) = entry.newer;
  (entry.newer == kNone ? newest_ : at(entry.newer).older) = entry.older;
  entry.older = entry.newer = kNone;
  --num_cached_;
}

void BlockManager::evict_oldest() {
  const int32_t page = oldest_;
  assert(page != kNone);
  unlink(page);
  page_of_key_.erase(at(page).key);
  at(page).is_published = false;
  free_.push_back(page);
  ++evictions_;
}

std::string BlockManager::find_defect() const {
  std::unordered_set<int32_t> seen;
  for (const int32_t page : free_) {
    if (!seen.insert(page).second) return fmt::format("page {} is free twice", page);
    if (at(page).references != 0) return fmt::format("free page {} has references", page);
    if (at(page).is_published) return fmt::format("free page {} is published", page);
  }
  int64_t cached = 0;
  int32_t previous = kNone;
  for (int32_t page = oldest_; page != kNone; page = at(page).newer) {
    if (!seen.insert(page).second) return fmt::format("page {} is listed twice", page);
    if (at(page).references != 0) return fmt::format("cached page {} has references", page);
    if (!at(page).is_published) return fmt::format("cached page {} has no key", page);
    if (at(page).older != previous) return fmt::format("list broken at page {}", page);
    previous = page;
    ++cached;
  }
  if (newest_ != previous) return "the newest page is not the last of the list";
  if (cached != num_cached_) return "cached pages are miscounted";
  size_t published = 0;
  for (int32_t page = 0; page < static_cast<int32_t>(pages_.size()); ++page) {
    const Page& entry = at(page);
    if (entry.references < 0) return fmt::format("page {} has negative references", page);
    if (entry.references == 0 && !seen.contains(page)) return fmt::format("page {} is lost", page);
    if (!entry.is_published) continue;
    ++published;
    const auto it = page_of_key_.find(entry.key);
    if (it == page_of_key_.end() || it->second != page) {
      return fmt::format("the key of page {} leads elsewhere", page);
    }
  }
  return published == page_of_key_.size() ? "" : "a key leads to a page that is not published";
}

}  // namespace pagoda::replay
