import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.Subscription;
import org.agrona.CloseHelper;
import org.agrona.DirectBuffer;

/** The Aeron client, and what every mode does with it. */
final class Client implements AutoCloseable
{
    /** A publication and the subscription that its messages, or the replies to them, come on. */
    record Link(Client client, ExclusivePublication publication, Subscription subscription) implements AutoCloseable
    {
        /** Returns when both are connected. */
        static Link connect(final Options options, final Options.Stream receiving)
        {
            final Client client = new Client(options);
            final Subscription subscription = client.subscription(receiving);
            final ExclusivePublication publication = client.publication(options.stream);
            awaitSubscriber(publication);
            Wait.until("a publisher", subscription::isConnected);
            return new Link(client, publication, subscription);
        }

        public void close()
        {
            client.close();
        }
    }

    private final Aeron aeron;

    Client(final Options options)
    {
        if (options.aeronDir == null)
        {
            throw new IllegalArgumentException("--aeron-dir is missing");
        }
        final Aeron.Context context = new Aeron.Context().aeronDirectoryName(options.aeronDir);
        // Such as the end of the driver, which spinning would not see.
        context.errorHandler(
            (failure) ->
            {
                System.err.println(failure);
                Runtime.getRuntime().halt(1);
            });
        aeron = Aeron.connect(context);
    }

    ExclusivePublication publication(final Options.Stream stream)
    {
        return aeron.addExclusivePublication(stream.channel(), stream.id());
    }

    Subscription subscription(final Options.Stream stream)
    {
        return aeron.addSubscription(stream.channel(), stream.id());
    }

    /** Closes it with all that it has added. */
    public void close()
    {
        CloseHelper.close(aeron);
    }

    /** Returns when somebody subscribes to it. */
    static void awaitSubscriber(final ExclusivePublication publication)
    {
        Wait.until("a subscriber", publication::isConnected);
    }

    /** Whether the message was taken; if not, there is no room for it now. */
    static boolean tryOffer(
        final ExclusivePublication publication, final DirectBuffer buffer, final int offset, final int length)
    {
        final long position = publication.offer(buffer, offset, length);
        if (position > 0)
        {
            return true;
        }
        if (position != Publication.BACK_PRESSURED &&
            position != Publication.ADMIN_ACTION &&
            position != Publication.NOT_CONNECTED)
        {
            throw new IllegalStateException("offer: " + Publication.errorString(position));
        }
        return false;
    }

    /** Offers a message until it is taken. */
    static void offer(
        final ExclusivePublication publication, final DirectBuffer buffer, final int offset, final int length)
    {
        final Wait wait = new Wait("room in the log");
        while (!tryOffer(publication, buffer, offset, length))
        {
            wait.spin();
        }
    }
}
