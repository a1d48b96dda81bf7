// register_emulator() and EmulatorScope.
#include "pagoda/emulator.hpp"

#include <algorithm>

#include "backends/emulator/backend.hpp"
#include "backends/emulator/machine_settings.hpp"
#include "engine/check.hpp"
#include "engine/registry.hpp"

namespace pagoda {

Status register_emulator(const EmulatorSettings& settings) {
  if (settings.num_sms < 0 || settings.num_sms > kMaxEmulatedSms) {
    return engine::complain("num_sms", int64_t{settings.num_sms},
                            "must be from 0 to " + std::to_string(kMaxEmulatedSms));
  }
  for (const core::Backend* backend : emulator::backends()) {
    if (Status s = engine::register_backend(*backend); !s) return s;
  }
  emulator::set_process_num_sms(settings.num_sms);
  return {};
}

EmulatorScope::EmulatorScope(const EmulatorSettings& settings) {
  emulator::ThreadSetting& setting = emulator::thread_setting();
  before_.num_sms = setting.num_sms;
  had_scope_ = setting.is_set;
  setting = {.num_sms = std::clamp(settings.num_sms, 0, kMaxEmulatedSms), .is_set = true};
}

EmulatorScope::~EmulatorScope() {
  emulator::thread_setting() = {.num_sms = before_.num_sms, .is_set = had_scope_};
}

}  // namespace pagoda
