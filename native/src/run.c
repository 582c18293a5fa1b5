/* Runs of messages: many in one call, with room for several of them taken at once. */
#include "message.h"
#include "publication.h"

/* How often a run goes through a rotation, its own or that of another publisher, for one of its messages. */
#define ROTATION_ATTEMPTS 64

/* Room for several messages is taken at once as long as it is no longer than this and than the longest message's:
 * - Publishers look at the limit before they move the tail, so each may pass it by what it takes at once. That is never
 *   more than an ordinary offer may take, which is what the driver's distance between the limit and the oldest unread
 *   byte allows for.
 * - Others' messages wait behind what is not written yet.
 * - Moving the tail once for so much costs next to nothing already. */
#define ROOM_MAX (64 * 1024)

/* The driver frees readers of what a dead writer has left, as it does for an ordinary message of several frames: frames
 * are begun and finished one after the other, so there is at most one that is begun, whose negative length tells how
 * much to pass over, and behind it zeros up to the next publisher's frame or the end of the term, which is passed over
 * as one. */

/* Messages in one buffer, each with a length of its own, or all equally long and as far apart; or slices. */
typedef struct
{
    const uint8_t *data;
    const int32_t *lengths;
    const aa_slice_t *slices;
    size_t length;
    size_t stride;
    size_t count;
    /* The next message: its number, and where it begins in data. */
    size_t next;
    size_t offset;
} run_t;

static inline size_t length_at(const run_t *run, size_t index)
{
    return run->lengths != NULL  ? (size_t)run->lengths[index]
           : run->slices != NULL ? run->slices[index].length
                                 : run->length;
}

/* Whether all messages are equally long. */
static bool is_equal(const run_t *run)
{
    return run->lengths == NULL && run->slices == NULL;
}

/* Nothing may be added to a NULL, not even 0. */
static inline const uint8_t *data_at(const uint8_t *data, size_t offset)
{
    return offset == 0 ? data : data + offset;
}

static inline aa_slice_t take_message(run_t *run)
{
    if (run->slices != NULL)
    {
        return run->slices[run->next++];
    }
    const aa_slice_t message = {
        .data = data_at(run->data, run->offset),
        .length = length_at(run, run->next++),
    };
    run->offset += run->lengths != NULL ? message.length : run->stride;
    return message;
}

/* How many messages come next for which room may be taken at once, and how much that is: those that begin before the
 * limit and fit into the term; where there is none, one, so that it is found out why. */
static size_t measure(const aa_publication_t *publication, const run_t *run, int64_t *required)
{
    const aa_log_t *log = publication->log;
    const aa_room_t room = aa_reservation_room(publication);
    const int64_t longest = aa_reservation_length(log, (size_t)log->max_message_length);
    const int64_t most = aa_least(longest, ROOM_MAX);
    size_t count = 1;
    *required = aa_reservation_length(log, length_at(run, run->next));
    if (is_equal(run))
    {
        const int64_t fit = aa_least(most, room.term_end - room.position) / *required;
        const int64_t begin = (room.limit - room.position + *required - 1) / *required;
        const int64_t most_equal = aa_least(aa_least(fit, begin), (int64_t)(run->count - run->next));
        count = most_equal > 1 ? (size_t)most_equal : 1;
        *required *= (int64_t)count;
        return count;
    }
    while (run->next + count < run->count && room.position + *required < room.limit)
    {
        const int64_t further = *required + aa_reservation_length(log, length_at(run, run->next + count));
        if (further > most || room.position + further > room.term_end)
        {
            break;
        }
        *required = further;
        count++;
    }
    return count;
}

/* What is written might be anywhere, as far as the compiler knows: what is needed for every message is a local
 * variable, and thus in a register. */

/* Messages of one frame each, all equally long. */
static void write_equal(aa_slot_t slot, run_t *run, size_t count)
{
    const uint8_t *data = run->data;
    const size_t length = run->length;
    const size_t stride = run->stride;
    const int32_t framed = (int32_t)aa_align((int64_t)length + AA_FRAME_HEADER_LENGTH, AA_FRAME_ALIGNMENT);
    size_t offset = run->offset;
    for (size_t i = 0; i < count; i++)
    {
        aa_message_write_whole(slot, data_at(data, offset), length, 0);
        slot.offset += framed;
        offset += stride;
    }
    run->next += count;
    run->offset = offset;
}

static void write_messages(const aa_publication_t *publication, aa_slot_t slot, run_t *run, size_t count)
{
    if (is_equal(run) && run->length <= (size_t)publication->log->max_payload_length)
    {
        write_equal(slot, run, count);
        return;
    }
    run_t rest = *run;
    for (size_t i = 0; i < count; i++)
    {
        const aa_slice_t message = take_message(&rest);
        aa_message_write(publication, slot, message.data, message.length, 0);
        slot.offset += (int32_t)aa_reservation_length(publication->log, message.length);
    }
    *run = rest;
}

/* One attempt, for as many messages as room may be taken for. */
static int64_t append_some(aa_publication_t *publication, run_t *run)
{
    int64_t result = aa_reservation_enter(publication);
    if (result == AA_OK)
    {
        aa_slot_t slot;
        int64_t required;
        const size_t count = measure(publication, run, &required);
        result = aa_reservation_take(publication, required, &slot);
        if (result > 0)
        {
            write_messages(publication, slot, run, count);
        }
        aa_reservation_leave(publication);
    }
    return result;
}

static int64_t append_run(aa_publication_t *publication, run_t *run, int64_t *position)
{
    int64_t result = AA_OK;
    int attempts = 0;
    while (run->next < run->count)
    {
        result = append_some(publication, run);
        if (result > 0)
        {
            if (position != NULL)
            {
                *position = result;
            }
            attempts = 0;
        }
        else if (result != AA_ADMIN_ACTION || ++attempts == ROTATION_ATTEMPTS)
        {
            break;
        }
    }
    if (run->next == 0)
    {
        return result;
    }
    aa_waiters_wake(&publication->waiters);
    return (int64_t)run->next;
}

static int64_t check_lengths(const aa_log_t *log, size_t data_length, const int32_t *lengths, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
    {
        if (lengths[i] < 0 || (size_t)lengths[i] > data_length - total)
        {
            return AA_ARGUMENT;
        }
        total += (size_t)lengths[i];
        if (aa_message_is_too_long(log, (size_t)lengths[i]))
        {
            return AA_MESSAGE_TOO_LONG;
        }
    }
    return AA_OK;
}

int64_t aa_publication_offer_many(
    aa_publication_t *publication, const uint8_t *data, size_t data_length, const int32_t *lengths, size_t count,
    int64_t *position)
{
    const int64_t result = check_lengths(publication->log, data_length, lengths, count);
    if (result != AA_OK)
    {
        return result;
    }
    return append_run(publication, &(run_t){.data = data, .lengths = lengths, .count = count}, position);
}

int64_t aa_publication_offer_equal(
    aa_publication_t *publication, const uint8_t *data, size_t data_length, size_t length, size_t stride, size_t count,
    int64_t *position)
{
    if (count > 0 && (length > data_length || (stride > 0 && count - 1 > (data_length - length) / stride)))
    {
        return AA_ARGUMENT;
    }
    if (aa_message_is_too_long(publication->log, length))
    {
        return AA_MESSAGE_TOO_LONG;
    }
    return append_run(
        publication, &(run_t){.data = data, .length = length, .stride = stride, .count = count}, position);
}

int64_t
aa_publication_offer_slices(aa_publication_t *publication, const aa_slice_t *messages, size_t count, int64_t *position)
{
    for (size_t i = 0; i < count; i++)
    {
        if (aa_message_is_too_long(publication->log, messages[i].length))
        {
            return AA_MESSAGE_TOO_LONG;
        }
    }
    return append_run(publication, &(run_t){.slices = messages, .count = count}, position);
}
