#include "modes.h"

#include <inttypes.h>
#include <stdio.h>

#include "client.h"
#include "control.h"

/* The length of the request that ends the server. */
#define END 1

/* Idle turns between two looks at standard input, which cost a system call. */
#define TURNS 4096

typedef struct
{
    aeron_exclusive_publication_t *replies;
    uint64_t served;
    bool ended;
} server_t;

static void on_request(void *to, const uint8_t *request, size_t length, aeron_header_t *header)
{
    (void)header;
    server_t *server = to;
    if (length == END)
    {
        server->ended = true;
        return;
    }
    client_offer(server->replies, request, length);
    server->served++;
}

void run_rpc_server(const options_t *options)
{
    client_t client = client_connect(options);
    aeron_subscription_t *requests = client_subscription(&client, &options->stream);
    server_t server = {.replies = client_publication(&client, &options->reply_stream)};
    control_ready();

    for (uint64_t idle = 1; !server.ended;)
    {
        if (client_poll(requests, on_request, &server, options->batch) == 0)
        {
            cpu_relax();
            if (++idle % TURNS == 0 && control_is_closed())
            {
                break;
            }
        }
    }
    printf("{\"messages\": %" PRIu64 "}\n", server.served);
    client_close(&client);
}
