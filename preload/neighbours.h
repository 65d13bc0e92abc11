// Sharing a card with other processes of the same user. Each process that has a live page gives free memory back when
// another one asks (live/mailbox.h), be it idle or busy: a thread of its own sleeps until a letter comes. And a process
// that the card has too little memory for asks those that hold some free. The thread exists only beside a live page,
// and is stopped before the process's report; asking happens on the program's thread, outside any lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "preload/guard.h"
#include "preload/page.h"

namespace gpupool {

class Home;

class Neighbours {
 public:
  explicit Neighbours(OwnPage& page) : page_(page) {}

  /// Opens the mailbox, if there is a page and a thread can be had. Once.
  void start();
  /// No letter is answered any more. Not from inside one of our own calls.
  void stop();

  /// Asks for `wanted` bytes of free memory on a card; nobody is made to give anything where less than `least` could be
  /// had. What was given.
  std::uint64_t ask(const Guard& guard, const std::string& uuid, std::uint64_t least, std::uint64_t wanted);

  /// What others would give on a card if they were asked for all of it, as of now.
  std::uint64_t free_on(const Guard& guard, const std::string& uuid) const;

 private:
  OwnPage& page_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// The request needs more than the card has free while pool.max would allow it: asks the neighbours. True when memory
/// was given, so that another try may succeed.
bool ask_neighbours(const Guard& guard, const Home& home, std::uint64_t bytes);

/// The same for a call that the driver serves, `bytes` where it says how many, on the current device.
bool ask_neighbours(const Guard& guard, std::uint64_t bytes);

}  // namespace gpupool
