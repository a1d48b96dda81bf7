// Host and device calls, and the maxima that they pass.
#include "testing/conformance/call_site.hpp"

#include <algorithm>

#include "testing/mirror/host_space.hpp"

namespace pagoda::conformance {
namespace {

constexpr std::byte kNaN{0xff};

// Its shape is checked against the maximal lengths.
bool has_additive_mask(const Attention& a) {
  const std::vector<MaskNode>& nodes = a.mask.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const MaskNode& node) { return node.kind == MaskKind::kAdditive; });
}

}  // namespace

bool passes_maxima(const Case& c) {
  uint32_t hash = 0x811c9dc5U;
  for (const char letter : c.name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x01000193U;
  }
  return (hash >> 8) % 4 != 0;
}

CallSite::CallSite(const Case& c, ProblemData& data, const std::string& backend)
    : data_(data), space_(mirror::space_of(backend)) {
  if (space_.is_host()) return;
  mirror_.emplace(space_, data.attention(), data.surroundings());
  if (!passes_maxima(c) && !has_additive_mask(data.attention())) return;
  mirror_->attention().max_seqlen_q = data.max_seqlen_q();
  mirror_->attention().max_seqlen_kv = data.max_seqlen_kv();
}

const Attention& CallSite::attention() {
  return mirror_ ? mirror_->attention() : data_.attention();
}

void CallSite::poison_outputs() {
  data_.poison_outputs();
  if (mirror_) mirror_->send_outputs();
}

void CallSite::fetch() {
  if (mirror_) mirror_->fetch_outputs();
}

std::string CallSite::damage() {
  if (!workspace_damage_.empty()) return workspace_damage_;
  std::string damage = data_.damage();
  if (damage.empty() && mirror_) damage = mirror_->changed_input();
  return damage;
}

Status CallSite::run_planned(const Plan& plan) {
  const int64_t zeroed = plan.zeroed_workspace_bytes();
  const mirror::Block workspace(space_, plan.workspace_bytes());
  space_.fill(workspace.data(), kNaN, workspace.bytes());
  space_.fill(workspace.data(), std::byte{0}, zeroed);
  if (Status s = run(plan, attention(), workspace.span()); !s) return s;
  fetch();
  std::vector<std::byte> start(static_cast<size_t>(zeroed));
  space_.copy_out(start.data(), workspace.data(), zeroed);
  if (std::any_of(start.begin(), start.end(), [](std::byte b) { return b != std::byte{0}; })) {
    workspace_damage_ = "the run left no zeros at the start of the workspace";
  }
  return {};
}

}  // namespace pagoda::conformance
