// Secrets in text: the one redaction of all that is recorded, written or shown. docs/security.md
// lists what it replaces and what it keeps. Linear in the text, whoever wrote it; allocates only
// where something is replaced.  Runs on: the sender thread; in the collector.  May not: be called
// on a user's thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::proto {
namespace redact {

inline constexpr std::string_view kInstead = "***";
// The bytes that are judged of a value or token: hostile text must not make the scan quadratic.
inline constexpr size_t kJudged = 256;

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool IsLetter(char c) { return IsUpper(c) || (c >= 'a' && c <= 'z'); }
constexpr bool IsAlnum(char c) { return IsLetter(c) || IsDigit(c); }
constexpr bool IsNameChar(char c) { return IsAlnum(c) || c == '_' || c == '-'; }
constexpr bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0'; }
constexpr bool IsQuote(char c) { return c == '"' || c == '\'' || c == '`'; }
constexpr char Lower(char c) { return IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

constexpr bool EqualsAnyCase(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, {}, Lower);
}
constexpr bool EndsWithAnyCase(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         EqualsAnyCase(text.substr(text.size() - lower.size()), lower);
}
template <size_t N>
constexpr bool IsOneOf(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::any_of(words, [&](auto word) { return EqualsAnyCase(text, word); });
}
template <size_t N>
constexpr bool EndsWithOneOf(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::any_of(words, [&](auto word) { return EndsWithAnyCase(text, word); });
}
constexpr auto CountOf(std::string_view text, bool (*is)(char)) {
  return std::ranges::count_if(text, is);
}
constexpr bool HasLetterAndDigit(std::string_view text) {
  return CountOf(text, IsLetter) > 0 && CountOf(text, IsDigit) > 0;
}

// How sure a name makes us that a secret follows.
enum class Name { kOrdinary, kKey, kToken, kPassword };

// By the last word of the name: "--hf-token" and "ACCESS_KEY" are, "--num-key-value-heads",
// "--max-tokens", "--eos-token" and "--sort-key" are not.
constexpr Name KindOf(std::string_view name) {
  constexpr std::array<std::string_view, 9> kPasswords = {"password", "passwd",     "passphrase",
                                                          "secret",   "credential", "credentials",
                                                          "apikey",   "accesskey",  "privatekey"};
  constexpr std::array<std::string_view, 7> kKeys = {"key", "pass", "pwd",      "auth",
                                                     "pat", "sig",  "signature"};
  constexpr std::array<std::string_view, 8> kOfSecretKeys = {
      "api", "access", "secret", "private", "auth", "account", "signing", "encryption"};
  constexpr std::array<std::string_view, 14> kOfOrdinaryKeys = {
      "sort",  "group", "primary", "foreign", "cache",  "partition", "join",
      "index", "order", "map",     "dict",    "metric", "public",    "ssh"};
  constexpr std::array<std::string_view, 16> kOfModelTokens = {
      "pad",   "eos",   "bos",  "unk",   "mask",  "sep", "cls",     "image",
      "audio", "video", "stop", "start", "begin", "end", "special", "next"};
  const size_t cut = name.find_last_of("-_") + 1;
  const std::string_view last = name.substr(cut);
  const std::string_view rest = name.substr(0, cut == 0 ? 0 : cut - 1);
  const std::string_view before = rest.substr(rest.find_last_of("-_") + 1);
  if (EndsWithOneOf(last, kPasswords)) return Name::kPassword;
  if (EndsWithAnyCase(last, "token")) {
    return IsOneOf(before, kOfModelTokens) ? Name::kOrdinary : Name::kToken;
  }
  if (!IsOneOf(last, kKeys)) return Name::kOrdinary;
  if (EqualsAnyCase(last, "key") && IsOneOf(before, kOfSecretKeys)) return Name::kPassword;
  return IsOneOf(before, kOfOrdinaryKeys) ? Name::kOrdinary : Name::kKey;
}

struct Prefix {
  std::string_view text;
  // A name of a program's own may begin so, too: what follows must look drawn at random.
  bool is_common = false;
};
inline constexpr std::array<Prefix, 32> kPrefixes = {{
    {"hf_", true},  {"sk-", true}, {"sk_live_"}, {"sk_test_"}, {"rk_live_"},    {"ghp_"},
    {"gho_"},       {"ghu_"},      {"ghs_"},     {"ghr_"},     {"github_pat_"}, {"glpat-"},
    {"xoxb-"},      {"xoxp-"},     {"xoxa-"},    {"xoxr-"},    {"xoxs-"},       {"AKIA"},
    {"ASIA"},       {"AIza"},      {"ya29."},    {"nvapi-"},   {"npm_", true},  {"pypi-", true},
    {"gsk_", true}, {"r8_", true}, {"dop_v1_"},  {"tgp_v1_"},  {"lsv2_"},       {"api_org_", true},
    {"eyJ"},        {"SG.", true},
}};

// Bit i of [n][byte]: prefix i has this byte at n. Nearly every name is done with after three
// loads.
inline constexpr auto kPrefixesWith = [] {
  std::array<std::array<uint32_t, 256>, 3> table{};
  for (size_t i = 0; i < kPrefixes.size(); ++i) {
    for (size_t n = 0; n < table.size(); ++n) {
      table[n][static_cast<unsigned char>(kPrefixes[i].text[n])] |= uint32_t{1} << i;
    }
  }
  return table;
}();

constexpr const Prefix* PrefixOf(std::string_view text) {
  uint32_t left = text.size() < kPrefixesWith.size() ? 0 : ~uint32_t{0};
  for (size_t n = 0; n < kPrefixesWith.size() && left != 0; ++n) {
    left &= kPrefixesWith[n][static_cast<unsigned char>(text[n])];
  }
  for (; left != 0; left &= left - 1) {
    const Prefix& known = kPrefixes[static_cast<size_t>(std::countr_zero(left))];
    if (text.starts_with(known.text)) return &known;
  }
  return nullptr;
}

constexpr bool IsTokenChar(char c) { return IsNameChar(c) || c == '.' || c == '+' || c == '='; }

// "hf_LlamaForCausalLM" and "sk-learn-models" do not, "hf_Qk31…" does.
constexpr bool HasRandomPart(std::string_view token) {
  while (!token.empty()) {
    const size_t size =
        static_cast<size_t>(std::ranges::find_if_not(token, IsAlnum) - token.begin());
    const std::string_view part = token.substr(0, size);
    if (size >= 20 || (size >= 8 && HasLetterAndDigit(part) && CountOf(part, IsDigit) >= 2)) {
      return true;
    }
    token.remove_prefix(std::min(size + 1, token.size()));
  }
  return false;
}

class Redactor {
 public:
  // `is_command`: words of a command line with a NUL between them; names of options count for more.
  Redactor(std::string_view in, bool is_command) : in_(in), is_command_(is_command) {}

  // False: there is no secret.
  bool Run(std::string* out) {
    for (size_t at = 0; at < in_.size();) at = IsNameChar(in_[at]) ? AfterName(at) : at + 1;
    if (kept_ == 0) return false;
    *out = std::move(out_.append(in_.substr(kept_)));
    return true;
  }

 private:
  bool Has(size_t at, char c) const { return at < in_.size() && in_[at] == c; }
  bool HasQuote(size_t at) const { return at < in_.size() && IsQuote(in_[at]); }
  bool HasSpace(size_t at) const { return at < in_.size() && IsSpace(in_[at]); }
  bool BeginsWord(size_t at) const {
    return at == 0 || IsSpace(in_[at - 1]) || IsQuote(in_[at - 1]);
  }
  template <typename Is>
  size_t EndOf(size_t at, Is is, size_t most = std::string_view::npos) const {
    const size_t last = std::min(in_.size() - at, most) + at;
    while (at < last && is(in_[at])) ++at;
    return at;
  }
  size_t AfterSpaces(size_t at) const {
    return EndOf(at, [](char c) { return c == ' ' || c == '\t'; });
  }

  size_t Replace(size_t begin, size_t end) {
    if (begin >= end) return end;
    out_.append(in_.substr(kept_, begin - kept_)).append(kInstead);
    return kept_ = end;
  }

  // The end of the value at `begin`. `is_word`: with the whole word of a command line.
  size_t EndOfValue(size_t begin, bool is_word, size_t most = std::string_view::npos) const {
    const char before = begin > 0 ? in_[begin - 1] : '\0';
    if (IsQuote(before)) {
      return EndOf(
          begin, [&](char c) { return c != before && c != '\0'; }, most);
    }
    if (is_word)
      return EndOf(
          begin, [](char c) { return c != '\0'; }, most);
    return EndOf(
        begin, [](char c) { return !IsSpace(c) && !IsQuote(c) && c != '&' && c != ';'; }, most);
  }

  size_t AfterName(size_t begin) {
    const size_t end = EndOf(begin, IsNameChar);
    const std::string_view name = in_.substr(begin, end - begin);
    if (in_.substr(end, 3) == "://") return AfterAuthority(end + 3);
    const bool has_value =
        end < in_.size() && (Has(end, '=') || Has(end, ':') || HasQuote(end) || HasSpace(end));
    size_t after = 0;
    if (has_value) after = AfterHeader(name, end);
    if (has_value && after == 0) after = AfterNamedValue(name, begin, end);
    if (name[0] == '-' && after == 0) after = AfterShortOption(name, begin, end);
    return after != 0 ? after : AfterTokens(begin, end);
  }

  // "user:PASS@host"
  size_t AfterAuthority(size_t begin) {
    const size_t end = EndOf(begin, [](char c) {
      return !IsSpace(c) && !IsQuote(c) && c != '/' && c != '?' && c != '#';
    });
    const std::string_view authority = in_.substr(begin, end - begin);
    const size_t at = authority.rfind('@');
    if (at == authority.npos) return begin;
    const size_t colon = authority.substr(0, at).find(':');
    if (colon != authority.npos) return Replace(begin + colon + 1, begin + at);
    return HasRandomPart(authority.substr(0, std::min(at, kJudged))) ? Replace(begin, begin + at)
                                                                     : begin;
  }

  // "Authorization: Bearer X", "Cookie: X", "Bearer X". 0: it is none.
  size_t AfterHeader(std::string_view name, size_t end) {
    constexpr std::array<std::string_view, 4> kHeaders = {"authorization", "proxy-authorization",
                                                          "cookie", "set-cookie"};
    constexpr std::array<std::string_view, 5> kSchemes = {"bearer", "basic", "token", "digest",
                                                          "negotiate"};
    if (EqualsAnyCase(name, "bearer") && HasSpace(end)) {
      const size_t value = EndOf(end, IsSpace);
      const size_t last = EndOfValue(value, false);
      const std::string_view judged = in_.substr(value, std::min(last - value, kJudged));
      const bool is_word =
          judged.size() < 16 && CountOf(judged, IsDigit) == 0 && CountOf(judged, IsUpper) == 0;
      return is_word ? 0 : Replace(value, last);
    }
    if (!IsOneOf(name, kHeaders)) return 0;
    size_t value = HasQuote(end) ? end + 1 : end;
    if (!Has(value, ':') && !Has(value, '=')) return 0;
    value = EndOf(value + 1, IsSpace);
    if (HasQuote(value)) ++value;
    const size_t scheme_end = EndOf(value, IsNameChar);
    if (IsOneOf(in_.substr(value, scheme_end - value), kSchemes) && HasSpace(scheme_end)) {
      value = EndOf(scheme_end, IsSpace);
    }
    return Replace(value, EndOf(value, [](char c) {
                     return !IsQuote(c) && c != '\0' && c != '\n' && c != '\r';
                   }));
  }

  // "--token=X", "--password X", "API_KEY=X", "\"secret\": \"X\"". 0: it is none.
  size_t AfterNamedValue(std::string_view name, size_t begin, size_t end) {
    bool is_word = is_command_ && (begin == 0 || in_[begin - 1] == '\0');
    size_t value = AfterSpaces(HasQuote(end) ? end + 1 : end);
    if (Has(value, '=') || (Has(value, ':') && !Has(value + 1, ':'))) {
      value = AfterSpaces(value + 1);
    } else if (name.starts_with('-') && BeginsWord(begin) && HasSpace(end)) {
      is_word = is_command_ && in_[end] == '\0';
      value = EndOf(end, IsSpace, is_word ? 1 : std::string_view::npos);
      if (Has(value, '-')) return 0;
    } else {
      return 0;
    }
    const Name kind = KindOf(name);
    if (kind == Name::kOrdinary) return 0;
    if (HasQuote(value)) ++value;
    const size_t judged_end = EndOfValue(value, is_word, kJudged);
    if (!IsSecret(kind, in_.substr(value, judged_end - value))) return 0;
    return Replace(value, EndOfValue(value, is_word));
  }

  bool IsSecret(Name kind, std::string_view value) const {
    if (value.empty() || kind == Name::kPassword) return !value.empty();
    if (CountOf(value, IsLetter) == 0 || std::string_view("<[/.~$").find(value[0]) != value.npos) {
      return false;
    }
    if (kind == Name::kToken && is_command_) return true;
    const bool is_long = value.size() >= 16 && CountOf(value, IsUpper) > 0;
    if (kind == Name::kToken || is_command_) return HasLetterAndDigit(value) || is_long;
    return value.size() >= 16 && HasLetterAndDigit(value);
  }

  // "-pPASS", and "-u USER:PASS" as curl has it. 0: it is none.
  size_t AfterShortOption(std::string_view name, size_t begin, size_t end) {
    if (!name.starts_with('-') || !BeginsWord(begin)) return 0;
    if ((name == "-u" || name == "--user" || name == "--proxy-user") && HasSpace(end)) {
      const size_t user = EndOf(end, IsSpace);
      const size_t colon =
          EndOf(user, [](char c) { return IsNameChar(c) || c == '.' || c == '@'; });
      if (!Has(colon, ':') || Has(colon + 1, '/')) return 0;
      const size_t last = EndOfValue(colon + 1, is_command_ && in_[end] == '\0');
      const size_t judged = std::min(last - colon - 1, kJudged);
      return CountOf(in_.substr(colon + 1, judged), IsLetter) == 0 ? 0 : Replace(colon + 1, last);
    }
    if (!name.starts_with("-p")) return 0;
    const size_t last = EndOfValue(begin + 2, false);
    const std::string_view value = in_.substr(begin + 2, std::min(last - begin - 2, kJudged));
    const bool looks_so = value.size() >= 4 && CountOf(value, IsLetter) > 0 &&
                          CountOf(value, IsDigit) + CountOf(value, IsUpper) > 0 &&
                          value.find_first_of("=/:") == value.npos;
    return looks_so ? Replace(begin + 2, last) : 0;
  }

  // Tokens of known kinds within the name at [begin, end).
  size_t AfterTokens(size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) {
      const bool is_start = at == begin || in_[at - 1] == '-' || in_[at - 1] == '_';
      if (!is_start) continue;
      const Prefix* const prefix = PrefixOf(in_.substr(at));
      if (prefix == nullptr) continue;
      const size_t body = at + prefix->text.size();
      const size_t judged = EndOf(body, IsTokenChar, kJudged);
      if (IsToken(*prefix, in_.substr(body, judged - body))) {
        return Replace(at, EndOf(body, IsTokenChar));
      }
    }
    return end;
  }

  static bool IsToken(const Prefix& prefix, std::string_view body) {
    if (prefix.is_common) return HasRandomPart(body);
    if (prefix.text == "eyJ") return body.find(".eyJ") != body.npos;  // a JWT
    const auto alnum = static_cast<size_t>(std::ranges::find_if_not(body, IsAlnum) - body.begin());
    if (prefix.text == "AKIA" || prefix.text == "ASIA") return alnum == 16;
    return body.size() >= 8 || (alnum >= 4 && HasLetterAndDigit(body));
  }

  std::string_view in_;
  bool is_command_;
  std::string out_;
  size_t kept_ = 0;  // of `in_`, in `out_` already
};

}  // namespace redact

// Text that a program gave: names of ranges, paths. By the form of the secret; a name before it
// ("token=") counts only where the value looks drawn at random: "token=17" is a range.
inline void RedactText(std::string& text) { redact::Redactor(text, false).Run(&text); }

// A command line: also by the names of its options.
inline void RedactCommand(std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line.append(word).push_back('\0');
  if (!redact::Redactor(line, true).Run(&line)) return;
  size_t begin = 0;
  for (std::string& word : words) {
    const size_t end = line.find('\0', begin);
    word = line.substr(begin, end - begin);
    begin = end + 1;
  }
}

}  // namespace ranktap::proto
