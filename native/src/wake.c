#define _GNU_SOURCE
#include "wake.h"

#include "counters.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000LL
#define NS_PER_S 1000000000LL

/* The thread's back-off: this many looks at once, then parks that double from the shortest to the longest. */
#define IMMEDIATE_LOOKS 32
#define SHORTEST_PARK_NS 20000

/* Where only the broadcast is watched, parks may be so many times as long as the longest otherwise. */
#define QUIET_PARKS 8

/* Where looks are dear, the longest park grows until they cost no more than one part in so many of a core, up to
 * twice its length; the cost is taken anew after so many looks. */
#define CORE_PARTS 125
#define LOOKS_PER_COST 128

/* How long a task looks before the loop gets a turn, and how long it may be served without one. */
#define SLICE_NS 20000
#define TURN_NS 500000

/* Where spinning has not paid, so many waits at most do without. The trial after that is so many times as long, and so
 * many more follow that end in time: who is waited for may wait for us in turn, parked, and be as quick as we are once
 * both spin. */
#define LONGEST_REST 64
#define TRIAL_LENGTH 4
#define TRIAL_ATTEMPTS 16

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
    bool is_stopped;
    _Atomic int64_t last_beat_ns;

    /* Between the thread and others. */
    _Atomic bool is_stopping;
    _Atomic uint32_t nudges; /* the futex that the thread parks on */
    _Atomic bool is_parked;
    _Atomic bool is_parked_long; /* longer than a watch that is armed may wait */
    _Atomic bool is_signalled;   /* the descriptor is, or will at once be, readable */
    _Atomic bool is_broadcast_ready;
    _Atomic int32_t armed; /* how many watches are */
    _Atomic uint32_t arms; /* counts how often one was */
    _Atomic bool is_any_released;
    /* The list grows at its head, and only the thread takes out, so it may walk it without the lock. */
    pthread_mutex_t lock;
    _Atomic(aa_watch_t *) watches;

    /* The loop's own. */
    int32_t last_id;
    aa_watch_t *first_armed;
    bool can_spin;
    const aa_watch_t *spinner; /* whose task spins */
    int64_t spin_begun_ns;
    int64_t spin_until_ns;
    int64_t last_turn_ns; /* when the loop's other tasks were last let run by those that wait here */
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* --- looking --------------------------------------------------------------------------------------------- */

/* Release and acquire, both: what was marked before is seen by the take that clears this. */
static void signal_loop(aa_watcher_t *watcher)
{
    if (!atomic_exchange_explicit(&watcher->is_signalled, true, memory_order_acq_rel))
    {
        /* Cannot fail: the counter never comes near its maximum. */
        eventfd_write(watcher->descriptor, 1);
    }
}

static void sweep(aa_watcher_t *watcher)
{
    aa_watch_t *released = NULL;
    pthread_mutex_lock(&watcher->lock);
    /* Pairs with the release of remove: what was removed before is seen to be. */
    atomic_exchange_explicit(&watcher->is_any_released, false, memory_order_acquire);
    aa_watch_t *before = NULL;
    aa_watch_t *watch = atomic_load_explicit(&watcher->watches, memory_order_relaxed);
    while (watch != NULL)
    {
        aa_watch_t *next = watch->next;
        if (atomic_load_explicit(&watch->state, memory_order_relaxed) != AA_WATCH_RELEASED)
        {
            before = watch;
        }
        else
        {
            if (before == NULL)
            {
                atomic_store_explicit(&watcher->watches, next, memory_order_relaxed);
            }
            else
            {
                before->next = next;
            }
            watch->next = released;
            released = watch;
        }
        watch = next;
    }
    pthread_mutex_unlock(&watcher->lock);
    while (released != NULL)
    {
        aa_watch_t *next = released->next;
        aa_watch_release(released);
        released = next;
    }
}

/* False where it is not waiting any more. */
static bool mark_ready(aa_watch_t *watch)
{
    int waiting = AA_WATCH_WAITING;
    return atomic_compare_exchange_strong_explicit(
        &watch->state, &waiting, AA_WATCH_READY, memory_order_relaxed, memory_order_relaxed);
}

/* Whether the thread leaves a watch that is ready to the publisher that is about to signal it; not for long, as that
 * may have died. */
static bool is_left_to_publisher(const aa_watcher_t *watcher, aa_watch_t *watch, int64_t now_ns)
{
    if (!aa_watch_was_signalled(watch))
    {
        return false;
    }
    if (watch->left_since_ns == 0)
    {
        watch->left_since_ns = now_ns;
    }
    return now_ns - watch->left_since_ns < watcher->max_park_ns / 2;
}

/* Whether any of the watches became ready. */
static bool look_at_watches(aa_watcher_t *watcher, int64_t now_ns)
{
    if (atomic_load_explicit(&watcher->is_any_released, memory_order_relaxed))
    {
        sweep(watcher);
    }
    bool any = false;
    aa_watch_t *watch = atomic_load_explicit(&watcher->watches, memory_order_acquire);
    for (; watch != NULL; watch = watch->next)
    {
        if (atomic_load_explicit(&watch->state, memory_order_relaxed) != AA_WATCH_WAITING || !aa_watch_is_ready(watch))
        {
            watch->left_since_ns = 0;
        }
        else if (!is_left_to_publisher(watcher, watch, now_ns))
        {
            any |= mark_ready(watch);
        }
    }
    if (any)
    {
        signal_loop(watcher);
    }
    return any;
}

/* What the thread remembers from look to look. */
typedef struct
{
    int64_t announced_tail; /* of the broadcast, with the time it was told to the loop */
    int64_t announced_ns;
    int64_t last_look_ns;
    int64_t last_keepalive_ns;
    int64_t silent_until_ns; /* no keepalive before a beat later than this */
    int idle_looks;          /* since there was something */
    uint32_t seen_arms;
    int64_t longest_park_ns;
    int64_t cost_cpu_ns; /* the processor time that the thread had used when the cost was last taken */
    int cost_looks;
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
    atomic_store_explicit(&watcher->is_broadcast_ready, true, memory_order_relaxed);
    signal_loop(watcher);
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

static bool is_stopping(const aa_watcher_t *watcher)
{
    return atomic_load_explicit(&watcher->is_stopping, memory_order_relaxed);
}

/* Whether somebody waits for more than the broadcast, or has done so since the last look. */
static bool is_watched(aa_watcher_t *watcher, memory_t *memory)
{
    const uint32_t arms = atomic_load_explicit(&watcher->arms, memory_order_relaxed);
    const bool was_armed = arms != memory->seen_arms;
    memory->seen_arms = arms;
    return was_armed || atomic_load_explicit(&watcher->armed, memory_order_seq_cst) > 0;
}

static void take_cost(const aa_watcher_t *watcher, memory_t *memory)
{
    if (++memory->cost_looks < LOOKS_PER_COST)
    {
        return;
    }
    const int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const int64_t park_ns = (cpu_ns - memory->cost_cpu_ns) / memory->cost_looks * CORE_PARTS;
    memory->cost_cpu_ns = cpu_ns;
    memory->cost_looks = 0;
    memory->longest_park_ns = park_ns < watcher->max_park_ns       ? watcher->max_park_ns
                              : park_ns > 2 * watcher->max_park_ns ? 2 * watcher->max_park_ns
                                                                   : park_ns;
}

static int64_t next_park_ns(const memory_t *memory, int64_t longest_ns)
{
    if (memory->idle_looks < IMMEDIATE_LOOKS)
    {
        return 0;
    }
    const int doublings = memory->idle_looks - IMMEDIATE_LOOKS;
    const int64_t park_ns = doublings < 20 ? (int64_t)SHORTEST_PARK_NS << doublings : longest_ns;
    return park_ns < longest_ns ? park_ns : longest_ns;
}

/* Parks unless nudged since nudges was read. */
static void park(aa_watcher_t *watcher, uint32_t nudges, int64_t park_ns)
{
    const struct timespec time = {.tv_sec = park_ns / NS_PER_S, .tv_nsec = park_ns % NS_PER_S};
    /* With nudge: either it sees that the thread is parked, or the kernel sees that the futex has changed. */
    atomic_store_explicit(&watcher->is_parked, true, memory_order_seq_cst);
    syscall(SYS_futex, &watcher->nudges, FUTEX_WAIT_PRIVATE, nudges, &time, NULL, 0);
    atomic_store_explicit(&watcher->is_parked, false, memory_order_relaxed);
}

static void park_or_not(aa_watcher_t *watcher, memory_t *memory, uint32_t nudges)
{
    int64_t park_ns = next_park_ns(memory, memory->longest_park_ns);
    if (park_ns == 0)
    {
        return;
    }
    if (park_ns < memory->longest_park_ns)
    {
        park(watcher, nudges, park_ns);
        return;
    }
    take_cost(watcher, memory);
    if (is_watched(watcher, memory))
    {
        park(watcher, nudges, park_ns);
        return;
    }
    /* With arm: either it sees that this park is long, or this sees that a watch is armed. */
    atomic_store_explicit(&watcher->is_parked_long, true, memory_order_seq_cst);
    if (!is_watched(watcher, memory))
    {
        park(watcher, nudges, next_park_ns(memory, QUIET_PARKS * watcher->max_park_ns));
    }
    atomic_store_explicit(&watcher->is_parked_long, false, memory_order_relaxed);
}

static void *run(void *argument)
{
    aa_watcher_t *watcher = argument;
    const int64_t started_ns = clock_ns(CLOCK_MONOTONIC);
    memory_t memory = {
        .announced_tail = -1,
        .last_look_ns = started_ns,
        .last_keepalive_ns = started_ns,
        .longest_park_ns = watcher->max_park_ns,
    };
    uint32_t nudges = atomic_load_explicit(&watcher->nudges, memory_order_acquire);
    while (!is_stopping(watcher))
    {
        const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        keep_alive(watcher, &memory, now_ns);
        bool is_busy = look_at_broadcast(watcher, &memory, now_ns);
        is_busy |= look_at_watches(watcher, now_ns);
        memory.idle_looks = is_busy ? 0 : memory.idle_looks + (memory.idle_looks < INT_MAX);
        park_or_not(watcher, &memory, nudges);
        /* Acquire pairs with the release of who nudges: what it did before is seen by the next look. */
        const uint32_t now_nudges = atomic_load_explicit(&watcher->nudges, memory_order_acquire);
        if (now_nudges != nudges)
        {
            nudges = now_nudges;
            memory.idle_looks = 0;
        }
    }
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

/* On a single processor whoever is waited for cannot run meanwhile. */
static bool has_processors(void)
{
    cpu_set_t processors;
    return sched_getaffinity(0, sizeof(processors), &processors) != 0 || CPU_COUNT(&processors) > 1;
}

static void free_watcher(aa_watcher_t *watcher)
{
    aa_watch_t *watch = atomic_load_explicit(&watcher->watches, memory_order_relaxed);
    while (watch != NULL)
    {
        aa_watch_t *next = watch->next;
        aa_watch_release(watch);
        watch = next;
    }
    if (watcher->descriptor >= 0)
    {
        close(watcher->descriptor);
    }
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
    started->can_spin = has_processors();
    atomic_init(&started->last_beat_ns, clock_ns(CLOCK_MONOTONIC));
    pthread_mutex_init(&started->lock, NULL);

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
        free_watcher(started);
        return aa_error_system(error, system, "pthread_create: %s", strerror(system));
    }
    *watcher = started;
    return AA_OK;
}

void aa_watcher_stop(aa_watcher_t *watcher)
{
    /* A forked child has no thread to join. */
    if (!watcher->is_stopped && watcher->process == getpid())
    {
        watcher->is_stopped = true;
        atomic_store_explicit(&watcher->is_stopping, true, memory_order_relaxed);
        aa_watcher_nudge(watcher);
        pthread_join(watcher->thread, NULL);
    }
}

void aa_watcher_release(aa_watcher_t *watcher)
{
    if (watcher == NULL)
    {
        return;
    }
    if (watcher->process != getpid())
    {
        /* The lock and the list may have been caught half-way: leave them. */
        close(watcher->descriptor);
        return;
    }
    aa_watcher_stop(watcher);
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
    atomic_fetch_add_explicit(&watcher->nudges, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&watcher->is_parked, memory_order_seq_cst))
    {
        syscall(SYS_futex, &watcher->nudges, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

int32_t aa_watcher_add(aa_watcher_t *watcher, aa_watch_t *watch)
{
    watcher->last_id = watcher->last_id == INT32_MAX ? 1 : watcher->last_id + 1;
    watch->id = watcher->last_id;
    pthread_mutex_lock(&watcher->lock);
    watch->next = atomic_load_explicit(&watcher->watches, memory_order_relaxed);
    /* Pairs with the acquire of the thread, which walks the list. */
    atomic_store_explicit(&watcher->watches, aa_watch_reference(watch), memory_order_release);
    pthread_mutex_unlock(&watcher->lock);
    return watch->id;
}

void aa_watcher_remove(aa_watcher_t *watcher, aa_watch_t *watch)
{
    aa_watcher_leave(watcher, watch);
    atomic_store_explicit(&watch->state, AA_WATCH_RELEASED, memory_order_relaxed);
    atomic_store_explicit(&watcher->is_any_released, true, memory_order_release);
}

static bool is_armed(const aa_watch_t *watch)
{
    return watch->armed_link != NULL;
}

/* True where it became armed, false where it is ready. */
static bool arm(aa_watcher_t *watcher, aa_watch_t *watch)
{
    if (aa_watch_raise(watch))
    {
        aa_watch_lower(watch);
        return false;
    }
    watch->next_armed = watcher->first_armed;
    watch->armed_link = &watcher->first_armed;
    if (watch->next_armed != NULL)
    {
        watch->next_armed->armed_link = &watch->next_armed;
    }
    watcher->first_armed = watch;
    atomic_store_explicit(&watch->state, AA_WATCH_WAITING, memory_order_relaxed);
    atomic_fetch_add_explicit(&watcher->arms, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&watcher->armed, 1, memory_order_seq_cst);
    if (watch->is_served_by_thread || atomic_load_explicit(&watcher->is_parked_long, memory_order_seq_cst))
    {
        aa_watcher_nudge(watcher);
    }
    return true;
}

static void disarm(aa_watcher_t *watcher, aa_watch_t *watch)
{
    *watch->armed_link = watch->next_armed;
    if (watch->next_armed != NULL)
    {
        watch->next_armed->armed_link = watch->armed_link;
    }
    watch->armed_link = NULL;
    atomic_store_explicit(&watch->state, AA_WATCH_IDLE, memory_order_relaxed);
    atomic_fetch_sub_explicit(&watcher->armed, 1, memory_order_relaxed);
    aa_watch_lower(watch);
}

void aa_watcher_leave(aa_watcher_t *watcher, aa_watch_t *watch)
{
    if (is_armed(watch))
    {
        disarm(watcher, watch);
    }
    if (watcher->spinner == watch)
    {
        watcher->spinner = NULL;
    }
}

int aa_watcher_take(aa_watcher_t *watcher, int readable, int32_t *ids, int capacity)
{
    int count = 0;
    if (readable >= 0)
    {
        /* As much as an eventfd's counter, or a few signals of a FIFO. */
        uint8_t ignored[64];
        const ssize_t length = read(readable, ignored, sizeof(ignored));
        (void)length;
    }
    if (atomic_load_explicit(&watcher->is_signalled, memory_order_relaxed))
    {
        /* After the read: what is signalled from now on makes the descriptor readable again. */
        atomic_exchange_explicit(&watcher->is_signalled, false, memory_order_acq_rel);
        if (capacity > 0 && atomic_exchange_explicit(&watcher->is_broadcast_ready, false, memory_order_relaxed))
        {
            ids[count++] = AA_TAKEN_BROADCAST;
        }
    }
    aa_watch_t *next;
    for (aa_watch_t *watch = watcher->first_armed; watch != NULL; watch = next)
    {
        next = watch->next_armed;
        const bool is_found_by_thread = atomic_load_explicit(&watch->state, memory_order_relaxed) == AA_WATCH_READY;
        const bool was_signalled = aa_watch_was_signalled(watch);
        if (!is_found_by_thread && !aa_watch_is_ready(watch) && !aa_watch_raise(watch))
        {
            continue;
        }
        if (count == capacity)
        {
            signal_loop(watcher);
            break;
        }
        ids[count++] = watch->id;
        watch->is_served_by_thread = is_found_by_thread && !was_signalled;
        disarm(watcher, watch);
    }
    return count;
}

/* --- waiting --------------------------------------------------------------------------------------------- */

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void aa_watcher_turn(aa_watcher_t *watcher)
{
    watcher->last_turn_ns = clock_ns(CLOCK_MONOTONIC);
}

/* The end of a wait. */
static int ready(aa_watcher_t *watcher, int64_t now_ns)
{
    if (now_ns - watcher->last_turn_ns < TURN_NS)
    {
        return AA_WAIT_READY;
    }
    watcher->last_turn_ns = now_ns;
    return AA_WAIT_READY_TURN;
}

static bool are_others_ready(const aa_watcher_t *watcher)
{
    bool any = false;
    for (aa_watch_t *watch = watcher->first_armed; watch != NULL; watch = watch->next_armed)
    {
        if (aa_watch_is_ready(watch))
        {
            any = true;
            mark_ready(watch);
        }
    }
    return any;
}

/* Whether the task may spin: no other of the client does, and it has paid, or is to be tried again. */
static bool begin_spin(aa_watcher_t *watcher, aa_watch_t *watch, int64_t spin_ns, int64_t now_ns)
{
    if (spin_ns <= 0 || !watcher->can_spin || watcher->spinner != NULL)
    {
        return false;
    }
    if (watch->spin.rest > 0)
    {
        watch->spin.rest--;
        return false;
    }
    watcher->spinner = watch;
    watcher->spin_begun_ns = now_ns;
    watcher->spin_until_ns = now_ns + (watch->spin.period == 0 ? spin_ns : TRIAL_LENGTH * spin_ns);
    return true;
}

static void rest(aa_spin_record_t *record, int64_t now_ns)
{
    const int longer = record->period == 0 ? 1 : 2 * record->period;
    record->period = longer < LONGEST_REST ? longer : LONGEST_REST;
    /* A little at random, so that two who answer each other do not miss each other's trials for ever. */
    record->rest = record->period - (int)(now_ns % (record->period / 4 + 1));
    record->attempts = TRIAL_ATTEMPTS;
}

static void end_spin(aa_watcher_t *watcher, aa_watch_t *watch, bool is_ready, int64_t spin_ns, int64_t now_ns)
{
    aa_spin_record_t *record = &watch->spin;
    watcher->spinner = NULL;
    if (is_ready && now_ns - watcher->spin_begun_ns < spin_ns)
    {
        record->period = 0;
    }
    else if (!is_ready || --record->attempts <= 0)
    {
        rest(record, now_ns);
    }
}

/* AA_WAIT_PARKED where the time to spin is over. */
static int spin(aa_watcher_t *watcher, aa_watch_t *watch, int64_t spin_ns, int64_t now_ns)
{
    const int64_t slice_until_ns = now_ns + SLICE_NS;
    while (now_ns < watcher->spin_until_ns)
    {
        if (aa_watch_is_ready(watch))
        {
            end_spin(watcher, watch, true, spin_ns, now_ns);
            return ready(watcher, now_ns);
        }
        if (are_others_ready(watcher))
        {
            watcher->last_turn_ns = now_ns;
            return AA_WAIT_OTHERS;
        }
        if (now_ns >= slice_until_ns)
        {
            watcher->last_turn_ns = now_ns;
            return AA_WAIT_AGAIN;
        }
        relax();
        now_ns = clock_ns(CLOCK_MONOTONIC);
    }
    end_spin(watcher, watch, false, spin_ns, now_ns);
    return AA_WAIT_PARKED;
}

int aa_watcher_wait(aa_watcher_t *watcher, aa_watch_t *watch, int64_t spin_ns)
{
    const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (is_armed(watch))
    {
        disarm(watcher, watch);
    }
    if (watcher->spinner == watch || begin_spin(watcher, watch, spin_ns, now_ns))
    {
        const int result = spin(watcher, watch, spin_ns, now_ns);
        if (result != AA_WAIT_PARKED)
        {
            return result;
        }
    }
    if (!arm(watcher, watch))
    {
        return ready(watcher, now_ns);
    }
    watcher->last_turn_ns = now_ns;
    return AA_WAIT_PARKED;
}

int aa_watcher_look(aa_watcher_t *watcher, const aa_watch_t *watch, int64_t spin_ns)
{
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    const int64_t until_ns = now_ns + spin_ns;
    while (!aa_watch_is_ready(watch))
    {
        if (now_ns >= until_ns)
        {
            return AA_WAIT_AGAIN;
        }
        relax();
        now_ns = clock_ns(CLOCK_MONOTONIC);
    }
    return ready(watcher, now_ns);
}
