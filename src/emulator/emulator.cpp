// The public face of the emulator: registration and settings.
#include "pagoda/emulator.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "engine/registry.hpp"
#include "kernels/emulated/machine_settings.hpp"
#include "kernels/emulated/sm100_backend.hpp"
#include "kernels/emulated/sm90_backend.hpp"

namespace pagoda {

Status register_emulator(const EmulatorSettings& settings) {
  if (settings.num_sms < 0 || settings.num_sms > kMaxEmulatedSms) {
    return engine::complain("num_sms", int64_t{settings.num_sms},
                            "must be from 0 to " + std::to_string(kMaxEmulatedSms));
  }
  for (const core::Backend* backend : {&emulated::sm90_backend(), &emulated::sm100_backend()}) {
    if (Status s = engine::register_backend(*backend); !s) return s;
  }
  emulated::set_process_num_sms(settings.num_sms);
  return {};
}

EmulatorScope::EmulatorScope(const EmulatorSettings& settings) {
  emulated::ThreadSetting& setting = emulated::thread_setting();
  before_.num_sms = setting.num_sms;
  had_scope_ = setting.is_set;
  setting = {.num_sms = std::clamp(settings.num_sms, 0, kMaxEmulatedSms), .is_set = true};
}

EmulatorScope::~EmulatorScope() {
  emulated::thread_setting() = {.num_sms = before_.num_sms, .is_set = had_scope_};
}

}  // namespace pagoda
