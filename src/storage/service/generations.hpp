// Generations of a file: how often it was opened for writing.  Its stripe objects have one before the metadata, so no
// stripe object is ever older than the metadata say, and after a crash at most one newer.
#pragma once

#include <string>

#include "storage/service/store_core.hpp"

namespace ooc::storage {

/// Gives all stripe objects of `e` the next generation.  `claims`: with that begins the claim to write it.  Who has
/// been quicker (errc::conflict) has told the metadata of the step before.
failure advance(store_core& store, entry& e, bool claims = false);

/// After a generation of what was `before` was refused: throws if nobody else has opened or resized the file since.
void require_changed(const entry& before, const entry& now, const failure& f);

/// Throws io_error (ETIMEDOUT) where the caller's claim to write the file has been lost since he took it: what he has
/// looked up may be that of the next holder, whose claim nodes could not tell from his.
void require_claim(store_core& store, file_id id, const std::string& path);

/// Gives the file of `e` the next generation, and returns it as it is then.  `claims`, `alone`: with that begins the
/// claim to write it, which the caller took before he looked the file up; throws as require_claim() does.  Stripe
/// objects that are made later have it from the beginning.
entry with_next_generation(store_core& store, entry e, bool claims = false, bool alone = false);

}  // namespace ooc::storage
