#include "proto/redact.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace ranktap::proto {
namespace {

using Words = std::vector<std::string>;

Words Command(Words words) {
  RedactCommand(words);
  return words;
}

std::string Text(std::string text) {
  RedactText(text);
  return text;
}

TEST(RedactTest, ACommandLineLosesTheSecretsAndKeepsTheirNames) {
  const std::vector<std::pair<Words, Words>> cases = {
      {{"--hf-token=abc"}, {"--hf-token=***"}},
      {{"--token", "AAA1"}, {"--token", "***"}},
      {{"--password", "a b c"}, {"--password", "***"}},
      {{"--password=a b c"}, {"--password=***"}},
      {{"--api-key", "s3cr3t", "x"}, {"--api-key", "***", "x"}},
      {{"ACCESS_KEY=xyz"}, {"ACCESS_KEY=***"}},
      {{"--key=Ab12"}, {"--key=***"}},
      {{"https://user:PASS@host/path?token=q1w2"}, {"https://user:***@host/path?token=***"}},
      {{"https://ghp_abcdefgh1234@github.com/x"}, {"https://***@github.com/x"}},
      {{"postgres://me:p@ss@db:5432/x"}, {"postgres://me:***@db:5432/x"}},
      {{"-H", "Authorization: Bearer X"}, {"-H", "Authorization: Bearer ***"}},
      {{"Authorization:", "Bearer", "X9"}, {"Authorization:", "Bearer", "***"}},
      {{"Authorization: Basic dXNlcjpwYXNz"}, {"Authorization: Basic ***"}},
      {{"Authorization: weird"}, {"Authorization: ***"}},
      {{"Bearer", "abcdefghijklmnopqr"}, {"Bearer", "***"}},
      {{"PRIVATE-TOKEN: abcd"}, {"PRIVATE-TOKEN: ***"}},
      {{"Cookie: a=b; c=d"}, {"Cookie: ***"}},
      {{"mysql", "-pS3cret", "db"}, {"mysql", "-p***", "db"}},
      {{"curl", "-u", "me:secret"}, {"curl", "-u", "me:***"}},
      {{R"({"api_key": "abc", "lr": 0.1})"}, {R"({"api_key": "***", "lr": 0.1})"}},
      {{"sh", "-c", "export HF_TOKEN=abc; curl -H 'Authorization: Bearer Y' https://u:p@h/"},
       {"sh", "-c", "export HF_TOKEN=***; curl -H 'Authorization: Bearer ***' https://u:***@h/"}},
  };
  for (const auto& [given, kept] : cases) EXPECT_EQ(Command(given), kept);
}

TEST(RedactTest, TokensOfKnownKindsAreFoundAnywhere) {
  for (const std::string token :
       {"hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh", "hf_abcd1234efgh", "sk-abcdef123456abcdef",
        "sk-proj-Ab12Cd34Ef56Gh78-xyz_1", "ghp_abcdefABCDEF123456", "github_pat_11AAAAAAA0abcdef",
        "glpat-abcDEF123456", "xoxb-123456-abcdef", "AKIAIOSFODNN7EXAMPLE", "nvapi-abcd_efgh-1234",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv", "gsk_abcd1234efgh5678abcd",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_x"}) {
    EXPECT_EQ(Text(token), "***");
    EXPECT_EQ(Text("load " + token + " twice"), "load *** twice");
    EXPECT_EQ(Text("/data/" + token + "/x"), "/data/***/x");
    EXPECT_EQ(Text("run-" + token), "run-***");
    EXPECT_EQ(Command({"a", token, "b"}), Words({"a", "***", "b"}));
  }
}

TEST(RedactTest, OrdinaryArgumentsAreKept) {
  const Words ordinary = {"train.py",
                          "--num-key-value-heads",
                          "8",
                          "--max-tokens=4096",
                          "--batch-size",
                          "32",
                          "--lr=1e-4",
                          "--model",
                          "meta-llama/Llama-3.1-8B-Instruct",
                          "hf_llama",
                          "hf_LlamaForCausalLM",
                          "hf_T5",
                          "sk-learn-models",
                          "--commit=746ef4eea9c0ffee1234567890abcdef12345678",
                          "746ef4eea9c0ffee1234567890abcdef12345678",
                          "/data/keys/train.parquet",
                          "--key-file=/etc/key",
                          "--tokenizer",
                          "bert-base-uncased",
                          "--eos-token=</s>",
                          "--pad-token",
                          "<pad>",
                          "--token=17",
                          "--sort-key=self_cuda_time_total",
                          "--host-key-alias=x",
                          "http://localhost:8080/v1/chat",
                          "https://user@host/repo.git",
                          "git@github.com:org/repo.git",
                          "-p8080",
                          "-p",
                          "8080:80",
                          "-pthread",
                          "-python",
                          "-p",
                          "8080",
                          "-pipe",
                          "-pedantic",
                          "--ssh-key=/root/.ssh/id_ed25519",
                          "monkey=banana3",
                          "--user",
                          "1000:1000",
                          "-u",
                          "train.py",
                          "PWD=/root/x1",
                          "PATH=/usr/bin:/bin",
                          "--rdzv-endpoint=10.0.0.1:29500",
                          "--rdzv-id=job-1234",
                          "550e8400-e29b-41d4-a716-446655440000",
                          "layers.0.attention.key=float"};
  Words kept = ordinary;
  RedactCommand(kept);
  for (size_t i = 0; i < ordinary.size(); ++i) EXPECT_EQ(kept[i], ordinary[i]);
}

TEST(RedactTest, NamesOfRangesAndKernelsAreKept) {
  for (const std::string name :
       {"decode token=17", "token: 5", "next_token", "key projection", "attention/query-key",
        "step 12", "aten::scaled_dot_product_attention", "pass=2", "hf_generate", "secret_sauce",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x5_tn>",
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEE", "basic block",
        "bearer of news", "token::Parser<int>::run", "https://pytorch.org/docs", "-p2p copy",
        "layer password-free", "sort key=abc1"}) {
    EXPECT_EQ(Text(name), name);
  }
  EXPECT_EQ(Text("login --password X"), "login --password ***");
  EXPECT_EQ(Text("get --token=Ab12"), "get --token=***");
}

TEST(RedactTest, WordsStayAsManyAsTheyWere) {
  EXPECT_EQ(Command({"", "--token", "", "--password", "-v", ""}),
            Words({"", "--token", "", "--password", "-v", ""}));
  EXPECT_EQ(Command({}), Words());
  EXPECT_EQ(Command({"--password"}), Words({"--password"}));
}

// A scan that began anew at each of them took minutes for these, in the thread that sends.
TEST(RedactTest, HostileTextIsNoSquare) {
  for (const std::string part : {"token=", "sk-", "a://b@", "Bearer ", "token=\"", "-u a:", "-pA1",
                                 "hf_", "Authorization:", "eyJ", "key: ", "\"", "--password "}) {
    std::string text;
    while (text.size() < 1 << 16) text += part;
    RedactText(text);
    EXPECT_LE(text.size(), 2u << 16);
  }
}

}  // namespace
}  // namespace ranktap::proto
