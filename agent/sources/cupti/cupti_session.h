// The subscription: what is switched on at CUPTI, and switched off again. One at a time in a
// process; after Disarm nothing of it is left there.
// Runs on: one thread at a time: the thread inside cuInit, later the drain thread.  May not: run in
// a CUPTI callback.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/sources/cupti/cupti_api.h"
#include "agent/sources/cupti/cupti_calls.h"
#include "agent/sources/cupti/cupti_features.h"

namespace ranktap::agent::cupti {

// The kinds that a session enables, but for GRAPH_TRACE, which depends on the level.
std::span<const Kind> RecordedKinds();
std::span<const ResourceCbid> RecordedResources();

class Session {
 public:
  Session(const LoadedApi& loaded, const CallTable& calls)
      : Session(loaded, calls, FeaturesOf(loaded.version)) {}
  Session(const LoadedApi& loaded, const CallTable& calls, const Features& features)
      : loaded_(loaded), features_(features), calls_(calls) {
    // Each setting that is on in CUPTI must fit in here, whatever memory there is.
    constexpr size_t kMostSettings = 16;
    enabled_.reserve(RecordedKinds().size() + 1);
    found_.reserve(kMostSettings);
  }

  // Subscribes, enables callbacks and kinds. Empty on success, else why not; then nothing is armed.
  // Kinds that this CUPTI lacks are skipped. `late`: the driver is up, and what exists already
  // (devices, contexts, streams) is to be told.
  std::string Arm(bool late);
  // The same without callbacks, beside a client that has the subscription and nothing else: kernels
  // without their launches.
  std::string ArmWithoutCallbacks(bool late);
  // Whether a graph's nodes are recorded one by one, or each launch as a whole (the default). The
  // last call before the first Arm holds for the process: GRAPH_TRACE off again does not bring
  // nodes back, to us nor to the program's client (13.5's header; those before it say nothing).
  void ChooseGraphNodes(bool nodes) {
    if (!graphs_chosen_) graph_nodes_ = nodes;
  }
  // The most buffers of device memory that CUPTI may take for its records, in each context. Before
  // Arm; never more than what is found.
  void LimitDeviceBuffers(size_t most) { most_device_buffers_ = most; }
  // The program's client has taken them whole.
  void TakeGraphsWhole();
  const Features& features() const { return features_; }
  bool graph_nodes() const { return graph_nodes_; }
  // The last Arm failed because another client has the subscription.
  bool owned_by_other() const { return owned_by_other_; }
  bool armed() const { return armed_; }
  bool has_callbacks() const { return subscriber_ != nullptr; }

  // No more callbacks; kinds stay on until DisableKinds, for what has been launched.
  void StopCallbacks();
  void DisableKinds();
  // Gives the subscription back, and every setting as it was found. The next Arm registers our
  // buffers again: somebody else's may have come in between.
  void Disarm();

  // As Disarm, but the kinds that need not be safe to disable stay on, and CUPTI keeps our buffers
  // and settings: until Disarm, or Arm.
  void Park();
  bool parked() const { return parked_ && !armed_; }
  // Since the last Disarm.
  bool was_parked() const { return parked_; }

  // CUPTI has ended the session without us.
  void Forget();

  // Makes CUPTI give correlation ids where it does only with API records on. The records themselves
  // are thrown away.
  void EnableApiRecords();
  bool api_records_enabled() const { return api_records_; }

  uint64_t errors() const { return errors_; }

 private:
  bool Try(Result result);
  void SetThreadIds();
  void SetAttribute(int attribute, uint64_t wanted);
  void SetPoolLimit();
  void PutBackSettings();
  bool RegisterBuffers();
  bool Enable(Kind kind, bool late);
  bool IsCalledBack(Domain domain, const Call& call) const;
  void EnableCalls(bool on);
  void EnableCallbacks();
  void EnableKinds(bool late);
  bool ChoosesApiRecords() const;
  void ChooseApiRecords(bool on);

  const LoadedApi& loaded_;
  const Features features_;
  const CallTable& calls_;
  Subscriber subscriber_ = nullptr;  // armed without callbacks: none
  bool armed_ = false;
  bool callbacks_registered_ = false;
  bool parked_ = false;  // until Disarm: what was found is from before
  bool thread_ids_set_ = false;
  bool owned_by_other_ = false;
  bool graph_nodes_ = false;
  bool graphs_chosen_ = false;
  bool api_records_ = false;
  size_t most_device_buffers_ = SIZE_MAX;
  std::vector<Kind> enabled_;
  // The value that the program's own client is to find where we have set another.
  struct Setting {
    int attribute;
    uint64_t value;
  };
  std::vector<Setting> found_;
  std::optional<uint32_t> found_thread_ids_;
  uint64_t errors_ = 0;
};

}  // namespace ranktap::agent::cupti
