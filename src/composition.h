// The only place that names concrete adapters.
#pragma once

#include "cli/composition.h"

namespace cotenant {

cli::Composition make_composition();

}  // namespace cotenant
