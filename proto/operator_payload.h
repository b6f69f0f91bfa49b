// How the agent passes on what it sees of PyTorch's operators and allocations, in events of NVTX's
// kinds.
#pragma once

#include <cstdint>

namespace ranktap::proto {

// PyTorch calls the range of an operator "aten::mm, seq = 7, op_id = 12", each time a new text. The
// event's name is "aten::mm" alone; with this as NvtxAttributes::payload_type its payload is 12,
// and 1 + 7 (0: no seq) is in category (low half) and color (high half).
inline constexpr uint32_t kOperatorPayload = 0x72740001;

// The range of an operator that our own callback saw: payload is the number of its signature (0:
// none), which a mark explains, from kOperatorStackShift on that of its Python stack (0: none), and
// from kOperatorScopeShift on its at::RecordScope; 1 + seq as above.
inline constexpr uint32_t kDescribedOperatorPayload = 0x72740004;
inline constexpr unsigned kOperatorScopeShift = 56, kOperatorStackShift = 28;
inline constexpr uint32_t kMostOperatorStacks = (1u << 28) - 1;  // and signatures
// A window has numbers of its own for signatures: the n-th from n times this, plus one.
inline constexpr uint32_t kSignaturesOfWindow = 1u << 14;

// A mark at the end of such an operator of the same thread: it ended by an exception, and did not
// do its work (a checkpoint stops its recomputation so).
inline constexpr uint32_t kRaisedOperatorPayload = 0x72740005;

// With what was asked for by RANKTAP_TENSORS, a mark at the end of an operator of the same thread
// that returned something: payload is the signature of its outputs (0: none), category and color
// PyTorch's id of the record function (0: not known).
inline constexpr uint32_t kOutputsPayload = 0x72740006;

// And a mark for each tensor of an operator, an input at its start, an output at its end. Payload:
// the address of the c10::TensorImpl, from kTensorElementShift on its place in a list, from
// kTensorPlaceShift on that of the tensor or the list among the inputs or outputs,
// kTensorIsOutput. Category and color: the address where its storage's memory begins.
inline constexpr uint32_t kTensorPayload = 0x72740007;
inline constexpr unsigned kTensorElementShift = 48, kTensorPlaceShift = 57;
inline constexpr uint64_t kMostTensorElements = 512, kMostTensorPlaces = 64;
inline constexpr uint64_t kTensorIsOutput = uint64_t{1} << 63;

// The range of a collective of gloo: payload is the bytes of the buffer (0: not known), category
// the ranks in the group (0: not known), color tells groups of a process apart.
inline constexpr uint32_t kCollectivePayload = 0x72740003;

// A mark: PyTorch's CPU allocator gave out `payload` bytes, took a block back (0), or had none to
// give (the mark is called "out of memory"). The address is in category (low half) and color (high
// half).
inline constexpr uint32_t kAllocationPayload = 0x72740002;

}  // namespace ranktap::proto
