// What OpenTelemetry's variables say of a job: OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace ranktap::collector {

// "service.name", "k8s.pod.name" and so on, with their values. Pure. A pair without a key or with a
// broken %-escape is left out. `service` is OTEL_SERVICE_NAME, which has the last word on
// service.name; empty: there is none.
std::map<std::string, std::string> ResourceAttributes(std::string_view attributes,
                                                      std::string_view service);

// Of this process's environment.
std::map<std::string, std::string> ResourceAttributes();

}  // namespace ranktap::collector
