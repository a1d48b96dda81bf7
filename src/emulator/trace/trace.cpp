// From events to Chrome's trace event format.
#include "emulator/trace/trace.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string_view>
#include <utility>

namespace pagoda::emulator {
namespace {

using Kind = TraceEvent::Kind;

constexpr uint32_t kFirstEngine = 1000;  // track numbers below are warps

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    }
  }
  return out + "\"";
}

struct Track {
  uint32_t cta;
  uint32_t number;
  // clang-tidy 14 takes the comparison with 0 in it for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  auto operator<=>(const Track&) const = default;
};

// A line of the output; sorted by track, then by time, an outer span before those within it.
struct Line {
  Track track;
  uint64_t step;
  uint64_t end;
  std::string text;
};

// Builds the lines in passes over the events, one for each thing that they show.
class Conversion {
 public:
  explicit Conversion(const std::vector<TraceEvent>& events) : events_(events) {
    for (const TraceEvent& event : events_) last_step_ = std::max(last_step_, event.step);
    place_operations();
    convert_spans();
    convert_flows();
  }

  [[nodiscard]] std::string json() {
    std::stable_sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) {
      if (a.track != b.track) return a.track < b.track;
      return a.step != b.step ? a.step < b.step : a.end > b.end;
    });
    std::string out = R"({"otherData": {"clock": "steps of the emulator: order, not time"},)";
    out += "\n\"traceEvents\": [\n";
    std::string separator;
    for (const std::string& text : names()) {
      out += separator + text;
      separator = ",\n";
    }
    for (const Line& line : lines_) {
      out += separator + line.text;
      separator = ",\n";
    }
    return out + "\n]}\n";
  }

 private:
  static std::string on(const Track& track) {
    return "\"pid\": " + std::to_string(track.cta) + ", \"tid\": " + std::to_string(track.number);
  }

  void add_span(const Track& track, uint64_t begin, uint64_t end, std::string_view name,
                std::string_view category, const std::string& arguments = {}) {
    std::string text = R"({"ph": "X", )" + on(track) + ", \"ts\": " + std::to_string(begin) +
                       ", \"dur\": " + std::to_string(end - begin) + ", \"name\": " + quoted(name) +
                       ", \"cat\": " + quoted(category);
    if (!arguments.empty()) text += ", \"args\": {" + arguments + "}";
    lines_.push_back({track, begin, end, text + "}"});
  }

  // Operations of one primitive overlap: each takes the first track of its primitive that is free.
  void place_operations() {
    std::vector<const TraceEvent*> operations;
    for (const TraceEvent& event : events_) {
      if (event.kind == Kind::kOperation) operations.push_back(&event);
    }
    std::stable_sort(operations.begin(), operations.end(),
                     [](const auto* a, const auto* b) { return a->operation < b->operation; });
    struct Lane {
      uint32_t number;
      uint64_t busy_until;
    };
    std::map<std::pair<uint32_t, std::string>, std::vector<Lane>> lanes;  // CTA, primitive
    std::map<uint32_t, uint32_t> lanes_of_cta;
    for (const TraceEvent* operation : operations) {
      std::vector<Lane>& of_primitive = lanes[{operation->cta, operation->name}];
      auto lane = std::find_if(
          of_primitive.begin(), of_primitive.end(),
          [&](const Lane& candidate) { return candidate.busy_until < operation->operation; });
      if (lane == of_primitive.end()) {
        const uint32_t number = kFirstEngine + lanes_of_cta[operation->cta]++;
        lane = of_primitive.insert(lane, {number, 0});
        track_names_[{operation->cta, number}] =
            operation->name +
            (of_primitive.size() > 1 ? " " + std::to_string(of_primitive.size()) : "");
      }
      lane->busy_until = operation->step;
      const Track track{operation->cta, lane->number};
      track_of_operation_[operation->operation] = track;
      std::string arguments =
          "\"issued by\": " + quoted("warp " + std::to_string(operation->warp) +
                                     (operation->role.empty() ? "" : ", " + operation->role));
      if (!operation->source.empty()) arguments += ", \"at\": " + quoted(operation->source);
      if (!operation->details.empty()) arguments += ", \"details\": " + quoted(operation->details);
      add_span(track, operation->operation, operation->step, operation->name, operation->category,
               arguments);
    }
  }

  // An end closes the innermost open span of its category and what was opened inside and left
  // open; an end without a begin closes nothing. What is open at the last step ends there.
  void convert_spans() {
    std::map<Track, std::vector<const TraceEvent*>> open;
    const auto close = [&](const Track& track, const TraceEvent& begin, uint64_t step,
                           bool is_ended) {
      add_span(track, begin.step, step, begin.name, begin.category,
               is_ended ? "" : "\"unfinished\": true");
    };
    for (const TraceEvent& event : events_) {
      const Track track{event.cta, event.warp};
      std::vector<const TraceEvent*>& stack = open[track];
      if (event.kind != Kind::kOperation && event.operation == 0) note_role(track, event.role);
      if (event.kind == Kind::kBegin) stack.push_back(&event);
      if (event.kind != Kind::kEnd) continue;
      const auto opened = std::find_if(
          stack.rbegin(), stack.rend(),
          [&](const TraceEvent* candidate) { return candidate->category == event.category; });
      if (opened == stack.rend()) continue;
      const TraceEvent* const begin = *opened;
      while (stack.back() != begin) {
        close(track, *stack.back(), event.step, false);
        stack.pop_back();
      }
      close(track, *begin, event.step, true);
      stack.pop_back();
    }
    for (const auto& [track, stack] : open) {
      for (const TraceEvent* begin : stack) close(track, *begin, last_step_, false);
    }
  }

  // A flow has one end in this format: each wait gets a flow of its own.
  void convert_flows() {
    std::map<uint64_t, const TraceEvent*> starts;
    uint64_t next_id = 1;
    for (const TraceEvent& event : events_) {
      if (event.kind == Kind::kFlowStart) {
        starts[event.flow] = &event;
        if (event.operation == 0) {  // a flow needs a span to start from
          add_span({event.cta, event.warp}, event.step, event.step + 1, "arrive " + event.name,
                   event.category);
        }
      }
      if (event.kind != Kind::kFlowEnd) continue;
      const auto found = starts.find(event.flow);
      if (found == starts.end()) continue;
      const TraceEvent& start = *found->second;
      const auto engine = track_of_operation_.find(start.operation);
      if (start.operation != 0 && engine == track_of_operation_.end()) continue;
      const Track from = start.operation != 0 ? engine->second : Track{start.cta, start.warp};
      add_flow_point("s", from, start.step, next_id, start.name, "");
      add_flow_point("f", {event.cta, event.warp}, event.step, next_id, start.name,
                     R"(, "bp": "e")");
      ++next_id;
    }
  }

  void add_flow_point(std::string_view kind, const Track& track, uint64_t step, uint64_t id,
                      const std::string& name, std::string_view more) {
    std::string text = "{\"ph\": " + quoted(kind) + ", " + on(track) +
                       ", \"ts\": " + std::to_string(step) + ", \"id\": " + std::to_string(id) +
                       ", \"name\": " + quoted(name) + R"(, "cat": "flow")";
    text += more;
    lines_.push_back({track, step, step, text + "}"});
  }

  // "warp 4", then the roles that it had.
  void note_role(const Track& track, const std::string& role) {
    std::string& name = track_names_[track];
    if (name.empty()) name = "warp " + std::to_string(track.number);
    std::vector<std::string>& roles = roles_[track];
    if (role.empty() || std::find(roles.begin(), roles.end(), role) != roles.end()) return;
    name += (roles.empty() ? ": " : ", ") + role;
    roles.push_back(role);
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> texts;
    const uint32_t nobody = ~0U;
    uint32_t cta = nobody;
    for (const auto& [track, name] : track_names_) {
      if (track.cta != cta) {
        cta = track.cta;
        texts.push_back(R"({"ph": "M", "pid": )" + std::to_string(cta) +
                        R"(, "name": "process_name", "args": {"name": "CTA )" +
                        std::to_string(cta) + "\"}}");
      }
      texts.push_back(R"({"ph": "M", )" + on(track) +
                      R"(, "name": "thread_name", "args": {"name": )" + quoted(name) + "}}");
      texts.push_back(R"({"ph": "M", )" + on(track) +
                      R"(, "name": "thread_sort_index", "args": {"sort_index": )" +
                      std::to_string(track.number) + "}}");
    }
    return texts;
  }

  const std::vector<TraceEvent>& events_;
  uint64_t last_step_ = 0;
  std::vector<Line> lines_;
  std::map<Track, std::string> track_names_;
  std::map<Track, std::vector<std::string>> roles_;
  std::map<uint64_t, Track> track_of_operation_;
};

}  // namespace

std::string Tracer::to_chrome_json() const { return Conversion(events_).json(); }

}  // namespace pagoda::emulator
