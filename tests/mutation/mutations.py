"""The faults that scripts/mutate plants. Each text is found exactly once in its file."""
import dataclasses

MODEL = "model"  # random lists of operations on the tape
EVERY = "every"  # all short lists
LADDER = "ladder"  # the steps from a hole to a refusal
TORTURE = "torture"  # whole programs under the preload, on the simulated driver
CASES = "cases"  # tests/cases with one tag


@dataclasses.dataclass(frozen=True)
class Mutation:
    name: str
    file: str
    old: str
    new: str
    by: str = MODEL
    case: str = ""  # the tag of what finds it, by CASES


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
    Mutation("line_reused_with_fragments", "pool/timelines.cpp", "if (fragments_.count(free_lines_[i]) == 0) return i;",
             "return i;"),
    Mutation("waits_of_a_reused_line_kept", "pool/timelines.cpp", "if (line.recorded != 0) forget_waits_for(fresh);", ";"),
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
    # The cases: each fault is one that programs met, brought back.
    Mutation("foreign_free_refused", "preload/hooks_alloc.cpp", ": pass_free(guard, kRow_cuMemFree_v2, address, ask);",
             ": address ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;", CASES, "case-15"),
    Mutation("wrong_free_taken", "preload/serve.cpp", "if (freed.result == FreeResult::kNotABlock) return CUDA_ERROR_INVALID_VALUE;",
             "if (freed.result == FreeResult::kNotABlock) return CUDA_SUCCESS;", CASES, "case-43"),
    Mutation("block_exported_by_the_driver", "preload/hooks_ipc.cpp", "if (!home || !handle || !has_context",
             "if (home || !handle || !has_context", CASES, "case-17"),
    Mutation("descriptor_forgotten", "preload/hooks_truth.cpp", "home->tape()->share(address, Sharing::kReferenced, bytes);", ";",
             CASES, "case-18"),
    Mutation("tokens_among_others_forgotten", "preload/hooks_truth.cpp",
             "if (home && attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS) home->tape()->share(block.address, Sharing::kFixed);", "",
             CASES, "case-18"),
    Mutation("capture_of_a_thread_not_seen", "preload/hooks_track.cpp",
             "return begin_capture(Flavour::kPerThread, stream, [&] { return real::cuStreamBeginCapture_v2_ptsz(stream, mode); });",
             "return real::cuStreamBeginCapture_v2_ptsz(stream, mode);", CASES, "case-19"),
    Mutation("capture_to_a_graph_not_seen", "preload/hooks_track.cpp",
             "return begin_capture(Flavour::kLegacy, stream,\n                       "
             "[&] { return real::cuStreamBeginCaptureToGraph(stream, graph, nodes, edges, count, mode); });",
             "return real::cuStreamBeginCaptureToGraph(stream, graph, nodes, edges, count, mode);", CASES, "case-19"),
    Mutation("given_back_under_a_kernel", "pool/growth.cpp",
             "if (p_.reuse.complete({donor.begin, donor.begin + donor.size}, Effort::kBlock)) give_back(donor.begin);",
             "give_back(donor.begin);", CASES, "case-21"),
    Mutation("holes_are_not_free_memory", "preload/hooks_truth.cpp", "std::uint64_t seen = *free + pools.holes;",
             "std::uint64_t seen = *free;", CASES, "case-22"),
    Mutation("free_taken_for_done", "preload/home.cpp", "if (captures_.any_open() && wait_beside_captures()) return WorkOnIt::kDone;",
             "if (!captures_.any_open() || wait_beside_captures()) return WorkOnIt::kDone;", CASES, "case-25"),
    Mutation("threads_share_a_default_stream", "preload/streams.cpp", "return home.tape()->line_of(this_thread_stream(), true);",
             "return home.tape()->line_of(kThreadStream | 1, true);", CASES, "case-27"),
    Mutation("thread_stream_taken_for_the_legacy_one", "preload/streams.h",
             "return flavour == Flavour::kPerThread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;",
             "return flavour == Flavour::kPerThread ? CU_STREAM_LEGACY : CU_STREAM_LEGACY;", CASES, "case-27"),
    Mutation("room_is_not_made", "preload/serve.cpp", "if (holes == 0 || bytes > free + holes) return false;",
             "if (holes == 0 || bytes > 0) return false;", CASES, "case-24"),
    Mutation("headroom_of_a_full_card_ignored", "pool/growth.cpp", "return std::min(below_max, above_headroom) /",
             "return (above_headroom ? below_max : 0) /", CASES, "case-33"),
    Mutation("rows_without_their_padding", "preload/hooks_alloc.cpp", "? pitch * height : 0;", "? width * height : 0;", CASES,
             "case-41"),
    Mutation("rows_that_wrap", "preload/hooks_alloc.cpp", "return height <= kLargestRequest / pitch ? pitch * height : 0;",
             "return pitch * height;", CASES, "case-44"),
    Mutation("errno_lost", "preload/guard.h", "    errno = errno_;", "    errno = 5;", CASES, "case-11"),
    Mutation("owner_by_current_device", "preload/hooks_alloc.cpp",
             "Home* home = process().registry.at(address);\n  return home && home->serves() ? give_back",
             "Home* home = process().registry.here(guard, 1);\n  return home && home->serves() ? give_back", CASES, "case-48"),
    Mutation("peers_before_the_pool_forgotten", "preload/registry.cpp",
             "if (peer.owner == fresh.context()) fresh.add_peer(peer.accessor, peer.accessor_device);", "static_cast<void>(peer);",
             CASES, "case-50"),
)
