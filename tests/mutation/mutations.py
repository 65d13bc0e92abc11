"""The faults that scripts/mutate plants. Each text is found exactly once in its file."""
import dataclasses

MODEL = "model"  # random lists of operations on the tape
EVERY = "every"  # all short lists
LADDER = "ladder"  # the steps from a hole to a refusal
TORTURE = "torture"  # whole programs under the preload, on the simulated driver


@dataclasses.dataclass(frozen=True)
class Mutation:
    name: str
    file: str
    old: str
    new: str
    by: str = MODEL


MUTATIONS = (
    # Time: records and waits.
    Mutation("wait_skipped", "pool/timelines.cpp", "!fence_.wait(lines_[requester].stream, made->event)", "false", EVERY),
    Mutation("record_skipped", "pool/timelines.cpp", "fence_.record(on, record->event)", "RecordResult::kRecorded", EVERY),
    Mutation("record_on_another_stream", "pool/timelines.cpp", "make_record(line, line.stream, Timing::kAtTheFree, error)",
             "make_record(line, lines_.back().stream, Timing::kAtTheFree, error)"),
    Mutation("late_record_waited_for", "pool/timelines.cpp", "record->late = timing == Timing::kLate;",
             "record->late = false;"),
    Mutation("wait_of_one_stream_taken_for_all", "pool/timelines.cpp", "  waiting.waited[owner] = made->number;\n",
             "  for (Timeline& each : lines_) {\n    each.waited.resize(std::max<std::size_t>(each.waited.size(), owner + 1));\n"
             "    each.waited[owner] = made->number;\n  }\n"),
    Mutation("context_line_is_its_own", "pool/timelines.h", " && owner != kContextLine && line.alive", " && line.alive", EVERY),
    Mutation("capture_taken_for_a_record", "pool/timelines.cpp", "if (result == RecordResult::kNotNow) return false;", ""),
    Mutation("plain_free_of_another_thread_waited_for", "pool/timelines.cpp",
             "if (owner == kContextLine && made->number > request.own_free) return Need::kCompletion;", "", EVERY),
    Mutation("line_reused_with_fragments", "pool/timelines.cpp", "if (!lines_[i].alive && fragments_.count(i) == 0) unused = i;",
             "if (!lines_[i].alive) unused = i;"),
    Mutation("waits_of_a_reused_line_kept", "pool/timelines.cpp", "if (unused < other.waited.size()) other.waited[unused] = 0;",
             ";"),
    Mutation("no_wait_ignored", "pool/timelines.cpp", "may_wait || policy_ == ReusePolicy::kQuiescent",
             "may_wait * 0 + 1 == 0 || policy_ == ReusePolicy::kQuiescent"),
    Mutation("timeout_taken_for_done", "pool/timelines.cpp", "if (!fence_.wait_on_host(made->event, patience_ms_)) {",
             "if (!fence_.wait_on_host(made->event, patience_ms_) && patience_ms_ == 0) {"),
    Mutation("wait_on_the_host_not_counted", "pool/host_wait.h", " stats.host_waits.add(1); ", " ", LADDER),
    Mutation("late_record_waited_for_without_an_end", "pool/tape.cpp", "pending && parts_->timelines.is_exact(line, record);", "pending;",
             LADDER),
    Mutation("query_not_asked", "pool/timelines.cpp", "fence_.query(made->event)", "Progress::kDone", EVERY),
    # Bytes: fragments, holes, blocks.
    Mutation("fragment_lost_in_a_merge", "pool/fragments.h", "return join_lists(listed(front, front_range), listed(back, back_range));",
             "discard(back);\n    return listed(front, front_range);"),
    Mutation("clean_neighbour_cleans", "pool/fragments.cpp", "if (front.clean()) return back;",
             "if (front.clean()) {\n    discard(back);\n    return {};\n  }"),
    Mutation("only_the_first_fragment_looked_at", "pool/fragments.h", "if (!visit(fragment)) return false;",
             "return visit(fragment);"),
    Mutation("cut_one_off", "pool/fragments.cpp", "upper.range.begin = place;", "upper.range.begin = place + 1;"),
    Mutation("recent_block_handed_out_in_use", "pool/tape.cpp",
             "    if (!parts_->reuse.needs_nothing(hole, request) || !is_located(hole.range, request)) return false;",
             "    if (!is_located(hole.range, request)) return false;", EVERY),
    Mutation("recent_block_loses_its_history", "pool/best_fit.cpp", "recent_.remove(segment->range());\n  become_hole(segment, history_of(*segment));",
             "recent_.remove(segment->range());\n  become_hole(segment, {});"),
    Mutation("shared_block_loses_its_history", "pool/best_fit.cpp",
             "retained_bytes_ -= bytes_of(segment->size);\n  become_hole(segment, history_of(*segment));",
             "retained_bytes_ -= bytes_of(segment->size);\n  become_hole(segment, {});"),
    Mutation("sharing_forgotten", "pool/tape.cpp", "return parts_->space.share({place, place + granules_for(last)}, sharing);",
             "return static_cast<void>(sharing), true;"),
    Mutation("exported_memory_reused", "pool/best_fit.cpp",
             "if (owned.block.sharing != Sharing::kNone) return retain(owned.segment, history, owned.block.sharing);", ""),
    # Memory: handles that move.
    Mutation("migration_without_completion", "pool/growth.cpp",
             "if (donor->size > room || !p_.reuse.complete({donor->begin, donor->begin + donor->size}, effort)) continue;",
             "if (donor->size > room || effort == Effort::kBlock) continue;"),
    Mutation("trim_under_work", "pool/growth.cpp",
             "if (p_.reuse.complete({donor.begin, donor.begin + donor.size}, Effort::kBlock)) give_back(donor.begin);",
             "give_back(donor.begin);"),
    Mutation("recut_under_work", "pool/growth.cpp",
             "if (donor->size <= room || !p_.reuse.complete({donor->begin, donor->begin + donor->size}, Effort::kBlock)) continue;",
             "if (donor->size <= room) continue;"),
    Mutation("pool_max_ignored", "pool/growth.cpp", "std::min(below_max, above_headroom)", "std::max(below_max * 0, above_headroom)"),
    Mutation("address_of_a_failed_slab_kept", "pool/growth.cpp", "    p_.addresses.remove(place.begin);\n    return {};", "    return {};"),
    # The program's calls.
    Mutation("fence_waits_nowhere", "device/cuda_fence.cpp", "return api_.cuStreamWaitEvent(stream, recorded, 0);",
             "return static_cast<void>(recorded), CUDA_SUCCESS;", TORTURE),
    Mutation("freed_on_the_legacy_stream", "preload/hooks_async.cpp", "const StreamSpot spot = line_on(guard, *home, stream);",
             "const StreamSpot spot = line_on(guard, *home, CU_STREAM_LEGACY);", TORTURE),
    Mutation("threads_share_their_stream", "preload/streams.cpp", "return kThreadStream | thread_serial;", "return kThreadStream | 1;",
             TORTURE),
    Mutation("capture_not_seen", "preload/hooks_track.cpp", "if (result == CUDA_SUCCESS) process().captures.began(origin);",
             "static_cast<void>(origin);", TORTURE),
    Mutation("stream_end_not_seen", "preload/streams.cpp",
             "if (home.serves()) home.tape()->stream_ending(reinterpret_cast<StreamRef>(stream));", "static_cast<void>(stream);", TORTURE),
)
