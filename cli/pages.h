// Live pages, as the verbs use them: which folder, which process, and what an answer means in words.
#pragma once
#include <string>

#include "live/mailbox.h"
#include "live/reader.h"

namespace gpupool::cli {

/// Where live pages lie, as the configuration says.
std::string page_folder();

/// The page of a running process: its number, or the name of its page where several containers share one. A Problem
/// otherwise.
PageCopy page_of_process(const std::string& text);

std::string reply_text(const Answer& answer);

}  // namespace gpupool::cli
