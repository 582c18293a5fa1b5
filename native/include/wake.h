/* The watcher: where the tasks of an event loop wait for shared memory to change, and one thread that looks at it for
 * them, and that keeps the client alive while the loop is blocked. */
#ifndef AA_WAKE_H
#define AA_WAKE_H

#include "broadcast.h"
#include "watch.h"

#define AA_TAKEN_BROADCAST 0

typedef enum
{
    AA_WAIT_AGAIN,      /* nothing yet: call again after a turn of the loop */
    AA_WAIT_READY,      /* the wait is over */
    AA_WAIT_READY_TURN, /* it is, but other tasks have waited long for their turn */
    AA_WAIT_OTHERS,     /* watches of others are ready: take them, and call again after a turn of the loop */
    AA_WAIT_PARKED,     /* the watch is armed: aa_watcher_take will give it */
} aa_wait_t;

typedef struct aa_watcher aa_watcher_t;

int aa_watcher_start(
    aa_cnc_t *cnc, aa_broadcast_t *broadcast, int64_t client_id, int64_t keepalive_interval_ms, int64_t stall_limit_ms,
    int64_t liveness_timeout_ms, int64_t max_park_ns, aa_watcher_t **watcher, aa_error_t *error);
void aa_watcher_stop(aa_watcher_t *watcher);
void aa_watcher_release(aa_watcher_t *watcher);
int aa_watcher_fd(const aa_watcher_t *watcher);
void aa_watcher_beat(aa_watcher_t *watcher);
void aa_watcher_nudge(aa_watcher_t *watcher);
int32_t aa_watcher_add(aa_watcher_t *watcher, aa_watch_t *watch);
void aa_watcher_remove(aa_watcher_t *watcher, aa_watch_t *watch);
int aa_watcher_wait(aa_watcher_t *watcher, aa_watch_t *watch, int64_t spin_ns);
int aa_watcher_look(aa_watcher_t *watcher, const aa_watch_t *watch, int64_t spin_ns);
void aa_watcher_leave(aa_watcher_t *watcher, aa_watch_t *watch);
void aa_watcher_turn(aa_watcher_t *watcher);
int aa_watcher_take(aa_watcher_t *watcher, int readable, int32_t *ids, int capacity);

#endif
