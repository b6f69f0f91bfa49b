#include "collector/file/trace_bounds.h"

#include <algorithm>

namespace ranktap::collector {
namespace {

constexpr int kMaxHelloWords = 1 << 16;
// Room for a build that knows more of them than ours.
constexpr int kMostLossesOfAnAccount = 64;

}  // namespace

bool HasFewItems(const v1::Hello& hello) {
  return hello.devices_size() <= kMaxHelloItems && hello.libraries_size() <= kMaxHelloItems &&
         hello.notes_size() <= kMaxHelloItems &&
         hello.process().command_line_size() <= kMaxHelloWords &&
         hello.process().ns_pids_size() <= kMaxHelloItems;
}

bool AreAccounts(const v1::Accounts& accounts) {
  const auto is_one = [](const v1::Account& account) {
    return account.lost_size() <= kMostLossesOfAnAccount;
  };
  return std::all_of(accounts.accounts().begin(), accounts.accounts().end(), is_one);
}

}  // namespace ranktap::collector
