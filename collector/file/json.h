// Values of JSON, and their text. nlohmann's parser and writer are compiled in one file. So is this
// value: a unit that named nlohmann's compiled its templates for 1 to 3 s, and the build had forty
// such files.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ranktap::collector {

// Values that nest deeper are refused: they are read, copied and written recursively, and a million
// brackets end the process.
inline constexpr size_t kDeepestJson = 256;

// A value: null, a truth, a number, a text, an array or an object, or discarded (a text that is not
// JSON). A copy is deep. Members lie as they were added. Whoever asks a value for another kind than
// it has gets std::domain_error; the `is_` functions ask first. No function may be called while
// another thread writes the value.
class Json {
 public:
  // What a braced list holds; it moves what it is given, where a list of values would copy.
  class Part;
  using Parts = std::initializer_list<Part>;
  // Names beside values, for a loop over an object: `for (const auto& [name, value] :
  // object.items())`.
  class Items;

  Json(std::nullptr_t = nullptr) noexcept {}
  template <std::integral T>
  Json(T number) noexcept {
    if constexpr (std::is_same_v<T, bool>) {
      kind_ = Kind::kTruth;
    } else {
      kind_ = std::is_signed_v<T> ? Kind::kSigned : Kind::kUnsigned;
    }
    scalar_.bits = static_cast<uint64_t>(number);
  }
  Json(double number) noexcept : kind_(Kind::kReal) { scalar_.real = number; }
  Json(std::string text);
  Json(std::string_view text) : Json(std::string(text)) {}
  Json(const char* text) : Json(std::string(text)) {}
  // Null where there is none.
  template <typename T>
  Json(const std::optional<T>& value) {
    if (value) *this = Json(*value);
  }
  template <typename T>
  Json(const std::vector<T>& values) : Json(array()) {
    for (const T& value : values) push_back(value);
  }
  template <typename T>
  Json(const std::map<std::string, T>& values) : Json(object()) {
    for (const auto& [name, value] : values) (*this)[name] = value;
  }
  // An object, where each part is a list of a text and one more; an array otherwise.
  Json(Parts parts);
  Json(const Json& other);
  Json(Json&& other) noexcept
      : kind_(std::exchange(other.kind_, Kind::kNull)), scalar_(other.scalar_) {}
  Json& operator=(Json other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(scalar_, other.scalar_);
    return *this;
  }
  ~Json() {
    if (kind_ >= Kind::kText) Free();
  }

  static Json array() { return Json(Kind::kArray); }
  static Json array(Parts parts);
  static Json object() { return Json(Kind::kObject); }
  static Json discarded() { return Json(Kind::kDiscarded); }

  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_discarded() const { return kind_ == Kind::kDiscarded; }
  bool is_boolean() const { return kind_ == Kind::kTruth; }
  bool is_number_unsigned() const {  // a whole number that is not below 0
    return kind_ == Kind::kUnsigned ||
           (kind_ == Kind::kSigned && static_cast<int64_t>(scalar_.bits) >= 0);
  }
  bool is_number_integer() const { return kind_ == Kind::kSigned || kind_ == Kind::kUnsigned; }
  bool is_number() const { return is_number_integer() || kind_ == Kind::kReal; }
  bool is_string() const { return kind_ == Kind::kText; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_object() const { return kind_ == Kind::kObject; }

  // T: bool, a number (converted as C++ does), std::string, or a vector or map of these.
  template <typename T>
  T get() const {
    if constexpr (std::is_same_v<T, bool>) {
      return Truth();
    } else if constexpr (std::is_integral_v<T>) {
      if (kind_ == Kind::kReal) return static_cast<T>(scalar_.real);
      return static_cast<T>(Whole());
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(Real());
    } else if constexpr (std::is_same_v<T, std::string>) {
      return text();
    } else if constexpr (std::is_same_v<T, Json>) {
      return *this;
    } else {
      return GetAll(static_cast<const T*>(nullptr));
    }
  }
  const std::string& text() const;
  std::string& text();
  std::string TextOrNothing() const { return is_string() ? text() : std::string(); }

  // Of an array its values, of an object its members' values; a null has none, any other value is
  // its only one.
  size_t size() const;
  bool empty() const { return size() == 0; }
  const Json* begin() const;
  const Json* end() const;
  Json* begin() { return const_cast<Json*>(std::as_const(*this).begin()); }
  Json* end() { return const_cast<Json*>(std::as_const(*this).end()); }
  const Json& front() const { return (*this)[0]; }
  const Json& back() const { return (*this)[size() - 1]; }
  Json& back() { return (*this)[size() - 1]; }
  // Of a const value null past the end. Templates, as a 0 could be a null name.
  template <std::integral T>
  const Json& operator[](T index) const {
    return At(static_cast<size_t>(index));
  }
  template <std::integral T>
  Json& operator[](T index) {
    return At(static_cast<size_t>(index));
  }
  void push_back(Json value);  // a null becomes an array
  void resize(size_t size);    // of an array

  // Of a const value null where there is no such member, or no object.
  const Json& operator[](std::string_view name) const;
  const Json& operator[](const char* name) const { return (*this)[std::string_view(name)]; }
  // Adds the member where there is none; a null becomes an object.
  Json& operator[](std::string_view name);
  Json& operator[](const char* name) { return (*this)[std::string_view(name)]; }
  bool contains(std::string_view name) const { return Find(name) != nullptr; }
  // An object's member, or `otherwise` where there is none.
  template <typename T>
  T value(std::string_view name, T otherwise) const {
    const Json* const member = Names().empty() ? nullptr : Find(name);
    return member == nullptr ? std::move(otherwise) : member->get<T>();
  }
  std::string value(std::string_view name, const char* otherwise) const {
    return value(name, std::string(otherwise));
  }
  // The member's text, and nothing where it is none.
  std::string TextOf(std::string_view name) const { return (*this)[name].TextOrNothing(); }
  void update(const Json& members);  // adds them, in the place of those of the same name
  Items items() const;

  // Numbers are equal that have the same value.
  friend bool operator==(const Json& a, const Json& b) { return a.Equals(b); }
  template <std::convertible_to<std::string_view> T>
  friend bool operator==(const Json& a, const T& text) {
    return a.is_string() && a.text() == std::string_view(text);
  }
  template <std::same_as<bool> T>  // no whole number
  friend bool operator==(const Json& a, T truth) {
    return a.is_boolean() && a.Truth() == truth;
  }

 private:
  friend class JsonCodec;
  enum class Kind : uint8_t {
    kNull,
    kDiscarded,
    kTruth,
    kSigned,
    kUnsigned,
    kReal,
    kText,
    kArray,
    kObject
  };
  struct Members;

  explicit Json(Kind kind);
  void Free();
  const Json* Find(std::string_view name) const;
  const Json& At(size_t index) const;
  Json& At(size_t index);
  bool Equals(const Json& other) const;
  bool Truth() const;
  uint64_t Whole() const;  // of a number below 0 its two's complement
  double Real() const;
  const std::vector<std::string>& Names() const;
  template <typename T>
  std::vector<T> GetAll(const std::vector<T>*) const {
    std::vector<T> values;
    for (const Json& value : Values()) values.push_back(value.get<T>());
    return values;
  }
  template <typename T>
  std::map<std::string, T> GetAll(const std::map<std::string, T>*) const {
    std::map<std::string, T> values;
    for (size_t i = 0; i < Names().size(); ++i) values[Names()[i]] = (*this)[i].get<T>();
    return values;
  }
  const std::vector<Json>& Values() const;  // of an array

  Kind kind_ = Kind::kNull;
  union Scalar {
    uint64_t bits = 0;
    double real;
    std::string* text;
    std::vector<Json>* values;
    Members* members;
  } scalar_;
};

class Json::Part {
 public:
  template <typename T>
  requires std::constructible_from<Json, T> Part(T&& value) : value_(std::forward<T>(value)) {}
  Part(Parts parts) : value_(parts) {}

 private:
  friend class Json;
  mutable Json value_;
};

class Json::Items {
 public:
  struct Item {
    const std::string& name;
    const Json& value;
  };
  class Iterator {
   public:
    Iterator(const std::string* name, const Json* value) : name_(name), value_(value) {}
    Item operator*() const { return {*name_, *value_}; }
    Iterator& operator++() {
      ++name_;
      ++value_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return value_ != other.value_; }

   private:
    const std::string* name_;
    const Json* value_;
  };

  explicit Items(const Json* object) : object_(object) {}
  Iterator begin() const { return {object_->Names().data(), object_->begin()}; }
  Iterator end() const { return {nullptr, object_->end()}; }

 private:
  const Json* object_;
};

inline Json::Items Json::items() const { return Items(this); }

// The order of an object's members.
enum class JsonOrder : uint8_t { kByName, kAsAdded };

// `is_discarded()` where the text is not JSON or nests too deep; never throws for what a text
// holds. The last of two members of one name counts.
Json ParseJson(std::string_view text, JsonOrder order = JsonOrder::kByName);

bool IsJson(std::string_view text);

// `indent` spaces a level, or one line where it is -1. Bytes that are no UTF-8 become U+FFFD.
std::string WriteJson(const Json& value, int indent = -1, JsonOrder order = JsonOrder::kAsAdded);

}  // namespace ranktap::collector
