#define _GNU_SOURCE
#include "wake.h"

#include "counters.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000LL
#define NS_PER_S 1000000000LL

/* The back-off: this many looks at once, then parks that double from the shortest to the caller's longest. */
#define IMMEDIATE_LOOKS 32
#define SHORTEST_PARK_NS 20000

typedef enum
{
    WATCH_WAITING,
    WATCH_READY,
    WATCH_DONE, /* taken or unwatched; the thread frees it */
} watch_state_t;

/* What somebody waits for: frames in any of some images, or a publication. */
typedef struct watch
{
    struct watch *next;
    int32_t ticket;
    watch_state_t state; /* under the lock */
    bool looks_ready;    /* the thread's own */
    int kind;            /* of a publication's watch */
    aa_publication_t *publication;
    size_t image_count;
    aa_image_t *images[];
} watch_t;

struct aa_watcher
{
    aa_cnc_t *cnc;
    aa_broadcast_t *broadcast;
    int64_t client_id;
    int64_t keepalive_interval_ns;
    int64_t stall_limit_ns;
    int64_t liveness_timeout_ns;
    int64_t max_park_ns;
    pid_t process; /* that has the thread */
    pthread_t thread;
    int descriptor;
    _Atomic int64_t last_beat_ns;

    /* Held for a few instructions, never while the thread looks at shared memory. */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_stopping;
    bool is_nudged;
    bool is_signalled; /* the descriptor is readable */
    bool is_broadcast_ready;
    int32_t last_ticket;
    /* Others add at the head and mark; only the thread takes out, so it may walk the list without the lock. */
    watch_t *watches;
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* --- looking --------------------------------------------------------------------------------------------- */

static void free_watch(watch_t *watch)
{
    aa_publication_release(watch->publication);
    for (size_t i = 0; i < watch->image_count; i++)
    {
        aa_image_release(watch->images[i]);
    }
    free(watch);
}

static bool is_publication_ready(const aa_publication_t *publication, int kind)
{
    if (aa_publication_is_closed(publication))
    {
        return true;
    }
    if (!aa_publication_is_connected(publication))
    {
        return false;
    }
    return kind == AA_WATCH_CONNECTED ||
           aa_publication_position(publication) < aa_publication_position_limit(publication);
}

static bool is_ready(const watch_t *watch)
{
    if (watch->publication != NULL)
    {
        return is_publication_ready(watch->publication, watch->kind);
    }
    for (size_t i = 0; i < watch->image_count; i++)
    {
        if (aa_image_is_closed(watch->images[i]) || aa_image_has_frame(watch->images[i]))
        {
            return true;
        }
    }
    return false;
}

/* Under the lock. */
static void signal_loop(aa_watcher_t *watcher)
{
    if (!watcher->is_signalled)
    {
        watcher->is_signalled = eventfd_write(watcher->descriptor, 1) == 0;
    }
}

/* Takes out what is done with; the head of what is left. Under the lock. */
static watch_t *sweep(aa_watcher_t *watcher, watch_t **done)
{
    watch_t **link = &watcher->watches;
    while (*link != NULL)
    {
        watch_t *watch = *link;
        if (watch->state == WATCH_DONE)
        {
            *link = watch->next;
            watch->next = *done;
            *done = watch;
        }
        else
        {
            link = &watch->next;
        }
    }
    return watcher->watches;
}

/* Whether any of the watches became ready. */
static bool look_at_watches(aa_watcher_t *watcher)
{
    watch_t *done = NULL;
    pthread_mutex_lock(&watcher->lock);
    watch_t *first = sweep(watcher, &done);
    pthread_mutex_unlock(&watcher->lock);
    while (done != NULL)
    {
        watch_t *next = done->next;
        free_watch(done);
        done = next;
    }

    bool any = false;
    for (watch_t *watch = first; watch != NULL; watch = watch->next)
    {
        if (!watch->looks_ready)
        {
            watch->looks_ready = is_ready(watch);
            any |= watch->looks_ready;
        }
    }
    if (!any)
    {
        return false;
    }

    bool became_ready = false;
    pthread_mutex_lock(&watcher->lock);
    for (watch_t *watch = first; watch != NULL; watch = watch->next)
    {
        if (watch->looks_ready && watch->state == WATCH_WAITING)
        {
            watch->state = WATCH_READY;
            became_ready = true;
        }
    }
    if (became_ready)
    {
        signal_loop(watcher);
    }
    pthread_mutex_unlock(&watcher->lock);
    return became_ready;
}

/* What the thread remembers from look to look. */
typedef struct
{
    int64_t announced_tail; /* of the broadcast, with the time it was told to the loop */
    int64_t announced_ns;
    int64_t last_look_ns;
    int64_t last_keepalive_ns;
    int64_t silent_until_ns; /* no keepalive before a beat later than this */
} memory_t;

/* The same unread records are announced again only after a while: the loop may be on its way to them. */
static bool look_at_broadcast(aa_watcher_t *watcher, memory_t *memory, int64_t now_ns)
{
    const int64_t tail = aa_broadcast_unread_tail(watcher->broadcast);
    if (tail < 0 || (tail == memory->announced_tail && now_ns - memory->announced_ns < watcher->max_park_ns))
    {
        return false;
    }
    const bool is_new = tail != memory->announced_tail;
    memory->announced_tail = tail;
    memory->announced_ns = now_ns;
    pthread_mutex_lock(&watcher->lock);
    watcher->is_broadcast_ready = true;
    signal_loop(watcher);
    pthread_mutex_unlock(&watcher->lock);
    return is_new;
}

/* --- keeping the client alive ---------------------------------------------------------------------------- */

/* After a gap in which the driver will have given the client up (SIGSTOP, a suspended machine), a beat of the thread
 * would only hide that from the conductor. */
static void keep_alive(aa_watcher_t *watcher, memory_t *memory, int64_t now_ns)
{
    if (now_ns - memory->last_look_ns > watcher->liveness_timeout_ns)
    {
        memory->silent_until_ns = now_ns;
    }
    memory->last_look_ns = now_ns;
    if (now_ns - memory->last_keepalive_ns < watcher->keepalive_interval_ns)
    {
        return;
    }

    const int64_t last_beat_ns = atomic_load_explicit(&watcher->last_beat_ns, memory_order_relaxed);
    if (last_beat_ns > memory->silent_until_ns && now_ns - last_beat_ns < watcher->stall_limit_ns)
    {
        aa_cnc_client_heartbeat(watcher->cnc, watcher->client_id, clock_ns(CLOCK_REALTIME) / NS_PER_MS);
    }
    memory->last_keepalive_ns = now_ns;
}

/* --- the thread ------------------------------------------------------------------------------------------ */

/* Parks unless nudged. Whether to go on. */
static bool park(aa_watcher_t *watcher, int64_t park_ns, bool *was_nudged)
{
    const int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + park_ns;
    const struct timespec deadline = {.tv_sec = deadline_ns / NS_PER_S, .tv_nsec = deadline_ns % NS_PER_S};
    pthread_mutex_lock(&watcher->lock);
    int result = 0;
    while (park_ns > 0 && !watcher->is_nudged && !watcher->is_stopping && result == 0)
    {
        result = pthread_cond_timedwait(&watcher->wake, &watcher->lock, &deadline);
    }
    *was_nudged = watcher->is_nudged;
    watcher->is_nudged = false;
    const bool go_on = !watcher->is_stopping;
    pthread_mutex_unlock(&watcher->lock);
    return go_on;
}

static int64_t next_park_ns(const aa_watcher_t *watcher, int idle_looks)
{
    if (idle_looks < IMMEDIATE_LOOKS)
    {
        return 0;
    }
    const int doublings = idle_looks - IMMEDIATE_LOOKS;
    const int64_t park_ns = doublings < 20 ? (int64_t)SHORTEST_PARK_NS << doublings : watcher->max_park_ns;
    return park_ns < watcher->max_park_ns ? park_ns : watcher->max_park_ns;
}

static void *run(void *argument)
{
    aa_watcher_t *watcher = argument;
    const int64_t started_ns = clock_ns(CLOCK_MONOTONIC);
    memory_t memory = {.announced_tail = -1, .last_look_ns = started_ns, .last_keepalive_ns = started_ns};
    int idle_looks = 0;
    bool was_nudged = false;
    do
    {
        const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        keep_alive(watcher, &memory, now_ns);
        bool is_busy = look_at_broadcast(watcher, &memory, now_ns);
        is_busy |= look_at_watches(watcher) || was_nudged;
        idle_looks = is_busy ? 0 : idle_looks + (idle_looks < INT_MAX);
    } while (park(watcher, next_park_ns(watcher, idle_looks), &was_nudged));
    return NULL;
}

/* --- start and stop -------------------------------------------------------------------------------------- */

static int start_thread(aa_watcher_t *watcher)
{
    /* The program's signal handlers belong to its own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(&watcher->thread, NULL, run, watcher);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0)
    {
        pthread_setname_np(watcher->thread, "aeron-watch");
    }
    return result;
}

static void init_lock(aa_watcher_t *watcher)
{
    pthread_mutex_init(&watcher->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watcher->wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* What the thread and its watches held, once it has ended. */
static void free_watcher(aa_watcher_t *watcher)
{
    while (watcher->watches != NULL)
    {
        watch_t *next = watcher->watches->next;
        free_watch(watcher->watches);
        watcher->watches = next;
    }
    pthread_cond_destroy(&watcher->wake);
    pthread_mutex_destroy(&watcher->lock);
    aa_broadcast_release(watcher->broadcast);
    aa_cnc_release(watcher->cnc);
    free(watcher);
}

int aa_watcher_start(
    aa_cnc_t *cnc, aa_broadcast_t *broadcast, int64_t client_id, int64_t keepalive_interval_ms, int64_t stall_limit_ms,
    int64_t liveness_timeout_ms, int64_t max_park_ns, aa_watcher_t **watcher, aa_error_t *error)
{
    aa_watcher_t *started = calloc(1, sizeof(*started));
    if (started == NULL)
    {
        return aa_error_system(error, ENOMEM, "no memory for a watcher");
    }
    started->cnc = aa_cnc_reference(cnc);
    started->broadcast = aa_broadcast_reference(broadcast);
    started->client_id = client_id;
    started->keepalive_interval_ns = keepalive_interval_ms * NS_PER_MS;
    started->stall_limit_ns = stall_limit_ms * NS_PER_MS;
    started->liveness_timeout_ns = liveness_timeout_ms * NS_PER_MS;
    started->max_park_ns = max_park_ns;
    started->process = getpid();
    atomic_init(&started->last_beat_ns, clock_ns(CLOCK_MONOTONIC));
    init_lock(started);

    started->descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (started->descriptor < 0)
    {
        int system = errno;
        free_watcher(started);
        return aa_error_system(error, system, "eventfd: %s", strerror(system));
    }
    int system = start_thread(started);
    if (system != 0)
    {
        close(started->descriptor);
        free_watcher(started);
        return aa_error_system(error, system, "pthread_create: %s", strerror(system));
    }
    *watcher = started;
    return AA_OK;
}

void aa_watcher_stop(aa_watcher_t *watcher)
{
    if (watcher == NULL)
    {
        return;
    }
    if (watcher->process != getpid())
    {
        /* A forked child has no thread to join, and the lock and the list may have been caught half-way: leave them. */
        close(watcher->descriptor);
        return;
    }

    pthread_mutex_lock(&watcher->lock);
    watcher->is_stopping = true;
    pthread_cond_signal(&watcher->wake);
    pthread_mutex_unlock(&watcher->lock);
    pthread_join(watcher->thread, NULL);
    close(watcher->descriptor);
    free_watcher(watcher);
}

/* --- the loop's side ------------------------------------------------------------------------------------- */

int aa_watcher_fd(const aa_watcher_t *watcher)
{
    return watcher->descriptor;
}

void aa_watcher_beat(aa_watcher_t *watcher)
{
    atomic_store_explicit(&watcher->last_beat_ns, clock_ns(CLOCK_MONOTONIC), memory_order_relaxed);
}

void aa_watcher_nudge(aa_watcher_t *watcher)
{
    pthread_mutex_lock(&watcher->lock);
    watcher->is_nudged = true;
    pthread_cond_signal(&watcher->wake);
    pthread_mutex_unlock(&watcher->lock);
}

static int32_t add_watch(aa_watcher_t *watcher, watch_t *watch)
{
    pthread_mutex_lock(&watcher->lock);
    watcher->last_ticket = watcher->last_ticket == INT32_MAX ? 1 : watcher->last_ticket + 1;
    const int32_t ticket = watch->ticket = watcher->last_ticket;
    watch->next = watcher->watches;
    watcher->watches = watch;
    watcher->is_nudged = true;
    pthread_cond_signal(&watcher->wake);
    pthread_mutex_unlock(&watcher->lock);
    return ticket;
}

int32_t aa_watcher_watch_images(aa_watcher_t *watcher, aa_image_t *const *images, size_t count)
{
    watch_t *watch = calloc(1, sizeof(*watch) + count * sizeof(watch->images[0]));
    if (watch == NULL)
    {
        return AA_SYSTEM;
    }
    watch->image_count = count;
    for (size_t i = 0; i < count; i++)
    {
        watch->images[i] = aa_image_reference(images[i]);
    }
    return add_watch(watcher, watch);
}

int32_t aa_watcher_watch_publication(aa_watcher_t *watcher, aa_publication_t *publication, int kind)
{
    watch_t *watch = calloc(1, sizeof(*watch));
    if (watch == NULL)
    {
        return AA_SYSTEM;
    }
    watch->publication = aa_publication_reference(publication);
    watch->kind = kind;
    return add_watch(watcher, watch);
}

void aa_watcher_unwatch(aa_watcher_t *watcher, int32_t ticket)
{
    pthread_mutex_lock(&watcher->lock);
    for (watch_t *watch = watcher->watches; watch != NULL; watch = watch->next)
    {
        if (watch->ticket == ticket)
        {
            watch->state = WATCH_DONE;
        }
    }
    pthread_mutex_unlock(&watcher->lock);
}

int aa_watcher_take(aa_watcher_t *watcher, int32_t *tickets, int capacity)
{
    int count = 0;
    bool is_any_left = false;
    eventfd_t ignored;
    pthread_mutex_lock(&watcher->lock);
    eventfd_read(watcher->descriptor, &ignored);
    watcher->is_signalled = false;
    if (watcher->is_broadcast_ready && capacity > 0)
    {
        tickets[count++] = AA_WATCH_BROADCAST;
        watcher->is_broadcast_ready = false;
    }
    for (watch_t *watch = watcher->watches; watch != NULL; watch = watch->next)
    {
        if (watch->state == WATCH_READY && count < capacity)
        {
            tickets[count++] = watch->ticket;
            watch->state = WATCH_DONE;
        }
        else if (watch->state == WATCH_READY)
        {
            is_any_left = true;
        }
    }
    if (is_any_left || watcher->is_broadcast_ready)
    {
        signal_loop(watcher);
    }
    pthread_mutex_unlock(&watcher->lock);
    return count;
}
