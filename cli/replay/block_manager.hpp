// The pages of the cache: reference counts, reuse by content, eviction of unreferenced pages.
// Handles page numbers and 64-bit content keys only, not the memory of the pages.
//
// A page is in exactly one of three states:
//   free    no references, no reusable content
//   held    at least one reference; its content has a key once it was published
//   cached  no references, but published: found by find_prefix(), evicted when space is needed
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace pagoda::replay {

class BlockManager {
 public:
  explicit BlockManager(int32_t num_pages);

  // How many leading keys are in the cache, held or not.
  [[nodiscard]] int64_t find_prefix(std::span<const uint64_t> keys) const;

  // How many of those leading pages have no references: sharing them reduces available_pages().
  [[nodiscard]] int64_t count_cached(std::span<const uint64_t> keys) const;

  // One more reference to each page of these keys. Precondition: find_prefix() covers them all.
  [[nodiscard]] std::vector<int32_t> share(std::span<const uint64_t> keys);

  // `count` pages with one reference each; evicts the least recently used cached pages if no free
  // page is left. Changes nothing if there are not enough pages.
  [[nodiscard]] std::optional<std::vector<int32_t>> allocate(int64_t count);

  // Publishes the content key of a held page. If another page has that key already, it keeps it.
  void publish(int32_t page, uint64_t key);

  // Drops one reference to each page, the last page first, so that the tail of a prefix is evicted
  // first.
  void release(std::span<const int32_t> pages);

  [[nodiscard]] int64_t num_pages() const { return static_cast<int64_t>(pages_.size()); }
  [[nodiscard]] int64_t held_pages() const { return num_pages() - available_pages(); }
  [[nodiscard]] int64_t cached_pages() const { return num_cached_; }
  [[nodiscard]] int64_t available_pages() const {
    return static_cast<int64_t>(free_.size()) + num_cached_;
  }
  [[nodiscard]] int64_t evictions() const { return evictions_; }
  [[nodiscard]] int32_t references(int32_t page) const { return at(page).references; }

  // An inconsistency of the state; empty = none. For tests.
  [[nodiscard]] std::string find_defect() const;

 private:
  static constexpr int32_t kNone = -1;
  struct Page {
    int32_t references = 0;
    bool is_published = false;
    uint64_t key = 0;
    int32_t older = kNone, newer = kNone;  // neighbours among the cached pages
  };

  [[nodiscard]] Page& at(int32_t page) { return pages_[static_cast<size_t>(page)]; }
  [[nodiscard]] const Page& at(int32_t page) const { return pages_[static_cast<size_t>(page)]; }
  void push_newest(int32_t page);
  void unlink(int32_t page);
  void evict_oldest();

  std::vector<Page> pages_;
  std::vector<int32_t> free_;
  std::unordered_map<uint64_t, int32_t> page_of_key_;
  int32_t oldest_ = kNone, newest_ = kNone;
  int64_t num_cached_ = 0;
  int64_t evictions_ = 0;
};

}  // namespace pagoda::replay
