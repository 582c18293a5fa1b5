import java.util.Locale;

import io.aeron.logbuffer.FragmentHandler;

/** Mode {@code throughput}: a batch is sent, then received, on one thread. */
final class Throughput
{
    private final Client.Link link;
    private final Pool pool;
    private final int batch;
    private final Tally tally;
    private final FragmentHandler handler;
    private long sent;

    private Throughput(final Client.Link link, final Pool pool, final Options options)
    {
        this.link = link;
        this.pool = pool;
        batch = options.batch;
        tally = new Tally(options.ticks);
        handler = (buffer, offset, length, header) -> tally.take(buffer, offset);
    }

    static void run(final Options options) throws InterruptedException
    {
        final Pool pool = new Pool(options.size, options.ticks);
        try (Client.Link link = Client.Link.connect(options, options.stream))
        {
            Control.ready();
            new Throughput(link, pool, options).exchange(Extent.WARM_UP);
            final Throughput run = new Throughput(link, pool, options);
            final double seconds = run.exchange(options.extent) / 1e9;
            System.out.printf(Locale.ROOT, "{%s, \"seconds\": %.9f}%n", run.tally.json(), seconds);
        }
    }

    /** Returns the nanoseconds that it took. */
    private long exchange(final Extent extent)
    {
        final long start = System.nanoTime();
        long elapsed = 0;
        long left;
        while ((left = extent.left(sent, elapsed)) > 0)
        {
            send((int)Math.min(left, batch));
            drain();
            elapsed = System.nanoTime() - start;
        }
        return elapsed;
    }

    // The loops are methods of their own: these get compiled early, and whole, while the loop around them still runs.

    private void send(final int messages)
    {
        for (int i = 0; i < messages; i++)
        {
            final int message = pool.offset(sent);
            final Wait wait = new Wait("room in the log");
            while (!Client.tryOffer(link.publication(), pool.buffer, message, pool.size))
            {
                poll();
                wait.spin();
            }
            sent++;
        }
    }

    private void drain()
    {
        final Wait wait = new Wait("messages to arrive");
        while (tally.messages() < sent)
        {
            if (poll() == 0)
            {
                wait.spin();
            }
        }
    }

    private int poll()
    {
        return link.subscription().poll(handler, batch);
    }
}
