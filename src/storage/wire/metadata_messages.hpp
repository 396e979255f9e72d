// Entries, new files and failures of the metadata service as messages, and back.
//
// Reading checks what the types promise and throws usage_error (errc::invalid_request) otherwise.
// Any thread may call.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "oocarray/error.hpp"
#include "storage/service/metadata_service.hpp"
#include "storage/wire/messages.hpp"
#include "storage/wire/messages.pb.h"
#include "storage/wire/metadata.pb.h"

namespace ooc::wire {

using attribute_messages = google::protobuf::RepeatedPtrField<pb::Attribute>;
void write_attributes(const std::map<std::string, std::string>& all, attribute_messages& m);
std::map<std::string, std::string> read_attributes(const attribute_messages& m);

void write_entry(const storage::entry& e, pb::Entry& m);
/// Without a capability.
storage::entry read_entry(const pb::Entry& m);

void write_new_file(const storage::new_file& f, pb::NewFile& m);
storage::new_file read_new_file(const pb::NewFile& m);

void write_new_entry(const storage::new_entry& n, pb::NewEntry& m);
storage::new_entry read_new_entry(const pb::NewEntry& m);
void write_change(const storage::entry_change& c, pb::EntryChange& m);
storage::entry_change read_change(const pb::EntryChange& m);

/// An exception by its code and text; one without a code is EIO, or ENOMEM where memory ran out.
void write_failure(const std::exception& e, pb::Failure& m);

/// Body of a failed reply.
std::string encode_failure(const std::exception& e);
/// The same as an exception of the same kind, code and text.
[[noreturn]] void throw_failure(std::string_view body);

/// Parses a body; throws io_error (EPROTO) where it is no such message.
template <class Message>
Message parse_body(std::string_view body) {
  Message m;
  if (!m.ParseFromArray(body.data(), static_cast<int>(body.size())))
    throw io_error::in_full({EPROTO, std::generic_category()},
                            "a message that cannot be read: it is no " + std::string(m.GetTypeName()));
  return m;
}

}  // namespace ooc::wire
