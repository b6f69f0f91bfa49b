#include "agent/interpose/got_patcher.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "agent/interpose/module_symbols.h"

namespace ranktap::agent {
namespace {

// GOT_CALLER is a library with one caller for each symbol, so that tests do not see each other's
// patches.
class GotPatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(GOT_CALLER, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  template <typename Function>
  Function* Find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  static constexpr std::string_view kOnly = "libgot_caller";

  void* library_ = nullptr;
};

template <auto answer>
auto Answers() {
  return answer;
}

TEST_F(GotPatcherTest, ACallThroughTheTableGoesToTheReplacementAndASecondPatchFindsNothingToDo) {
  auto* const call = Find<int()>("CallGetppid");
  ASSERT_EQ(call(), getppid());
  const std::array hooks{GotHook{"getppid", reinterpret_cast<void*>(&Answers<4711>)}};
  const GotPatchResult first = PatchGlobalOffsetTables(hooks, {}, kOnly);
  EXPECT_EQ(first.slots, 1u);
  EXPECT_EQ(first.modules, 1u);
  EXPECT_EQ(first.failures, 0u);
  EXPECT_EQ(call(), 4711);
  EXPECT_EQ(PatchGlobalOffsetTables(hooks, {}, kOnly).slots, 0u);
  EXPECT_EQ(call(), 4711);
  EXPECT_NE(getppid(), 4711) << "another module's table";
}

TEST_F(GotPatcherTest, AModuleThatIsExceptedOrNotNamedKeepsItsCalls) {
  auto* const call = Find<int()>("CallGetpgrp");
  const std::array hooks{GotHook{"getpgrp", reinterpret_cast<void*>(&Answers<4712>)}};
  constexpr std::array<std::string_view, 1> kExcept = {kOnly};
  PatchGlobalOffsetTables(hooks, kExcept, kOnly);
  EXPECT_EQ(call(), getpgrp());
  PatchGlobalOffsetTables(hooks, {}, "libanother");
  EXPECT_EQ(call(), getpgrp());
}

TEST_F(GotPatcherTest, TheModuleOfAnAddressIsPatchedAlone) {
  auto* const call = Find<unsigned()>("CallGetuid");
  const std::array hooks{GotHook{"getuid", reinterpret_cast<void*>(&Answers<4713u>)}};
  const int elsewhere = 0;
  EXPECT_EQ(PatchModuleOf(&elsewhere, hooks).slots, 0u) << "no module: the stack";
  EXPECT_EQ(PatchModuleOf(reinterpret_cast<void*>(call), hooks).slots, 1u);
  EXPECT_EQ(call(), 4713u);
}

TEST_F(GotPatcherTest, ModulesThatAreDoneAreNotLookedAtAgain) {
  const std::array hooks{GotHook{"getppid", reinterpret_cast<void*>(&Answers<4711>)}};
  PatchedModules done;
  EXPECT_EQ(PatchGlobalOffsetTables(hooks, {}, kOnly, &done).modules, 1u);
  EXPECT_EQ(PatchGlobalOffsetTables(hooks, {}, kOnly, &done).modules, 0u);
}

TEST(PatchedModulesTest, AModuleIsNewOnce) {
  PatchedModules modules;
  EXPECT_TRUE(modules.Add(0x1000));
  EXPECT_FALSE(modules.Add(0x1000));
  EXPECT_TRUE(modules.Add(0x2000));
  modules.Clear();
  EXPECT_TRUE(modules.Add(0x1000));
}

TEST(ModuleSymbolsTest, TheExporterOfAFunctionIsTheModuleThatDefinesIt) {
  ASSERT_NE(dlopen(GOT_CALLER, RTLD_NOW), nullptr);
  EXPECT_THAT(FindExporter("CallGetppid", {}).value_or(""), testing::EndsWith("libgot_caller.so"));
  EXPECT_THAT(FindExporter("getppid", {}).value_or(""), testing::HasSubstr("libc.so"))
      << "who only imports it does not export it";
}

TEST(ModuleSymbolsTest, AnExceptedModuleIsPassedOver) {
  ASSERT_NE(dlopen(GOT_CALLER, RTLD_NOW), nullptr);
  constexpr std::array<std::string_view, 1> kExcept = {"libgot_caller"};
  EXPECT_EQ(FindExporter("CallGetppid", kExcept), std::nullopt);
}

TEST(ModuleSymbolsTest, ANameThatNobodyExportsIsNotFound) {
  EXPECT_EQ(FindExporter("ranktap_no_such_function", {}), std::nullopt);
  EXPECT_EQ(FindExporter("", {}), std::nullopt);
}

}  // namespace
}  // namespace ranktap::agent
