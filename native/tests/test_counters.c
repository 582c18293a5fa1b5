#define _GNU_SOURCE
#include "check.h"
#include "counters.h"
#include "fixture.h"

#include <string.h>

static aa_counter_metadata_t *metadata_of(aa_cnc_t *cnc, int32_t id)
{
    return (aa_counter_metadata_t *)cnc->counters_metadata + id;
}

TEST(counters_are_read_with_key_label_and_ids)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    allocate_counter(cnc, 2, 1002, 555, 0x0102030405060708, "some label");
    aa_counter_value_t *value = (aa_counter_value_t *)cnc->counters_values + 2;
    value->value = -9;
    value->owner_id = 66;
    value->reference_id = 77;

    aa_counter_info_t info;
    CHECK_EQUAL(aa_counters_max_id(cnc), FIXTURE_COUNTERS - 1);
    CHECK_EQUAL(aa_counters_read(cnc, 2, &info), AA_OK);
    CHECK_EQUAL(info.id, 2);
    CHECK_EQUAL(info.state, AA_COUNTER_ALLOCATED);
    CHECK_EQUAL(info.type_id, 1002);
    CHECK_EQUAL(info.registration_id, 555);
    CHECK_EQUAL(info.owner_id, 66);
    CHECK_EQUAL(info.reference_id, 77);
    CHECK_EQUAL(info.value, -9);
    CHECK_EQUAL(info.key[0], 8);
    CHECK_EQUAL(info.label_length, 10);
    CHECK_EQUAL(memcmp(info.label, "some label", 10), 0);
    CHECK_EQUAL(aa_counters_read(cnc, 3, &info), AA_OK);
    CHECK_EQUAL(info.state, AA_COUNTER_UNUSED);
    CHECK_EQUAL(aa_counters_read(cnc, -1, &info), AA_ARGUMENT);
    CHECK_EQUAL(aa_counters_read(cnc, FIXTURE_COUNTERS, &info), AA_ARGUMENT);
    aa_cnc_release(cnc);
}

TEST(counters_clamp_a_label_length_that_cannot_be_true)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_counter_info_t info;
    const int32_t nonsense[] = {-1, INT32_MIN, INT32_MAX, AA_COUNTER_LABEL_LENGTH + 1};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
    {
        metadata_of(cnc, 1)->label_length = nonsense[i];
        CHECK_EQUAL(aa_counters_read(cnc, 1, &info), AA_OK);
        CHECK_EQUAL(info.label_length, nonsense[i] < 0 ? 0 : AA_COUNTER_LABEL_LENGTH);
    }
    aa_cnc_release(cnc);
}

TEST(counters_of_a_type_and_key_are_found_one_after_the_other)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    const int32_t keys[] = {7, 7, 8, 7};
    for (int32_t id = 0; id < 4; id++)
    {
        allocate_counter(cnc, id, id == 1 ? 6 : 5, 100 + id, 0, "counter");
        memcpy(metadata_of(cnc, id)->key, &keys[id], sizeof(keys[id]));
    }
    CHECK_EQUAL(aa_counters_next(cnc, 5, 7, 0), 0);
    CHECK_EQUAL(aa_counters_next(cnc, 5, 7, 1), 3);
    CHECK_EQUAL(aa_counters_next(cnc, 5, 7, 4), -1);
    CHECK_EQUAL(aa_counters_next(cnc, 5, 8, 0), 2);
    CHECK_EQUAL(aa_counters_next(cnc, 5, 9, 0), -1);
    CHECK_EQUAL(aa_counters_next(cnc, 5, 7, -1), -1);
    CHECK_EQUAL(aa_counters_next(cnc, 5, 7, INT32_MAX), -1);
    metadata_of(cnc, 3)->state = AA_COUNTER_RECLAIMED;
    CHECK_EQUAL(aa_counters_next(cnc, 5, 7, 1), -1);
    aa_cnc_release(cnc);
}

TEST(counters_are_found_by_type_and_registration_id)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    allocate_counter(cnc, 0, 5, 100, 0, "a");
    allocate_counter(cnc, 1, 6, 100, 0, "b");
    allocate_counter(cnc, 2, 5, 200, 0, "c");
    CHECK_EQUAL(aa_counters_find(cnc, 5, 200), 2);
    CHECK_EQUAL(aa_counters_find(cnc, 6, 100), 1);
    CHECK_EQUAL(aa_counters_find(cnc, 6, 200), -1);
    metadata_of(cnc, 1)->state = AA_COUNTER_RECLAIMED;
    CHECK_EQUAL(aa_counters_find(cnc, 6, 100), -1);
    CHECK_EQUAL(aa_counters_find(cnc, 5, 200), 2);
    aa_cnc_release(cnc);
}

TEST(counter_handle_reads_and_changes_its_value)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_counter_t *counter = aa_counter_create(cnc, 7);
    CHECK(aa_counter_create(cnc, -1) == NULL);
    CHECK(aa_counter_create(cnc, FIXTURE_COUNTERS) == NULL);
    aa_counter_set(counter, 10);
    CHECK_EQUAL(*aa_counters_value(cnc, 7), 10);
    CHECK_EQUAL(aa_counter_add(counter, 5), 10);
    CHECK_EQUAL(aa_counter_get_and_set(counter, 40), 15);
    CHECK(!aa_counter_compare_and_set(counter, 41, 50));
    CHECK(aa_counter_compare_and_set(counter, 40, 50));
    CHECK_EQUAL(aa_counter_value(counter), 50);
    aa_counter_release(counter);
    aa_cnc_release(cnc);
}

TEST(counter_handle_after_close_keeps_the_last_value_and_writes_nothing)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_counter_t *counter = aa_counter_create(cnc, 7);
    aa_counter_set(counter, 10);
    aa_counter_close(counter);
    *aa_counters_value(cnc, 7) = 99;
    aa_counter_close(counter);

    CHECK_EQUAL(aa_counter_value(counter), 10);
    aa_counter_set(counter, 1);
    CHECK_EQUAL(aa_counter_add(counter, 1), 10);
    CHECK_EQUAL(aa_counter_get_and_set(counter, 1), 10);
    CHECK(!aa_counter_compare_and_set(counter, 99, 1));
    CHECK(!aa_counter_compare_and_set(counter, 10, 1));
    CHECK_EQUAL(*aa_counters_value(cnc, 7), 99);
    aa_counter_release(counter);
    aa_cnc_release(cnc);
}

TEST(client_heartbeat_is_written_only_where_the_counter_is_this_clients)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    allocate_counter(cnc, 0, AA_COUNTER_TYPE_CLIENT_HEARTBEAT, 0, 41, "client-heartbeat: 41");
    allocate_counter(cnc, 1, 10, 0, 42, "another type");
    CHECK(!aa_cnc_client_heartbeat(cnc, 42, 1000));
    CHECK(!aa_cnc_client_label(cnc, 42, " name", 5));

    allocate_counter(cnc, 2, AA_COUNTER_TYPE_CLIENT_HEARTBEAT, 0, 42, "client-heartbeat: 42");
    CHECK(aa_cnc_client_heartbeat(cnc, 42, 1000));
    CHECK_EQUAL(*aa_counters_value(cnc, 2), 1000);
    CHECK_EQUAL(*aa_counters_value(cnc, 0), 0);
    CHECK_EQUAL(*aa_counters_value(cnc, 1), 0);

    metadata_of(cnc, 2)->state = AA_COUNTER_RECLAIMED;
    CHECK(!aa_cnc_client_heartbeat(cnc, 42, 2000));
    CHECK_EQUAL(*aa_counters_value(cnc, 2), 1000);

    allocate_counter(cnc, 3, AA_COUNTER_TYPE_CLIENT_HEARTBEAT, 0, 42, "client-heartbeat: 42");
    CHECK(aa_cnc_client_heartbeat(cnc, 42, 3000));
    CHECK_EQUAL(*aa_counters_value(cnc, 3), 3000);
    aa_cnc_release(cnc);
}

TEST(client_label_is_appended_and_cut_to_the_room)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    allocate_counter(cnc, 0, AA_COUNTER_TYPE_CLIENT_HEARTBEAT, 0, 42, "client-heartbeat: 42");
    CHECK(aa_cnc_client_label(cnc, 42, " name=x", 7));
    aa_counter_info_t info;
    CHECK_EQUAL(aa_counters_read(cnc, 0, &info), AA_OK);
    CHECK_EQUAL(info.label_length, 27);
    CHECK_EQUAL(memcmp(info.label, "client-heartbeat: 42 name=x", 27), 0);

    char long_text[500];
    memset(long_text, 'y', sizeof(long_text));
    CHECK(aa_cnc_client_label(cnc, 42, long_text, sizeof(long_text)));
    CHECK(aa_cnc_client_label(cnc, 42, long_text, sizeof(long_text)));
    CHECK_EQUAL(aa_counters_read(cnc, 0, &info), AA_OK);
    CHECK_EQUAL(info.label_length, AA_COUNTER_LABEL_LENGTH);
    CHECK_EQUAL(info.label[AA_COUNTER_LABEL_LENGTH - 1], 'y');
    CHECK_EQUAL(metadata_of(cnc, 1)->state, AA_COUNTER_UNUSED);
    aa_cnc_release(cnc);
}
