/* Watches: what one task waits for, and the counter by which its stream's publishers are asked to wake it. */
#ifndef AA_WATCH_H
#define AA_WATCH_H

#include "counters.h"
#include "image.h"
#include "publication.h"

#define AA_WATCH_WRITABLE 1
#define AA_WATCH_CONNECTED 2

/* The wake counter of a stream, one for all watches of a client that wait for it. Only the loop's thread moves it. */
typedef struct aa_wake_counter
{
    aa_references_t references;
    aa_cnc_t *cnc;
    aa_counter_value_t *value;
    int64_t raised; /* the counter's registration id, so that no other counter's value is mistaken for it */
    int waiting;    /* how many watches it is raised for */
} aa_wake_counter_t;

aa_wake_counter_t *aa_wake_counter_create(aa_cnc_t *cnc, int32_t id, int64_t registration_id);
void aa_wake_counter_release(aa_wake_counter_t *counter);

typedef enum
{
    AA_WATCH_IDLE,
    AA_WATCH_WAITING,
    AA_WATCH_READY, /* found by the thread, not yet taken by the loop */
    AA_WATCH_RELEASED,
} aa_watch_state_t;

/* How spinning has paid of late. */
typedef struct
{
    int rest;     /* so many waits do not spin */
    int period;   /* how many that were the last time; 0 while spinning pays */
    int attempts; /* so many more of those that were too slow for the spin, but not for a trial, before the next rest */
} aa_spin_record_t;

typedef struct aa_watch
{
    aa_references_t references;                /* the task's, and the thread's */
    struct aa_watch *next;                     /* in the thread's list */
    struct aa_watch *next_armed, **armed_link; /* in the loop's list of those that wait */
    int32_t id;
    _Atomic int state;
    int64_t left_since_ns;    /* the thread's own: when it left the watch to a publisher that signals it */
    bool is_served_by_thread; /* it was the thread that found it ready the last time */
    aa_spin_record_t spin;
    aa_wake_counter_t *counter; /* NULL where nobody signals */
    bool is_counted;            /* among those that the counter is raised for */
    int kind;                   /* of a publication's watch */
    aa_publication_t *publication;
    size_t image_count;
    aa_image_t *images[];
} aa_watch_t;

/* NULL without memory. */
aa_watch_t *aa_watch_images(aa_image_t *const *images, size_t count, aa_wake_counter_t *counter);
aa_watch_t *aa_watch_publication(aa_publication_t *publication, int kind);
aa_watch_t *aa_watch_reference(aa_watch_t *watch);
void aa_watch_release(aa_watch_t *watch);
/* Whether what is waited for is there. From any thread. */
bool aa_watch_is_ready(const aa_watch_t *watch);

/* Asks publishers to signal, as often as it is called before lower, and looks once more. */
bool aa_watch_raise(aa_watch_t *watch);
/* Publishers need not signal on this watch's account any more. */
void aa_watch_lower(aa_watch_t *watch);
/* Whether a publisher has taken the counter down, in order to signal. From any thread. */
bool aa_watch_was_signalled(const aa_watch_t *watch);

#endif
