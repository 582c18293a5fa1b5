/* The whole boundary between Python and the C core. cffi reads this file; the headers in include/ declare the same
 * names for C, and the compiler checks that both agree.
 *
 * Every create and open returns one reference, every release gives one back. Objects hold references to what they
 * need, so a handle stays safe to use after close, until its own release. */

/* --- results and errors ---------------------------------------------------------------------------------- */

#define AA_OK 0
#define AA_NOT_READY -10 /* not there yet: try again later */
#define AA_FULL -11      /* no room in the to-driver buffer now */
#define AA_NOTHING -12   /* nothing to receive */
#define AA_LAPPED -13    /* fell behind the broadcast */
#define AA_CORRUPT -14   /* shared memory holds what cannot be true */
#define AA_VERSION -15   /* the file has another layout version */
#define AA_SYSTEM -16    /* a system call failed; aa_error_t.system has errno */
#define AA_ARGUMENT -17  /* the caller passed what the call cannot take */

/* Results of offers; OfferResult in Python. */
#define AA_NOT_CONNECTED -1
#define AA_BACK_PRESSURED -2
#define AA_ADMIN_ACTION -3
#define AA_CLOSED -4
#define AA_MAX_POSITION_EXCEEDED -5
#define AA_ERROR -6
#define AA_MESSAGE_TOO_LONG -7

typedef struct
{
    int32_t code;   /* one of the results above */
    int32_t system; /* errno where code is AA_SYSTEM */
    char text[480];
} aa_error_t;

/* Equal in modules that were built from the same sources of the core. */
const char *aa_build_fingerprint(void);

/* --- the CnC file ---------------------------------------------------------------------------------------- */

typedef struct aa_cnc aa_cnc_t;

typedef struct
{
    int32_t version;
    int32_t to_driver_buffer_length;
    int32_t to_clients_buffer_length;
    int32_t counters_metadata_buffer_length;
    int32_t counters_values_buffer_length;
    int32_t error_log_buffer_length;
    int64_t client_liveness_timeout_ns;
    int64_t start_timestamp_ms;
    int64_t pid;
    int32_t file_page_size;
} aa_cnc_info_t;

/* AA_OK; AA_NOT_READY where the file is absent, too short or not yet initialised; AA_VERSION; AA_CORRUPT; AA_SYSTEM. */
int aa_cnc_open(const char *path, aa_cnc_t **cnc, aa_error_t *error);
void aa_cnc_release(aa_cnc_t *cnc);
void aa_cnc_info(const aa_cnc_t *cnc, aa_cnc_info_t *info);
/* Epoch ms of the driver's last heartbeat; -1 once it has shut down. */
int64_t aa_cnc_driver_heartbeat(const aa_cnc_t *cnc);
int64_t aa_cnc_next_correlation_id(aa_cnc_t *cnc);
/* Writes one command to the to-driver ring buffer: AA_OK, AA_FULL, or AA_ARGUMENT (too long, bad type id). */
int aa_cnc_send(aa_cnc_t *cnc, int32_t type_id, const uint8_t *command, size_t length);

/* --- the to-clients broadcast ---------------------------------------------------------------------------- */

typedef struct aa_broadcast aa_broadcast_t;

/* Starts at the latest record. NULL without memory. */
aa_broadcast_t *aa_broadcast_open(aa_cnc_t *cnc);
void aa_broadcast_release(aa_broadcast_t *broadcast);
/* Copies the next record out: its length (>= 0), or AA_NOTHING, AA_LAPPED, AA_CORRUPT (also: longer than capacity). */
int aa_broadcast_receive(aa_broadcast_t *broadcast, int32_t *type_id, uint8_t *record, size_t capacity);
/* The longest record that the driver can send, in bytes. */
size_t aa_broadcast_max_record_length(const aa_broadcast_t *broadcast);

/* --- counters -------------------------------------------------------------------------------------------- */

#define AA_COUNTER_UNUSED 0
#define AA_COUNTER_ALLOCATED 1
#define AA_COUNTER_RECLAIMED -1

typedef struct
{
    int32_t id;
    int32_t state;
    int32_t type_id;
    int32_t label_length; /* clamped to the label field */
    int64_t free_for_reuse_deadline_ms;
    int64_t value;
    int64_t registration_id;
    int64_t owner_id;
    int64_t reference_id;
    uint8_t key[112];
    uint8_t label[380];
} aa_counter_info_t;

int32_t aa_counters_max_id(const aa_cnc_t *cnc);
/* A snapshot of one counter's record, consistent unless its state changed: AA_OK, or AA_ARGUMENT for an id outside the
 * buffers. */
int aa_counters_read(const aa_cnc_t *cnc, int32_t id, aa_counter_info_t *info);
/* The id of the allocated counter with this type and registration id, or -1. */
int32_t aa_counters_find(const aa_cnc_t *cnc, int32_t type_id, int64_t registration_id);

/* The first allocated counter of this type whose key begins with this number and whose id is from_id or more, or -1. */
int32_t aa_counters_next(const aa_cnc_t *cnc, int32_t type_id, int32_t key, int32_t from_id);

typedef struct aa_counter aa_counter_t;

/* A handle on one counter's value; NULL for an id outside the buffers or without memory. */
aa_counter_t *aa_counter_create(aa_cnc_t *cnc, int32_t id);
void aa_counter_release(aa_counter_t *counter);
/* After close reads give the last value, and writes do nothing and give it too. */
void aa_counter_close(aa_counter_t *counter);
int64_t aa_counter_value(const aa_counter_t *counter);
void aa_counter_set(aa_counter_t *counter, int64_t value);
int64_t aa_counter_add(aa_counter_t *counter, int64_t delta);         /* the value before */
int64_t aa_counter_get_and_set(aa_counter_t *counter, int64_t value); /* the value before */
bool aa_counter_compare_and_set(aa_counter_t *counter, int64_t expected, int64_t value);

/* --- log buffers ----------------------------------------------------------------------------------------- */

typedef struct aa_log aa_log_t;

typedef struct
{
    int64_t correlation_id;
    int32_t initial_term_id;
    int32_t mtu_length;
    int32_t term_length;
    int32_t page_size;
    int32_t session_id;
    int32_t stream_id;
} aa_log_info_t;

/* AA_OK, AA_NOT_READY (no such file), AA_CORRUPT, AA_SYSTEM. Lengths are checked once and kept outside shared memory.
 */
int aa_log_open(const char *path, aa_log_t **log, aa_error_t *error);
void aa_log_release(aa_log_t *log);
void aa_log_info(const aa_log_t *log, aa_log_info_t *info);
/* Where its three terms begin, one after the other. */
const uint8_t *aa_log_terms(const aa_log_t *log);

/* --- publications ---------------------------------------------------------------------------------------- */

typedef struct aa_publication aa_publication_t;

typedef struct
{
    const uint8_t *data;
    size_t length;
} aa_slice_t;

/* position_limit_counter_id must be valid; channel_status_counter_id may be -1. AA_OK, AA_CORRUPT, AA_SYSTEM. */
int aa_publication_create(
    aa_log_t *log, aa_cnc_t *cnc, int32_t session_id, int32_t stream_id, int32_t position_limit_counter_id,
    int32_t channel_status_counter_id, bool exclusive, aa_publication_t **publication, aa_error_t *error);
void aa_publication_release(aa_publication_t *publication);
/* From any thread; offers that are under way finish, later ones give AA_CLOSED. */
void aa_publication_close(aa_publication_t *publication);
bool aa_publication_is_closed(const aa_publication_t *publication);
bool aa_publication_is_connected(const aa_publication_t *publication);
/* The stream position offers continue at; after close the last one. */
int64_t aa_publication_position(const aa_publication_t *publication);
int64_t aa_publication_position_limit(const aa_publication_t *publication);
/* The value of the channel's status counter; 1 (active) without one, as for IPC; the last one after close. */
int64_t aa_publication_channel_status(const aa_publication_t *publication);
/* From now on the owner of a wake counter (see below) is woken by messages of this publication, through a descriptor.
 * AA_OK, AA_ARGUMENT for an id outside the buffers, AA_SYSTEM without memory. From one thread at a time. */
int aa_publication_add_waiter(
    aa_publication_t *publication, int32_t counter_id, int64_t registration_id, int descriptor);
/* Takes it out, or everybody for a registration id of 0: their descriptors are used no more. */
void aa_publication_remove_waiter(aa_publication_t *publication, int64_t registration_id);
int32_t aa_publication_max_payload_length(const aa_publication_t *publication);
int32_t aa_publication_max_message_length(const aa_publication_t *publication);

/* One attempt each: the new stream position, or a result of offers. */
int64_t aa_publication_offer(aa_publication_t *publication, const uint8_t *data, size_t length, int64_t reserved_value);
/* One message from several pieces. */
int64_t aa_publication_offer_vectored(
    aa_publication_t *publication, const aa_slice_t *parts, size_t count, int64_t reserved_value);
/* count messages that lie back to back in data, in order: how many were appended (> 0), or, where none was, a result of
 * offers. Rotations on the way are gone through. Nothing is appended where one is too long or lengths are negative
 * (AA_MESSAGE_TOO_LONG, AA_ARGUMENT). *position is set to the stream position after the last that was appended, if any;
 * position may be NULL. */
int64_t aa_publication_offer_many(
    aa_publication_t *publication, const uint8_t *data, size_t data_length, const int32_t *lengths, size_t count,
    int64_t *position);
/* The same for count messages of one length, each stride bytes (0: none) behind the one before. */
int64_t aa_publication_offer_equal(
    aa_publication_t *publication, const uint8_t *data, size_t data_length, size_t length, size_t stride, size_t count,
    int64_t *position);

/* --- claims ---------------------------------------------------------------------------------------------- */

/* A frame that is reserved and filled in place, from any thread. Releasing it neither commits nor aborts. */
typedef struct aa_claim aa_claim_t;

/* One attempt: the stream position after the frame, or a result of offers; AA_MESSAGE_TOO_LONG past the maximum payload
 * length, AA_SYSTEM without memory. */
int64_t aa_publication_try_claim(aa_publication_t *publication, size_t length, aa_claim_t **claim);
void aa_claim_release(aa_claim_t *claim);
/* Where the payload lies: mapped until the claim is released. */
uint8_t *aa_claim_data(aa_claim_t *claim);
/* AA_OK; AA_CLOSED where the driver has made padding of the frame, which was held for too long; AA_ARGUMENT where the
 * claim was committed or aborted before. An aborted frame becomes padding. */
int aa_claim_commit(aa_claim_t *claim, uint8_t flags, int64_t reserved_value);
int aa_claim_abort(aa_claim_t *claim);

/* --- exclusive publications ------------------------------------------------------------------------------ */

/* One attempt each, as offers. length is without the padding frame's header. */
int64_t aa_publication_append_padding(aa_publication_t *publication, size_t length);
int32_t aa_publication_max_padding_length(const aa_publication_t *publication);
/* Appends whole frames, which must be such as this publication would have written at its position; else AA_ARGUMENT,
 * and error says why. */
int64_t
aa_publication_offer_block(aa_publication_t *publication, const uint8_t *block, size_t length, aa_error_t *error);

/* --- images ---------------------------------------------------------------------------------------------- */

typedef struct aa_image aa_image_t;

/* AA_OK, AA_CORRUPT, AA_SYSTEM. The position at creation is the join position. */
int aa_image_create(
    aa_log_t *log, aa_cnc_t *cnc, int32_t subscriber_position_counter_id, aa_image_t **image, aa_error_t *error);
void aa_image_release(aa_image_t *image);
/* From the loop's thread, while no scan of it runs. Keeps the last values; scans find nothing, commits do nothing. */
void aa_image_close(aa_image_t *image);
bool aa_image_is_closed(const aa_image_t *image);
int64_t aa_image_join_position(const aa_image_t *image);
int64_t aa_image_position(const aa_image_t *image);
bool aa_image_is_end_of_stream(const aa_image_t *image);
int64_t aa_image_end_of_stream_position(const aa_image_t *image);
int32_t aa_image_active_transport_count(const aa_image_t *image);
bool aa_image_is_publication_revoked(const aa_image_t *image);
/* Whether the position lies within a message, whose beginning is in the image's builder. */
bool aa_image_is_within_message(const aa_image_t *image);

/* --- batches --------------------------------------------------------------------------------------------- */

/* The header fields of one message. */
typedef struct
{
    int32_t frame_length; /* header and payload of the whole message */
    uint8_t version;
    uint8_t flags; /* of the last fragment, with BEGIN added where it is a whole message */
    int16_t type;
    int32_t term_offset; /* of the first fragment */
    int32_t session_id;
    int32_t stream_id;
    int32_t term_id;        /* of the first fragment */
    int64_t reserved_value; /* of the last fragment */
    int64_t position;       /* of the stream, after the message */
    int32_t initial_term_id;
    int32_t fragment_end; /* fragments that the scan had read when the message was whole */
} aa_row_t;

/* Messages in memory of their own. What is held by more than the batch that filled it does not change any more. */
typedef struct
{
    int32_t payload_length; /* of every message; -1 where they differ or there is none */
    size_t count;
    size_t nbytes;    /* payload bytes */
    uint8_t *data;    /* nbytes, payloads back to back */
    int32_t *offsets; /* count + 1 */
    aa_row_t *rows;   /* count */
    ...;
} aa_received_t;

void aa_received_release(aa_received_t *messages);
/* Gathers one field of every row, which begins after `field` bytes and has `size` bytes; out has room for count * size.
 */
void aa_received_copy_column(const aa_received_t *messages, size_t field, size_t size, uint8_t *out);

/* Whole messages copied out of images. A scan fills it and moves no position; a commit moves the positions of its
 * images past what was given to the caller. Reused from scan to scan; one reader at a time.
 *
 * What a scan copied but nobody committed is found again by the next scan. Fragments of a message that is not
 * complete are kept in the image's builder and committed at once, as soon as no uncommitted message of that image
 * lies before them. */
typedef struct
{
    size_t count;            /* messages that the last scan found */
    size_t fragments;        /* that it read, those kept in builders included */
    aa_received_t *messages; /* what it found; undefined where count is 0, and from the next scan on */
} aa_batch_t;

aa_batch_t *aa_batch_create(void);
void aa_batch_release(aa_batch_t *batch);
/* Reads on from the committed positions, starting with images[start], wrapping round, each image until its limit
 * or its end: at most fragment_limit fragments, message_limit messages, and max_bytes of payload (but at least one
 * message, however long). Keeps references to the images until the next scan, clear or release. AA_OK; AA_CORRUPT
 * (what was read before it stays in the batch and may be committed); AA_SYSTEM without memory. */
int aa_batch_scan(
    aa_batch_t *batch, aa_image_t *const *images, size_t image_count, size_t start, size_t fragment_limit,
    size_t message_limit, size_t max_bytes, aa_error_t *error);
/* Reads on in one image, as above, but no frame that begins at limit_position or behind it. */
int aa_batch_scan_image(
    aa_batch_t *batch, aa_image_t *image, int64_t limit_position, size_t fragment_limit, size_t max_bytes,
    aa_error_t *error);
/* Moves the images' positions past the first `count` messages of the last scan; with count == batch->count also past
 * padding that follows. Commits only forwards. Does nothing for images that were scanned again since. */
void aa_batch_commit(aa_batch_t *batch, size_t count);
/* A reference to what the last scan found. The next scan fills other memory, and this one again once it was let go of.
 * Where the memory is much larger than what it holds, this is a copy that fits. NULL without memory. */
aa_received_t *aa_batch_take(aa_batch_t *batch);
/* Forgets what the last scan found; its images' next scan finds it again unless it was committed. */
void aa_batch_clear(aa_batch_t *batch);

/* --- blocks ---------------------------------------------------------------------------------------------- */

/* Whole frames as they lie in the log, headers and all. They may be overwritten once the position has moved past. */
typedef struct
{
    int64_t log_offset; /* of the first frame, in bytes from the first term's beginning */
    int64_t position;   /* of the first frame */
    int32_t length;     /* bytes, 0 where there is nothing to read now */
    int32_t term_id;
    int32_t frame_count;    /* padding not counted */
    int32_t payload_length; /* of every frame; -1 where they differ or there is none */
} aa_block_t;

/* The frames from the position on that lie in the same term and, together, in `limit` bytes. Padding ends a block;
 * where it comes first it is the whole block, however long. Moves no position. Drops what an earlier scan found and
 * nobody committed. AA_OK, AA_CORRUPT. */
int aa_block_scan(aa_image_t *image, size_t limit, aa_block_t *block, aa_error_t *error);
/* Moves the position past the block. */
void aa_block_commit(aa_image_t *image, const aa_block_t *block);
/* Where payloads begin and end, in bytes from the block's beginning; both have room for frame_count entries. AA_OK, or
 * AA_CORRUPT where the block was overwritten. */
int aa_block_index(const aa_image_t *image, const aa_block_t *block, int32_t *begins, int32_t *ends, aa_error_t *error);

/* --- watches --------------------------------------------------------------------------------------------- */

/* A counter that tells publishers of a stream, in any process on the driver, that a client waits for messages: its
 * value is its own registration id then, else 0. One for all watches of the client on the stream. */
typedef struct aa_wake_counter aa_wake_counter_t;

/* NULL for an id outside the buffers or without memory. */
aa_wake_counter_t *aa_wake_counter_create(aa_cnc_t *cnc, int32_t id, int64_t registration_id);
void aa_wake_counter_release(aa_wake_counter_t *counter);

#define AA_WATCH_WRITABLE 1  /* publication connected and its limit past its position, or closed */
#define AA_WATCH_CONNECTED 2 /* publication connected, or closed */

/* What one task waits for: frames to read at the position of any of some images, or that one is closed; or a
 * publication. All but its release belongs to the loop's thread. */
typedef struct aa_watch aa_watch_t;

/* NULL without memory. counter may be NULL. */
aa_watch_t *aa_watch_images(aa_image_t *const *images, size_t count, aa_wake_counter_t *counter);
aa_watch_t *aa_watch_publication(aa_publication_t *publication, int kind);
void aa_watch_release(aa_watch_t *watch);

/* --- the watcher ----------------------------------------------------------------------------------------- */

/* Where the tasks of an event loop wait. One native thread per client, off the GIL, looks at the broadcast and at what
 * armed watches wait for, with an adaptive back-off, and makes a descriptor readable when something is ready; and it
 * keeps the client alive while the event loop is blocked. All but nudge belongs to the loop's thread. */
typedef struct aa_watcher aa_watcher_t;

/* max_park_ns: the bound on lateness. Where the thread's looks cost more than 0.8 % of a core the bound grows, up to
 * twice that, and up to eight times for the broadcast while no watch is armed. stall_limit_ms: how long the client is
 * kept alive without aa_watcher_beat. liveness_timeout_ms: the driver's; after a gap of its own longer than this the
 * thread beats no more until the conductor does. */
int aa_watcher_start(
    aa_cnc_t *cnc, aa_broadcast_t *broadcast, int64_t client_id, int64_t keepalive_interval_ms, int64_t stall_limit_ms,
    int64_t liveness_timeout_ms, int64_t max_park_ns, aa_watcher_t **watcher, aa_error_t *error);
/* Ends the thread and waits for it; not in a forked child, where there is none. */
void aa_watcher_stop(aa_watcher_t *watcher);
/* Stops it and frees all. */
void aa_watcher_release(aa_watcher_t *watcher);
/* The descriptor to watch for readability. */
int aa_watcher_fd(const aa_watcher_t *watcher);
/* The conductor's duty cycle has run: the loop is alive. */
void aa_watcher_beat(aa_watcher_t *watcher);
/* The thread looks again at once and starts its back-off afresh: a command was sent. */
void aa_watcher_nudge(aa_watcher_t *watcher);

/* The id of the watch, above 0. It is kept until it is removed, once, after which no other call may take it. */
int32_t aa_watcher_add(aa_watcher_t *watcher, aa_watch_t *watch);
void aa_watcher_remove(aa_watcher_t *watcher, aa_watch_t *watch);

typedef enum
{
    AA_WAIT_AGAIN,      /* nothing yet: call again after a turn of the loop */
    AA_WAIT_READY,      /* the wait is over */
    AA_WAIT_READY_TURN, /* it is, but other tasks have waited long for their turn */
    AA_WAIT_OTHERS,     /* watches of others are ready: take them, and call again after a turn of the loop */
    AA_WAIT_PARKED,     /* the watch is armed: aa_watcher_take will give it */
} aa_wait_t;

/* Spins for up to spin_ns in all, over several calls, where that has paid of late and no other watch does, on behalf of
 * all that are armed; then arms the watch, anew where it is armed already. */
int aa_watcher_wait(aa_watcher_t *watcher, aa_watch_t *watch, int64_t spin_ns);
/* Looks for up to spin_ns: AA_WAIT_READY, AA_WAIT_READY_TURN or AA_WAIT_AGAIN. Arms nothing. */
int aa_watcher_look(aa_watcher_t *watcher, const aa_watch_t *watch, int64_t spin_ns);
/* A task that looks gives others their turn. */
void aa_watcher_turn(aa_watcher_t *watcher);
/* Ends a wait before its time. */
void aa_watcher_leave(aa_watcher_t *watcher, aa_watch_t *watch);

#define AA_TAKEN_BROADCAST 0

/* Looks at all that are armed, and gives up to capacity of those that are ready, disarmed, by their ids; and
 * AA_TAKEN_BROADCAST where records are to be received. With more than that the watcher's descriptor stays readable.
 * Reads first what is in the descriptor that was readable: the watcher's, a FIFO of this client, or -1. Returns how
 * many it gave. */
int aa_watcher_take(aa_watcher_t *watcher, int readable, int32_t *ids, int capacity);

/* This client's heartbeat counter (type id 11), which the driver allocates with the first command. Sets it to now,
 * and false where it is not there (not yet, or taken away by the driver). */
bool aa_cnc_client_heartbeat(aa_cnc_t *cnc, int64_t client_id, int64_t now_ms);
/* Appends text to the label of that counter, cut to the room there (label bytes first, then the length with release, as
 * Aeron's own clients do with their names). False where the counter is not there. */
bool aa_cnc_client_label(aa_cnc_t *cnc, int64_t client_id, const char *text, size_t length);
