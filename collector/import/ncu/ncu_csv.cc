#include "collector/import/ncu/ncu_csv.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "collector/file/printable.h"
#include "collector/import/ncu/ncu_numbers.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostColumns = 20'000, kMostMetricsOfKernel = 256;
constexpr size_t kAbsent = std::string::npos;

// nullopt: a quote is not closed, or stands where none may.
std::optional<std::vector<std::string>> FieldsOf(std::string_view line) {
  std::vector<std::string> fields;
  size_t at = 0;
  while (fields.size() < kMostColumns) {
    std::string& field = fields.emplace_back();
    if (at < line.size() && line[at] == '"') {
      for (++at;; ++at) {
        if (at >= line.size()) return std::nullopt;
        if (line[at] == '"' && !line.substr(at + 1).starts_with('"')) break;
        if (line[at] == '"') ++at;
        field += line[at];
      }
      ++at;
      if (at < line.size() && line[at] != ',') return std::nullopt;
    } else {
      const size_t comma = std::min(line.find(',', at), line.size());
      field = line.substr(at, comma - at);
      at = comma;
    }
    if (at >= line.size()) return fields;
    ++at;
  }
  return std::nullopt;
}

// "(80, 1, 1)"; zeros where it is none.
std::array<uint32_t, 3> SizesOf(std::string_view text) {
  std::array<uint32_t, 3> sizes{};
  for (uint32_t& size : sizes) {
    const size_t from = std::min(text.find_first_of("0123456789"), text.size());
    const auto [end, error] = std::from_chars(text.data() + from, text.data() + text.size(), size);
    if (error != std::errc()) return {};
    text = text.substr(static_cast<size_t>(end - text.data()));
  }
  return sizes;
}

// A metric's column: its name, and its unit where the heading has it ("dram__bytes.sum [Mbyte]").
struct MetricColumn {
  size_t column = 0;
  std::string name, unit;
};

struct Columns {
  size_t count = 0, id = kAbsent, process = kAbsent, kernel = kAbsent, grid = kAbsent,
         block = kAbsent;
  size_t metric = kAbsent, unit = kAbsent, value = kAbsent;  // of long rows
  std::vector<MetricColumn> metrics;                         // of wide rows
  bool is_long() const { return metric != kAbsent; }
};

std::optional<Columns> HeadingOf(const std::vector<std::string>& fields,
                                 bool (*is_wanted)(std::string_view)) {
  Columns columns;
  columns.count = fields.size();
  const std::pair<std::string_view, size_t*> known[] = {{"ID", &columns.id},
                                                        {"Process ID", &columns.process},
                                                        {"Kernel Name", &columns.kernel},
                                                        {"Grid Size", &columns.grid},
                                                        {"Block Size", &columns.block},
                                                        {"Metric Name", &columns.metric},
                                                        {"Metric Unit", &columns.unit},
                                                        {"Metric Value", &columns.value}};
  for (size_t i = 0; i < fields.size(); ++i) {
    for (const auto& [name, column] : known) {
      if (fields[i] == name) *column = i;
    }
    const size_t bracket = fields[i].find(" [");
    MetricColumn metric{i, fields[i].substr(0, bracket), ""};
    if (bracket != std::string::npos && fields[i].ends_with(']')) {
      metric.unit = fields[i].substr(bracket + 2, fields[i].size() - bracket - 3);
    }
    if (is_wanted(metric.name)) columns.metrics.push_back(std::move(metric));
  }
  const bool has_values = columns.value != kAbsent;
  if (columns.id == kAbsent || columns.kernel == kAbsent || columns.is_long() != has_values) {
    return std::nullopt;
  }
  return columns;
}

class NcuReader {
 public:
  explicit NcuReader(bool (*is_wanted)(std::string_view)) : is_wanted_(is_wanted) {}

  Result<NcuFile> Read(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    while (!text.empty() && wrong_.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++line_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      TakeLine(line);
    }
    if (wrong_.empty() && !columns_) {
      line_ = 0;
      Wrong("no line with the columns \"ID\" and \"Kernel Name\": no file of ncu --csv");
    }
    if (wrong_.empty()) TakeValues();
    if (!wrong_.empty()) return Failure{wrong_};
    KeepOneProcess();
    return std::move(file_);
  }

 private:
  // A reading whose number is read once the file has said how numbers are written.
  struct Value {
    size_t kernel = 0, line = 0;
    std::string metric, unit, number;
  };

  void Wrong(std::string_view what) {
    wrong_ = line_ == 0 ? std::string(what) : fmt::format("{}: {}", line_, what);
  }

  void TakeLine(std::string_view line) {
    // Before the heading anything is the program's own; after it what does not begin as it does.
    if (line.empty() || line.starts_with("==")) return;
    if (columns_ && is_quoted_ != line.starts_with('"')) return;
    const auto fields = FieldsOf(line);
    if (!columns_) {
      if (fields) columns_ = HeadingOf(*fields, is_wanted_);
      if (columns_) heading_ = *fields;
      is_quoted_ = line.starts_with('"');
      return;
    }
    if (!fields) return Wrong("a quote that nothing closes: the file was cut off");
    if (*fields == heading_) return;
    if (fields->size() != columns_->count) {
      return Wrong(fmt::format("{} fields below a heading of {}", fields->size(), columns_->count));
    }
    if ((*fields)[columns_->id].empty()) {
      for (MetricColumn& metric : columns_->metrics) {
        if (!(*fields)[metric.column].empty()) metric.unit = (*fields)[metric.column];
      }
      return;
    }
    TakeRow(*fields);
  }

  void TakeRow(const std::vector<std::string>& fields) {
    const std::string process = columns_->process == kAbsent ? "" : fields[columns_->process];
    const auto [at, is_new] =
        by_id_.try_emplace({process, fields[columns_->id]}, file_.kernels.size());
    if (is_new) {
      ReadKernel& kernel = file_.kernels.emplace_back();
      kernel.name = fields[columns_->kernel];
      if (columns_->grid != kAbsent) kernel.grid = SizesOf(fields[columns_->grid]);
      if (columns_->block != kAbsent) kernel.block = SizesOf(fields[columns_->block]);
      processes_.push_back(process);
    } else if (!columns_->is_long()) {
      return Wrong(
          fmt::format("the kernel with the ID {} is there twice", Printable(fields[columns_->id])));
    }
    if (columns_->is_long()) {
      const std::string& metric = fields[columns_->metric];
      if (!is_wanted_(metric)) return;
      const std::string unit = columns_->unit == kAbsent ? "" : fields[columns_->unit];
      return TakeReading(at->second, metric, unit, fields[columns_->value]);
    }
    for (const MetricColumn& metric : columns_->metrics) {
      TakeReading(at->second, metric.name, metric.unit, fields[metric.column]);
    }
  }

  void TakeReading(size_t kernel, const std::string& metric, const std::string& unit,
                   const std::string& number) {
    if (number.empty() || number == "n/a" || number == "nan" || number == "(!) n/a") {
      ++file_.absent;
      return;
    }
    if (!ScaleOfUnit(unit)) {
      return Wrong(
          fmt::format("{} in '{}', a unit that ranktap does not know; ncu --print-units "
                      "base writes those that it does",
                      Printable(metric), Printable(unit)));
    }
    if (!style_.Learn(number)) {
      return Wrong(fmt::format("{}: '{}' is no number, or one of another locale than those above",
                               Printable(metric), Printable(number)));
    }
    values_.push_back({kernel, line_, metric, unit, number});
  }

  void TakeValues() {
    for (const Value& value : values_) {
      const std::optional<double> number = style_.Read(value.number);
      line_ = value.line;
      if (!number) {
        return Wrong(
            fmt::format("{}: '{}' is no number", Printable(value.metric), Printable(value.number)));
      }
      auto& readings = file_.kernels[value.kernel].readings;
      // A metric of two sections is there twice.
      const bool is_known = std::ranges::any_of(
          readings, [&value](const auto& reading) { return reading.first == value.metric; });
      if (is_known || readings.size() == kMostMetricsOfKernel) continue;
      readings.emplace_back(value.metric, *number * *ScaleOfUnit(value.unit));
    }
    file_.is_ambiguous = style_.is_ambiguous();
  }

  void KeepOneProcess() {
    std::map<std::string, size_t> kernels;
    for (const std::string& process : processes_) ++kernels[process];
    file_.processes = kernels.size();
    const auto most = std::ranges::max_element(
        kernels, [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<ReadKernel> kept;
    for (size_t i = 0; i < processes_.size(); ++i) {
      if (processes_[i] == most->first) kept.push_back(std::move(file_.kernels[i]));
    }
    file_.left_out = file_.kernels.size() - kept.size();
    file_.kernels = std::move(kept);
  }

  bool (*is_wanted_)(std::string_view);
  size_t line_ = 0;
  std::string wrong_;
  std::optional<Columns> columns_;
  std::vector<std::string> heading_;
  bool is_quoted_ = false;
  std::map<std::pair<std::string, std::string>, size_t> by_id_;
  std::vector<std::string> processes_;  // of the kernels
  std::vector<Value> values_;
  NumberStyle style_;
  NcuFile file_;
};

}  // namespace

Result<NcuFile> ParseNcu(std::string_view text, bool (*is_wanted)(std::string_view metric)) {
  return NcuReader(is_wanted).Read(text);
}

}  // namespace ranktap::collector
