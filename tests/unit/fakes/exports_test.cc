// The stand-in's libraries export what the vendor's export: the same names under the same version
// nodes.
#include <cupti.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>

#include <set>
#include <sstream>
#include <string>

namespace ranktap::standin_test {
namespace {

// "name" or "name@@node", as nm prints it.
std::set<std::string> Exports(const std::string& library) {
  std::string command = std::string(RANKTAP_NM) + " -D --defined-only " + library;
  FILE* pipe = popen(command.c_str(), "r");
  std::set<std::string> names;
  char line[4096];
  while (pipe != nullptr && fgets(line, sizeof line, pipe) != nullptr) {
    std::string address, kind, name;
    std::istringstream(line) >> address >> kind >> name;
    names.insert(name);
  }
  if (pipe != nullptr) pclose(pipe);
  return names;
}

std::string Ours(const std::string& name) { return std::string(RANKTAP_FAKES_DIR) + "/" + name; }
std::string Theirs(const std::string& name) {
  return std::string(RANKTAP_CUDA_LIB_DIR) + "/" + name;
}

TEST(ExportsTest, LibcudartExportsTheVendorsNames) {
  std::set<std::string> theirs = Exports(Theirs("libcudart.so.13"));
  ASSERT_GT(theirs.size(), 400u);
  EXPECT_TRUE(theirs.contains("cudaMalloc@@libcudart.so.13"));
  EXPECT_EQ(Exports(Ours("libcudart.so.13")), theirs);
}

TEST(ExportsTest, LibcuptiExportsTheVendorsNames) {
  std::set<std::string> theirs = Exports(Theirs("libcupti.so.13"));
  ASSERT_GT(theirs.size(), 150u);
  EXPECT_TRUE(theirs.contains("cuptiSubscribe@@libcupti.so.13"));
  EXPECT_EQ(Exports(Ours("libcupti.so.13")), theirs);
}

TEST(ExportsTest, LibcudaExportsTheVendorsNamesAndTheMarker) {
  std::set<std::string> theirs = Exports(Theirs("stubs/libcuda.so"));
  ASSERT_GT(theirs.size(), 600u);
  theirs.insert("ranktap_standin_marker");
  EXPECT_EQ(Exports(Ours("libcuda.so.1")), theirs);
}

// The vendor's library answers these without a driver.
class VendorCupti : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(Theirs("libcupti.so.13").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    ASSERT_NE(dlsym(library_, "cuptiGetCallbackName"),
              reinterpret_cast<void*>(cuptiGetCallbackName));
  }

  template <typename Function>
  Function* Theirs(Function*, const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  std::string Theirs(const std::string& name) {
    return std::string(RANKTAP_CUDA_LIB_DIR) + "/" + name;
  }

  void* library_ = nullptr;
};

TEST_F(VendorCupti, CallbackNamesAreTheVendors) {
  auto* vendor_name = Theirs(cuptiGetCallbackName, "cuptiGetCallbackName");
  for (int domain = CUPTI_CB_DOMAIN_DRIVER_API; domain < CUPTI_CB_DOMAIN_SIZE; ++domain) {
    for (uint32_t cbid = 0; cbid < 900; ++cbid) {
      auto id = static_cast<CUpti_CallbackDomain>(domain);
      const char *theirs = "", *ours = "";
      CUptiResult their_result = vendor_name(id, cbid, &theirs);
      EXPECT_EQ(cuptiGetCallbackName(id, cbid, &ours), their_result) << domain << " " << cbid;
      if (their_result == CUPTI_SUCCESS) {
        EXPECT_STREQ(ours, theirs) << domain << " " << cbid;
      }
    }
  }
}

TEST_F(VendorCupti, ResultNamesAndTheVersionAreTheVendors) {
  auto* vendor_text = Theirs(cuptiGetResultString, "cuptiGetResultString");
  for (int result = 0; result < 60; ++result) {
    const char *theirs = "", *ours = "";
    // The vendor's library has no words for some results of its own header (36 and 37).
    if (vendor_text(static_cast<CUptiResult>(result), &theirs) != CUPTI_SUCCESS) continue;
    EXPECT_EQ(cuptiGetResultString(static_cast<CUptiResult>(result), &ours), CUPTI_SUCCESS);
    EXPECT_STREQ(ours, theirs) << result;
  }
  uint32_t ours = 0, theirs = 1;
  ASSERT_EQ(cuptiGetVersion(&ours), CUPTI_SUCCESS);
  ASSERT_EQ(Theirs(cuptiGetVersion, "cuptiGetVersion")(&theirs), CUPTI_SUCCESS);
  EXPECT_EQ(ours, theirs);
}

TEST_F(VendorCupti, RecordsAreSteppedThroughLikeTheVendors) {
  auto* vendor_next = Theirs(cuptiActivityGetNextRecord, "cuptiActivityGetNextRecord");
  for (uint32_t kind : {0, 1, 2, 4, 5, 8, 9, 10, 17, 22, 36, 37, 38, 39, 49, 50, 51, 52}) {
    alignas(8) uint8_t buffer[2048] = {};
    *reinterpret_cast<uint32_t*>(buffer) = kind;
    CUpti_Activity *ours = nullptr, *theirs = nullptr;
    EXPECT_EQ(cuptiActivityGetNextRecord(buffer, sizeof buffer, &ours),
              vendor_next(buffer, sizeof buffer, &theirs))
        << kind;
    EXPECT_EQ(ours, theirs);
    if (ours == nullptr) continue;
    // The second record, if the first has the vendor's size, starts where a kind of its own stands.
    for (size_t at = 8; at + 4 <= sizeof buffer; at += 8) {
      *reinterpret_cast<uint32_t*>(buffer + at) = CUPTI_ACTIVITY_KIND_STREAM;
    }
    EXPECT_EQ(cuptiActivityGetNextRecord(buffer, sizeof buffer, &ours), CUPTI_SUCCESS);
    EXPECT_EQ(vendor_next(buffer, sizeof buffer, &theirs), CUPTI_SUCCESS);
    EXPECT_EQ(ours, theirs) << "kind " << kind << " has another size";
  }
}

}  // namespace
}  // namespace ranktap::standin_test
