/* The watcher: one thread that looks at shared memory for the event loop, and keeps the client alive while the loop is
 * blocked. */
#ifndef AA_WAKE_H
#define AA_WAKE_H

#include "broadcast.h"
#include "image.h"
#include "publication.h"

#define AA_WATCH_BROADCAST 0
#define AA_WATCH_WRITABLE 1
#define AA_WATCH_CONNECTED 2

typedef struct aa_watcher aa_watcher_t;

int aa_watcher_start(
    aa_cnc_t *cnc, aa_broadcast_t *broadcast, int64_t client_id, int64_t keepalive_interval_ms, int64_t stall_limit_ms,
    int64_t liveness_timeout_ms, int64_t max_park_ns, aa_watcher_t **watcher, aa_error_t *error);
void aa_watcher_stop(aa_watcher_t *watcher);
int aa_watcher_fd(const aa_watcher_t *watcher);
void aa_watcher_beat(aa_watcher_t *watcher);
void aa_watcher_nudge(aa_watcher_t *watcher);
int32_t aa_watcher_watch_images(aa_watcher_t *watcher, aa_image_t *const *images, size_t count);
int32_t aa_watcher_watch_publication(aa_watcher_t *watcher, aa_publication_t *publication, int kind);
void aa_watcher_unwatch(aa_watcher_t *watcher, int32_t ticket);
int aa_watcher_take(aa_watcher_t *watcher, int32_t *tickets, int capacity);

#endif
