// The subscribers of CUPTI's second API (13.2 on): each with callbacks, kinds, buffers and records
// of its own shape. As NVIDIA's guide says (2.4, 2.5): several only from 13.3 on, and only where
// each allows others; the first one's graph level and hardware events hold for all; an attribute
// that a kind depends on comes before the kind.
//
// A call's word (correlationData) is one for all of them: nobody promises more.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

#include "tests/fakes/cupti/activity_buffers.h"
#include "tests/fakes/cupti/misbehaviour.h"

namespace ranktap::standin {

// A record for each subscriber that has its kind on, in its shape.
void WriteForSecondApi(const Record& record, const Misbehaviour& twist);

// A callback for each that wants it.
void RaiseForSecondApi(CUpti_CallbackDomain domain, uint32_t cbid, const void* data);

// What the first API's calls do with a handle of the second's; false: it is none.
bool UnsubscribeSecond(CUpti_SubscriberHandle handle);
bool EnableCallbacksOfSecond(CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                             uint32_t first, uint32_t last, bool enable);

// How many there are.
int SecondSubscribers();
CUptiResult SubscribeSecond(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                            void* user, bool allow_multiple);
// What cuptiFinalize does to them; false: nothing, as there are several.
bool ForgetSecondSubscribers();

}  // namespace ranktap::standin
