// Text that a client, a file or a name brought, on its way to a terminal, a log line or a cell of
// CSV: the one place that makes it harmless. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ranktap::collector {

// '?' for each control character (newlines and U+0080 to U+009F among them), each mark that turns
// the direction of text or breaks a line, and each byte that is not UTF-8. The rest stays as it is.
std::string Printable(std::string_view text);

// The same, for a spreadsheet: what it would take for a formula (= + - @ at the beginning) gets an
// apostrophe before it. Quotes are the caller's.
std::string PrintableCell(std::string_view text);

// Length of the UTF-8 sequence at the beginning of `text`, which is not empty; 0: it is none.
size_t Utf8Length(std::string_view text);

}  // namespace ranktap::collector
