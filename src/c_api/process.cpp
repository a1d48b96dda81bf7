// What concerns the whole process: the version and the allocator of host buffers.
#include "c_api/status.hpp"
#include "c_api/structs.hpp"
#include "pagoda/attention.hpp"
#include "pagoda/host_allocator.hpp"

uint32_t pagoda_version(void) { return PAGODA_VERSION; }

pagoda_status_code pagoda_set_host_allocator(const pagoda_host_allocator* allocator,
                                             pagoda_status* status) {
  using pagoda::Status;
  return pagoda::c_api::guarded_call(status, [&]() -> Status {
    pagoda_host_allocator a;
    if (Status s = pagoda::c_api::read_optional("allocator", allocator, a); !s) return s;
    if (allocator != nullptr && a.allocate == nullptr) {
      return pagoda::c_api::complain_null("allocator.allocate");
    }
    return pagoda::set_host_allocator(
        {.allocate = a.allocate, .deallocate = a.deallocate, .context = a.context});
  });
}

pagoda_status_code pagoda_release_workspaces(pagoda_status* status) {
  return pagoda::c_api::guarded_call(status, [] { return pagoda::release_workspaces(); });
}
