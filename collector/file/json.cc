#include "collector/file/json.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

namespace ranktap::collector {

struct Json::Members {
  std::vector<std::string> names;
  std::vector<Json> values;
  bool is_sorted = true;  // by name, none twice

  Json* Add(std::string name, Json value) {
    is_sorted &= names.empty() || names.back() < name;
    names.push_back(std::move(name));
    return &values.emplace_back(std::move(value));
  }

  // The last of several members of one name stays.
  void Sort() {
    if (is_sorted) return;
    std::vector<size_t> order(names.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](size_t i) -> const std::string& { return names[i]; });
    Members sorted;
    for (size_t i = 0; i < order.size(); ++i) {
      if (i + 1 < order.size() && names[order[i]] == names[order[i + 1]]) continue;
      sorted.Add(std::move(names[order[i]]), std::move(values[order[i]]));
    }
    *this = std::move(sorted);
  }

  const Json* Find(std::string_view name) const {
    const auto at =
        is_sorted ? std::ranges::lower_bound(names, name) : std::ranges::find(names, name);
    return at == names.end() || *at != name ? nullptr : &values[at - names.begin()];
  }
};

namespace {

bool NestsTooDeep(std::string_view text) {
  size_t depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (in_text) {
      if (byte == '\\') ++i;
      in_text = byte != '"';
    } else if (byte == '"') {
      in_text = true;
    } else if (byte == '[' || byte == '{') {
      if (++depth > kDeepestJson) return true;
    } else if ((byte == ']' || byte == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

const Json kNothing;

}  // namespace

Json::Json(Kind kind) : kind_(kind) {
  if (kind == Kind::kArray) scalar_.values = new std::vector<Json>();
  if (kind == Kind::kObject) scalar_.members = new Members();
}

Json::Json(std::string text) : kind_(Kind::kText) {
  scalar_.text = new std::string(std::move(text));
}

Json::Json(Parts parts) {
  const bool is_object = std::all_of(parts.begin(), parts.end(), [](const Part& part) {
    return part.value_.is_array() && part.value_.size() == 2 && part.value_[0].is_string();
  });
  *this = is_object ? object() : array();
  for (const Part& part : parts) {
    if (is_object) {
      (*this)[part.value_[0].text()] = std::move(part.value_[1]);
    } else {
      push_back(std::move(part.value_));
    }
  }
}

Json Json::array(Parts parts) {
  Json list = array();
  for (const Part& part : parts) list.push_back(std::move(part.value_));
  return list;
}

Json::Json(const Json& other) : kind_(other.kind_), scalar_(other.scalar_) {
  if (kind_ == Kind::kText) scalar_.text = new std::string(*scalar_.text);
  if (kind_ == Kind::kArray) scalar_.values = new std::vector<Json>(*scalar_.values);
  if (kind_ == Kind::kObject) scalar_.members = new Members(*scalar_.members);
}

void Json::Free() {
  if (kind_ == Kind::kText) delete scalar_.text;
  if (kind_ == Kind::kArray) delete scalar_.values;
  if (kind_ == Kind::kObject) delete scalar_.members;
}

const std::string& Json::text() const {
  if (kind_ != Kind::kText) throw std::domain_error("the value is no text");
  return *scalar_.text;
}

std::string& Json::text() { return const_cast<std::string&>(std::as_const(*this).text()); }

bool Json::Truth() const {
  if (kind_ != Kind::kTruth) throw std::domain_error("the value is no truth");
  return scalar_.bits != 0;
}

uint64_t Json::Whole() const {
  if (!is_number_integer()) throw std::domain_error("the value is no whole number");
  return scalar_.bits;
}

double Json::Real() const {
  if (kind_ == Kind::kReal) return scalar_.real;
  return kind_ == Kind::kSigned ? static_cast<double>(static_cast<int64_t>(scalar_.bits))
                                : static_cast<double>(Whole());
}

const std::vector<Json>& Json::Values() const {
  if (kind_ != Kind::kArray) throw std::domain_error("the value is no array");
  return *scalar_.values;
}

const std::vector<std::string>& Json::Names() const {
  if (kind_ != Kind::kObject) throw std::domain_error("the value is no object");
  return scalar_.members->names;
}

size_t Json::size() const {
  if (kind_ == Kind::kArray) return scalar_.values->size();
  if (kind_ == Kind::kObject) return scalar_.members->values.size();
  return is_null() ? 0 : 1;
}

const Json* Json::begin() const {
  if (kind_ == Kind::kArray) return scalar_.values->data();
  return kind_ == Kind::kObject ? scalar_.members->values.data() : this;
}

const Json* Json::end() const { return begin() + size(); }

const Json& Json::At(size_t index) const { return index < size() ? begin()[index] : kNothing; }

Json& Json::At(size_t index) {
  if (index >= size()) throw std::domain_error("the value has no such place");
  return begin()[index];
}

void Json::push_back(Json value) {
  if (is_null()) *this = array();
  if (kind_ != Kind::kArray) throw std::domain_error("the value is no array");
  scalar_.values->push_back(std::move(value));
}

void Json::resize(size_t size) {
  if (kind_ != Kind::kArray) throw std::domain_error("the value is no array");
  scalar_.values->resize(size);
}

const Json* Json::Find(std::string_view name) const {
  return kind_ == Kind::kObject ? scalar_.members->Find(name) : nullptr;
}

const Json& Json::operator[](std::string_view name) const {
  const Json* const member = Find(name);
  return member == nullptr ? kNothing : *member;
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) *this = object();
  if (const Json* const member = Find(name)) return const_cast<Json&>(*member);
  if (kind_ != Kind::kObject) throw std::domain_error("the value is no object");
  return *scalar_.members->Add(std::string(name), nullptr);
}

void Json::update(const Json& members) {
  for (const auto& [name, value] : members.items()) (*this)[name] = value;
}

bool Json::Equals(const Json& other) const {
  if (is_number() && other.is_number()) {
    if (kind_ == Kind::kReal || other.kind_ == Kind::kReal) return Real() == other.Real();
    return scalar_.bits == other.scalar_.bits && is_number_unsigned() == other.is_number_unsigned();
  }
  if (kind_ != other.kind_ || is_discarded()) return false;
  if (kind_ == Kind::kTruth) return scalar_.bits == other.scalar_.bits;
  if (kind_ == Kind::kText) return text() == other.text();
  if (kind_ == Kind::kArray) return *scalar_.values == *other.scalar_.values;
  return is_null() ||
         (size() == other.size() && std::ranges::all_of(Names(), [&](const std::string& name) {
            const Json* const member = other.Find(name);
            return member != nullptr && *Find(name) == *member;
          }));
}

// From a text to a value and back; the names of its functions are nlohmann's.
class JsonCodec : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonCodec(JsonOrder order) : order_(order) {}

  Json Read(std::string_view text) {
    return nlohmann::json::sax_parse(text, this) ? std::move(root_) : Json::discarded();
  }

  std::string Write(const Json& value, int indent) {
    indent_ = indent;
    Append(value, 0);
    return std::move(text_);
  }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(value); }
  bool number_unsigned(uint64_t value) override { return Add(value); }
  bool number_float(double value, const std::string&) override { return Add(value); }
  bool string(std::string& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool key(std::string& name) override {
    name_ = std::move(name);
    return true;
  }
  bool start_array(size_t) override { return Begin(Json::array()); }
  bool start_object(size_t) override { return Begin(Json::object()); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool end_object() override {
    if (order_ == JsonOrder::kByName) open_.back()->scalar_.members->Sort();
    return end_array();
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  Json* Place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Json* const open = open_.back();
    if (open->is_object() && order_ == JsonOrder::kAsAdded) {
      return &((*open)[name_] = std::move(value));
    }
    if (open->is_object()) return open->scalar_.members->Add(std::move(name_), std::move(value));
    open->push_back(std::move(value));
    return &open->back();
  }

  bool Add(Json value) {
    Place(std::move(value));
    return true;
  }

  bool Begin(Json list) {
    open_.push_back(Place(std::move(list)));
    return true;
  }

  void Append(const Json& value, int depth) {
    switch (value.kind_) {
      case Json::Kind::kText:
        return AppendText(value.text());
      case Json::Kind::kArray:
        return AppendList(value, nullptr, depth);
      case Json::Kind::kObject:
        return AppendList(value, value.scalar_.members, depth);
      case Json::Kind::kUnsigned:
        text_ += std::to_string(value.Whole());
        return;
      case Json::Kind::kSigned:
        text_ += std::to_string(static_cast<int64_t>(value.Whole()));
        return;
      case Json::Kind::kReal:
        text_ += nlohmann::json(value.Real()).dump();
        return;
      case Json::Kind::kTruth:
        text_ += value.Truth() ? "true" : "false";
        return;
      case Json::Kind::kNull:
        text_ += "null";
        return;
      case Json::Kind::kDiscarded:
        text_ += "<discarded>";
        return;
    }
  }

  void AppendText(const std::string& text) {
    const bool is_plain = std::ranges::all_of(
        text, [](char byte) { return byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\'; });
    if (is_plain) {
      text_.append("\"").append(text).append("\"");
    } else {
      text_ += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
  }

  void AppendList(const Json& list, const Json::Members* members, int depth) {
    std::vector<size_t> order(list.size());
    std::iota(order.begin(), order.end(), 0);
    if (members != nullptr && order_ == JsonOrder::kByName && !members->is_sorted) {
      std::ranges::sort(order, {},
                        [&](size_t i) -> const std::string& { return members->names[i]; });
    }
    text_ += members == nullptr ? '[' : '{';
    bool is_first = true;
    for (const size_t i : order) {
      if (!std::exchange(is_first, false)) text_ += ',';
      AppendBreak(depth + 1);
      if (members != nullptr) {
        AppendText(members->names[i]);
        text_ += indent_ < 0 ? ":" : ": ";
      }
      Append(list[i], depth + 1);
    }
    if (!is_first) AppendBreak(depth);
    text_ += members == nullptr ? ']' : '}';
  }

  void AppendBreak(int depth) {
    if (indent_ < 0) return;
    text_ += '\n';
    text_.append(static_cast<size_t>(depth * indent_), ' ');
  }

  JsonOrder order_;
  int indent_ = -1;
  std::string text_, name_;
  Json root_;
  std::vector<Json*> open_;
};

Json ParseJson(std::string_view text, JsonOrder order) {
  return NestsTooDeep(text) ? Json::discarded() : JsonCodec(order).Read(text);
}

bool IsJson(std::string_view text) { return !NestsTooDeep(text) && nlohmann::json::accept(text); }

std::string WriteJson(const Json& value, int indent, JsonOrder order) {
  return JsonCodec(order).Write(value, indent);
}

}  // namespace ranktap::collector
