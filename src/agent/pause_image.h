// The image of the pause container (pause_container.h): one static program that is part of cotenant, so
// that no registry is needed. Pure.
#pragma once

#include <string>

namespace cotenant::agent {

// "cotenant/pause:<12 hex of its content>": another version of cotenant has another image.
std::string pause_image_name();

// The file system of the image, as a tar archive (POSIX ustar) with the program at /pause.
std::string pause_image_tar();

inline constexpr const char* kPauseProgram = "/pause";

}  // namespace cotenant::agent
